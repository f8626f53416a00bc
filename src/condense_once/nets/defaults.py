"""The default networks, by the size of the images."""

from __future__ import annotations

from condense_once.nets.registry import Shape

LARGE = 64  # pixels


def is_large(shape: Shape) -> bool:
    """Whether images are ImageNet-sized: above 64 pixels on a side.

    >>> is_large((3, 64, 64)), is_large((3, 64, 65))
    (False, True)
    """
    return max(shape[1:]) > LARGE


def default_net(shape: Shape) -> str:
    """The default network of condensation and evaluation for images of this size.

    >>> default_net((3, 32, 32)), default_net((3, 224, 224))
    ('convnet-d3', 'resnet10-ap')
    """
    return "resnet10-ap" if is_large(shape) else "convnet-d3"


def narrow_net(shape: Shape) -> str:
    """The network to condense with when time is short: half as wide, if there is one.

    >>> narrow_net((3, 32, 32)), narrow_net((3, 224, 224))
    ('convnet-d3-w64', 'resnet10-ap')
    """
    return default_net(shape) if is_large(shape) else "convnet-d3-w64"
