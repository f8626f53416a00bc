"""Networks: by name from `NETS`, or from a factory of your own wherever a name is asked for."""

from condense_once.nets.blocks import with_native_layers
from condense_once.nets.choosing import LARGE, brief_net, default_net
from condense_once.nets.convnet import ConvNet
from condense_once.nets.counting import multiply_adds
from condense_once.nets.densenet import DenseNet
from condense_once.nets.registry import NETS, NetInfo, Network, Shape, initialise, make_net, penultimate
from condense_once.nets.resnet import ResNet

__all__ = [
    "LARGE",
    "NETS",
    "ConvNet",
    "DenseNet",
    "NetInfo",
    "Network",
    "ResNet",
    "Shape",
    "brief_net",
    "default_net",
    "initialise",
    "make_net",
    "multiply_adds",
    "penultimate",
    "with_native_layers",
]
