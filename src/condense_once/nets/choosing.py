"""Which network images get where nobody names one."""

from __future__ import annotations

from condense_once.nets.registry import Shape

LARGE = 64  # images above this side are ImageNet-like


def default_net(shape: Shape) -> str:
    """The network that condensation and evaluation use for images of this size.

    >>> default_net((3, 32, 32)), default_net((3, 224, 224))
    ('convnet-d3', 'resnet10-ap')
    """
    return "convnet-d3" if max(shape[1:]) <= LARGE else "resnet10-ap"


def brief_net(shape: Shape) -> str:
    """The network that images are matched by where time is short: half as wide, if there is such a one.

    >>> brief_net((3, 32, 32)), brief_net((3, 224, 224))
    ('convnet-d3-w64', 'resnet10-ap')
    """
    return "convnet-d3-w64" if max(shape[1:]) <= LARGE else default_net(shape)
