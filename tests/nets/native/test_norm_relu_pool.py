from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from condense_once.nets import initialise, make_net, use_native_kernels
from condense_once.nets.native import NormReluPool, WinogradConv2d, has_compiler
from condense_once.train.hardware import threads

pytestmark = pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def one_by_one(channels: int) -> nn.Sequential:
    norm = nn.GroupNorm(channels, channels)
    with torch.no_grad():
        norm.weight.copy_(randn(channels))
        norm.bias.copy_(randn(channels))
    return nn.Sequential(norm, nn.ReLU(), nn.AvgPool2d(2))


def fused(layers: nn.Sequential) -> NormReluPool:
    norm = layers[0]
    assert isinstance(norm, nn.GroupNorm)
    return NormReluPool(norm)


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (3, 128, 16, 16), (1, 70, 7, 9), (4, 5, 2, 2), (0, 4, 8, 8)])
def test_result_and_gradients_are_those_of_the_layers_one_by_one(shape: tuple[int, ...]) -> None:
    layers = one_by_one(shape[1])
    x = (3 * randn(*shape) + 1).requires_grad_()
    grad = randn(shape[0], shape[1], shape[2] // 2, shape[3] // 2)
    found = []
    for layer in (layers, fused(layers)):
        out = layer(x)
        found.append((out, *torch.autograd.grad(out, (x, layers[0].weight, layers[0].bias), grad)))  # type: ignore[arg-type]
    for exact, got in zip(*found, strict=True):
        torch.testing.assert_close(got, exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (3, 128, 16, 16), (1, 70, 7, 9), (4, 5, 2, 2)])
def test_second_derivatives_are_those_of_the_layers_one_by_one(shape: tuple[int, ...]) -> None:
    """Of a number made of all three gradients, by x, by the output gradient, and by the norm's weight."""
    layers = one_by_one(shape[1])
    x = (3 * randn(*shape) + 1).requires_grad_()
    cotangent = randn(shape[0], shape[1], shape[2] // 2, shape[3] // 2).requires_grad_()
    weight, bias = layers[0].weight, layers[0].bias
    assert isinstance(weight, Tensor)
    assert isinstance(bias, Tensor)
    factors = randn(*shape, 1)[..., 0], randn(shape[1], 2)[:, 0], randn(shape[1], 3)[:, 0]
    found = []
    for layer in (layers, fused(layers)):
        gradients = torch.autograd.grad(layer(x), (x, weight, bias), cotangent, create_graph=True)
        total = torch.stack([(factor * grad).sum() for factor, grad in zip(factors, gradients, strict=True)]).sum()
        found.append(torch.autograd.grad(total, (x, cotangent, weight)))
    for exact, got in zip(*found, strict=True):
        torch.testing.assert_close(got, exact, rtol=1e-3, atol=1e-4 * float(exact.abs().max()))


def test_any_layout_and_any_number_of_threads_gives_the_same_bits() -> None:
    x, layer = randn(5, 6, 8, 8), fused(one_by_one(6))
    with threads(1):
        one = layer(x)
    with threads(2):
        assert torch.equal(layer(x.contiguous(memory_format=torch.channels_last)), one)


def test_other_precisions_use_the_plain_layers() -> None:
    layers = one_by_one(4).double()
    x = randn(2, 4, 6, 6).double()
    torch.testing.assert_close(fused(layers)(x), layers(x))


def test_a_convnet_with_instance_norm_needs_no_compiler() -> None:
    net = make_net("convnet-d3", (3, 16, 16), 10, generator=torch.Generator().manual_seed(0))
    x, names = randn(4, 3, 16, 16), [name for name, _ in net.named_parameters()]
    before = net(x)
    assert use_native_kernels(net)
    assert [name for name, _ in net.named_parameters()] == names
    assert sum(isinstance(layer, NormReluPool) for layer in net.modules()) == 3
    assert sum(isinstance(layer, WinogradConv2d) for layer in net.modules()) == 2
    torch.testing.assert_close(net(x), before, rtol=1e-4, atol=1e-5)


def test_its_weights_are_re_initialised_as_before() -> None:
    nets = [make_net("convnet-d3-w32", (3, 16, 16), 10, generator=torch.Generator().manual_seed(0)) for _ in range(2)]
    use_native_kernels(nets[1])
    for net in nets:
        with torch.no_grad():
            for weight in net.parameters():
                weight += 1
        initialise(net, torch.Generator().manual_seed(7))
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", ["convnet-d3-bn", "convnet-d3-w32-gn", "convnet-d3-w32-none", "resnet10-ap"])
def test_other_networks_still_gain_by_a_compiler(name: str) -> None:
    assert not use_native_kernels(make_net(name, (3, 32, 32), 10, generator=torch.Generator().manual_seed(0)))


def test_the_operators_keep_the_rules_of_pytorch() -> None:
    from condense_once.nets.native.norm_relu_pool import norm_relu_pool

    given = (randn(2, 3, 6, 6).requires_grad_(), randn(3).requires_grad_(), randn(3).requires_grad_(), 1e-5)
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(norm_relu_pool, given, test_utils=tests)
