"""ConvNet, the network that most methods condense with and evaluate on (DC, DSA, DM, MTT, IDC; YOCO's ConvNet-D3)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from torch import Tensor, nn

from condense_once.errors import BadOption
from condense_once.nets.network import Network
from condense_once.nets.registry import Shape

Norm: TypeAlias = Literal["instance", "batch", "layer", "group", "none"]


def instance_norm(channels: int) -> nn.GroupNorm:
    """Affine instance norm, as group norm with one channel per group.

    Same maths and parameters as InstanceNorm2d, and never much slower than the fastest of five ways to write it: forward
    and backward of ConvNet-D3 on 64×3×32×32, torch 2.13, one EPYC core, fp32, best of 8, takes 471 ms in eager (540 with
    InstanceNorm2d, 658 to 806 written out) and 325 ms compiled (376; 323 to 365). In float32 on a CPU a native kernel
    replaces it (`native/norm_relu_pool.py`).
    """
    return nn.GroupNorm(channels, channels)


class ConvNet(Network):
    """`depth` blocks of conv 3×3 (with bias), norm, ReLU and average pooling 2×2, then one linear layer.

    >>> ConvNet((3, 32, 32), 10).classifier
    Linear(in_features=2048, out_features=10, bias=True)
    """

    def __init__(
        self, shape: Shape, classes: int, *, depth: int = 3, channels: int = 128, norm: Norm = "instance"
    ) -> None:
        super().__init__()
        if depth < 1 or channels < 1:
            raise BadOption(f"A ConvNet needs `depth` and `channels` of at least 1, not {depth} and {channels}.")
        blocks: list[nn.Module] = []
        inputs, height, width = shape
        padding = 3 if (inputs, height, width) == (1, 28, 28) else 1  # DC's: MNIST takes the geometry of 32×32
        for block in range(depth):
            height, width = height + 2 * padding - 2, width + 2 * padding - 2
            if min(height, width) < 2:
                raise BadOption(
                    f"A ConvNet of depth {depth} is too deep for images of {shape[1]}×{shape[2]} pixels;"
                    f" choose a depth of at most {block}."
                )
            blocks.append(nn.Conv2d(inputs, channels, 3, padding=padding))
            blocks += [_norm(norm, (channels, height, width)), nn.ReLU(), nn.AvgPool2d(2)]
            inputs, height, width, padding = channels, height // 2, width // 2, 1
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(channels * height * width, classes)

    def features(self, x: Tensor) -> Tensor:
        maps: Tensor = self.blocks(x)  # [n, channels, h / 2^depth, w / 2^depth]
        return maps.flatten(1)


def _norm(norm: Norm, shape: Shape) -> nn.Module:
    channels = shape[0]
    match norm:
        case "instance":
            return instance_norm(channels)
        case "batch":
            return nn.BatchNorm2d(channels)
        case "layer":
            return nn.LayerNorm(shape)
        case "group" if channels % 4 == 0:
            return nn.GroupNorm(4, channels)  # DC's four groups
        case "group":
            raise BadOption(
                f"Group norm has 4 groups, which do not divide {channels} channels; choose a multiple of 4."
            )
        case "none":
            return nn.Identity()
    raise BadOption(f"There is no norm {norm!r}; choose instance, batch, layer, group or none.")
