from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from condense_once.condensing.winograd import WinogradConv2d, with_fast_convolutions
from condense_once.nets import make_net


def naive(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolution by its definition, pixel by pixel."""
    count, _, height, width = x.shape
    padded = torch.zeros(count, x.shape[1], height + 2, width + 2)
    padded[:, :, 1:-1, 1:-1] = x
    y = torch.empty(count, len(weight), height, width)
    for row in range(height):
        for column in range(width):
            window = padded[:, None, :, row : row + 3, column : column + 3]
            y[:, :, row, column] = (window * weight).sum((2, 3, 4)) + bias
    return y


@pytest.mark.parametrize("size", [(4, 4), (8, 8), (7, 5), (1, 2), (14, 9)])
def test_it_is_the_convolution_for_any_size(size: tuple[int, int]) -> None:
    draws = torch.Generator().manual_seed(0)
    conv = nn.Conv2d(16, 5, 3, padding=1)
    for weight in conv.parameters():
        weight.data = torch.randn(weight.shape, generator=draws)
    x = torch.randn(3, 16, *size, generator=draws)
    with torch.no_grad():
        assert torch.allclose(WinogradConv2d(conv, size)(x), naive(x, conv.weight, conv.bias), atol=2e-3, rtol=1e-3)


def test_first_and_second_derivatives_are_those_of_the_convolution() -> None:
    draws = torch.Generator().manual_seed(0)
    conv = nn.Conv2d(16, 4, 3, padding=1)
    fast = WinogradConv2d(conv, (6, 6))
    x = torch.randn(2, 16, 6, 6, generator=draws, requires_grad=True)
    found = []
    for layer in (conv, fast):
        gradient = torch.autograd.grad(layer(x).tanh().sum(), conv.weight, create_graph=True)[0]
        found.append(torch.autograd.grad(gradient.square().sum(), x)[0])
    assert torch.allclose(*found, atol=1e-4 * float(found[0].abs().max()), rtol=1e-2)


@pytest.mark.parametrize("net", ["convnet-d2-w16", "resnet10-ap", "convnet-d2-w16-bn"])
def test_a_network_computes_the_same_with_weights_of_the_same_names(net: str) -> None:
    draws = torch.Generator().manual_seed(0)
    module = make_net(net, (3, 16, 16), 4, generator=draws).eval()
    twin = with_fast_convolutions(module, (3, 16, 16))
    assert any(isinstance(layer, WinogradConv2d) for layer in twin.modules())
    fresh = make_net(net, (3, 16, 16), 4, generator=draws).eval()
    x = torch.randn(2, 3, 16, 16, generator=draws)
    state = {**dict(fresh.named_parameters()), **dict(fresh.named_buffers())}
    with torch.no_grad():
        assert torch.allclose(functional_call(twin, state, (x,)), fresh(x), atol=1e-3, rtol=1e-3)


def test_other_convolutions_are_left_alone() -> None:
    others = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),  # few channels
        nn.Conv2d(32, 32, 3, stride=2, padding=1),
        nn.Conv2d(32, 32, 1),
        nn.Conv2d(32, 32, 3, padding=1, groups=2),
        nn.Conv2d(32, 32, 3),
    )
    twin = with_fast_convolutions(others, (3, 16, 16))
    assert not any(isinstance(layer, WinogradConv2d) for layer in twin.modules())
