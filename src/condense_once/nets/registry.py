"""What a network is, how one is made by name, and how its weights are drawn.

Weights are always drawn in place, from a generator: the same seed gives the same weights, the global random state stays
as it was, and code compiled for a network serves every training that starts from fresh weights.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from condense_once.errors import BadOption, UnknownName
from condense_once.registry import Registry

Shape: TypeAlias = tuple[int, int, int]  # (channels, height, width)

_GLOBAL_GENERATOR = RLock()  # it is one for all threads
_FACTORY = "_condense_once_factory"  # the attribute by which a user's module remembers how it was made


class Network(nn.Module, ABC):
    """A classifier whose last layer is linear, so that what it reads, the penultimate features, has a name.

    A subclass builds its layers, `classifier` among them, and defines `features`.
    """

    classifier: nn.Linear

    @abstractmethod
    def features(self, x: Tensor) -> Tensor: ...  # [n, ch, h, w] -> [n, classifier.in_features]

    def forward(self, x: Tensor) -> Tensor:  # [n, ch, h, w] -> [n, classes]
        logits: Tensor = self.classifier(self.features(x))
        return logits

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw all weights anew, in place."""
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                self.draw_conv(layer, generator)
            elif isinstance(layer, nn.Linear):
                draw_uniform(layer, generator)
            elif isinstance(layer, _BatchNorm | nn.GroupNorm | nn.LayerNorm):
                layer.reset_parameters()  # weight 1, bias 0, running statistics forgotten: nothing is drawn
            elif any(True for _ in layer.parameters(recurse=False)):
                raise BadOption(
                    f"{type(self).__name__} has a {type(layer).__name__}, whose weights Network.initialise cannot draw;"
                    f" override initialise(generator) in {type(self).__name__}."
                )

    def draw_conv(self, conv: nn.Conv2d, generator: torch.Generator) -> None:
        draw_uniform(conv, generator)


def draw_uniform(layer: nn.Conv2d | nn.Linear, generator: torch.Generator) -> None:
    """PyTorch's own default, kaiming_uniform with a=√5: weight and bias are uniform in ±1/√fan_in."""
    bound = layer.weight[0].numel() ** -0.5
    for weight in layer.parameters(recurse=False):
        weight.copy_(blank(weight, generator).uniform_(-bound, bound, generator=generator))


def blank(weight: Tensor, generator: torch.Generator) -> Tensor:
    """Where to draw a weight before it is copied: device, precision and layout of the network must not change it."""
    return torch.empty(weight.shape, device=generator.device)


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw all weights of a network anew, in place.

    A module with a method `initialise(generator)` does it itself, as every `Network` does. One that came from a user's
    factory through `make_net` takes over what the factory makes next, so it keeps the factory's own way of initialising.
    Any other module needs `reset_parameters()`, the custom of PyTorch's own layers, wherever it has parameters.
    """
    own = getattr(module, "initialise", None)
    factory = vars(module).get(_FACTORY)
    if callable(own):
        own(generator)
    elif factory is not None:
        module.load_state_dict(_seeded(factory, generator).state_dict())
    else:
        _seeded(partial(_reset, module), generator)


def _reset(module: nn.Module) -> None:
    for layer in module.modules():
        reset = getattr(layer, "reset_parameters", None)
        if callable(reset):
            reset()
        elif any(True for _ in layer.parameters(recurse=False)):
            raise BadOption(
                f"The weights of {type(layer).__name__} in {type(module).__name__} cannot be drawn anew: it has no"
                f" reset_parameters(); make the network with make_net or give it a method initialise(generator)."
            )


def _seeded(make: Callable[[], Any], generator: torch.Generator) -> Any:
    with seeded_globally(generator):
        return make()


@contextmanager
def seeded_globally(generator: torch.Generator) -> Iterator[None]:
    """For code that draws from PyTorch's global generator: seeded from ours, put back afterwards, one thread at a time."""
    seed = int(torch.randint(2**63 - 1, (), generator=generator, device=generator.device))
    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@dataclass(frozen=True)
class NetInfo:
    name: str
    summary: str
    build: Callable[[Shape, int], Network]  # (shape, classes); the weights it draws are replaced


_CONVNET = re.compile(r"convnet-d(?P<depth>\d{1,2})(-w(?P<width>\d{1,4}))?(-(?P<norm>bn|ln|gn|none))?", re.ASCII)
_CONVNETS = "Any ConvNet is called convnet-dDEPTH, then -wWIDTH if not of 128 channels, then -bn, -ln, -gn or -none."


class Nets(Registry[NetInfo]):
    """The networks by name; ConvNets are known in any depth, width and norm, whether listed or not.

    >>> NETS.get("convnet-d5-w64-bn").build((3, 32, 32), 10).classifier
    Linear(in_features=64, out_features=10, bias=True)
    """

    def get(self, name: str) -> NetInfo:
        try:
            return super().get(name)
        except UnknownName as error:
            if found := _CONVNET.fullmatch(name):
                return _convnet(name, int(found["depth"]), int(found["width"] or 128), found["norm"])
            advice = f" {_CONVNETS}" if name.startswith("conv") else ""
            raise UnknownName(f"{error}{advice}") from None


NETS = Nets("nets")


def _convnet(name: str, depth: int, width: int, norm: str | None) -> NetInfo:
    from condense_once.nets.convnet import ConvNet  # which imports this module
    from condense_once.nets.convnet import Norm as NormName

    norms: dict[str | None, NormName] = {None: "instance", "bn": "batch", "ln": "layer", "gn": "group", "none": "none"}
    summary = f"ConvNet of {depth} blocks, {width} channels, {norms[norm]} norm"
    return NetInfo(name, summary, partial(ConvNet, depth=depth, channels=width, norm=norms[norm]))


def make_net(
    net: str | Callable[[Shape, int], nn.Module], shape: Shape, classes: int, *, generator: torch.Generator
) -> nn.Module:
    """A network with fresh weights, on the CPU: one of `NETS` by its name, or whatever a factory of yours makes.

    A factory may be called any number of times; what it draws from PyTorch's global generator is seeded from `generator`.

    >>> net = make_net("convnet-d3", (3, 32, 32), 10, generator=torch.Generator().manual_seed(0))
    >>> sum(weight.numel() for weight in net.parameters())
    320010
    >>> own = make_net(lambda shape, classes: nn.Sequential(nn.Flatten(), nn.Linear(shape[1] * shape[2], classes)),
    ...                (1, 4, 4), 2, generator=torch.Generator().manual_seed(0))
    >>> own(torch.zeros(5, 1, 4, 4)).shape
    torch.Size([5, 2])
    """
    if len(shape) != 3 or min(shape) < 1 or classes < 1:
        raise BadOption(
            f"A network needs (channels, height, width) and a number of classes, all at least 1,"
            f" not {tuple(shape)} and {classes}."
        )
    factory = partial(NETS.get(net).build if isinstance(net, str) else net, shape, classes)
    # constructors draw from the global generator; `initialise` replaces it all
    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        module = factory()
    if not isinstance(module, nn.Module):
        raise BadOption(f"A network factory must return a torch.nn.Module, not {type(module).__name__}.")
    vars(module)[_FACTORY] = factory  # past nn.Module.__setattr__: not a parameter, never in the state_dict
    initialise(module, generator)
    return module


def penultimate(module: nn.Module, x: Tensor) -> Tensor:
    """What the last linear layer reads, [n, d]: `features` of a `Network`, found by looking on in any other module.

    Only a `Network` is asked for its `features`: in torchvision's models that name is another thing.
    """
    if isinstance(module, Network):
        return module.features(x)
    seen: list[Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        for layer in module.modules()
        if isinstance(layer, nn.Linear)
    ]
    try:
        module(x)
    finally:
        for hook in hooks:
            hook.remove()
    if not seen:
        raise BadOption(
            f"{type(module).__name__} used no torch.nn.Linear, so it has no penultimate features; end it with one or"
            f" derive it from condense_once.nets.Network."
        )
    return seen[-1].flatten(1)
