from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import resize
from condense_once.condensing import CONDENSERS
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.condenser import Task
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.distributed import World
from condense_once.condensing.distribution import frozen_net, loop
from condense_once.condensing.distribution.frozen_net import FrozenNet
from condense_once.condensing.distribution.loop import DistributionCondenser
from condense_once.condensing.distribution.loss import class_cross_entropy, mean_distance
from condense_once.condensing.distribution.time_budget import LEAN, ItemTimes, shorten
from condense_once.condensing.experts import run as expert_run
from condense_once.condensing.runner import condense
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.train.compute_config import ComputeConfig

NET = "convnet-d1-w8"
SHORT = {"iterations": 3, "steps": 2, "real_batch": 6, "experts": 1, "expert_epochs": 3}


def run(source: Source, overrides: dict[str, Any] | None = None, **others: Any) -> CondensedSet:
    given = {"ipc": 3, "factor": 2, "net": NET, "compute": ComputeConfig(compilation="off"), **others}
    return condense(source, method="tgdd", overrides={**SHORT, **(overrides or {})}, **given)


@pytest.fixture
def build(source: Source) -> Callable[..., DistributionCondenser]:
    def make(*, nested: bool = False, world: World | None = None, **overrides: Any) -> DistributionCondenser:
        config = CondenseConfig.for_source(
            source, method="tgdd", ipc=3, factor=2, net=NET, nested=nested, overrides={**SHORT, **overrides}
        )
        task = Task(source, config, ComputeConfig(compilation="off"), world or World())
        made = CONDENSERS.get("tgdd").build(task, None)
        assert isinstance(made, DistributionCondenser)
        return made

    return make


def test_the_distance_is_the_mean_over_prefixes_of_squared_differences_of_means() -> None:
    sampling = torch.Generator().manual_seed(0)
    features, targets = torch.rand(2, 6, 3, generator=sampling), torch.rand(2, 3, generator=sampling)
    for label in range(2):
        expected = 0.0
        for size in (1, 4, 6):
            for column in range(3):
                mean = sum(float(features[label, row, column]) for row in range(size)) / size
                expected += (mean - float(targets[label, column])) ** 2 / 3
        assert float(mean_distance(targets, features, [1, 4, 6])[label]) == pytest.approx(expected, rel=1e-5)


def test_the_cross_entropy_is_a_mean_over_the_patches_of_each_class() -> None:
    logits = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    found = class_cross_entropy(logits, torch.tensor([3, 1]))
    for place, label in enumerate((3, 1)):
        each = [float(cross_entropy(row[None], torch.tensor([label]))) for row in logits[place]]
        assert float(found[place]) == pytest.approx(sum(each) / 5, rel=1e-5)


def naive_gradient(condenser: DistributionCondenser, targets: torch.Tensor, rows: list[int], sizes: list[int]) -> Any:
    """Of the loss, written out patch by patch for the prefixes of so many images."""
    images = condenser.images.clone().requires_grad_()
    total = torch.zeros(())
    net, ahead = condenser.net.module, (condenser._net_ahead or condenser.net).module
    for label in range(3):
        features, losses = [], []
        for row in rows:
            image, cell = divmod(row, 4)
            top, left = 4 * (cell // 2), 4 * (cell % 2)
            patch = images[label, image][None, :, top : top + 4, left : left + 4]
            patch = torch.nn.functional.interpolate(patch, (8, 8), mode="bilinear", align_corners=False)
            x = (patch - 0.5) / 0.25
            features.append(net.features(x)[0])  # type: ignore[operator]
            losses.append(cross_entropy(ahead(x), torch.tensor([label])))
        kept = sorted({sum(row < 4 * size for row in rows) for size in sizes} - {0})
        distances = [(torch.stack(features[:size]).mean(0) - targets[label]).square().sum() for size in kept]
        total = total + torch.stack(distances).mean()
        total = total + condenser.recipe.cross_entropy * torch.stack(losses).mean()
    return torch.autograd.grad(total, images)[0]


def with_experts(condenser: DistributionCondenser) -> DistributionCondenser:
    """Initialised, with its experts trained, and with images that no update takes out of the range of pixels."""
    condenser.initialise()
    condenser.images.clamp_(0.2, 0.8)
    while condenser.done < condenser.expert_items:
        condenser.advance()
    return condenser


@pytest.mark.parametrize("overrides", [{}, {"ahead": 2}, {"max_patches": 5}, {"cross_entropy": 0.0}])
@pytest.mark.parametrize("nested", [False, True])
def test_the_image_gradient_is_that_of_a_naive_loss(
    build: Callable[..., DistributionCondenser], overrides: dict[str, Any], nested: bool
) -> None:
    condenser = with_experts(build(nested=nested, image_momentum=0.0, image_lr=1e-3, augmentation="none", **overrides))
    before, now = condenser.images.clone(), condenser.sample(0)
    rows = condenser._sample_patches().tolist()
    expected = naive_gradient(condenser, now.targets, rows, [1, 2, 3] if nested else [3])
    condenser.step(now)
    moved = (before - condenser.images) / condenser.recipe.lr_at(0)
    assert torch.allclose(moved, expected, rtol=1e-3, atol=1e-4)


def test_growing_in_stages_matches_the_first_images_and_hardly_moves_those_of_earlier_stages(
    build: Callable[..., DistributionCondenser],
) -> None:
    loop = {
        "iterations": 6,
        "steps": 1,
        "image_momentum": 0.0,
        "image_lr": 1e-3,
        "final_lr": 0.5,
        "augmentation": "none",
    }
    condenser = with_experts(build(nested=True, nesting="stages", settled_lr=0.25, **loop))
    for images, settled in ((1, 0), (1, 0), (2, 1), (2, 1), (3, 2), (3, 2)):  # each image has a third of the run
        before, now = condenser.images.clone(), condenser.sample(condenser.iteration)
        expected = naive_gradient(condenser, now.targets, list(range(4 * images)), [images])
        rate = 1e-3 * (1.0 if condenser.iteration % 2 == 0 else 0.75)  # along a cosine in every stage
        condenser._now = now
        condenser.advance()
        for image in range(3):
            factor = 0.25 if image < settled else 1.0
            moved = (before[:, image] - condenser.images[:, image]) / (rate * factor)
            assert torch.allclose(moved, expected[:, image], rtol=1e-3, atol=2e-3)
            assert bool((moved != 0).any()) == (image < images)


def test_images_of_earlier_stages_can_be_kept_as_they_are(build: Callable[..., DistributionCondenser]) -> None:
    condenser = with_experts(build(nested=True, nesting="stages", settled_lr=0.0))
    while condenser._stage.settled == 0:
        condenser.advance()
    first = condenser.images[:, 0].clone()
    while condenser.done < condenser.total:
        condenser.advance()
    assert torch.equal(condenser.images[:, 0], first)


def test_the_targets_are_the_mean_features_of_real_images_in_a_snapshot(
    build: Callable[..., DistributionCondenser], source: Source
) -> None:
    condenser = build(augmentation="none")
    condenser.initialise()
    while condenser.done < condenser.expert_items:
        condenser.advance()
    now = condenser.sample(2)
    rows = condenser.real.class_batch(1, 2)
    assert set(source.train.labels[rows]) == {1}
    x = (torch.from_numpy(source.train.take(rows)).float() / 255 - 0.5) / 0.25
    assert torch.allclose(now.targets[1], condenser.net(x)[0].mean(0), atol=1e-5)


def test_every_snapshot_is_used_sooner_or_later(
    build: Callable[..., DistributionCondenser], monkeypatch: pytest.MonkeyPatch
) -> None:
    condenser = build()
    condenser.initialise()
    while condenser.done < condenser.expert_items:
        condenser.advance()
    used: list[int] = []
    trajectory = type(condenser.experts.trajectories[0])
    load = trajectory.load_into
    monkeypatch.setattr(trajectory, "load_into", lambda self, net, at: (used.append(at), load(self, net, at))[1])
    for iteration in range(40):
        condenser.sample(iteration)
    assert set(used) == {0, 1, 2, 3}


def test_experts_are_trained_once_and_serve_any_number_of_images_per_class(
    source: Source, experts_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(source)
    assert len(list(experts_folder.glob("*/run-*.safetensors"))) == 1
    monkeypatch.setattr(expert_run.ExpertRun, "advance", lambda self: pytest.fail("trained again"))
    assert len(run(source, ipc=1)) == 12


class _SwitchOff(Callback):
    """Ends a run, like a machine that is switched off, once a checkpoint after so many work items is written."""

    def __init__(self, after: int) -> None:
        self._after = after

    def on_checkpoint(self, progress: RunProgress) -> None:
        if progress.done >= self._after:
            raise RuntimeError("off")


@pytest.mark.parametrize("after", [1, 2, 4, 6])  # while the expert is trained, and in the middle of an iteration
@pytest.mark.parametrize(("nested", "overrides"), [(False, {}), (True, {}), (True, {"nesting": "stages"})])
def test_a_run_that_was_interrupted_ends_with_the_same_bits(
    source: Source,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
    nested: bool,
    overrides: dict[str, Any],
) -> None:
    monkeypatch.setattr(expert_run, "SAVE_EVERY", 0.0)
    whole = run(source, overrides, nested=nested)
    monkeypatch.setenv("CONDENSE_ONCE_DATA", str(tmp_path))  # without the experts
    path = tmp_path / "run.checkpoint"
    with pytest.raises(RuntimeError, match="off"):
        run(source, overrides, nested=nested, checkpoint=path, save_every=0.0, callbacks=[_SwitchOff(after)])
    resumed = run(source, overrides, nested=nested, checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, whole.cells)
    assert resumed.provenance["loss"] == whole.provenance["loss"]


def test_a_nested_set_is_ranked_by_its_images_and_resizes_without_scores(source: Source) -> None:
    whole = run(source, nested=True)
    assert whole.ranking is not None
    assert (whole.ranking.metric, whole.ranking.balanced) == ("nested", True)
    first = resize(whole, ipc=1)
    assert first.counts().tolist() == [4, 4, 4]
    assert set((first.origin % 12) % 3) == {0}  # cell by cell, image by image: the first image of each class
    assert np.array_equal(np.sort(first.origin), np.sort(whole.origin[:12]))
    assert run(source).ranking is None


def test_classes_distributed_over_processes_move_as_in_one(build: Callable[..., DistributionCondenser]) -> None:
    """Each process updates its own classes; what they do together is what one process does."""
    alone = build()
    alone.initialise()
    while alone.done < alone.total:
        alone.advance()
    for rank in range(2):
        part = build(world=World(rank, 2).disconnected())
        part.initialise()
        while part.done < part.total:
            part.advance()
        for label in range(3):
            assert torch.equal(part.images[label], alone.images[label]) == (label % 2 == rank)


def test_many_classes_are_processed_in_parts_with_the_same_result(
    build: Callable[..., DistributionCondenser], monkeypatch: pytest.MonkeyPatch
) -> None:
    def images() -> torch.Tensor:
        condenser = build()
        condenser.initialise()
        while condenser.done < condenser.total:
            condenser.advance()
        return condenser.images

    together = images()
    monkeypatch.setattr(loop, "AT_ONCE", 1)
    assert torch.allclose(images(), together, atol=1e-5)


def test_large_images_are_recomputed_in_chunks_with_the_same_result(
    build: Callable[..., DistributionCondenser], monkeypatch: pytest.MonkeyPatch
) -> None:
    def images() -> torch.Tensor:
        condenser = build(real_batch=20)
        condenser.initialise()
        while condenser.done < condenser.total:
            condenser.advance()
        return condenser.images

    whole = images()
    monkeypatch.setattr(frozen_net, "is_large", lambda shape: True)
    assert torch.allclose(images(), whole, atol=1e-5)


def test_a_compiled_network_gives_the_same_gradient_for_any_number_of_images() -> None:
    def gradient(images: torch.Tensor, compute: ComputeConfig) -> torch.Tensor:
        net = FrozenNet("convnet-d2-w8", (3, 8, 8), 3, passes=1, compute=compute)
        images = images.clone().requires_grad_()
        features, logits = net(images)
        assert net.compiled == (compute.compilation == "on")  # still, so compiling did not fail
        return torch.autograd.grad(features.square().sum() + logits.square().sum(), images)[0]

    for count in (5, 12):
        images = torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(count))
        plain = gradient(images, ComputeConfig(precision="float32", compilation="off"))
        compiled = gradient(images, ComputeConfig(precision="bfloat16", compilation="on"))
        assert float(torch.cosine_similarity(plain.flatten(), compiled.flatten(), 0)) > 0.99  # bfloat16 has eight bits


def test_a_time_budget_is_kept_and_counts_the_expert(source: Source) -> None:
    notes: list[str] = []
    made = run(source, {"expert_epochs": 2}, minutes=0.05, notify=notes.append)
    assert made.provenance["seconds"] < 0.05 * 60 * 1.5
    assert "trained first" in notes[0]
    again: list[str] = []
    run(source, {"expert_epochs": 2}, minutes=0.05, notify=again.append)
    assert "found on disk" in again[0]


def test_a_budget_too_short_for_an_expert_is_refused(source: Source) -> None:
    with pytest.raises(
        BadOption, match=r"Training an expert, with a first step, takes about .* allow `minutes` 1 or more"
    ):
        run(source, minutes=1e-9)


@pytest.mark.parametrize(
    ("seconds", "length"),
    [(1000.0, (20, 0)), (70.0, (1, 0)), (40.0, (8, 1)), (10.0, (2, 1))],  # epochs, and batches of each if it is short
)
def test_a_budget_too_short_for_an_epoch_takes_a_part_of_one(
    make_source: Callable[..., Source], seconds: float, length: tuple[int, int]
) -> None:
    config = CondenseConfig.for_source(make_source(each=880), method="tgdd", ipc=1, factor=1, net=NET)
    task = Task(make_source(each=880), config, ComputeConfig(compilation="off"), World())
    condenser = CONDENSERS.get("tgdd").build(task, None)
    assert isinstance(condenser, DistributionCondenser)
    lean = condenser.recipe.override(LEAN)
    cut, decision = shorten(condenser, lean, ItemTimes(expert_batch=1.0, sample=0.1, step=0.1), seconds)  # 20 batches
    assert (cut.expert_epochs, cut.expert_batches) == length
    assert cut.iterations >= 1
    assert ("epochs of 1 batch (" in decision) == (length[1] == 1)
    condenser.adopt(cut)
    assert condenser.experts.items == length[0] * (length[1] or 20)


def test_a_time_budget_keeps_the_length_of_experts_that_is_given(build: Callable[..., DistributionCondenser]) -> None:
    condenser = build(expert_epochs=3, expert_batches=2)
    cut, _ = shorten(condenser, condenser.recipe, ItemTimes(1.0, 0.1, 0.1), 10.0)
    assert (cut.expert_epochs, cut.expert_batches) == (3, 2)
    with pytest.raises(BadOption, match=r"Training an expert, with a first step, takes about 6\.3 s"):
        shorten(condenser, condenser.recipe, ItemTimes(1.0, 0.1, 0.1), 5.0)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"experts": 0}, "experts must be at least 1"),
        ({"final_lr": 0}, "final_lr must be in"),
        ({"settled_lr": 2}, "settled_lr must be from 0 to 1"),
        ({"nesting": "all"}, "nesting is prefixes or stages"),
        ({"cross_entropy": -1}, "cross_entropy must be at least zero"),
        ({"image_lr": "nan"}, "image_lr must be above zero"),
    ],
)
def test_invalid_recipes_are_refused(source: Source, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        run(source, overrides)


def test_a_loss_that_is_not_finite_ends_the_run(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "mean_distance", lambda *_: torch.full((3,), torch.nan))
    with pytest.raises(BadOption, match=r"NaN or infinite in iteration 1; .* smaller image_lr"):
        run(source)
