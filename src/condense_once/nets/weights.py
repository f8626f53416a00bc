"""Weight initialisation.

Always in place and from a generator: the same seed gives the same weights, the global random state is left alone, and code
compiled for a network serves every run that starts from fresh weights.
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

_GLOBAL_GENERATOR = RLock()  # shared by all threads
_FACTORY = "_condense_once_factory"  # attribute of a module: the factory that made it


def init_uniform(layer: nn.Conv2d | nn.Linear, generator: torch.Generator) -> None:
    """PyTorch's default, kaiming_uniform with a=√5: weight and bias uniform in ±1/√fan_in."""
    bound = layer.weight[0].numel() ** -0.5
    for weight in layer.parameters(recurse=False):
        weight.copy_(empty_for(weight, generator).uniform_(-bound, bound, generator=generator))


def empty_for(weight: Tensor, generator: torch.Generator) -> Tensor:
    """A buffer to sample a weight in, so that the network's device, precision and layout do not change its values."""
    return torch.empty(weight.shape, device=generator.device)


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Re-initialise all weights of a network in place.

    A module with a method `initialise(generator)`, such as every `Network`, does it itself. A module from a user's factory
    (through `make_net`) copies the weights of a new one from the factory, so the factory's own initialisation is kept.
    Any other module needs `reset_parameters()`, as PyTorch's own layers have, wherever it has parameters.
    """
    own = getattr(module, "initialise", None)
    factory = factory_of(module)
    if callable(own):
        own(generator)
    elif factory is not None:
        module.load_state_dict(_seeded(factory, generator).state_dict())
    else:
        _seeded(partial(reset, module), generator)


def make_fresh(factory: Callable[[], nn.Module], generator: torch.Generator) -> nn.Module:
    """A new module from a factory, initialised from the generator; it remembers the factory to be re-initialised by."""
    # constructors sample from the global generator; `initialise` replaces all of it
    with global_generator_restored():
        module = factory()
    if not isinstance(module, nn.Module):
        raise BadOption(f"A network factory must return a torch.nn.Module, not {type(module).__name__}.")
    vars(module)[_FACTORY] = factory  # past nn.Module.__setattr__: not a parameter, never in the state_dict
    initialise(module, generator)
    return module


def factory_of(module: nn.Module) -> Callable[[], nn.Module] | None:
    """The factory that made a module, through `make_net`."""
    factory: Callable[[], nn.Module] | None = vars(module).get(_FACTORY)
    return factory


def reset(module: nn.Module) -> None:
    """Re-initialise all layers from PyTorch's global generator, by their own `reset_parameters()`."""
    for layer in module.modules():
        reset = getattr(layer, "reset_parameters", None)
        if callable(reset):
            reset()
        elif any(True for _ in layer.parameters(recurse=False)):
            raise BadOption(
                f"{type(layer).__name__} in {type(module).__name__} cannot be re-initialised: it has no"
                f" reset_parameters(); pass a factory(shape, classes) that makes it, or give it a method"
                f" initialise(generator)."
            )


def _seeded(make: Callable[[], Any], generator: torch.Generator) -> Any:
    with seeded_globally(generator):
        return make()


@contextmanager
def seeded_globally(generator: torch.Generator) -> Iterator[None]:
    """Seed PyTorch's global generator from ours, for code that samples from it; restored afterwards, one thread at a time."""
    seed = int(torch.randint(2**63 - 1, (), generator=generator, device=generator.device))
    with global_generator_restored():
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def global_generator_restored() -> Iterator[None]:
    """Restore PyTorch's global generator after code that may sample from it, one thread at a time."""
    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        yield
