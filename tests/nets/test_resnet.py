from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from condense_once.errors import BadOption
from condense_once.nets import NETS
from condense_once.nets.convnet import instance_norm
from condense_once.nets.resnet import BasicBlock, ResNet, resnet10_ap


def count(name: str, side: int, classes: int) -> int:
    return sum(weight.numel() for weight in NETS.get(name).build((3, side, side), classes).parameters())


@pytest.mark.parametrize(
    ("name", "side", "classes", "weights"),
    [
        ("resnet10-ap", 224, 10, 4_910_922),
        ("resnet10", 32, 10, 1_228_970),
        ("resnet10-imagenet", 224, 1000, 5_418_792),
        ("resnet18", 32, 10, 11_173_962),
        ("resnet18-imagenet", 224, 1000, 11_689_512),
    ],
)
def test_published_numbers_of_weights(name: str, side: int, classes: int, weights: int) -> None:
    assert count(name, side, classes) == weights


def naive_instance_norm(x: Tensor, layer: nn.GroupNorm) -> Tensor:
    out = torch.empty_like(x)
    for image in range(x.shape[0]):
        for channel in range(x.shape[1]):
            values = x[image, channel]
            standard = (values - values.mean()) / (values.var(correction=0) + 1e-5).sqrt()
            out[image, channel] = standard * layer.weight[channel] + layer.bias[channel]
    return out


def half(x: Tensor) -> Tensor:
    return nn.functional.interpolate(x, scale_factor=0.5, mode="area")


@pytest.mark.parametrize(("inputs", "outputs", "shrink"), [(4, 6, 2), (4, 4, 2), (4, 6, 1), (4, 4, 1)])
def test_ap_block_is_what_idc_publishes_with_the_shortcut_pooled_last(inputs: int, outputs: int, shrink: int) -> None:
    block = BasicBlock(inputs, outputs, shrink=shrink, norm=instance_norm, halving="pool")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in block.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator))
    convs = [layer for layer in block.modules() if isinstance(layer, nn.Conv2d)]
    norms = [layer for layer in block.modules() if isinstance(layer, nn.GroupNorm)]
    pool = half if shrink == 2 else lambda maps: maps
    x = torch.randn(2, inputs, 8, 8, generator=generator)
    with torch.no_grad():
        wide = naive_instance_norm(nn.functional.conv2d(x, convs[0].weight, padding=1), norms[0]).clamp(min=0)
        deep = naive_instance_norm(nn.functional.conv2d(pool(wide), convs[1].weight, padding=1), norms[1])
        around = x
        if len(convs) == 3:
            around = naive_instance_norm(pool(torch.einsum("oi,nihw->nohw", convs[2].weight[..., 0, 0], x)), norms[2])
        assert len(convs) == (2 if (inputs, shrink) == (outputs, 1) else 3)
        torch.testing.assert_close(block(x), (deep + around).clamp(min=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("side", "kernel", "stem_side"), [(32, 3, 32), (64, 3, 64), (65, 3, 32), (128, 3, 64), (129, 7, 32), (224, 7, 56)]
)
def test_ap_stem_follows_the_size_of_the_image(side: int, kernel: int, stem_side: int) -> None:
    net = resnet10_ap((3, side, side), 10)
    assert net.stem(torch.zeros(1, 3, side, side)).shape == (1, 64, stem_side, stem_side)
    assert next(net.parameters()).shape == (64, 3, kernel, kernel)


def test_ap_has_no_stride_but_the_others_have_no_pooling_in_their_stages() -> None:
    for name in ("resnet10-ap", "resnet10", "resnet18"):
        stages = NETS.get(name).build((3, 32, 32), 10).stages
        strides = [layer.stride for layer in stages.modules() if isinstance(layer, nn.Conv2d)]  # type: ignore[union-attr]
        pools = [layer for layer in stages.modules() if isinstance(layer, nn.AvgPool2d)]  # type: ignore[union-attr]
        assert (set(strides) == {(1, 1)}) == (name == "resnet10-ap")
        assert len(pools) == (3 if name == "resnet10-ap" else 0)


def test_stages_shrink_to_an_eighth() -> None:
    for name, side in (("resnet10-ap", 4), ("resnet10", 4), ("resnet18-imagenet", 1)):
        net = NETS.get(name).build((3, 32, 32), 10)
        assert isinstance(net, ResNet)
        assert net.stages(net.stem(torch.zeros(2, 3, 32, 32))).shape[2:] == (side, side)


def test_ap_refuses_images_whose_last_maps_instance_norm_would_erase() -> None:
    with pytest.raises(BadOption, match="at least 16×16 pixels, not 32×8"):
        resnet10_ap((3, 32, 8), 10)


def test_convolutions_are_drawn_normal_by_fan_out() -> None:
    net = resnet10_ap((3, 32, 32), 10)
    net.initialise(torch.Generator().manual_seed(0))
    for conv in (layer for layer in net.modules() if isinstance(layer, nn.Conv2d)):
        weight = conv.weight.detach()
        std = (2 / (weight.shape[2] * weight.shape[3] * weight.shape[0])) ** 0.5
        n = weight.numel()
        assert abs(weight.mean()) < 5 * std / n**0.5
        assert abs(weight.std() / std - 1) < 5 / (2 * n) ** 0.5
        assert abs((weight / std).pow(4).mean() - 3) < 5 * (96 / n) ** 0.5  # a normal's kurtosis; a uniform's is 1.8
    assert net.classifier.weight.abs().max() <= 512**-0.5
