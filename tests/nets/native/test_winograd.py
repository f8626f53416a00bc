from __future__ import annotations

import pytest
import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from condense_once.nets import make_net
from condense_once.nets.native import has_compiler
from condense_once.nets.native.winograd import (
    WinogradConv2d,
    convolve,
    correlate,
    gradients_of_images_only,
    use_winograd,
)
from condense_once.train.hardware import threads

pytestmark = pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def direct(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The naive oracle: nine shifted products."""
    height, width = x.shape[2:]
    padded = fn.pad(x, (1, 1, 1, 1))
    shifted = [(padded[:, :, i : i + height, j : j + width], weight[:, :, i, j]) for i in range(3) for j in range(3)]
    return torch.stack([torch.einsum("nchw,oc->nohw", part, kernel) for part, kernel in shifted]).sum(0) + bias.view(
        -1, 1, 1
    )


def assert_near(got: Tensor, exact: Tensor) -> None:
    assert got.shape == exact.shape
    assert (got - exact).norm() < 1e-5 * exact.norm()


SIZES = [(4, 4), (8, 16), (16, 16), (7, 7), (1, 1), (5, 14)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("n", "channels", "out"), [(1, 3, 5), (9, 128, 70)])
def test_result_and_gradients_are_those_of_a_direct_convolution(
    n: int, channels: int, out: int, size: tuple[int, int]
) -> None:
    given = [randn(*shape).requires_grad_() for shape in ((n, channels, *size), (out, channels, 3, 3), (out,))]
    ours, exact = convolve(*given), direct(*(tensor.double() for tensor in given))
    assert_near(ours, exact)
    grad = randn(n, out, *size)
    for got, wanted in zip(*(torch.autograd.grad(y, given, grad) for y in (ours, exact)), strict=True):
        assert_near(got, wanted)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_any_layout_of_the_images_is_accepted(layout: torch.memory_format) -> None:
    x, weight = randn(3, 8, 10, 10).contiguous(memory_format=layout), randn(8, 8, 3, 3).contiguous(memory_format=layout)
    assert_near(convolve(x, weight, None), direct(x, weight, torch.zeros(8)))


def test_two_threads_give_the_same_bits_as_one() -> None:
    x, weight = randn(8, 64, 16, 16), randn(64, 64, 3, 3)
    with threads(1):
        one = convolve(x, weight, None)
    with threads(2):
        assert torch.equal(convolve(x, weight, None), one)


def test_the_operators_keep_the_rules_of_pytorch() -> None:
    x, weight = randn(2, 4, 6, 6).requires_grad_(), randn(3, 4, 3, 3).requires_grad_()
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(convolve, (x, weight, randn(3).requires_grad_()), test_utils=tests)
    torch.library.opcheck(correlate, (x, randn(2, 3, 6, 6).requires_grad_()), test_utils=tests)


def test_gradients_of_the_gradients_are_those_of_a_direct_convolution() -> None:
    """As gradient matching wants them: how a distance of weight gradients depends on images, weights and biases."""
    shapes = ((2, 6, 9, 5), (4, 6, 3, 3), (4,))
    found = []
    for make in (lambda *given: convolve(*given), lambda *given: direct(*(tensor.double() for tensor in given))):
        given = [randn(*shape).requires_grad_() for shape in shapes]
        loss = make(*given).sigmoid().square().sum()
        firsts = torch.autograd.grad(loss, given, create_graph=True)
        found.append(torch.autograd.grad(sum((g.double() ** 2).sum() for g in firsts), given))
    for got, wanted in zip(*found, strict=True):
        assert_near(got, wanted)


def test_wide_plain_convolutions_are_replaced_and_keep_their_weights() -> None:
    net = make_net("convnet-d3", (3, 32, 32), 10, generator=torch.Generator().manual_seed(0))
    before = dict(net.named_parameters())
    use_winograd(net)
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
    use_winograd(net)
    assert net[0] is layer


def test_compiled_code_of_any_batch_size_agrees_with_a_direct_convolution() -> None:
    plain = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1))
    wanted = [plain(randn(n, 32, 8, 8)) for n in (6, 3)]
    compiled = torch.compile(use_winograd(plain), dynamic=True)
    for n, exact in zip((6, 3), wanted, strict=True):
        got = compiled(randn(n, 32, 8, 8))
        assert_near(got, exact)
        for one, other in zip(
            *(torch.autograd.grad(y.sum(), list(plain.parameters())) for y in (got, exact)), strict=True
        ):
            assert_near(one, other)


def test_gradients_of_weights_are_skipped_on_request() -> None:
    x, weight = randn(2, 32, 8, 8).requires_grad_(), randn(32, 32, 3, 3).requires_grad_()
    exact = torch.autograd.grad(convolve(x, weight, None).square().sum(), x)[0]
    with gradients_of_images_only():
        convolve(x, weight, None).square().sum().backward()
    assert weight.grad is None
    assert x.grad is not None
    assert torch.equal(x.grad, exact)
    convolve(x, weight, None).sum().backward()
    assert weight.grad is not None
