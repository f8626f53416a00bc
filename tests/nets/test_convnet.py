from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from condense_once.errors import BadOption
from condense_once.nets import ConvNet
from condense_once.nets.convnet import Norm


def naive_convnet(net: ConvNet, x: Tensor) -> Tensor:
    """ConvNet with instance norm from its definition: convolution by unfolding, statistics and means written out."""
    weights = list(net.state_dict().values())
    *blocks, (matrix, offset) = [tuple(weights[i : i + 4]) for i in range(0, len(weights) - 2, 4)] + [
        tuple(weights[-2:])
    ]
    for kernel, bias, scale, shift in blocks:
        padding = 3 if x.shape[1:] == (1, 28, 28) else 1
        n, _, h, w = x.shape
        columns = nn.functional.unfold(x, 3, padding=padding)  # [n, ch·9, h·w]
        maps = kernel.flatten(1) @ columns + bias[:, None]  # [n, out, h·w]
        centred = maps - maps.mean(-1, keepdim=True)
        spread = (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        maps = (centred / spread * scale[:, None] + shift[:, None]).clamp(min=0)
        x = maps.view(n, -1, h + 2 * padding - 2, w + 2 * padding - 2)
        h, w = x.shape[2] // 2 * 2, x.shape[3] // 2 * 2  # an odd last row or column is dropped
        x = (x[..., 0:h:2, 0:w:2] + x[..., 1:h:2, 0:w:2] + x[..., 0:h:2, 1:w:2] + x[..., 1:h:2, 1:w:2]) / 4
    return torch.stack([matrix @ image.reshape(-1) + offset for image in x])


def with_random_weights(net: ConvNet) -> ConvNet:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) / math.sqrt(weight[0].numel()))
    return net


@pytest.mark.parametrize(
    ("shape", "depth"), [((3, 32, 32), 3), ((1, 28, 28), 2), ((1, 12, 12), 2), ((3, 15, 10), 3), ((3, 8, 8), 1)]
)
def test_forward_is_what_the_definition_says(shape: tuple[int, int, int], depth: int) -> None:
    net = with_random_weights(ConvNet(shape, 5, depth=depth, channels=8))
    x = torch.randn(3, *shape, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(net(x), naive_convnet(net, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("classes", "weights"), [(10, 320_010), (100, 504_420)])
def test_convnet_d3_has_the_published_number_of_weights(classes: int, weights: int) -> None:
    assert sum(weight.numel() for weight in ConvNet((3, 32, 32), classes).parameters()) == weights


def test_grey_images_of_28_pixels_get_the_geometry_of_32() -> None:
    assert ConvNet((1, 28, 28), 10).classifier.in_features == ConvNet((1, 32, 32), 10).classifier.in_features
    assert ConvNet((3, 28, 28), 10).classifier.in_features == 128 * 3 * 3


@pytest.mark.parametrize(
    ("norm", "layer", "weights_of_norm"),
    [
        ("instance", nn.GroupNorm, 16),
        ("batch", nn.BatchNorm2d, 16),
        ("layer", nn.LayerNorm, 2 * 8 * 16 * 16),
        ("group", nn.GroupNorm, 16),
        ("none", nn.Identity, 0),
    ],
)
def test_every_norm_trains(norm: Norm, layer: type[nn.Module], weights_of_norm: int) -> None:
    net = ConvNet((3, 16, 16), 4, depth=1, channels=8, norm=norm)
    assert isinstance(net.blocks[1], layer)
    assert sum(weight.numel() for weight in net.blocks[1].parameters()) == weights_of_norm
    net.initialise(torch.Generator().manual_seed(0))
    net(torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))).logsumexp(1).sum().backward()
    assert all(weight.grad is not None for weight in net.parameters())


def test_group_norm_has_four_groups_and_instance_norm_one_a_channel() -> None:
    groups = [ConvNet((3, 8, 8), 2, channels=8, norm=norm).blocks[1].num_groups for norm in ("group", "instance")]
    assert groups == [4, 8]


def test_batch_norm_learns_statistics_and_forgets_them_when_initialised() -> None:
    net = ConvNet((3, 8, 8), 2, depth=1, channels=4, norm="batch")
    norm = net.blocks[1]
    assert isinstance(norm, nn.BatchNorm2d)
    fresh = {name: value.clone() for name, value in norm.state_dict().items()}
    net(torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    nn.init.constant_(norm.weight, 3)
    nn.init.constant_(norm.bias, 3)
    assert not any(torch.equal(value, fresh[name]) for name, value in norm.state_dict().items())
    net.initialise(torch.Generator().manual_seed(0))
    assert all(torch.equal(value, fresh[name]) for name, value in norm.state_dict().items())


def test_too_deep_for_the_image_says_how_deep_it_can_be() -> None:
    assert ConvNet((3, 32, 32), 10, depth=5).classifier.in_features == 128
    with pytest.raises(BadOption, match=r"depth 6 is too deep for images of 32×32 .* at most 5"):
        ConvNet((3, 32, 32), 10, depth=6)


@pytest.mark.parametrize("options", [{"depth": 0}, {"channels": 0}, {"channels": 6, "norm": "group"}, {"norm": "bach"}])
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(BadOption):
        ConvNet((3, 32, 32), 10, **options)  # type: ignore[arg-type]


def test_channels_last_gives_the_same_answer() -> None:
    net = with_random_weights(ConvNet((3, 16, 16), 4, channels=8))
    x = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    expected = net(x)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    torch.testing.assert_close(net(x.contiguous(memory_format=torch.channels_last)), expected, rtol=1e-4, atol=1e-5)
