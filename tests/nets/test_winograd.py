from __future__ import annotations

import pytest
import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from condense_once.nets import make_net, with_winograd
from condense_once.nets.winograd import WinogradConv2d, _Winograd
from condense_once.train.hardware import has_compiler


def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    out: Tensor = _Winograd.apply(x, weight)  # type: ignore[no-untyped-call]
    return out


@pytest.mark.parametrize("size", [(4, 4), (8, 16), (16, 16), (7, 7), (1, 1), (5, 14)])
def test_the_result_is_that_of_a_direct_convolution(size: tuple[int, int]) -> None:
    x, weight = draw(3, 5, *size), draw(7, 5, 3, 3)
    torch.testing.assert_close(convolve(x, weight), fn.conv2d(x, weight, padding=1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [(8, 8), (7, 10)])
def test_the_gradients_are_those_of_a_direct_convolution(size: tuple[int, int]) -> None:
    x, weight, grad = draw(2, 5, *size).requires_grad_(), draw(7, 5, 3, 3).requires_grad_(), draw(2, 7, *size)
    ours = torch.autograd.grad(convolve(x, weight), (x, weight), grad)
    direct = torch.autograd.grad(fn.conv2d(x, weight, padding=1), (x, weight), grad)
    torch.testing.assert_close(ours, direct, rtol=1e-10, atol=1e-10)


def test_in_float32_it_is_off_by_a_few_millionths() -> None:
    x, weight = draw(4, 128, 16, 16), draw(128, 128, 3, 3)
    exact = fn.conv2d(x, weight, padding=1)
    assert (convolve(x.float(), weight.float()) - exact).norm() < 1e-5 * exact.norm()


def test_a_gradient_of_the_gradient_is_refused_rather_than_wrong() -> None:
    x, weight = draw(1, 2, 4, 4).requires_grad_(), draw(2, 2, 3, 3).requires_grad_()
    (grad,) = torch.autograd.grad(convolve(x, weight).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()  # type: ignore[no-untyped-call]


def test_wide_plain_convolutions_are_replaced_and_keep_their_weights() -> None:
    net = make_net("convnet-d3", (3, 32, 32), 10, generator=torch.Generator().manual_seed(0))
    before = dict(net.named_parameters())
    with_winograd(net)
    assert [type(layer) for layer in net.modules() if isinstance(layer, nn.Conv2d)] == [
        nn.Conv2d,  # three channels gain nothing
        WinogradConv2d,
        WinogradConv2d,
    ]
    after = dict(net.named_parameters())
    assert before.keys() == after.keys()
    assert all(after[name] is weight for name, weight in before.items())


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(64, 64, 1),
        nn.Conv2d(64, 64, 3),
        nn.Conv2d(64, 64, 3, padding=1, stride=2),
        nn.Conv2d(64, 64, 3, padding=1, groups=2),
        nn.Conv2d(64, 64, 3, padding=2, dilation=2),
        nn.Conv2d(64, 64, 3, padding="same"),
        nn.Conv2d(64, 64, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(8, 64, 3, padding=1),
    ],
)
def test_other_convolutions_are_left_alone(layer: nn.Conv2d) -> None:
    net = nn.Sequential(layer)
    with_winograd(net)
    assert net[0] is layer


def test_eager_code_convolves_directly() -> None:
    net = with_winograd(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1)))
    x = draw(2, 64, 8, 8, dtype=torch.float32)
    assert torch.equal(net(x), fn.conv2d(x, net[0].weight, net[0].bias, padding=1))  # type: ignore[index]


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")
def test_compiled_code_agrees_with_eager_code() -> None:
    net = with_winograd(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1)))
    x = draw(2, 64, 8, 8, dtype=torch.float32).contiguous(memory_format=torch.channels_last)
    compiled, eager = torch.compile(net)(x), net(x)
    assert not torch.equal(compiled, eager)  # it did take the other way
    torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-5)
    names = [name for name, _ in net.named_parameters()]
    for got, wanted in zip(
        *(torch.autograd.grad(y.sum(), list(net.parameters())) for y in (compiled, eager)), strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-3, msg=str(names))
