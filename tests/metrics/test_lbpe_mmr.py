"""LBPE with maximal marginal relevance, against plain loops over one patch at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.lbpe_mmr import lbpe_mmr
from condense_once.metrics.scoring_run import record_scoring_run
from condense_once.selection.rule import Rule
from condense_once.selection.select import rows_from_run

SHORT = MetricConfig(scoring_epochs=3, lbpe_epochs=Epochs.all())


def plain_order(errors: Sequence[float], features: Sequence[Sequence[float]], weight: float) -> list[int]:
    """The order in which the patches of one class are picked."""
    count, dims = len(errors), range(len(features[0]))
    mean = [sum(row[d] for row in features) / count for d in dims]
    rows = [[row[d] - mean[d] for d in dims] for row in features]

    def cosine(one: list[float], other: list[float]) -> float:
        lengths = math.sqrt(sum(v * v for v in one)) * math.sqrt(sum(v * v for v in other))
        return sum(a * b for a, b in zip(one, other, strict=True)) / lengths

    ease = [sum(other > error for other in errors) / (count - 1) for error in errors]
    picked = [errors.index(min(errors))]
    while len(picked) < count:
        left = [each for each in range(count) if each not in picked]
        gains = [
            (1 - weight) * ease[each] - weight * max(cosine(rows[each], rows[kept]) for kept in picked) for each in left
        ]
        picked.append(left[gains.index(max(gains))])
    return picked


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_equals_plain_loops(rng: np.random.Generator, weight: float) -> None:
    error, features = rng.random(21).astype(np.float32), rng.normal(size=(21, 4)).astype(np.float32)
    labels = rng.permutation(np.arange(21) % 3)
    scores = lbpe_mmr(error, features, labels, weight)
    for label in range(3):
        members = np.flatnonzero(labels == label)
        order = plain_order(error[members].tolist(), features[members].tolist(), weight)
        assert members[np.array(order)].tolist() == members[np.argsort(scores[members])].tolist()


def test_copies_of_a_kept_patch_come_last_and_a_class_of_copies_has_an_order() -> None:
    features = np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, -2.0]])
    error = np.array([0.1, 0.2, 0.3, 0.4])
    assert np.argsort(lbpe_mmr(error, features, np.zeros(4, int), 0.9)).tolist()[-1] == 1
    assert np.argsort(lbpe_mmr(error, np.ones((4, 2)), np.zeros(4, int))).tolist() == [0, 1, 2, 3]


def test_weight_zero_is_the_order_of_yoco_and_every_size_is_a_prefix(pixel_set: CondensedSet) -> None:
    run = record_scoring_run(pixel_set, ["lbpe-mmr"], SHORT, net="convnet-d1-w8")
    plain = MetricConfig(scoring_epochs=3, lbpe_epochs=Epochs.all(), params={"lbpe-mmr": {"weight": 0.0}})
    rule = Rule.parse("lbpe-mmr-balanced")
    for count in (3, 6, 12):
        yoco = rows_from_run(pixel_set, Rule.parse("yoco"), count, run, SHORT)
        np.testing.assert_array_equal(rows_from_run(pixel_set, rule, count, run, plain), yoco)
        whole = rows_from_run(pixel_set, rule, len(pixel_set), run, SHORT)
        np.testing.assert_array_equal(rows_from_run(pixel_set, rule, count, run, SHORT), whole[:count])
    assert not np.array_equal(whole, rows_from_run(pixel_set, Rule.parse("yoco"), len(pixel_set), run, SHORT))


def test_it_ranks_and_selects_like_any_metric(pixel_set: CondensedSet) -> None:
    ranked = condense_once.rank(pixel_set, "lbpe-mmr", net="convnet-d1-w8", config=SHORT)
    assert ranked.ranking is not None
    assert ranked.ranking.settings["params"] == {"weight": 0.5}
    small = condense_once.select(pixel_set, "lbpe-mmr-balanced", total=6, net="convnet-d1-w8", config=SHORT)
    np.testing.assert_array_equal(small.origin, ranked.take(slice(6)).origin)


def test_a_weight_that_is_none_is_refused() -> None:
    with pytest.raises(BadOption, match="`weight` from 0 to 1, not"):
        lbpe_mmr(np.zeros(2), np.eye(2), np.zeros(2, int), weight=1.5)
    with pytest.raises(BadOption, match="is of type float"):
        METRICS.get("lbpe-mmr").parameters(MetricConfig(params={"lbpe-mmr": {"weight": "much"}}))
