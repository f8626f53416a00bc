"""How weights are drawn.

Always in place, from a generator: the same seed gives the same weights, the global random state stays as it was, and code
compiled for a network serves every training that starts from fresh weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn

from condense_once.errors import BadOption

_GLOBAL_GENERATOR = RLock()  # it is one for all threads
_FACTORY = "_condense_once_factory"  # the attribute by which a user's module remembers how it was made


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


def make_fresh(factory: Callable[[], nn.Module], generator: torch.Generator) -> nn.Module:
    """What a factory makes, with weights from the generator; it remembers the factory for the next time they are drawn."""
    # constructors draw from the global generator; `initialise` replaces it all
    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        module = factory()
    if not isinstance(module, nn.Module):
        raise BadOption(f"A network factory must return a torch.nn.Module, not {type(module).__name__}.")
    vars(module)[_FACTORY] = factory  # past nn.Module.__setattr__: not a parameter, never in the state_dict
    initialise(module, generator)
    return module


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
