"""Metrics by name: what they need, how long they train, and that the scoring run and the config alone decide their scores."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption, UnknownName
from condense_once.metrics import (
    METRICS,
    Epochs,
    MetricConfig,
    MetricInfo,
    ScoringRun,
    SubsetRuns,
    UntrainedNetworks,
    defaults_for,
    epochs_needed,
    record_scoring_run,
)
from condense_once.metrics.config import STORED_NAMES
from condense_once.metrics.el2n import el2n
from condense_once.metrics.lbpe import lbpe
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.dynamics import Dynamics

SHORT = MetricConfig(scoring_epochs=6, lbpe_epochs=Epochs.top(2, 4), el2n_epochs=3)


def a_run(rng: np.random.Generator, epochs: int, patches: int) -> Dynamics:
    numbers = rng.random((3, epochs, patches)).astype(np.float32)
    return Dynamics(numbers[0], numbers[1] - 0.5, numbers[2], rng.random((epochs, patches)) < 0.5)


@pytest.fixture
def run(rng: np.random.Generator) -> ScoringRun:
    odds = rng.random((9, 3)).astype(np.float32)
    included = np.concatenate([np.eye(9, dtype=bool), ~np.eye(9, dtype=bool)])
    return ScoringRun(
        rng.integers(0, 3, 9),
        a_run(rng, 6, 9),
        a_run(rng, 6, 9),
        odds / odds.sum(1, keepdims=True),
        rng.normal(size=(9, 5)).astype(np.float32),
        SubsetRuns(included, rng.random((18, 9)).astype(np.float32)),
        UntrainedNetworks(*rng.random((2, 4, 9)).astype(np.float32)),
    )


def parts_only(run: ScoringRun, parts: frozenset[str]) -> ScoringRun:
    return replace(run, **dict.fromkeys(run.parts - parts))


def test_the_metrics_of_the_field_are_there_with_a_line_each() -> None:
    assert set(METRICS.names()) >= {
        *("aum", "el2n", "entropy", "forgetting", "grand", "herding", "k-center", "lbpe", "lbpe-clean"),
        *("memorization", "moderate", "random", "ssp"),
    }
    assert all(info.summary for info in METRICS)
    assert [info.name for info in METRICS if info.easy == "high"] == ["aum"]
    with pytest.raises(UnknownName, match=r"^There is no 'elbpe' among the metrics; did you mean 'lbpe'"):
        METRICS.get("elbpe")


@pytest.mark.parametrize("name", METRICS.names())
def test_what_a_metric_says_it_needs_is_what_it_needs(name: str, run: ScoringRun) -> None:
    info = METRICS.get(name)
    scores = info.score(run, SHORT)
    assert scores.shape == (9,)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(info.score(parts_only(run, info.needs), SHORT), scores)
    for need in info.needs:
        with pytest.raises(BadOption, match=rf"^The metric '{name}' needs {need}, but the scoring run recorded "):
            info.score(parts_only(run, run.parts - {need}), SHORT)


@pytest.mark.parametrize("name", [info.name for info in METRICS if "dynamics" in " ".join(info.needs)])
def test_a_longer_run_scores_the_same_and_a_shorter_one_is_refused(name: str, run: ScoringRun) -> None:
    info = METRICS.get(name)
    needed = info.epochs_needed(SHORT)

    def cut(dynamics: Dynamics | None, epochs: int) -> Dynamics:
        assert dynamics is not None
        return Dynamics(*(getattr(dynamics, part)[:epochs] for part in ("error", "margin", "probability", "correct")))

    def cut_to(epochs: int) -> ScoringRun:
        dynamics, clean = cut(run.dynamics, epochs), cut(run.clean_dynamics, epochs)
        return replace(run, dynamics=dynamics, clean_dynamics=clean)

    np.testing.assert_array_equal(info.score(cut_to(needed), SHORT), info.score(run, SHORT))
    with pytest.raises(BadOption, match=rf"'{name}' needs {needed} epochs, but the .* have {needed - 1};"):
        info.score(cut_to(needed - 1), SHORT)
    everything = replace(SHORT, scoring_epochs=5, lbpe_epochs=Epochs.all())  # a run of 6, of which 5 count
    np.testing.assert_array_equal(info.score(cut_to(5), everything), info.score(run, everything))


def test_settings_reach_the_metrics(run: ScoringRun) -> None:
    dynamics = run.dynamics
    assert dynamics is not None
    expected = lbpe(dynamics.error, dynamics.correct, Epochs.range(1, 3))
    np.testing.assert_array_equal(
        METRICS.get("lbpe").score(run, replace(SHORT, lbpe_epochs=Epochs.range(1, 3))), expected
    )
    np.testing.assert_array_equal(METRICS.get("el2n").score(run, SHORT), el2n(dynamics.error, 3))
    for name, changed in (("random", replace(SHORT, seed=1)), ("ssp", replace(SHORT, ssp_clusters=1))):
        info = METRICS.get(name)
        assert (info.score(run, SHORT) != info.score(run, changed)).any()


def test_training_may_stop_at_the_last_epoch_that_any_metric_needs() -> None:
    config = MetricConfig()
    assert [epochs_needed([name], config) for name in ("el2n", "lbpe", "aum", "ssp")] == [10, 100, 100, 100]
    assert epochs_needed(["random", "memorization"], config) == 0  # neither looks at the run
    assert epochs_needed([], config) == 0
    assert epochs_needed(["lbpe", "el2n"], replace(config, lbpe_epochs=Epochs.range(2, 7))) == 10
    assert epochs_needed(["lbpe"], replace(config, lbpe_epochs=Epochs.all(), scoring_epochs=40)) == 40
    with pytest.raises(BadOption, match=r"'lbpe' needs 100 epochs, but the scoring run has 50; "):
        epochs_needed(["lbpe"], MetricConfig(scoring_epochs=50))
    assert epochs_needed(["aum"], MetricConfig(scoring_epochs=50)) == 50


@pytest.mark.parametrize(
    ("method", "dataset", "window"),
    [
        (None, None, (100, 10)),
        ("idc", "cifar10", (100, 10)),
        ("idc", "cifar100", (200, 10)),
        ("IDC", "imagenet10", (200, 10)),
        ("dream", "cifar10", (200, 10)),
        ("mtt", "cifar10", (10, 3)),
        ("dsa", None, (100, 3)),
        ("kip", "cifar10", (50, 3)),
        ("something new", "cifar100", (100, 10)),
    ],
)
def test_epochs_that_the_authors_use(method: str | None, dataset: str | None, window: tuple[int, int]) -> None:
    assert defaults_for(method, dataset) == window
    config = MetricConfig.for_set(method, dataset, paper=True)
    assert config.lbpe_epochs == Epochs.top(window[1], window[0])
    assert config.scoring_epochs == max(100, window[0])


def test_invalid_configs_and_scoring_runs_are_refused() -> None:
    for wrong in (
        *({"scoring_epochs": 0}, {"el2n_epochs": 0}, {"ssp_clusters": 0}, {"seed": -1}, {"never_learned": "best"}),
        {"params": {"mine": 3}},
    ):
        with pytest.raises(BadOption, match=r"^[^.]*\.$"):
            MetricConfig(**wrong)  # type: ignore[arg-type]
    labels = np.array([0, 1, 2])
    with pytest.raises(BadOption, match=r"features have shape \[2, 4\], which does not fit 3 labels"):
        ScoringRun(labels, features=np.ones((2, 4), np.float32))
    with pytest.raises(BadOption, match=r"probabilities have shape \[3\], which"):
        ScoringRun(labels, probabilities=np.ones(3, np.float32))
    for wrong_labels in (labels - 1, labels / 2, labels[:0]):
        with pytest.raises(BadOption, match="Labels"):
            ScoringRun(wrong_labels)


def test_a_metric_from_elsewhere_is_held_to_one_finite_number_a_patch(run: ScoringRun) -> None:
    for made in (np.zeros(4), np.full(9, np.nan)):
        info = MetricInfo("odd", "gives something else", "low", frozenset(), "none", lambda _, __, made=made: made)
        with pytest.raises(BadOption, match="'odd' must return one finite score for each of 9 patches"):
            info.score(run)


def test_one_run_serves_every_metric_of_dynamics(pixel_set: CondensedSet) -> None:
    names = ["lbpe", "el2n", "aum", "forgetting"]
    run = record_scoring_run(pixel_set, names, SHORT, net="convnet-d3-w32", compute=ComputeConfig(compilation="off"))
    assert run.parts == {"dynamics"}
    for name in names:
        assert METRICS.get(name).score(run, SHORT).shape == (len(pixel_set),)


def test_listing_metrics_needs_no_torch() -> None:
    code = "import sys; from condense_once.metrics import METRICS; print(len(METRICS.names())); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, str(len(METRICS.names()))), done.stderr


def test_stored_names_of_the_config_never_change() -> None:
    """They are in files and in the keys of stored results, whatever the fields are called."""
    assert {field.name for field in fields(MetricConfig)} == {
        *STORED_NAMES,
        "labels",
        "params",
        "until_stable",
    }  # recorded apart
    assert MetricConfig(seed=3).stored() == {
        "training": 100,
        "lbpe": "top10/100",
        "el2n": 10,
        "never_learnt": "zero",
        "clusters": None,
        "subset_runs": 10,
        "subset_share": 0.7,
        "subset_epochs": 100,
        "seed": 3,
    }
    made = {name: METRICS.get(name).made_with(MetricConfig()) for name in ("lbpe", "forgetting", "ssp", "memorization")}
    assert made == {
        "lbpe": {"epochs": 100, "seed": 0, "lbpe": "top10/100"},
        "forgetting": {"epochs": 100, "seed": 0, "never_learnt": "zero"},
        "ssp": {"epochs": 100, "seed": 0, "clusters": None},
        "memorization": {"epochs": 1000, "seed": 0, "subset_epochs": 100, "subset_runs": 10, "subset_share": 0.7},
    }
