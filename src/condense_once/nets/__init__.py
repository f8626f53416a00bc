"""Networks: by name from `NETS`, or from a factory of your own wherever a name is asked for."""

from condense_once.nets.convnet import ConvNet
from condense_once.nets.densenet import DenseNet
from condense_once.nets.registry import NETS, NetInfo, Network, Shape, initialise, make_net, penultimate
from condense_once.nets.resnet import ResNet

__all__ = [
    "NETS",
    "ConvNet",
    "DenseNet",
    "NetInfo",
    "Network",
    "ResNet",
    "Shape",
    "initialise",
    "make_net",
    "penultimate",
]
