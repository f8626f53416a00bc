from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from condense_once.condensed.bundled import load
from condense_once.condensed.contact_sheet import contact_sheet
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.verify import verify
from condense_once.condensing import CONDENSERS
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.condenser import Task
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.distributed import World
from condense_once.condensing.kernel.adam import Adam
from condense_once.condensing.kernel.kernels import BIAS, WideKernel, wide_kernel
from condense_once.condensing.kernel.loop import KernelCondenser
from condense_once.condensing.kernel.ridge import centred_one_hot, predict, regression_loss
from condense_once.condensing.runner import condense
from condense_once.data.source import Source
from condense_once.data.zca import fit_zca
from condense_once.errors import BadOption, CondenseOnceError
from condense_once.evaluation.inputs import prepare_test_images
from condense_once.train.compute_config import ComputeConfig

NET = "convnet-d1-w8"
SHORT = {"iterations": 4, "steps": 2, "real_batch": 12, "networks": 2, "net_age": 2, "image_lr": 0.02}
PLAIN = ComputeConfig(compilation="off")
Floats = NDArray[np.float64]
KERNELS: tuple[WideKernel, ...] = ("ntk", "nngp")


def run(source: Source, overrides: dict[str, Any] | None = None, **others: Any) -> CondensedSet:
    given = {"ipc": 3, "net": NET, "compute": PLAIN, **others}
    return condense(source, method="kip", overrides={**SHORT, **(overrides or {})}, **given)


@pytest.fixture
def build(source: Source) -> Callable[..., KernelCondenser]:
    def make(*, factor: int = 1, nested: bool = False, world: World | None = None, **overrides: Any) -> KernelCondenser:
        config = CondenseConfig.for_source(
            source, method="kip", ipc=3, factor=factor, net=NET, nested=nested, overrides={**SHORT, **overrides}
        )
        made = CONDENSERS.get("kip").build(Task(source, config, PLAIN, world or World()), None)
        assert isinstance(made, KernelCondenser)
        return made

    return make


def points(count: int, size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def layer_by_quadrature(own: float, other: float, between: float) -> tuple[float, float]:
    """2·E[relu(u)·relu(v)] and 2·E[relu'(u)·relu'(v)] of Gaussians with these variances and covariance.

    In polar coordinates the radius integrates to a constant, and the angle runs over where both are positive.
    """
    theta = math.acos(max(-1.0, min(1.0, between / math.sqrt(own * other))))
    angles = np.linspace(theta - math.pi / 2, math.pi / 2, 20_001)
    heights = np.cos(angles) * np.cos(angles - theta)
    width = (math.pi - theta) / 20_000
    simpson = width / 3 * (heights[0] + heights[-1] + 4 * heights[1:-1:2].sum() + 2 * heights[2:-1:2].sum())
    return 2 * math.sqrt(own * other) * simpson / math.pi, 2 * (math.pi - theta) / (2 * math.pi)


def naive_kernel(x: Floats, y: Floats, depth: int) -> dict[str, float]:
    """The kernels of two inputs by integrating every layer numerically."""
    products = {"xx": float(x @ x), "yy": float(y @ y), "xy": float(x @ y)}
    covariance = {name: 2 * value / len(x) + BIAS for name, value in products.items()}
    tangent = covariance["xy"]
    for _ in range(depth):
        xx, yy, xy = (covariance[name] for name in ("xx", "yy", "xy"))
        mean, derivative = layer_by_quadrature(xx, yy, xy)
        own = (layer_by_quadrature(variance, variance, variance)[0] for variance in (xx, yy))
        covariance = {"xx": next(own) + BIAS, "yy": next(own) + BIAS, "xy": mean + BIAS}
        tangent = covariance["xy"] + tangent * derivative
    return {"nngp": covariance["xy"], "ntk": tangent}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_kernels_of_infinite_width_are_those_of_integrating_every_layer(kernel: WideKernel, depth: int) -> None:
    x, y = points(4, 6), torch.cat([points(2, 6, seed=1), points(4, 6)[:1], -points(4, 6)[1:2]])
    found = wide_kernel(x, y, kernel, depth)
    for row in range(4):
        for column in range(4):
            expected = naive_kernel(x[row].numpy(), y[column].numpy(), depth)[kernel]
            assert float(found[row, column]) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_the_tangent_kernel_is_that_of_a_wide_finite_network() -> None:
    x, width, sampling = points(3, 4), 20_000, torch.Generator().manual_seed(0)
    first = torch.randn(width, 4, dtype=torch.float64, generator=sampling) * math.sqrt(2 / 4)
    bias = torch.randn(width, dtype=torch.float64, generator=sampling) * math.sqrt(BIAS)
    second = torch.randn(width, dtype=torch.float64, generator=sampling)
    before = x @ first.T + bias
    active = (before > 0).double()
    last = 2 / width * before.relu() @ before.relu().T + BIAS  # gradients by the last layer and its bias
    inner = 2 / width * (active * second) @ (active * second).T * (2 / 4 * x @ x.T + BIAS)  # and by the first
    torch.testing.assert_close(wide_kernel(x, x, "ntk", 1), last + inner, rtol=0.05, atol=0.05)


def test_predictions_equal_those_of_a_naive_oracle() -> None:
    support, inputs, labels = points(12, 5), points(7, 5, seed=1), points(12, 3, seed=2)
    for kernel in KERNELS:
        among, between = wide_kernel(support, support, kernel, 2), wide_kernel(inputs, support, kernel, 2)
        found = predict(between, among, labels, 1e-6)
        system = among.numpy().copy()
        ridge = 1e-6 * sum(system[row, row] for row in range(12)) / 12
        for row in range(12):
            system[row, row] += ridge
        right = labels.numpy().copy()
        for pivot in range(12):  # Gauss-Jordan elimination
            best = pivot + int(np.abs(system[pivot:, pivot]).argmax())
            system[[pivot, best]], right[[pivot, best]] = system[[best, pivot]], right[[best, pivot]]
            for row in range(12):
                if row != pivot:
                    factor = system[row, pivot] / system[pivot, pivot]
                    system[row] -= factor * system[pivot]
                    right[row] -= factor * right[pivot]
        weights = right / np.diag(system)[:, None]
        np.testing.assert_allclose(found.numpy(), between.numpy() @ weights, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("nested", [False, True])
def test_gradients_are_those_of_finite_differences(kernel: WideKernel, nested: bool) -> None:
    images, labels, real, targets = points(6, 5), points(6, 3, seed=1), points(9, 5, seed=2), points(9, 3, seed=3)
    prefixes = [torch.arange(6), torch.tensor([0, 3])] if nested else [torch.arange(6)]

    def loss(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        between, among = wide_kernel(real, images, kernel, 2), wide_kernel(images, images, kernel, 2)
        return regression_loss(between, among, labels, targets, 1e-3, prefixes)

    variables = [images.clone().requires_grad_(), labels.clone().requires_grad_()]
    gradients = torch.autograd.grad(loss(*variables), variables)
    for which, gradient in enumerate(gradients):
        for place in ((0, 0), (3, 2), (5, 1)):
            values = []
            for move in (1e-6, -1e-6):
                moved = [images.clone(), labels.clone()]
                moved[which][place] += move
                values.append(float(loss(*moved)))
            assert float(gradient[place]) == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("factor", [1, 2])
def test_the_loss_of_features_is_that_of_a_naive_regression(
    build: Callable[..., KernelCondenser], source: Source, factor: int
) -> None:
    condenser = build(factor=factor, augmentation="none", ridge=1e-3)
    condenser.initialise()
    now = condenser.sample(0)
    assert now.net is not None
    rows = condenser._batches[0]
    real = (torch.from_numpy(source.train.take(rows)).float() / 255 - 0.5) / 0.25
    made = condenser.result()
    order = np.lexsort((made.origin % (3 * factor**2) // 3, made.origin % 3, made.labels))  # by class, image and cell
    support = torch.from_numpy(made.inputs(order))
    with torch.no_grad():
        features = [now.net.features(x).double().numpy() for x in (support, real)]  # type: ignore[operator]
    among, between = features[0] @ features[0].T, features[1] @ features[0].T
    system = among + 1e-3 * np.trace(among) / len(among) * np.eye(len(among))
    one_hot = np.eye(3) - 1 / 3
    error = between @ np.linalg.solve(system, one_hot[made.labels[order]]) - one_hot[source.train.labels[rows]]
    loss = condenser.loss(condenser.images, condenser.labels, now).detach()
    assert float(loss) == pytest.approx(float((error**2).sum(1).mean() / 2), rel=1e-3)


def test_a_singular_system_is_an_error_and_not_a_nan() -> None:
    twice = torch.cat([points(3, 4), points(3, 4)])
    among = wide_kernel(twice, twice, "ntk", 1)
    assert torch.isfinite(predict(among, among, points(6, 2), 1e-6)).all()
    for broken in (among, torch.full_like(among, math.nan)):
        with pytest.raises(BadOption, match=r"singular to working precision.*raise the recipe's ridge"):
            predict(among, broken, points(6, 2), 1e-17)


def test_a_run_with_equal_images_says_what_to_do(source: Source) -> None:
    same = replace(source.train, images=np.repeat(source.train.images[:1], len(source.train.labels), 0))  # type: ignore[attr-defined, type-var]
    with pytest.raises(BadOption, match="singular"):
        run(replace(source, splits={"train": same}), {"ridge": 1e-16})


def test_adam_is_that_of_pytorch() -> None:
    values, gradients = points(4, 3), [points(4, 3, seed=seed) for seed in range(1, 6)]
    ours, theirs = Adam(values.clone()), values.clone().requires_grad_()
    optimiser = torch.optim.Adam([theirs], lr=0.03)
    for step, gradient in enumerate(gradients, 1):
        ours.step(gradient, 0.03, step)
        theirs.grad = gradient
        optimiser.step()
    torch.testing.assert_close(ours.values, theirs.detach(), rtol=1e-12, atol=1e-12)


class _SwitchOff(Callback):
    """Ends a run, like a machine that is switched off, once a checkpoint after so many work items is written."""

    def __init__(self, after: int) -> None:
        self._after = after

    def on_checkpoint(self, progress: RunProgress) -> None:
        if progress.done >= self._after:
            raise RuntimeError("off")


@pytest.mark.parametrize("after", [1, 4, 5])  # in the middle of an iteration and after its network was updated
@pytest.mark.parametrize(
    "overrides", [{"label_lr": 0.02, "augmentation": "color_crop"}, {"kernel": "ntk", "space": "zca", "label_lr": 0.02}]
)
def test_a_run_that_was_interrupted_ends_with_the_same_bits(
    source: Source, tmp_path: Path, after: int, overrides: dict[str, Any]
) -> None:
    whole, path = run(source, overrides), tmp_path / "run.checkpoint"
    with pytest.raises(RuntimeError, match="off"):
        run(source, overrides, checkpoint=path, save_every=0.0, callbacks=[_SwitchOff(after)])
    resumed = run(source, overrides, checkpoint=path, resume=True)
    np.testing.assert_array_equal(resumed.cells, whole.cells)
    np.testing.assert_array_equal(resumed.soft_labels, whole.soft_labels)
    assert resumed.provenance["loss"] == whole.provenance["loss"]


@pytest.mark.parametrize("kernel", ["ntk", "nngp", "features"])
@pytest.mark.parametrize("space", ["pixels", "normalised", "zca"])
def test_images_get_better_in_every_space_by_every_kernel(source: Source, kernel: str, space: str) -> None:
    overrides = {"kernel": kernel, "space": space, "iterations": 1, "steps": 20, "real_batch": 60, "image_lr": 0.1}
    made = run(source, {**overrides, "init": "noise"})
    curve = [loss for _, loss in made.provenance["loss"]]
    assert curve[-1] < 0.9 * curve[0]
    assert made.space.kind == space
    assert made.counts().tolist() == [3, 3, 3]


def test_learned_labels_are_soft_and_small_in_the_file(source: Source, tmp_path: Path) -> None:
    made = run(source, {"label_lr": 0.05})
    assert made.soft_labels is not None
    assert (made.label_kind, made.label_coding) == ("regression", "float16")
    assert np.abs(made.soft_labels - (np.eye(3) - 1 / 3)[made.labels]).max() > 0.05
    save(made, tmp_path / "a.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "a.safetensors").soft_labels, made.soft_labels)
    assert not [finding for finding in verify(tmp_path / "a.safetensors") if finding.level == "error"]
    assert run(source).soft_labels is None


def test_a_whitened_set_says_how_and_its_fit_is_kept(source: Source, experts_folder: Path) -> None:
    made = run(source, {"space": "zca"})
    (fit,) = (experts_folder.parent / "zca").glob("*.safetensors")
    assert dict(made.space.zca) == {"recipe": "kip", "regularisation": 0.1, "source": "tiny", "fit": fit.stem}
    assert made.space.mean == source.mean
    test = replace(source, splits={"test": source.train})
    images, _ = prepare_test_images(made, test)  # though no source of that name is known
    expected = fit_zca(source.train, source.mean, source.std, made.space.zca)
    np.testing.assert_allclose(
        images[:5], expected.apply(source.train.take(slice(0, 5)).astype(np.float32) / 255), atol=1e-5
    )
    assert "undone with the kept fit" in contact_sheet(made)[1][0]
    forged = replace(made, space=replace(made.space, zca={**made.space.zca, "fit": f"../zca/{fit.stem}"}))
    with pytest.raises(CondenseOnceError):
        prepare_test_images(forged, test)


@pytest.mark.parametrize(
    ("others", "overrides", "message"),
    [
        ({"factor": 2}, {"space": "zca"}, "whole images"),
        ({"nested": True}, {"label_lr": 0.1}, "label_lr with 0"),
        ({}, {"kernel": "rbf"}, "ntk, nngp or features"),
        ({}, {"ridge": 0.0}, "ridge must be above zero"),
        ({}, {"label_lr": -1.0}, "label_lr must be at least zero"),
        ({}, {"final_lr": 0.0}, "final_lr"),
        ({}, {"depth": 0}, "depth must be at least 1"),
    ],
)
def test_invalid_runs_are_refused(
    source: Source, others: dict[str, Any], overrides: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadOption, match=message):
        run(source, overrides, **others)


def test_several_processes_are_refused_with_a_reason(build: Callable[..., KernelCondenser]) -> None:
    with pytest.raises(BadOption, match=r"kip runs in one process, because .* without torchrun"):
        build(world=World(0, 2))


def test_networks_take_turns_and_start_afresh_at_different_times(build: Callable[..., KernelCondenser]) -> None:
    pool = build(networks=3, net_age=6, net_steps=2)._networks
    assert pool is not None
    assert pool.turns == 3
    fresh = [turn for turn in range(27) if pool._is_new(turn)]
    assert fresh[:3] == [0, 1, 2]
    assert {turn % 3 for turn in fresh[3:]} == {0, 1, 2}
    gaps = [np.diff([turn for turn in fresh[3:] if turn % 3 == place]) for place in range(3)]
    assert all((gap == 9).all() for gap in gaps)  # three turns of each of three networks


def test_a_time_budget_shortens_the_run(source: Source) -> None:
    config = CondenseConfig.for_source(source, method="kip", ipc=2, net=NET, minutes=0.2)
    condenser = CONDENSERS.get("kip").build(Task(source, config, PLAIN, World()), None)
    assert isinstance(condenser, KernelCondenser)
    said = condenser.fit_to_time(12.0)
    assert "steps with each, by features of networks." in said
    assert 1 <= condenser.recipe.iterations < 100_000
    assert (condenser.recipe.ridge, condenser.recipe.image_lr) == (1.0, 0.05)
    with pytest.raises(BadOption, match=r"takes about .* here"):
        condense(source, method="kip", ipc=2, net=NET, minutes=1e-7, compute=PLAIN)


def test_labels_are_centred() -> None:
    assert float(centred_one_hot(torch.tensor([0, 2, 1]), 3).sum(1).abs().max()) < 1e-12
