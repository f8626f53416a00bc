from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.functional import cosine_similarity, cross_entropy

from condense_once.augment import Augmentation, Params
from condense_once.condensed.mosaic import cut, upsample
from condense_once.condensing import CONDENSERS
from condense_once.condensing.matching.class_step import Matcher
from condense_once.condensing.matching.network import Learner
from condense_once.condensing.problem import Problem
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets.blocks import NormReluPool
from condense_once.train.hardware import Compiled, has_compiler
from condense_once.train.seeds import generator
from condense_once.train.trainer import NetChoice

Parts = Callable[..., tuple[Learner, Matcher, Problem]]


@pytest.fixture
def parts(source: Source) -> Parts:
    """A learner and a matcher for a tiny network, and the problem they are for."""

    def make(method: str, *, net: NetChoice = "convnet-d1-w8", **changes: object) -> tuple[Learner, Matcher, Problem]:
        problem = Problem(source, ipc=2, factor=2)
        recipe = CONDENSERS.get(method).recipe(problem.shape, 2, 2).changed(changes)
        learner = Learner(net, problem.shape, problem.classes, recipe, problem.space(recipe), passes=0)
        learner.start(torch.Generator().manual_seed(1))
        return learner, Matcher(learner, problem, recipe), problem

    return make


def inputs(problem: Problem) -> tuple[Tensor, Tensor, Tensor, Tensor, Params]:
    draws = torch.Generator().manual_seed(0)
    images = torch.rand(2, *problem.shape, generator=draws)
    real = problem.pixels(problem.rows[1][:5], torch.device("cpu"))
    drawn = Augmentation.parse("color_crop_cutout").sample_shared(problem.shape[1:], draws)
    return images, real, torch.tensor(1), torch.arange(8), drawn


def oracle(
    net: nn.Module, images: Tensor, real: Tensor, drawn: Params, dimensions: tuple[int, ...], kind: str
) -> float:
    """The loss, weight by weight and number by number, from decoded patches that numpy made."""
    cells = cut(images.numpy(), 2, 0.5).reshape(-1, 3, 4, 4)
    patches = torch.from_numpy(upsample(cells, (8, 8)))
    found = []
    for pixels in (real, patches):
        x = Augmentation.apply((pixels - 0.5) / 0.25, drawn)
        loss = cross_entropy(net(x), torch.full((len(x),), 1))
        found.append(torch.autograd.grad(loss, [w for w in net.parameters() if w.ndim in dimensions]))
    total = 0.0
    for g, h in zip(*found, strict=True):
        for a, b in zip(g.reshape(len(g), -1), h.reshape(len(h), -1), strict=True):
            if kind == "cosine":
                total += 1 - float(a @ b) / (float(a.norm() * b.norm()) + 1e-6)
            else:
                total += sum(
                    abs(x - y) ** (2 if kind == "mse" else 1) for x, y in zip(a.tolist(), b.tolist(), strict=True)
                )
    return total


@pytest.mark.parametrize(("distance", "dimensions"), [("mse", (4,)), ("l1", (4,)), ("cosine", (2, 4))])
def test_the_loss_is_the_distance_of_the_gradients_of_real_and_synthetic_images(
    parts: Parts, distance: str, dimensions: tuple[int, ...]
) -> None:
    learner, matcher, problem = parts("idc", distance=distance)
    given = inputs(problem)
    loss, _ = matcher(*given)
    assert loss.item() == pytest.approx(
        oracle(learner.net, given[0], given[1], given[4], dimensions, distance), rel=1e-4
    )


def test_the_loss_of_dm_is_the_squared_distance_of_mean_features(parts: Parts) -> None:
    learner, matcher, problem = parts("dm")
    images, real, label, rows, drawn = inputs(problem)
    with torch.no_grad():
        seen = learner.net.features(Augmentation.apply((real - 0.5) / 0.25, drawn)).tolist()
        made = learner.net.features(Augmentation.apply(matcher.all_patches(images), drawn)).tolist()
    expected = 0.0
    for d in range(len(seen[0])):
        expected += (sum(row[d] for row in seen) / len(seen) - sum(row[d] for row in made) / len(made)) ** 2
    assert matcher(images, real, label, rows, drawn)[0].item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", ["idc", "dc", "dm"])
def test_looking_at_parts_gives_the_same(parts: Parts, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condense_once.condensing.matching.class_step.PART", 3)  # of 5 real images and 8 patches
    _, matcher, problem = parts(method)
    given = inputs(problem)
    loss, gradient = matcher(*given)
    matcher.in_parts = True
    part_loss, part_gradient = matcher(*given)
    assert part_loss.item() == pytest.approx(loss.item(), rel=1e-4)
    assert torch.allclose(part_gradient, gradient, rtol=1e-3, atol=1e-5 * float(gradient.abs().max()))


@pytest.mark.parametrize("method", ["idc", "dc", "dm"])
def test_the_image_gradient_is_that_of_the_loss(parts: Parts, method: str) -> None:
    """By differences: a small move along the gradient changes the loss by its length squared."""

    def smooth(shape: tuple[int, int, int], classes: int) -> nn.Module:  # at the kinks of a ReLU the loss jumps
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Flatten(), nn.Linear(8 * 6 * 6, classes))

    _, matcher, problem = parts(method, net=smooth)
    images, *others = inputs(problem)
    _, gradient = matcher(images, *others)
    step = 1e-2 / float(gradient.norm())
    ahead, behind = matcher(images + step * gradient, *others)[0], matcher(images - step * gradient, *others)[0]
    assert float(ahead - behind) / (2 * step) == pytest.approx(float(gradient.square().sum()), rel=0.02)


@pytest.mark.parametrize("method", ["idc", "dc", "dm"])
def test_the_traced_path_is_one_program_for_all_classes_and_points_the_same_way(
    parts: Parts, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.compiler.reset()
    counter = CompileCounterWithBackend("aot_eager")  # traces as for the compiler, without its minute of C++
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counter, fullgraph=True))
    learner, plain, problem = parts(method)
    fast = Matcher(learner, problem, plain.recipe, Compiled(layers=False, whole=True))
    images, real, _, rows, drawn = inputs(problem)
    every = torch.stack([images, 1 - images, images / 2])  # of which each class has a part
    for label, images in enumerate(every):
        learner.start(torch.Generator().manual_seed(label))
        loss, gradient = plain(images, real, torch.tensor(label), rows, drawn)
        fast_loss, fast_gradient = fast(images, real, torch.tensor(label), rows, drawn)
        assert cosine_similarity(gradient.flatten(), fast_gradient.flatten(), dim=0) > 0.99
        assert fast_loss.item() == pytest.approx(loss.item(), rel=0.02)
    assert fast.compiled
    assert counter.frame_count == 1


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")
@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("method", ["idc", "dc", "dm"])
def test_layers_of_our_own_give_the_same(parts: Parts, method: str, in_parts: bool) -> None:
    learner, plain, problem = parts(method, net="convnet-d3-w32")
    given = inputs(problem)
    fast = Matcher(learner, problem, plain.recipe, Compiled(layers=True, whole=False))
    assert any(isinstance(layer, NormReluPool) for layer in fast._sight._net.modules())
    fast.in_parts = in_parts
    (loss, gradient), (fast_loss, fast_gradient) = plain(*given), fast(*given)
    assert fast_loss.item() == pytest.approx(loss.item(), rel=1e-3)
    assert torch.allclose(fast_gradient, gradient, rtol=1e-2, atol=1e-3 * float(gradient.abs().max()))
    learner.start(torch.Generator().manual_seed(2))  # the weights are the learner's, whatever they are
    assert fast(*given)[0].item() == pytest.approx(plain(*given)[0].item(), rel=1e-3)


def test_bfloat16_points_the_same_way(parts: Parts) -> None:
    learner, plain, problem = parts("idc")
    given = inputs(problem)
    gradient = plain(*given)[1]
    learner.dtype = torch.bfloat16
    half = Matcher(learner, problem, plain.recipe)(*given)[1]
    assert cosine_similarity(gradient.flatten(), half.flatten(), dim=0) > 0.99


def test_only_the_patches_asked_for_are_moved(parts: Parts) -> None:
    _, matcher, problem = parts("idc")
    images, real, label, _, drawn = inputs(problem)
    gradient = matcher(images, real, label, torch.tensor([0, 2, 4]), drawn)[1]  # patches of the first image only
    assert gradient[0].abs().sum() > 0
    assert gradient[1].abs().sum() == 0


def test_a_network_without_convolutions_cannot_be_matched_by_idc(parts: Parts) -> None:
    def flat(shape: tuple[int, int, int], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), classes))

    with pytest.raises(BadOption, match="no weights of 4 dimensions, which idc matches"):
        parts("idc", net=flat)
    parts("dc", net=flat)  # linear layers are enough for DC


def test_batch_norm_counts_by_real_images_while_images_are_matched(parts: Parts) -> None:
    learner, matcher, problem = parts("idc", net="convnet-d1-w8-bn")
    real = problem.pixels(np.arange(12), torch.device("cpu"))
    learner.settle_statistics(real, generator(0, "draws"))
    norm = next(layer for layer in learner.net.modules() if isinstance(layer, nn.BatchNorm2d))
    conv = next(layer for layer in learner.net.modules() if isinstance(layer, nn.Conv2d))
    with torch.no_grad():
        expected = conv(real).mean((0, 2, 3))
    assert torch.allclose(norm.running_mean, expected, atol=1e-6)
    matcher(*inputs(problem))
    assert torch.allclose(norm.running_mean, expected, atol=1e-6)
