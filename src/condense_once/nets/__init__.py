"""Networks: by name from `NETS`, or from a factory of your own wherever a name is asked for."""

from condense_once.nets.blocks import with_native_layers
from condense_once.nets.convnet import ConvNet
from condense_once.nets.defaults import default_net, is_large, narrow_net
from condense_once.nets.densenet import DenseNet
from condense_once.nets.flops import multiply_adds
from condense_once.nets.network import NetInfo, Network, Shape, penultimate
from condense_once.nets.registry import NETS, make_net
from condense_once.nets.resnet import ResNet
from condense_once.nets.weights import initialise

__all__ = [
    "NETS",
    "ConvNet",
    "DenseNet",
    "NetInfo",
    "Network",
    "ResNet",
    "Shape",
    "default_net",
    "initialise",
    "is_large",
    "make_net",
    "multiply_adds",
    "narrow_net",
    "penultimate",
    "with_native_layers",
]
