"""Networks by name. Entries are data: PyTorch is imported when a network is built."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from condense_once.errors import UnknownName
from condense_once.registry import Lazy, Registry
from condense_once.text import plural

if TYPE_CHECKING:
    from condense_once.nets.network import Network

Shape: TypeAlias = tuple[int, int, int]  # (channels, height, width)

NAME_PATTERN = (
    "ConvNets are named convnet-dDEPTH[-wWIDTH][-NORM], by default 128 channels wide; NORM is bn, ln, gn or none."
)
_CONVNET = re.compile(r"convnet-d(?P<depth>\d{1,2})(-w(?P<width>\d{1,4}))?(-(?P<norm>bn|ln|gn|none))?", re.ASCII)
_NORMS = {None: "instance", "bn": "batch", "ln": "layer", "gn": "group", "none": "none"}


@dataclass(frozen=True)
class NetInfo:
    name: str
    summary: str
    build: Callable[[Shape, int], Network]  # (shape, classes); its initial weights are replaced


class Nets(Registry[NetInfo]):
    """Networks by name; ConvNets of any depth, width and norm are known, listed or not.

    >>> NETS.get("convnet-d5-w64-bn").build((3, 32, 32), 10).classifier
    Linear(in_features=64, out_features=10, bias=True)
    """

    def get(self, name: str) -> NetInfo:
        try:
            return super().get(name)
        except UnknownName as error:
            if found := parse_convnet(name):
                return found
            advice = f" {NAME_PATTERN}" if name.startswith("conv") else ""
            raise UnknownName(f"{error}{advice}") from None


def parse_convnet(name: str) -> NetInfo | None:
    """The ConvNet that a name describes, or None.

    >>> parse_convnet("convnet-d4-w64-bn").summary
    'ConvNet of 4 blocks, 64 channels, batch norm'
    """
    found = _CONVNET.fullmatch(name)
    if found is None:
        return None
    depth, channels, norm = int(found["depth"]), int(found["width"] or 128), _NORMS[found["norm"]]
    summary = f"ConvNet of {plural(depth, 'block')}, {plural(channels, 'channel')}, {norm} norm"
    return NetInfo(name, summary, _convnet(depth=depth, channels=channels, norm=norm))


def _convnet(**settings: object) -> Lazy:
    return Lazy("condense_once.nets.convnet:ConvNet", settings)


def _resnet(function: str) -> Lazy:
    return Lazy(f"condense_once.nets.resnet:{function}")


NETS = Nets("nets")
NETS.add(NetInfo("convnet-d3", "ConvNet of 3 blocks, 128 channels, instance norm: the default", _convnet()))
NETS.add(NetInfo("convnet-d4", "ConvNet of 4 blocks, for images of 64 pixels", _convnet(depth=4)))
NETS.add(NetInfo("convnet-d3-bn", "ConvNet of 3 blocks with batch norm", _convnet(norm="batch")))
NETS.add(NetInfo("convnet-d3-w32", "ConvNet of 3 blocks, 32 channels, for small machines", _convnet(channels=32)))
NETS.add(
    NetInfo("resnet10-ap", "IDC's ResNet-10: average pooling instead of strides, instance norm", _resnet("resnet10_ap"))
)
NETS.add(NetInfo("resnet10", "ResNet-10 with batch norm, 32 to 256 channels, for small images", _resnet("resnet10")))
NETS.add(NetInfo("resnet10-imagenet", "ResNet-10 with batch norm and the ImageNet stem", _resnet("resnet10_imagenet")))
NETS.add(NetInfo("resnet18", "ResNet-18 with batch norm, for small images", _resnet("resnet18")))
NETS.add(NetInfo("resnet18-imagenet", "ResNet-18 with batch norm and the ImageNet stem", _resnet("resnet18_imagenet")))
NETS.add(
    NetInfo(
        "densenet",
        "DenseNet-BC, growth 12, blocks of 6, 12, 24 and 16 layers, for small images",
        Lazy("condense_once.nets.densenet:DenseNet"),
    )
)
