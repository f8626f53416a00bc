from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import condense_once
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.gathering import epochs_in_all, gather, score_source
from condense_once.selection.order import order_rows
from condense_once.train.images import training_data

NET = "convnet-d3-w32"
SHORT = MetricConfig(training=3, lbpe=Epochs.top(2, among=3), el2n=2, subset_runs=3, subset_share=0.7, subset_epochs=2)


@pytest.fixture
def source(rng: np.random.Generator) -> Source:
    images, labels = rng.integers(0, 256, (24, 1, 8, 8), dtype=np.uint8), np.arange(24) % 3
    return Source("shapes", ("ant", "bee", "cat"), (0.5,), (0.25,), {"train": ArraySplit(images, labels)})


@pytest.mark.parametrize("seed", [0, 7])
def test_memorization_equals_plain_loops_over_the_subset_runs(pixel_set: CondensedSet, seed: int) -> None:
    evidence = gather(pixel_set, ["memorization"], SHORT, net=NET, seed=seed)
    runs = evidence.subset_runs
    assert runs is not None
    assert evidence.parts == {"subset runs"}
    scores = METRICS.get("memorization").score(evidence, SHORT)
    for patch in range(len(pixel_set)):
        inside = [float(runs.probability[run, patch]) for run in range(3) if runs.included[run, patch]]
        outside = [float(runs.probability[run, patch]) for run in range(3) if not runs.included[run, patch]]
        assert (len(inside), len(outside)) == (2, 1)
        assert scores[patch] == pytest.approx(sum(inside) / 2 - outside[0], abs=1e-6)


def test_other_seeds_leave_out_other_patches_and_the_same_seed_the_same(pixel_set: CondensedSet) -> None:
    one, again, other = (
        gather(pixel_set, ["memorization"], SHORT, net=NET, seed=seed).subset_runs for seed in (0, 0, 1)
    )
    assert one is not None
    assert again is not None
    assert other is not None
    np.testing.assert_array_equal(one.included, again.included)
    np.testing.assert_array_equal(one.probability, again.probability)
    assert (one.included != other.included).any()


def test_all_metrics_are_gathered_at_once_and_progress_counts_every_epoch(pixel_set: CondensedSet) -> None:
    names, seen = METRICS.names(), []
    evidence = gather(pixel_set, names, SHORT, net=NET, progress=seen.append)
    assert seen == list(range(1, 3 + 3 * 2 + 1))
    assert epochs_in_all(names, SHORT) == 3 + 3 * 2
    assert evidence.parts == {"dynamics", "clean dynamics", "probabilities", "features", "subset runs"}
    for name in names:
        alone = gather(pixel_set, [name], SHORT, net=NET)
        info = METRICS.get(name)
        np.testing.assert_array_equal(info.score(evidence, SHORT), info.score(alone, SHORT))


def test_epochs_of_a_metric_are_those_that_are_trained_for_it() -> None:
    for name in METRICS.names():
        assert METRICS.get(name).epochs_needed(SHORT) == epochs_in_all([name], SHORT)


@pytest.mark.parametrize(
    "change", [{"subset_runs": 1}, {"subset_share": 1.0}, {"subset_share": 0.0}, {"subset_epochs": 0}]
)
def test_subset_runs_that_cannot_be_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(BadOption, match=r"subset_epochs|Memorization compares"):
        replace(SHORT, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", METRICS.names())
def test_a_source_is_scored_as_what_is_gathered_of_it_says(source: Source, metric: str) -> None:
    expected = METRICS.get(metric).score(gather(source, [metric], SHORT, net=NET), SHORT)
    np.testing.assert_array_equal(score_source(source, metric, net=NET, settings=SHORT), expected)
    assert condense_once.score_source is score_source


def test_what_is_recorded_stays_in_a_folder_of_yours_and_nowhere_else(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, temporary = tmp_path / "mine", tmp_path / "temporary"
    mine.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    score_source(source, net=NET, settings=SHORT)
    assert list(temporary.iterdir()) == []
    scores = score_source(source, net=NET, settings=SHORT, folder=mine)
    error = np.load(mine / "training-error.npy")
    assert error.shape == (3, 24)
    assert error[:, 5].min() <= scores[5] <= error[:, 5].max()
    with pytest.raises(BadOption, match="exists already"):
        score_source(source, net=NET, settings=SHORT, folder=mine)
    assert list(temporary.iterdir()) == []


def test_an_interrupted_scoring_leaves_nothing_behind(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        score_source(source, net=NET, settings=SHORT, progress=lambda _: signal.raise_signal(signal.SIGINT))
    assert list(tmp_path.iterdir()) == []


CHILD = """
import json, sys
from pathlib import Path
import numpy as np
import torch
from torch import nn
from condense_once.data.source import Source
from condense_once.metrics import MetricConfig
from condense_once.metrics.gathering import score_source
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
    return score_source(source, "el2n", net=net, recipe=recipe, settings=MetricConfig(training=2, el2n=2))

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
    run = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["scores"] > 100
    assert found["grown"] < 40e6


def test_the_best_images_of_a_source_are_kept_as_a_ranked_set(source: Source, tmp_path: Path) -> None:
    scores = score_source(source, "el2n", net=NET, settings=SHORT)
    rows = order_rows(scores, source.train.labels, easy="low", prefer="easy", balanced=True)[:12]
    kept = condense_once.keep_images(source, rows, scores={"el2n": scores}, ranking=Ranking("el2n"))
    condense_once.save(kept, tmp_path / "kept.safetensors")
    small = condense_once.resize(condense_once.load(tmp_path / "kept.safetensors"), condense_once.Budget(ipc=1))
    best = [min(np.flatnonzero(source.train.labels == label), key=lambda row: scores[row]) for label in range(3)]
    assert small.origin.tolist() == best
    np.testing.assert_array_equal(small.cells, source.train.take(np.array(best)))
    np.testing.assert_array_equal(small.scores["el2n"], scores[best])
    np.testing.assert_array_equal(small.inputs(), training_data(source).images[torch.tensor(best)])
