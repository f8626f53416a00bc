"""What metrics require, compared with the paper's table 6 and against what they do."""

from __future__ import annotations

import numpy as np
import pytest

from condense_once.metrics import METRICS, MetricConfig, ScoringRun
from condense_once.studies.metric_requirements import requirements_table


def test_it_is_table_6_of_the_paper_but_for_the_labels_of_entropy() -> None:
    table = requirements_table()
    assert table.axes == ("metric", "model", "training dynamics", "training", "label")
    required = {row.labels[0]: row.labels[1:] for row in table.rows}
    assert {name: required[name] for name in ("ssp", "entropy", "aum", "forgetting", "el2n", "lbpe")} == {
        "ssp": ("yes", "–", "full", "–"),
        "entropy": ("yes", "–", "full", "–"),  # the paper ticks the label
        "aum": ("–", "yes", "full", "yes"),
        "forgetting": ("–", "yes", "full", "yes"),
        "el2n": ("–", "yes", "early", "yes"),
        "lbpe": ("–", "yes", "early", "yes"),
    }
    assert required["random"] == ("–", "–", "none", "–")
    assert required["grand-init"] == ("yes", "–", "none", "yes")
    assert required["memorization"] == ("yes", "–", "full, several runs", "yes")


def test_every_metric_has_a_row() -> None:
    assert [row.labels[0] for row in requirements_table().rows] == METRICS.names()


# What is recorded of a run is recorded of the labels; the others can do without.
@pytest.mark.parametrize(
    "name",
    [info.name for info in METRICS if not info.needs & {"dynamics", "clean_dynamics", "subset_runs", "untrained"}],
)
def test_metrics_that_need_no_labels_score_the_same_with_others(name: str, rng: np.random.Generator) -> None:
    info = METRICS.get(name)
    odds = rng.random((12, 3)).astype(np.float32)
    probabilities, features = odds / odds.sum(1, keepdims=True), rng.normal(size=(12, 4)).astype(np.float32)
    config = MetricConfig(ssp_clusters=3)
    one, other = (
        info.score(ScoringRun(labels, probabilities=probabilities, features=features), config)
        for labels in (np.repeat(np.arange(3), 4), np.tile(np.arange(3), 4))
    )
    required = {row.labels[0]: row.labels[-1] for row in requirements_table().rows}
    assert (required[name] == "–") == np.array_equal(one, other)
