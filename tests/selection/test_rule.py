from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.catalogue import CIFAR10
from condense_once.errors import BadOption, UnknownName
from condense_once.kmeans import k_means
from condense_once.metrics import METRICS, MetricConfig
from condense_once.selection.rank import rank_by_scores
from condense_once.selection.rule import RULES, Rule
from condense_once.selection.selectors import SELECTORS, SelectorInfo
from condense_once.selection.selectors.auto_preference import TURNING_POINTS, better_preference, turning_point
from condense_once.selection.selectors.ccs import ccs_rows
from condense_once.selection.selectors.ssp import ssp_rows

LABELS = np.random.default_rng(0).integers(0, 4, 120)
ALL = [
    *RULES.names(),
    "yoco-unbalanced",
    "ssp-balanced",
    "ccs-balanced",
    "ccs-fixed-balanced",
    "lbpe-hard-balanced",
    "aum-auto",
]


def made(
    seed: int = 0, labels: NDArray[Any] = LABELS, classes: tuple[str, ...] = tuple("abcd"), levels: int | None = None
) -> CondensedSet:
    """A set of plain images with random scores by every metric; with `levels`, many of them are equal."""
    rng = np.random.default_rng(seed)
    scores = {name: rng.random(len(labels)).astype(np.float32) for name in METRICS.names()}
    if levels is not None:
        scores = {name: np.floor(levels * values) for name, values in scores.items()}
    return CondensedSet(
        cells=np.zeros((len(labels), 3, 2, 2), np.uint8),
        labels=labels,
        classes=classes,
        size=(2, 2),
        factor=1,
        space=Space("pixels", (0.5,) * 3, (0.25,) * 3),
        origin=np.arange(len(labels)),
        scores=scores,
        name="made",
    )


FEATURES = np.random.default_rng(8).normal(size=(120, 5)).astype(np.float32)


def rows_of(name: str, data: CondensedSet, count: int, seed: int = 0) -> list[int]:
    return [int(row) for row in Rule.parse(name).rows(data, count, features=FEATURES, seed=seed)]


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "rule", "short"),
    [
        ("yoco", Rule("lbpe", "easy", True), "yoco"),
        ("lbpe-easy-balanced", Rule("lbpe", "easy", True), "yoco"),
        ("lbpe", Rule("lbpe", "easy", False), "lbpe"),
        ("yoco-hard", Rule("lbpe", "hard", True), "lbpe-hard-balanced"),
        ("yoco-unbalanced", Rule("lbpe", "easy", False), "lbpe"),
        ("el2n", Rule("el2n", "hard", False), "el2n"),
        ("forgetting-balanced-easy", Rule("forgetting", "easy", True), "forgetting-easy-balanced"),
        ("AUM-easy", Rule("aum", "easy", False), "aum-easy"),
        ("lbpe-clean-balanced", Rule("lbpe-clean", "easy", True), "lbpe-clean-balanced"),
        ("k-center", Rule("k-center", "easy", False), "k-center"),
        ("random-balanced", Rule("random", "easy", True), "random-balanced"),
        ("lbpe-auto-balanced", Rule("lbpe", "auto", True), "lbpe-auto-balanced"),
        ("ccs", Rule("el2n", "hard", False, "ccs"), "ccs"),
        ("ccs-fixed-balanced", Rule("el2n", "hard", True, "ccs-fixed"), "ccs-fixed-balanced"),
        ("ssp-balanced", Rule("ssp", "easy", True, "ssp"), "ssp-balanced"),
        ("ssp-easy", Rule("ssp", "easy", False), "ssp-easy"),
        ("ssp-hard-balanced", Rule("ssp", "hard", True), "ssp-hard-balanced"),
    ],
)
def test_names_can_be_read_and_written(name: str, rule: Rule, short: str) -> None:
    assert Rule.parse(name) == rule
    assert rule.name == short
    assert Rule.parse(short) == rule


@pytest.mark.parametrize("metric", METRICS.names())
@pytest.mark.parametrize("prefer", ["easy", "hard", "auto"])
@pytest.mark.parametrize("balanced", [True, False])
def test_every_order_has_a_name_of_its_own(metric: str, prefer: Any, balanced: bool) -> None:
    rule = Rule(metric, prefer, balanced)
    assert Rule.parse(rule.name) == rule


def test_the_papers_rows_are_listed_under_their_own_names() -> None:
    for entry in RULES:
        assert Rule.parse(entry.name) == entry.rule
        assert entry.rule.name == entry.name
        assert entry.summary


@pytest.mark.parametrize(
    ("name", "error", "complaint"),
    [
        ("yocco", UnknownName, "did you mean 'yoco'"),
        ("lbppe-easy", UnknownName, "did you mean 'lbpe'"),
        ("easy", UnknownName, "There is no rule 'easy'"),
        ("", UnknownName, "There is no rule ''"),
        ("lbpe-easy-hard", BadOption, "leave out one of easy and hard"),
        ("ccs-easy", BadOption, "leave out easy"),
        ("ccs-balanced-auto", BadOption, "leave out auto"),
    ],
)
def test_invalid_names_are_refused(name: str, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        Rule.parse(name)


def test_invalid_rules_are_refused() -> None:
    with pytest.raises(BadOption, match="not 'best'"):
        Rule("lbpe", "best")  # type: ignore[arg-type]
    with pytest.raises(BadOption, match=r"'ccs' uses the metric 'el2n', not 'lbpe'"):
        Rule("lbpe", selector="ccs")
    with pytest.raises(UnknownName, match=r"selectors; did you mean 'ccs-fixed'"):
        Rule("el2n", selector="ccs-fixd")
    with pytest.raises(UnknownName, match="metrics"):
        Rule("nothing")


# ---------------------------------------------------------------- selections


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("count", [1, 7, 40, 120])
def test_a_selection_has_the_size_asked_and_no_patch_twice(name: str, count: int) -> None:
    rows = rows_of(name, made(), count)
    assert len(rows) == count
    assert len(set(rows)) == count or SELECTORS.get(Rule.parse(name).selector).repeats
    assert rows == rows_of(name, made(), count)
    if Rule.parse(name).balanced:
        sizes = np.bincount(LABELS)
        kept = np.bincount(LABELS[rows], minlength=4)
        for one in range(4):
            for other in range(4):  # nobody is two behind, unless there are no more
                assert kept[one] >= kept[other] - 1 or kept[one] == sizes[one]
                assert one > other or kept[one] >= kept[other] or kept[one] == sizes[one]


@pytest.mark.parametrize("name", [name for name in ALL if Rule.parse(name).is_order and "auto" not in name])
def test_smaller_selections_by_an_order_are_the_start_of_larger_ones(name: str) -> None:
    data = made()
    largest = rows_of(name, data, 120)
    for count in range(1, 121):
        assert rows_of(name, data, count) == largest[:count]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("levels", [None, 3])
def test_the_order_that_patches_come_in_changes_nothing(name: str, levels: int | None) -> None:
    """Neither where scores differ nor where many are the same, and the number of a patch decides."""
    data = made(levels=levels)
    rule, order = Rule.parse(name), np.random.default_rng(5).permutation(120)
    rows = rule.rows(data, 30, features=FEATURES)
    shuffled = rule.rows(data.take(order), 30, features=FEATURES[order])
    assert sorted(order[shuffled].tolist()) == sorted(rows.tolist())


def test_the_preferred_end_is_kept() -> None:
    data = made()
    for metric, prefer, lowest_first in (("el2n", "easy", True), ("el2n", "hard", False), ("aum", "easy", False)):
        ranked = np.argsort(data.scores[metric])
        expected = ranked[:10] if lowest_first else ranked[::-1][:10]
        assert Rule(metric, prefer, False).rows(data, 10).tolist() == expected.tolist()  # type: ignore[arg-type]


def test_ccs_is_applied_to_each_class_or_to_all() -> None:
    data = made(classes=CIFAR10.classes)
    el2n = data.scores["el2n"]
    # 40 of 120 are a third: between 0.1 at a fifth and 0 at a half
    cutoff = 0.1 * (0.5 - 1 / 3) / 0.3
    assert rows_of("ccs-fixed", data, 40) == ccs_rows(el2n, 40, cutoff).tolist()
    sampled = rows_of("ccs", data, 40)
    assert sampled == ccs_rows(el2n, 40, cutoff, MetricConfig().rng("ccs")).tolist()
    assert sampled != rows_of("ccs", data, 40, seed=1)
    expected: list[int] = []
    for label in range(4):
        members = np.flatnonzero(label == LABELS)
        expected += members[ccs_rows(el2n[members], 10, cutoff)].tolist()
    assert rows_of("ccs-fixed-balanced", data, 40) == sorted(expected)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("grid", [False, True])
def test_ssp_keeps_the_member_nearest_to_each_centre(seed: int, grid: bool) -> None:
    """Whatever the seed: one member of every cluster, none nearer to the mean of the cluster, ties by the order of features.

    Points on a grid of whole numbers have many exact ties, in clusters of two always.
    """
    rng = np.random.default_rng(seed)
    features = rng.integers(-9, 9, (60, 3)).astype(np.float64) if grid else rng.normal(size=(60, 3))
    for count in (1, 5, 30, 60):
        clusters = k_means(features, count, np.random.default_rng(seed + 1)).members
        kept = ssp_rows(features, count, np.random.default_rng(seed + 1)).tolist()
        assert kept == sorted(kept)
        assert sorted(clusters[kept].tolist()) == list(range(count))
        for row in kept:
            members = [other for other in range(60) if clusters[other] == clusters[row]]
            centre = [math.fsum(features[other, k] for other in members) / len(members) for k in range(3)]
            gaps = {other: math.dist(features[other].tolist(), centre) for other in members}
            assert gaps[row] <= min(gaps.values()) + 1e-9
            if grid and len(members) == 2:  # the centre is exact, and so is the tie
                assert features[row].tobytes() == min(features[other].tobytes() for other in members)


def test_ssp_of_copies_keeps_none_twice() -> None:
    features = np.repeat(np.eye(3), 4, axis=0)
    assert len(set(ssp_rows(features, 8, np.random.default_rng(0)).tolist())) == 8


def test_ssp_finds_one_of_each_cloud() -> None:
    rng = np.random.default_rng(0)
    clouds = rng.permutation(np.repeat(np.arange(6), 20))
    features = 100 * np.eye(6)[clouds] + rng.normal(size=(120, 6))
    rows = Rule.parse("ssp").rows(made(), 6, features=features)
    assert sorted(clouds[rows].tolist()) == list(range(6))


def test_counts_of_each_class_are_kept() -> None:
    counts = np.array([3, 0, 11, 1])
    for name in ALL:
        rows = Rule.parse(name).rows_per_class(made(), counts, features=FEATURES)
        assert np.bincount(LABELS[rows], minlength=4).tolist() == counts.tolist()
    best = Rule("el2n", "easy", balanced=False).rows_per_class(made(), counts)
    assert (np.diff(made().scores["el2n"][best]) >= 0).all()


def test_what_is_not_there_cannot_be_selected() -> None:
    for count in (0, 121):
        with pytest.raises(BadOption, match=f"from 1 to 120 patches, .* not {count}"):
            Rule().rows(made(), count)
    with pytest.raises(BadOption, match="cannot be kept"):
        Rule().rows_per_class(made(), np.array([1000, 0, 0, 0]))
    with pytest.raises(BadOption, match="cannot be kept"):
        Rule().rows_per_class(made(), np.array([1, 1]))
    bare = replace(made(), scores={})
    with pytest.raises(BadOption, match=r"made has no scores by 'lbpe' .* score it first"):
        Rule().rows(bare, 3)
    with pytest.raises(BadOption, match="features of a trained network"):
        Rule.parse("ssp").rows(bare, 3)


@pytest.mark.parametrize("picked", [[0, 0], [0], [0, 120], [-1, 0], [[0, 1]]])
def test_a_selector_must_pick_different_rows_that_exist(picked: list[int]) -> None:
    def pick(values: NDArray[Any], count: int, **_: Any) -> NDArray[np.int64]:
        return np.array(picked)

    odd = SelectorInfo("odd", "picks something else", metric="el2n", pick=pick)
    complaint = "'odd' must pick 2 different rows out of 120"
    with SELECTORS.registered(odd), pytest.raises(BadOption, match=complaint):
        Rule.parse("odd").rows(made(), 2)


# ---------------------------------------------------------------- easy or hard


@pytest.mark.parametrize(("ipc", "share"), [*TURNING_POINTS, (1, 0.24), (10**6, 0.72), (500, 0.55), (500**0.5, 0.31)])
def test_golden_turning_points(ipc: float, share: float) -> None:
    assert turning_point(ipc) == pytest.approx(share)


@pytest.mark.parametrize(
    ("kept", "patches", "ipc", "end"),
    [
        (40, 400, 10, "easy"),  # 10 → 1: nine tenths are pruned
        (200, 400, 10, "easy"),
        (304, 400, 10, "easy"),  # 24 % are pruned, as good either way
        (305, 400, 10, "hard"),
        (1300, 2000, 50, "hard"),  # 35 %
        (1200, 2000, 50, "easy"),  # 40 %
        (15000, 50000, 5000, "hard"),  # 70 %
        (13000, 50000, 5000, "easy"),  # 74 %
    ],
)
def test_hard_patches_are_better_where_little_is_pruned(kept: int, patches: int, ipc: int, end: str) -> None:
    assert better_preference(kept, patches, ipc) == end


def test_auto_prefers_by_the_size() -> None:
    data = made()  # 30 images per class: the turning point is near 33 %
    auto, easy, hard = (Rule("lbpe", prefer, False) for prefer in ("auto", "easy", "hard"))  # type: ignore[arg-type]
    assert auto.rows(data, 60).tolist() == easy.rows(data, 60).tolist()
    assert auto.rows(data, 90).tolist() == hard.rows(data, 90).tolist()
    assert [auto.preference(data, count) for count in (60, 90)] == ["easy", "hard"]


def test_of_patches_forgotten_equally_often_the_later_are_kept() -> None:
    data = replace(made(labels=np.zeros(6, np.int64)), scores={"forgetting": np.array([1, 0, 1, 0, 2, 1], np.float32)})
    assert Rule.parse("forgetting").rows(data, 6).tolist() == [4, 5, 2, 0, 3, 1]
    assert Rule.parse("forgetting-easy").rows(data, 3).tolist() == [3, 1, 5]
    assert rank_by_scores(data, "forgetting", prefer="hard", balanced=False).origin.tolist() == [4, 5, 2, 0, 3, 1]


def test_of_equal_scores_by_other_metrics_the_first_are_kept() -> None:
    data = replace(made(labels=np.zeros(4, np.int64)), scores={"el2n": np.array([1, 0, 1, 0], np.float32)})
    assert Rule.parse("el2n").rows(data, 4).tolist() == [0, 2, 1, 3]
