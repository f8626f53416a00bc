from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from condense_once.errors import BadOption
from condense_once.nets import DenseNet


def test_published_number_of_weights() -> None:
    net = DenseNet((3, 32, 32), 10)
    assert sum(weight.numel() for weight in net.parameters()) == 1_000_618
    assert net.classifier.in_features == 384


def test_forward_is_what_is_published_with_transitions_pooled_last() -> None:
    blocks, growth = (2, 1, 2), 3
    net = DenseNet((3, 16, 16), 4, growth=growth, blocks=blocks)
    generator = torch.Generator().manual_seed(0)
    for weight in net.state_dict().values():
        if weight.is_floating_point():  # positive, as running variances must be
            weight.copy_(torch.rand(weight.shape, generator=generator) + 0.1)
    convs = iter([layer.weight for layer in net.modules() if isinstance(layer, nn.Conv2d)])
    norms = iter([layer for layer in net.modules() if isinstance(layer, nn.BatchNorm2d)])

    def norm_relu(x: Tensor) -> Tensor:
        norm = next(norms)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        scale = norm.weight / (norm.running_var + 1e-5).sqrt()
        return (x * scale[:, None, None] + (norm.bias - norm.running_mean * scale)[:, None, None]).clamp(min=0)

    def conv(x: Tensor) -> Tensor:
        kernel = next(convs)
        return nn.functional.conv2d(x, kernel, padding=kernel.shape[-1] // 2)

    x = torch.randn(2, 3, 16, 16, generator=generator)
    maps = conv(x)
    for block, depth in enumerate(blocks):
        if block > 0:
            maps = nn.functional.interpolate(conv(norm_relu(maps)), scale_factor=0.5, mode="area")
        for _ in range(depth):
            maps = torch.cat([maps, conv(norm_relu(conv(norm_relu(maps))))], 1)
    expected = norm_relu(maps).flatten(2).mean(-1)
    assert next(convs, None) is None
    assert next(norms, None) is None
    torch.testing.assert_close(net.eval().features(x), expected, rtol=1e-4, atol=1e-4)


def test_images_too_small_to_halve_are_refused() -> None:
    with pytest.raises(BadOption, match="at least 8×8 pixels, not 4×32"):
        DenseNet((3, 4, 32), 10)
