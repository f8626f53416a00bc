"""Networks: by name from `NETS`, or your own factory, class or module wherever a name is accepted."""

from typing import TYPE_CHECKING

from condense_once.lazy import lazy_names

if TYPE_CHECKING:
    from condense_once.nets.convnet import ConvNet as ConvNet
    from condense_once.nets.defaults import default_net as default_net
    from condense_once.nets.defaults import is_large as is_large
    from condense_once.nets.defaults import narrow_net as narrow_net
    from condense_once.nets.densenet import DenseNet as DenseNet
    from condense_once.nets.flops import multiply_adds as multiply_adds
    from condense_once.nets.make import NetChoice as NetChoice
    from condense_once.nets.make import make_net as make_net
    from condense_once.nets.make import net_name as net_name
    from condense_once.nets.native import use_native_kernels as use_native_kernels
    from condense_once.nets.network import Network as Network
    from condense_once.nets.network import features_and_logits as features_and_logits
    from condense_once.nets.network import penultimate as penultimate
    from condense_once.nets.registry import NETS as NETS
    from condense_once.nets.registry import NetInfo as NetInfo
    from condense_once.nets.registry import Shape as Shape
    from condense_once.nets.resnet import ResNet as ResNet
    from condense_once.nets.weights import initialise as initialise

_HOMES = {
    "NETS": "registry",
    "ConvNet": "convnet",
    "DenseNet": "densenet",
    "NetChoice": "make",
    "NetInfo": "registry",
    "Network": "network",
    "ResNet": "resnet",
    "Shape": "registry",
    "default_net": "defaults",
    "features_and_logits": "network",
    "initialise": "weights",
    "is_large": "defaults",
    "make_net": "make",
    "multiply_adds": "flops",
    "narrow_net": "defaults",
    "net_name": "make",
    "penultimate": "network",
    "use_native_kernels": "native",
}
__all__ = [*_HOMES]
__getattr__ = lazy_names(__name__, _HOMES)
