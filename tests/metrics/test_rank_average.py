from __future__ import annotations

import numpy as np
import pytest

from condense_once.errors import BadOption, UnknownName
from condense_once.metrics import METRICS, MetricConfig, ScoringRun
from condense_once.selection.rule import Rule
from condense_once.train.dynamics import Dynamics

CONFIG = MetricConfig(scoring_epochs=4, lbpe_epochs="0-3", el2n_epochs=2)  # type: ignore[arg-type]


@pytest.fixture
def run() -> ScoringRun:
    rng = np.random.default_rng(0)
    error, margin, probability = (rng.random((4, 9)).astype(np.float32) for _ in range(3))
    return ScoringRun(np.arange(9) % 3, Dynamics(error, margin, probability, error < 0.5))


def test_ranks_are_averaged_whichever_end_is_easy(run: ScoringRun) -> None:
    lbpe, aum = (METRICS.get(name).score(run, CONFIG).tolist() for name in ("lbpe", "aum"))
    expected = [
        (sum(other < lbpe[row] for other in lbpe) + sum(other > aum[row] for other in aum)) / 2 / 8 for row in range(9)
    ]
    np.testing.assert_allclose(METRICS.get("lbpe+aum").score(run, CONFIG), expected, rtol=1e-6)


def test_a_rank_average_is_a_rule_like_any_metric() -> None:
    assert "lbpe+el2n" in METRICS
    assert "lbpe+nonsense" not in METRICS
    rule = Rule.parse("lbpe+aum-balanced")
    assert (rule.metric, rule.prefer, rule.balanced, rule.name) == ("lbpe+aum", "easy", True, "lbpe+aum-balanced")


def test_it_needs_what_its_parts_need() -> None:
    early, whole = METRICS.get("lbpe+el2n"), METRICS.get("lbpe+ssp")
    assert early.epochs_needed(MetricConfig()) == 100
    assert (early.stage, whole.stage) == ("early", "whole")
    assert whole.needs == {"dynamics", "features"}
    assert {"lbpe", "clusters"} <= set(whole.made_with(MetricConfig()))


def test_nonsense_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'lbpe'"):
        METRICS.get("lpbe+aum")
    with pytest.raises(BadOption, match="names a metric twice"):
        METRICS.get("lbpe+lbpe")
    with pytest.raises(BadOption, match="which memorization is not"):
        METRICS.get("lbpe+memorization")
