"""Make networks: by name, or from a factory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import nn

from condense_once.errors import BadOption
from condense_once.nets.registry import NETS, Shape
from condense_once.nets.weights import make_fresh

NetChoice: TypeAlias = str | Callable[[Shape, int], nn.Module]  # a name, or a factory of (shape, classes)


def make_net(net: NetChoice, shape: Shape, classes: int, *, generator: torch.Generator) -> nn.Module:
    """A freshly initialised network on the CPU: one of `NETS` by name, or what your factory returns.

    A factory may be called any number of times; PyTorch's global generator is seeded from `generator` while it runs.

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
    factory = partial(NETS.get(net).build if isinstance(net, str) else net, shape, classes)
    return make_fresh(factory, generator)


def net_name(net: NetChoice) -> str:
    """The name of a network, as results and files record it."""
    return net if isinstance(net, str) else getattr(net, "__name__", "custom")
