"""Networks: by name from `NETS`, or from your own factory wherever a name is accepted."""

from condense_once.nets.convnet import ConvNet
from condense_once.nets.defaults import default_net, is_large, narrow_net
from condense_once.nets.densenet import DenseNet
from condense_once.nets.flops import multiply_adds
from condense_once.nets.native import use_native_kernels
from condense_once.nets.network import NetInfo, Network, Shape, penultimate
from condense_once.nets.registry import NETS, NetChoice, make_net, net_name
from condense_once.nets.resnet import ResNet
from condense_once.nets.weights import initialise

__all__ = [
    "NETS",
    "ConvNet",
    "DenseNet",
    "NetChoice",
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
    "net_name",
    "penultimate",
    "use_native_kernels",
]
