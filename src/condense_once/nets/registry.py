"""The networks by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from condense_once.errors import BadOption, UnknownName
from condense_once.nets.convnet import CONVNETS, HOW_CALLED, convnet_called
from condense_once.nets.network import NetInfo, Shape
from condense_once.nets.weights import make_fresh
from condense_once.registry import Registry


class Nets(Registry[NetInfo]):
    """The networks by name; ConvNets are known in any depth, width and norm, whether listed or not.

    >>> NETS.get("convnet-d5-w64-bn").build((3, 32, 32), 10).classifier
    Linear(in_features=64, out_features=10, bias=True)
    """

    def get(self, name: str) -> NetInfo:
        try:
            return super().get(name)
        except UnknownName as error:
            if found := convnet_called(name):
                return found
            advice = f" {HOW_CALLED}" if name.startswith("conv") else ""
            raise UnknownName(f"{error}{advice}") from None


NETS = Nets("nets")
for _listed in CONVNETS:
    NETS.add(_listed)


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
    return make_fresh(factory, generator)
