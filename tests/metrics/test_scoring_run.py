from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import condense_once
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.score import score_source
from condense_once.metrics.scoring_run import ScoringRun, record_scoring_run, total_epochs
from condense_once.nets import make_net
from condense_once.selection.order import order_rows
from condense_once.train.dynamics import RECIPE
from condense_once.train.images import training_data
from condense_once.train.seeds import Stream, generator

NET = "convnet-d3-w32"
SHORT = MetricConfig(
    scoring_epochs=3,
    lbpe_epochs=Epochs.top(2, among=3),
    el2n_epochs=2,
    subset_runs=3,
    subset_fraction=0.7,
    subset_epochs=2,
)


@pytest.fixture
def source(rng: np.random.Generator) -> Source:
    images, labels = rng.integers(0, 256, (24, 1, 8, 8), dtype=np.uint8), np.arange(24) % 3
    return Source("shapes", ("ant", "bee", "cat"), (0.5,), (0.25,), {"train": ArraySplit(images, labels)})


@pytest.mark.parametrize("seed", [0, 7])
def test_memorization_equals_plain_loops_over_the_subset_runs(pixel_set: CondensedSet, seed: int) -> None:
    run = record_scoring_run(pixel_set, ["memorization"], SHORT, net=NET, seed=seed)
    runs = run.subset_runs
    assert runs is not None
    assert run.parts == {"subset_runs"}
    scores = METRICS.get("memorization").score(run, SHORT)
    for patch in range(len(pixel_set)):
        inside = [float(runs.probability[each, patch]) for each in range(3) if runs.included[each, patch]]
        outside = [float(runs.probability[each, patch]) for each in range(3) if not runs.included[each, patch]]
        assert (len(inside), len(outside)) == (2, 1)
        assert scores[patch] == pytest.approx(sum(inside) / 2 - outside[0], abs=1e-6)


@pytest.mark.parametrize("metric", ["el2n-init", "grand-init"])
def test_scores_before_training_are_of_ten_networks_one_by_one(pixel_set: CondensedSet, metric: str) -> None:
    config = replace(SHORT, seed=2)
    scored = condense_once.score(pixel_set, metric, net=NET, config=config)
    data = training_data(pixel_set)
    total = np.zeros(len(pixel_set))
    for number in range(10):
        weights = generator(2, Stream.UNTRAINED, number)
        net = make_net(NET, data.shape, len(pixel_set.classes), generator=weights).eval()
        for row, label in enumerate(pixel_set.labels.tolist()):
            net.zero_grad()
            logits = net(data.images[row : row + 1])
            torch.nn.functional.cross_entropy(logits, torch.tensor([label])).backward()
            if metric == "el2n-init":
                onehot = torch.nn.functional.one_hot(torch.tensor(label), logits.shape[1])
                total[row] += float((logits.detach().softmax(1)[0] - onehot).norm())
            else:
                grads = [parameter.grad.flatten() for parameter in net.classifier.parameters()]
                total[row] += float(torch.cat(grads).norm())
    np.testing.assert_allclose(scored.scores[metric], total / 10, rtol=1e-4)
    assert total_epochs([metric], config) == 0
    (record,) = scored.provenance["scores"]
    assert (record["epochs"], record["net"], record["seed"]) == (0, NET, 2)


def test_other_seeds_leave_out_other_patches_and_the_same_seed_the_same(pixel_set: CondensedSet) -> None:
    one, again, other = (
        record_scoring_run(pixel_set, ["memorization"], SHORT, net=NET, seed=seed).subset_runs for seed in (0, 0, 1)
    )
    assert one is not None
    assert again is not None
    assert other is not None
    np.testing.assert_array_equal(one.included, again.included)
    np.testing.assert_array_equal(one.probability, again.probability)
    assert (one.included != other.included).any()


def test_one_call_records_for_all_metrics_and_progress_counts_every_epoch(pixel_set: CondensedSet) -> None:
    names, seen = METRICS.names(), []
    run = record_scoring_run(pixel_set, names, SHORT, net=NET, progress=lambda *ticks: seen.append(ticks))
    assert seen == [(done, 9) for done in range(1, 3 + 3 * 2 + 1)]
    assert total_epochs(names, SHORT) == 3 + 3 * 2
    assert run.parts == {"dynamics", "clean_dynamics", "probabilities", "features", "subset_runs", "untrained"}
    for name in names:
        alone = record_scoring_run(pixel_set, [name], SHORT, net=NET)
        info = METRICS.get(name)
        np.testing.assert_array_equal(info.score(run, SHORT), info.score(alone, SHORT))


def test_epochs_of_a_metric_are_those_that_are_trained_for_it() -> None:
    for name in METRICS.names():
        assert METRICS.get(name).epochs_needed(SHORT) == total_epochs([name], SHORT)


@pytest.mark.parametrize(
    "change", [{"subset_runs": 1}, {"subset_fraction": 1.0}, {"subset_fraction": 0.0}, {"subset_epochs": 0}]
)
def test_subset_runs_that_cannot_be_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(BadOption, match=r"subset_epochs|subset_fraction"):
        replace(SHORT, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", METRICS.names())
def test_a_source_is_scored_by_its_scoring_run(source: Source, metric: str) -> None:
    expected = METRICS.get(metric).score(record_scoring_run(source, [metric], SHORT, net=NET), SHORT)
    np.testing.assert_array_equal(score_source(source, metric, net=NET, config=SHORT), expected)
    assert condense_once.score_source is score_source


def test_what_is_recorded_stays_in_a_folder_of_yours_and_nowhere_else(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, temporary = tmp_path / "mine", tmp_path / "temporary"
    mine.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    score_source(source, net=NET, config=SHORT)
    assert list(temporary.iterdir()) == []
    scores = score_source(source, net=NET, config=SHORT, folder=mine)
    error = np.load(mine / "training-error.npy")
    assert error.shape == (3, 24)
    assert error[:, 5].min() <= scores[5] <= error[:, 5].max()
    with pytest.raises(BadOption, match="already exists"):
        score_source(source, net=NET, config=SHORT, folder=mine)
    assert list(temporary.iterdir()) == []


def test_an_interrupted_scoring_leaves_nothing_behind(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        score_source(source, net=NET, config=SHORT, progress=lambda *_: signal.raise_signal(signal.SIGINT))
    assert list(tmp_path.iterdir()) == []


CHILD = """
import json, sys
from pathlib import Path
import numpy as np
import torch
from torch import nn
from condense_once.data.source import Source
from condense_once.metrics import MetricConfig
from condense_once.metrics.score import score_source
from condense_once.train.recipe import Recipe

torch.set_num_threads(1)

class Made:
    '''Images that are nowhere until they are asked for.'''
    shape = (3, 16, 16)
    def __init__(self, count):
        self.labels = np.arange(count) % 4
    def take(self, rows):
        rows = np.arange(len(self.labels))[rows, None]
        colours = np.uint8(rows % 251) + np.uint8(rows % 4) * np.arange(768).astype(np.uint8)
        return colours.reshape(-1, *self.shape)

def net(shape, classes):
    return nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(48, classes))

def score(count):
    source = Source("made", tuple("abcd"), (0.5,) * 3, (0.25,) * 3, {"train": Made(count)})
    recipe = Recipe(batch=500, augmentation="none", cutmix=0.0)
    return score_source(source, "el2n", net=net, recipe=recipe, config=MetricConfig(scoring_epochs=2, el2n_epochs=2))

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

score(2000)
before = peak()
scores = score(100_000)
print(json.dumps({"grown": peak() - before, "scores": len(np.unique(scores))}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak of memory")
def test_a_large_source_is_scored_in_little_memory() -> None:
    """Its images as floats are 307 MB; kept are labels, an order, a batch and what was recorded."""
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["scores"] > 100
    assert found["grown"] < 40e6


def test_the_best_images_of_a_source_are_kept_as_a_ranked_set(source: Source, tmp_path: Path) -> None:
    scores = score_source(source, "el2n", net=NET, config=SHORT)
    rows = order_rows(scores, source.train.labels, easy="low", prefer="easy", balanced=True)[:12]
    kept = condense_once.coreset(source, rows, scores={"el2n": scores}, ranking=Ranking("el2n"))
    condense_once.save(kept, tmp_path / "kept.safetensors")
    small = condense_once.resize(condense_once.load(tmp_path / "kept.safetensors"), condense_once.Budget(ipc=1))
    best = [min(np.flatnonzero(source.train.labels == label), key=lambda row: scores[row]) for label in range(3)]
    assert small.origin.tolist() == best
    np.testing.assert_array_equal(small.cells, source.train.take(np.array(best)))
    np.testing.assert_array_equal(small.scores["el2n"], scores[best])
    np.testing.assert_array_equal(small.inputs(), training_data(source).images[torch.tensor(best)])


# ---------------------------------------------------------------- the run itself


def recorded(
    data: CondensedSet | Source, epochs: int, metrics: tuple[str, ...] = ("aum",), **options: Any
) -> ScoringRun:
    config = MetricConfig(scoring_epochs=epochs, lbpe_epochs=Epochs.all())
    return record_scoring_run(data, metrics, config, **{"net": NET, **options})


def errors_of(run: ScoringRun) -> np.ndarray[Any, Any]:
    assert run.dynamics is not None
    return run.dynamics.error


def test_more_epochs_than_the_recipe_has_cannot_be_recorded(pixel_set: CondensedSet) -> None:
    with pytest.raises(BadOption, match="The recipe has 1000 epochs, so a scoring run cannot have 1001"):
        recorded(pixel_set, 1001)


def test_a_run_is_recorded_up_to_the_epoch_asked_for(pixel_set: CondensedSet) -> None:
    seen: list[tuple[int, ...]] = []
    error = errors_of(recorded(pixel_set, 3, progress=lambda *ticks: seen.append(ticks)))
    assert error.shape == (3, len(pixel_set))
    assert (error > 0).all()
    assert seen == [(1, 3), (2, 3), (3, 3)]
    np.testing.assert_array_equal(error, errors_of(recorded(pixel_set, 3)))


def test_clean_passes_see_the_network_after_each_epoch_and_do_not_disturb_it(pixel_set: CondensedSet) -> None:
    plain = recorded(pixel_set, 3, net="convnet-d3-bn")
    both = recorded(pixel_set, 3, ("lbpe-clean", "entropy"), net="convnet-d3-bn")
    assert plain.clean_dynamics is None
    assert both.clean_dynamics is not None
    np.testing.assert_array_equal(errors_of(plain), errors_of(both))
    assert both.probabilities is not None
    expected = both.probabilities[np.arange(len(pixel_set)), pixel_set.labels]
    np.testing.assert_allclose(both.clean_dynamics.probability[-1], expected, atol=1e-6)


def test_a_longer_run_begins_like_a_shorter_one(pixel_set: CondensedSet) -> None:
    """The learning rate is constant for two thirds of the recipe, so stopping early changes nothing that was recorded."""
    short, long = (errors_of(recorded(pixel_set, epochs)) for epochs in (2, 4))
    np.testing.assert_array_equal(short, long[:2])


def linear(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
    features = shape[0] * (shape[1] // 8) * (shape[2] // 8)
    return torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(features, classes))


@pytest.mark.parametrize(("side", "augmentation"), [(64, RECIPE.augmentation), (72, "imagenet")])
def test_large_images_are_augmented_as_in_evaluation(rng: np.random.Generator, side: int, augmentation: str) -> None:
    images = ArraySplit(rng.integers(0, 256, (6, 3, side, side), dtype=np.uint8), np.arange(6) % 2)
    source = Source("photographs", ("cat", "dog"), (0.5,) * 3, (0.25,) * 3, {"train": images})
    run = recorded(source, 1, net=linear)
    assert run.dynamics is not None
    assert run.dynamics.settings["recipe"]["augmentation"] == augmentation
    expected = recorded(source, 1, net=linear, recipe=replace(RECIPE, augmentation=augmentation))
    np.testing.assert_array_equal(errors_of(run), errors_of(expected))
