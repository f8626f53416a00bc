"""MDC's adaptive subset loss, against plain loops over classes, steps, subsets and patches."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from condense_once.augment import Augmentation, Params
from condense_once.condensed.mosaic import cut, upsample
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.subset import resize
from condense_once.condensing import CONDENSERS
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.checkpoint import load_checkpoint
from condense_once.condensing.condenser import Task
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.distributed import World
from condense_once.condensing.matching.class_step import ClassStep
from condense_once.condensing.matching.loop import MatchingCondenser
from condense_once.condensing.matching.time_budget import ItemTimes, shorten
from condense_once.condensing.runner import condense
from condense_once.data.source import Source
from condense_once.errors import BadFile, BadOption
from condense_once.nets import Network
from condense_once.train.compute_config import ComputeConfig

NET, IPC, CLASSES, PERIOD, STEPS, NETWORKS = "convnet-d1-w8", 4, 3, 2, 2, 7
LOOP = {"iterations": NETWORKS, "steps": STEPS, "subset_period": PERIOD, "net_batch": 8, "net_images": 8}
SHORT = {**LOOP, "real_batch": 6, "image_lr": 0.05}
PLAIN = ComputeConfig(compilation="off")


def run(source: Source, **others: Any) -> CondensedSet:
    overrides = {**SHORT, **others.pop("overrides", {})}
    given = {"method": "mdc", "ipc": IPC, "factor": 2, "net": NET, "compute": PLAIN, **others}
    return condense(source, overrides=overrides, **given)


def build(source: Source, **overrides: Any) -> MatchingCondenser:
    config = CondenseConfig.for_source(source, method="mdc", ipc=IPC, factor=2, net=NET, overrides=overrides)
    made = CONDENSERS.get("mdc").build(Task(source, config, PLAIN, World()), None)
    assert isinstance(made, MatchingCondenser)
    return made


class Step(NamedTuple):
    """A class step: what it was asked for, what came out, and the images and their momentum before and after."""

    label: int
    real: Tensor
    params: Params
    groups: list[list[int]]
    loss: float
    gradient: Tensor
    net: Network
    before: tuple[Tensor, Tensor]
    after: tuple[Tensor, Tensor]


def all_steps(condenser: MatchingCondenser, monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """Run a condenser to its end."""
    call, asked, taken = ClassStep.__call__, list[Any](), list[Step]()

    def spy(self: ClassStep, images: Tensor, real: Tensor, label: Tensor, *others: Any) -> Any:
        rows, params, *more = others
        before = images.clone(), condenser.velocity[int(label)].clone()
        loss, gradient = call(self, images, real, label, *others)
        groups = [group.tolist() for group in (rows, *more)]
        asked.append((before, int(label), real, params, groups, float(loss), gradient.clone()))
        return loss, gradient

    monkeypatch.setattr(ClassStep, "__call__", spy)
    condenser.initialise()
    while condenser.done < condenser.total:
        condenser.advance()
        if asked:
            before, label, *others = asked.pop()
            net = copy.deepcopy(condenser.network.plain)
            net.load_state_dict(condenser.network.net.state_dict())
            after = condenser.images[label].clone(), condenser.velocity[label].clone()
            taken.append(Step(label, *others, net, before, after))
    return taken


def patches(step: Step) -> dict[tuple[int, int], Tensor]:
    """The network input of every patch, by image and cell, as numpy decodes it."""
    cells = cut(step.before[0].numpy(), 2, 0.5).reshape(-1, 3, 4, 4)  # cell by cell, image by image
    decoded = torch.from_numpy(upsample(cells, (8, 8)).reshape(4, IPC, 1, 3, 8, 8))
    return {
        (image, cell): Augmentation.apply((decoded[cell, image] - 0.5) / 0.25, step.params)
        for image in range(IPC)
        for cell in range(4)
    }


def feature_distances(step: Step) -> list[float]:
    """Of the mean features of the first x images from those of the real ones, for x = 1, 2, 3."""
    inputs = [Augmentation.apply((image[None] - 0.5) / 0.25, step.params) for image in step.real]
    real = [step.net.features(x)[0].tolist() for x in inputs]
    made = {place: step.net.features(x)[0].tolist() for place, x in patches(step).items()}
    found = []
    for size in range(1, IPC):
        kept = [values for (image, _), values in made.items() if image < size]
        total = 0.0
        for d in range(len(real[0])):
            total += (sum(v[d] for v in kept) / len(kept) - sum(v[d] for v in real) / len(real)) ** 2
        found.append(total)
    return found


def gradient_distance(step: Step, size: int) -> float:
    """IDC's loss of the first `size` images."""
    weights = [weight for weight in step.net.parameters() if weight.ndim == 4]
    real = Augmentation.apply((step.real - 0.5) / 0.25, step.params)
    made = torch.cat([x for (image, _), x in patches(step).items() if image < size])
    losses = [cross_entropy(step.net(x), torch.full((len(x),), step.label)) for x in (real, made)]
    g, h = (torch.autograd.grad(loss, weights) for loss in losses)
    return sum(float(((one - other) ** 2).sum()) for one, other in zip(g, h, strict=True))


def test_subsets_are_chosen_matched_and_frozen_as_plain_loops_do_it(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    condenser = build(source, **SHORT)
    taken = all_steps(condenser, monkeypatch)
    assert len(taken) == NETWORKS * STEPS * CLASSES
    current, had_their_period, last = 0, list[int](), list[float]()
    chosen, most_frozen = [], 0
    for network in range(NETWORKS):
        checked = network == 0 or (network + 1) % PERIOD == 0
        sums, frozen = [0.0] * (IPC - 1), 0
        for size in had_their_period:
            if frozen < size < current:
                frozen = size
        most_frozen = max(most_frozen, frozen)
        for step in taken[network * STEPS * CLASSES : (network + 1) * STEPS * CLASSES]:
            sizes = [IPC, current] if current else [IPC]
            assert step.groups == [[cell * IPC + image for cell in range(4) for image in range(n)] for n in sizes]
            assert step.loss == pytest.approx(sum(gradient_distance(step, size) for size in sizes), rel=1e-3)
            for image in range(IPC):
                gradient = torch.zeros(3, 8, 8) if image < frozen else step.gradient[image]
                momentum = 0.5 * step.before[1][image] + gradient
                moved = step.before[0][image] - 0.05 * momentum * (1 + 0.5 + 0.25)  # two other classes have their turn
                assert torch.allclose(step.after[0][image], moved, atol=1e-6)
                assert torch.allclose(step.after[1][image], momentum / 4, atol=1e-6)
            for place, distance in enumerate(feature_distances(step) if checked else ()):
                sums[place] += distance / (STEPS * CLASSES)
        if checked:
            had_their_period += [current] if current else []
            changes = [abs(now - then) for now, then in zip(sums, last, strict=True)] if last else [1.0]
            current, last = 1 + changes.index(max(changes)), sums
            chosen.append(current)
    assert condenser.subset is not None
    assert condenser.subset.chosen == chosen
    assert len(set(chosen)) == 3  # so that the loops above saw every case:
    assert most_frozen == 2


def test_the_set_is_ranked_by_position_and_says_which_subsets_were_matched(source: Source) -> None:
    made = run(source)
    assert made.ranking == Ranking("nested", settings={"sizes": [1, 2, 3, 4]})
    assert made.provenance["subsets"][0] == 1
    assert len(made.provenance["subsets"]) == 1 + NETWORKS // PERIOD
    first = resize(made, ipc=1)
    assert set(first.origin % 16 % 4) == {0}  # cell by cell, image by image: the first image of each class


def test_one_image_per_class_has_no_subset(source: Source) -> None:
    made = run(source, ipc=1)
    plain = run(source, ipc=1, method="idc", overrides={"subset_period": 0})
    assert np.array_equal(np.sort(made.cells, 0), np.sort(plain.cells, 0))
    assert made.provenance["subsets"] == []


class _SwitchOff(Callback):
    def __init__(self, after: int) -> None:
        self._after = after

    def on_checkpoint(self, progress: RunProgress) -> None:
        if progress.done >= self._after:
            raise RuntimeError("off")


@pytest.mark.parametrize("after", [4, 7, 40])  # within a check, right after it, and with frozen images
def test_a_run_that_was_interrupted_ends_with_the_same_bits(source: Source, tmp_path: Path, after: int) -> None:
    whole, path = run(source), tmp_path / "run.checkpoint"
    with pytest.raises(RuntimeError, match="off"):
        run(source, checkpoint=path, save_every=0.0, callbacks=[_SwitchOff(after)])
    assert "subset/sums" in load_checkpoint(path).arrays
    resumed = run(source, checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, whole.cells)
    assert resumed.provenance["subsets"] == whole.provenance["subsets"]


def test_a_checkpoint_with_impossible_subsets_is_refused(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    with pytest.raises(RuntimeError, match="off"):
        run(source, checkpoint=path, save_every=0.0, callbacks=[_SwitchOff(20)])
    saved = load_checkpoint(path)
    replace(saved, arrays={**saved.arrays, "subset/chosen": np.array([1, 9], np.uint32)}).save(path)
    with pytest.raises(BadFile, match="its subsets are not of 1 to 3 images"):
        run(source, checkpoint=path, resume=True)


@pytest.mark.parametrize(("minutes", "period"), [(1, 1), (60, 9), (6000, 100)])
def test_a_short_run_has_short_periods_so_that_every_subset_can_have_its_turn(
    source: Source, minutes: int, period: int
) -> None:
    condenser = build(source)
    times = ItemTimes(class_step=0.05, net_update=0.02, selection=0.0003, network=0.01)
    cut, _ = shorten(condenser, times, 60 * minutes)
    assert cut.subset_period == period
    assert cut.iterations // cut.subset_period >= min(IPC - 1, cut.iterations)
    fixed = shorten(build(source, subset_period=50), times, 60 * minutes)[0]
    assert fixed.subset_period == 50


def test_bounded_decoding_is_refused(source: Source) -> None:
    with pytest.raises(BadOption, match="decode to be single"):
        run(source, overrides={"decode": "bound"})
