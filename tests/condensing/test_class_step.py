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
from condense_once.condensed.space import Space
from condense_once.condensing import matching
from condense_once.condensing.matching.class_step import ClassStep
from condense_once.condensing.matching.network import MatchingNetwork
from condense_once.condensing.real_images import RealImages
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import NetChoice
from condense_once.nets.native import NormReluPool, has_compiler
from condense_once.train.hardware import Compiled
from condense_once.train.images import DataSpec
from condense_once.train.seeds import generator

CPU = torch.device("cpu")
Parts = Callable[..., tuple[MatchingNetwork, ClassStep, RealImages]]


@pytest.fixture
def parts(source: Source) -> Parts:
    """A tiny matching network, its class step, and the real images they match."""

    def make(
        method: str, *, net: NetChoice = "convnet-d1-w8", **overrides: object
    ) -> tuple[MatchingNetwork, ClassStep, RealImages]:
        shape = source.train.shape
        recipe = getattr(getattr(matching, method), method)(shape, 2, 2).override(overrides)
        data = DataSpec(shape, len(source.classes), Space(recipe.space, source.mean, source.std))
        network = MatchingNetwork(net, data, recipe, passes=0)
        network.reinitialise(torch.Generator().manual_seed(1))
        real = RealImages(source, 0, CPU, real_batch=recipe.real_batch, net_batch=recipe.net_batch, pool=recipe.pool)
        return network, ClassStep(network, recipe, real.normalise, shape, 2), real

    return make


def inputs(real: RealImages) -> tuple[Tensor, Tensor, Tensor, Tensor, Params]:
    sampling = torch.Generator().manual_seed(0)
    images = torch.rand(2, *real.shape, generator=sampling)
    pixels = real.pixels(real.rows[1][:5])
    params = Augmentation.parse("color_crop_cutout").sample_shared(real.shape[1:], sampling)
    return images, pixels, torch.tensor(1), torch.arange(8), params


def naive_patches(images: Tensor) -> Tensor:
    """Each cell upsampled pixel by pixel: bilinear, half-pixel centres, edges repeated; cell after cell."""
    _, channels, height, width = images.shape
    patches = []
    for i in range(2):
        for j in range(2):
            for image in images:
                cell = image[:, i * 4 : i * 4 + 4, j * 4 : j * 4 + 4]
                patch = torch.zeros(channels, height, width)
                for y in range(height):
                    for x in range(width):
                        v, u = (y + 0.5) / 2 - 0.5, (x + 0.5) / 2 - 0.5
                        for dy in (0, 1):
                            for dx in (0, 1):
                                row, column = int(np.floor(v)) + dy, int(np.floor(u)) + dx
                                weight = (1 - abs(v - row)) * (1 - abs(u - column))
                                patch[:, y, x] += weight * cell[:, min(max(row, 0), 3), min(max(column, 0), 3)]
                patches.append(patch)
    return torch.stack(patches)


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
    network, class_step, real = parts("idc", distance=distance)
    given = inputs(real)
    loss, _ = class_step(*given)
    assert loss.item() == pytest.approx(
        oracle(network.net, given[0], given[1], given[4], dimensions, distance), rel=1e-4
    )


def test_the_loss_of_dm_is_the_squared_distance_of_mean_features(parts: Parts) -> None:
    network, class_step, real = parts("dm")
    images, pixels, label, rows, params = inputs(real)
    patches = naive_patches(images)  # dm optimises normalised values, so they are not normalised again
    with torch.no_grad():
        seen = network.net.features(Augmentation.apply((pixels - 0.5) / 0.25, params)).tolist()
        made = network.net.features(Augmentation.apply(patches, params)).tolist()
    expected = 0.0
    for d in range(len(seen[0])):
        expected += (sum(row[d] for row in seen) / len(seen) - sum(row[d] for row in made) / len(made)) ** 2
    assert class_step(images, pixels, label, rows, params)[0].item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("method", ["idc", "dc", "dm"])
def test_chunks_give_the_same(parts: Parts, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condense_once.condensing.matching.class_step.CHUNK", 3)  # of 5 real images and 8 patches
    _, class_step, real = parts(method)
    given = inputs(real)
    loss, gradient = class_step(*given)
    class_step.chunked = True
    part_loss, part_gradient = class_step(*given)
    assert part_loss.item() == pytest.approx(loss.item(), rel=1e-4)
    assert torch.allclose(part_gradient, gradient, rtol=1e-3, atol=1e-5 * float(gradient.abs().max()))


@pytest.mark.parametrize("method", ["idc", "dc", "dm"])
def test_the_image_gradient_is_that_of_the_loss(parts: Parts, method: str) -> None:
    """By differences: a small move along the gradient changes the loss by its length squared."""

    def smooth(shape: tuple[int, int, int], classes: int) -> nn.Module:  # at the kinks of a ReLU the loss jumps
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Flatten(), nn.Linear(8 * 6 * 6, classes))

    _, class_step, real = parts(method, net=smooth)
    images, *others = inputs(real)
    _, gradient = class_step(images, *others)
    step = 1e-2 / float(gradient.norm())
    ahead, behind = class_step(images + step * gradient, *others)[0], class_step(images - step * gradient, *others)[0]
    assert float(ahead - behind) / (2 * step) == pytest.approx(float(gradient.square().sum()), rel=0.02)


@pytest.mark.parametrize("method", ["idc", "dc", "dm"])
def test_the_traced_path_is_one_program_for_all_classes_and_points_the_same_way(
    parts: Parts, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.compiler.reset()
    counter = CompileCounterWithBackend("aot_eager")  # traces as for the compiler, without its minute of C++
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counter, fullgraph=True))
    network, plain, real = parts(method)
    fast = ClassStep(network, plain.recipe, real.normalise, real.shape, 2, Compiled(native=False, whole=True))
    images, pixels, _, rows, params = inputs(real)
    every = torch.stack([images, 1 - images, images / 2])  # of which each class has a part
    for label, images in enumerate(every):
        network.reinitialise(torch.Generator().manual_seed(label))
        loss, gradient = plain(images, pixels, torch.tensor(label), rows, params)
        fast_loss, fast_gradient = fast(images, pixels, torch.tensor(label), rows, params)
        assert cosine_similarity(gradient.flatten(), fast_gradient.flatten(), dim=0) > 0.99
        assert fast_loss.item() == pytest.approx(loss.item(), rel=0.02)
    assert fast.compiled
    assert counter.frame_count == 1


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("method", ["idc", "dc", "dm"])
def test_native_kernels_give_the_same(parts: Parts, method: str, chunked: bool) -> None:
    network, plain, real = parts(method, net="convnet-d3-w32")
    given = inputs(real)
    fast = ClassStep(network, plain.recipe, real.normalise, real.shape, 2, Compiled(native=True, whole=False))
    assert any(isinstance(layer, NormReluPool) for layer in fast._statistics._logits.modules())
    fast.chunked = chunked
    (loss, gradient), (fast_loss, fast_gradient) = plain(*given), fast(*given)
    assert fast_loss.item() == pytest.approx(loss.item(), rel=1e-3)
    assert torch.allclose(fast_gradient, gradient, rtol=1e-2, atol=1e-3 * float(gradient.abs().max()))
    network.reinitialise(torch.Generator().manual_seed(2))  # the weights are the network's, whatever they are
    assert fast(*given)[0].item() == pytest.approx(plain(*given)[0].item(), rel=1e-3)


def test_bfloat16_points_the_same_way(parts: Parts) -> None:
    network, plain, real = parts("idc")
    given = inputs(real)
    gradient = plain(*given)[1]
    network.dtype = torch.bfloat16
    half = ClassStep(network, plain.recipe, real.normalise, real.shape, 2)(*given)[1]
    assert cosine_similarity(gradient.flatten(), half.flatten(), dim=0) > 0.99


def test_only_the_patches_asked_for_are_moved(parts: Parts) -> None:
    _, class_step, real = parts("idc")
    images, pixels, label, _, params = inputs(real)
    gradient = class_step(images, pixels, label, torch.tensor([0, 2, 4]), params)[1]  # patches of the first image only
    assert gradient[0].abs().sum() > 0
    assert gradient[1].abs().sum() == 0


@pytest.mark.parametrize("path", ["_eager", "_traced", "in_chunks"])
def test_a_subset_adds_its_own_loss_and_gradient(parts: Parts, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condense_once.condensing.matching.class_step.CHUNK", 3)
    network, class_step, real = parts("idc")
    images, pixels, label, rows, params = inputs(real)
    subset = torch.tensor([0, 2, 4, 6])  # the patches of the first image
    apart = [class_step(images, pixels, label, each, params) for each in (rows, subset)]
    groups = (rows, subset)
    loss, gradient = getattr(class_step, path)(network.weights(), images.clone(), pixels, label, groups, params)
    assert loss.item() == pytest.approx(sum(float(each) for each, _ in apart), rel=1e-4)
    assert torch.allclose(gradient, apart[0][1] + apart[1][1], rtol=1e-3, atol=1e-5)


def test_a_network_without_convolutions_cannot_be_matched_by_idc(parts: Parts) -> None:
    def flat(shape: tuple[int, int, int], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), classes))

    with pytest.raises(BadOption, match="no weights of 4 dimensions, which idc matches"):
        parts("idc", net=flat)
    parts("dc", net=flat)  # linear layers are enough for DC


def test_batch_norm_counts_by_real_images_while_images_are_matched(parts: Parts) -> None:
    network, class_step, real = parts("idc", net="convnet-d1-w8-bn")
    pixels = real.pixels(np.arange(12))
    network.calibrate_batch_norm(pixels, generator(0, "draws"))
    norm = next(layer for layer in network.net.modules() if isinstance(layer, nn.BatchNorm2d))
    conv = next(layer for layer in network.net.modules() if isinstance(layer, nn.Conv2d))
    with torch.no_grad():
        expected = conv(pixels).mean((0, 2, 3))
    assert torch.allclose(norm.running_mean, expected, atol=1e-6)
    class_step(*inputs(real))
    assert torch.allclose(norm.running_mean, expected, atol=1e-6)
