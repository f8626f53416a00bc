"""A scoring run that ends once the ranking no longer changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.score import scoring_config
from condense_once.metrics.scoring_run import record_scoring_run
from condense_once.metrics.stability import spearman

NET = "convnet-d1-w8"
LONG = MetricConfig(scoring_epochs=60, lbpe_epochs=Epochs.all())


def rho(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's correlation of scores, from pairs: ties share the mean of their ranks."""

    def ranks(scores: np.ndarray) -> list[float]:
        return [sum(a < b for a in scores) + (sum(a == b for a in scores) - 1) / 2 for b in scores]

    first, second = np.array(ranks(one)), np.array(ranks(other))
    first, second = first - first.mean(), second - second.mean()
    return float((first @ second) / np.sqrt((first @ first) * (second @ second)))


@pytest.mark.parametrize("metric", ["lbpe", "aum"])
@pytest.mark.parametrize("least", [0.5, 0.9])
def test_a_run_ends_at_the_first_ranking_that_is_like_the_one_ten_epochs_before(
    pixel_set: CondensedSet, metric: str, least: float
) -> None:
    whole = record_scoring_run(pixel_set, [metric], LONG, net=NET)
    info = METRICS.get(metric)
    scores = {end: info.score(whole, replace(LONG, scoring_epochs=end)) for end in range(10, 61, 10)}
    if metric == "aum":
        assert whole.dynamics is not None
        scores = {end: whole.dynamics.margin[:end].mean(0) for end in scores}
    expected = next((end for end in range(20, 61, 10) if rho(scores[end - 10], scores[end]) >= least), 60)
    scored = condense_once.score(pixel_set, metric, net=NET, config=replace(LONG, until_stable=least))
    (record,) = scored.provenance["scores"]
    assert (record["until_stable"], record["stopped_at"], record["epochs"]) == (least, [expected], 60)
    np.testing.assert_allclose(scored.scores[metric], scores[expected], rtol=1e-5)


def test_scores_until_stable_are_reused_and_are_not_those_of_a_whole_run(pixel_set: CondensedSet) -> None:
    stable = replace(LONG, until_stable=0.5)
    scored = condense_once.score(pixel_set, "lbpe", net=NET, config=stable)
    assert condense_once.score(scored, "lbpe", net=NET, config=stable) is scored
    whole = condense_once.score(scored, "lbpe", net=NET, config=LONG)
    assert not np.array_equal(whole.scores["lbpe"], scored.scores["lbpe"])
    ranked = condense_once.rank(scored, "lbpe", net=NET, config=stable)
    assert ranked.ranking is not None
    assert ranked.ranking.settings["stopped_at"] == scored.provenance["scores"][0]["stopped_at"]


def test_every_run_of_several_ends_by_itself(pixel_set: CondensedSet) -> None:
    scored = condense_once.score(pixel_set, "lbpe", net=NET, runs=2, config=replace(LONG, until_stable=0.9))
    ends = [
        record_scoring_run(pixel_set, ["lbpe"], replace(LONG, until_stable=0.9), net=NET, seed=seed).dynamics.epochs
        for seed in (0, 1)
    ]
    assert scored.provenance["scores"][0]["stopped_at"] == ends


def test_lbpe_until_stable_is_over_all_epochs(pixel_set: CondensedSet) -> None:
    assert scoring_config(pixel_set, ["lbpe"], until_stable=0.99).lbpe_epochs == Epochs.all()


@pytest.mark.parametrize(
    ("metric", "epochs"), [("lbpe", "top3/10"), ("el2n", None), ("ssp", None), ("lbpe+aum", "0-9"), ("random", None)]
)
def test_metrics_that_read_only_a_part_of_a_run_or_its_end_are_refused(
    pixel_set: CondensedSet, metric: str, epochs: str | None
) -> None:
    with pytest.raises(BadOption, match=r"^`until_stable` ends a run .* which \S+ is not; leave it out\.$"):
        scoring_config(pixel_set, [metric], lbpe_epochs=epochs, until_stable=0.99)


@pytest.mark.parametrize("value", [0.0, 1.5, -1.0])
def test_what_is_no_correlation_is_refused(value: float) -> None:
    with pytest.raises(BadOption, match="until_stable"):
        MetricConfig(until_stable=value)


def test_the_correlation_of_constant_scores_is_one_only_if_both_are() -> None:
    flat, rising = np.zeros(4), np.arange(4.0)
    assert (spearman(flat, flat), spearman(flat, rising)) == (1.0, 0.0)
