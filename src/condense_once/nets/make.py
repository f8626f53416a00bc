"""Make networks: by name, from a factory, or fresh copies of a module. Those of users are checked before they are trained."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from condense_once.errors import BadOption, CondenseOnceError
from condense_once.nets.registry import NETS, Shape
from condense_once.nets.weights import factory_of, global_generator_restored, make_fresh, reset
from condense_once.text import first_line

# a name, a factory or class called with (shape, classes), or a module, of which fresh copies are trained
NetChoice: TypeAlias = str | Callable[[Shape, int], nn.Module] | nn.Module

EXAMPLE = "factory(shape, classes), such as factory((3, 32, 32), 10)"


def make_net(net: NetChoice, shape: Shape, classes: int, *, generator: torch.Generator) -> nn.Module:
    """A freshly initialised network on the CPU: one of `NETS` by name, what your factory returns, or a copy of your module.

    A factory, or a class, is called as `factory(shape, classes)` with the shape (channels, height, width) of an image, any
    number of times; PyTorch's global generator is seeded from `generator` while it runs. A module is copied, and the weights
    of the copy are initialised by `reset_parameters()` of its layers; the module itself is left alone. Both must map
    `[n, *shape]` to `[n, classes]`, which is tried on two images.

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
            f"A network needs `shape` (channels, height, width) and `classes`, all at least 1,"
            f" not {tuple(shape)} and {classes}."
        )
    if isinstance(net, str):
        return make_fresh(partial(NETS.get(net).build, shape, classes), generator)
    module = make_fresh(_factory(net, shape, classes), generator)
    _check_outputs(module, net_name(net), shape, classes)
    return module


def net_name(net: NetChoice) -> str:
    """The name of a network, as results and files record it: of a factory or class its own, of a module that of its class.

    >>> net_name("convnet-d3"), net_name(nn.Linear), net_name(nn.Flatten()), net_name(partial(nn.Linear, 3))
    ('convnet-d3', 'Linear', 'Flatten', 'Linear')
    """
    if isinstance(net, str):
        return net
    if isinstance(net, nn.Module):
        return type(net).__name__
    while isinstance(net, partial):
        net = net.func
    name = getattr(net, "__name__", type(net).__name__)
    return name if name.isidentifier() else "custom"


def _factory(net: Callable[[Shape, int], nn.Module] | nn.Module, shape: Shape, classes: int) -> Callable[[], nn.Module]:
    if isinstance(net, nn.Module):
        return factory_of(net) or partial(_fresh_copy, net)
    if not callable(net):
        raise BadOption(f"`net` must be a name, a torch.nn.Module or a {EXAMPLE}, not {type(net).__name__}.")
    try:
        inspect.signature(net).bind(shape, classes)
    except TypeError as error:
        raise BadOption(
            f"The network {net_name(net)} cannot be made: it is called as {EXAMPLE}, which fails: {first_line(error)}."
        ) from None
    except ValueError:  # some builtins have no signature
        pass
    return partial(_call, net, shape, classes)


def _call(net: Callable[[Shape, int], nn.Module], shape: Shape, classes: int) -> nn.Module:
    try:
        return net(shape, classes)
    except CondenseOnceError:
        raise
    except Exception as error:  # a user's code can raise anything
        raise BadOption(
            f"The network {net_name(net)} cannot be made: called as {EXAMPLE}, it raised"
            f" {type(error).__name__}: {first_line(error)}."
        ) from error


def _fresh_copy(module: nn.Module) -> nn.Module:
    if any(is_lazy(weight) for weight in module.parameters()):
        raise BadOption(
            f"The network {net_name(module)} has lazy layers without weights; run a batch through it first."
        )
    copied = deepcopy(module).cpu().float()
    if not callable(getattr(copied, "initialise", None)):
        reset(copied)
    return copied


@torch.no_grad()
def _check_outputs(module: nn.Module, name: str, shape: Shape, classes: int) -> None:
    """Refuse a network that does not map two images to two rows of logits."""
    was_training = module.training
    module.eval()
    size = "×".join(map(str, shape))
    try:
        with global_generator_restored():
            logits = module(torch.zeros(2, *shape))
    except Exception as error:  # a user's code can raise anything
        raise BadOption(
            f"The network {name} does not take images of {size}: {type(error).__name__}: {first_line(error)}."
        ) from error
    finally:
        module.train(was_training)
    found = f"shape {list(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
    if not isinstance(logits, Tensor) or logits.shape != (2, classes):
        raise BadOption(
            f"The network {name} must map [n, {', '.join(map(str, shape))}] to [n, {classes}], one number per class; for two"
            f" images it returned {found}."
        )
