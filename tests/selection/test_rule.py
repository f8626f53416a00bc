from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from condense_once.errors import BadOption, UnknownName
from condense_once.kmeans import k_means
from condense_once.metrics import METRICS, MetricConfig
from condense_once.selection.basis import Basis
from condense_once.selection.ccs import ccs_rows
from condense_once.selection.easy_or_hard import TURNING_POINTS, better_end, turning_point
from condense_once.selection.rule import RULES, Rule
from condense_once.selection.ssp import ssp_rows

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


def made(seed: int = 0, labels: NDArray[Any] = LABELS, **changes: Any) -> Basis:
    rng = np.random.default_rng(seed)
    scores = {name: rng.random(len(labels)).astype(np.float32) for name in METRICS.names()}
    features = rng.normal(size=(len(labels), 5)).astype(np.float32)
    return Basis(labels, 4, scores=scores.__getitem__, features=features, **changes)


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
def test_names_that_mean_nothing_are_answered(name: str, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        Rule.parse(name)


def test_rules_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadOption, match="not 'best'"):
        Rule("lbpe", "best")  # type: ignore[arg-type]
    with pytest.raises(BadOption, match=r"'ccs' by 'lbpe'; there are orders and ccs by el2n"):
        Rule("lbpe", kind="ccs")
    with pytest.raises(UnknownName, match="metrics"):
        Rule("nothing")


# ---------------------------------------------------------------- selections


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("count", [1, 7, 40, 120])
def test_a_selection_has_the_size_asked_and_no_patch_twice(name: str, count: int) -> None:
    rule = Rule.parse(name)
    rows = rule.rows(made(), count)
    assert len(rows) == len(set(rows.tolist())) == count
    np.testing.assert_array_equal(rows, rule.rows(made(), count))
    if rule.balanced:
        sizes = np.bincount(LABELS)
        kept = np.bincount(LABELS[rows], minlength=4)
        for one in range(4):
            for other in range(4):  # nobody is two behind, unless there are no more
                assert kept[one] >= kept[other] - 1 or kept[one] == sizes[one]
                assert one > other or kept[one] >= kept[other] or kept[one] == sizes[one]


@pytest.mark.parametrize("name", [name for name in ALL if Rule.parse(name).kind == "order" and "auto" not in name])
def test_smaller_selections_by_an_order_are_the_start_of_larger_ones(name: str) -> None:
    rule, basis = Rule.parse(name), made()
    largest = rule.rows(basis, 120).tolist()
    for count in range(1, 121):
        assert rule.rows(basis, count).tolist() == largest[:count]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("levels", [None, 3])
def test_the_order_that_patches_come_in_changes_nothing(name: str, levels: int | None) -> None:
    """Neither where scores differ nor where many are the same, and the number of a patch decides."""
    basis = made(index=np.arange(120))
    if levels is not None:
        scores = basis.scores
        basis = replace(basis, scores=lambda metric: np.floor(levels * scores(metric)))
    rule, order = Rule.parse(name), np.random.default_rng(5).permutation(120)
    rows = rule.rows(basis, 30)
    assert sorted(order[rule.rows(basis.part(order), 30)].tolist()) == sorted(rows.tolist())


def test_the_end_that_is_kept() -> None:
    basis = made()
    for metric, prefer, least_first in (("el2n", "easy", True), ("el2n", "hard", False), ("aum", "easy", False)):
        ranked = np.argsort(basis.scores(metric))
        expected = ranked[:10] if least_first else ranked[::-1][:10]
        assert Rule(metric, prefer, False).rows(basis, 10).tolist() == expected.tolist()  # type: ignore[arg-type]


def test_ccs_is_that_of_each_class_or_of_all() -> None:
    basis = made(dataset="cifar10")
    el2n = basis.scores("el2n")
    # 40 of 120 are a third: between 0.1 at a fifth and 0 at a half
    drop = 0.1 * (0.5 - 1 / 3) / 0.3
    assert Rule.parse("ccs-fixed").rows(basis, 40).tolist() == ccs_rows(el2n, 40, drop).tolist()
    drawn = Rule.parse("ccs").rows(basis, 40)
    np.testing.assert_array_equal(drawn, ccs_rows(el2n, 40, drop, MetricConfig().rng("ccs")))
    other = Rule.parse("ccs").rows(made(dataset="cifar10", settings=MetricConfig(seed=1)), 40)
    assert drawn.tolist() != other.tolist()
    each = Rule.parse("ccs-fixed-balanced").rows(basis, 40)
    expected: list[int] = []
    for label in range(4):
        members = np.flatnonzero(label == LABELS)
        expected += members[ccs_rows(el2n[members], 10, drop)].tolist()
    assert each.tolist() == sorted(expected)


def test_ssp_keeps_the_member_nearest_to_each_centre() -> None:
    features = np.random.default_rng(3).normal(size=(60, 3))
    for count in (1, 5, 30, 60):
        clusters = k_means(features, count, np.random.default_rng(9))
        expected = []
        for cluster in range(count):
            best = None
            for row in range(60):
                near = (clusters.distances[row], features[row].sum())
                if clusters.members[row] == cluster and (best is None or near < best):
                    best, kept = near, row
            expected.append(kept)
        assert ssp_rows(features, count, np.random.default_rng(9)).tolist() == sorted(expected)


def test_ssp_of_copies_keeps_none_twice() -> None:
    features = np.repeat(np.eye(3), 4, axis=0)
    assert len(set(ssp_rows(features, 8, np.random.default_rng(0)).tolist())) == 8


def test_ssp_finds_one_of_each_cloud() -> None:
    rng = np.random.default_rng(0)
    clouds = rng.permutation(np.repeat(np.arange(6), 20))
    features = 100 * np.eye(6)[clouds] + rng.normal(size=(120, 6))
    basis = Basis(LABELS, 4, features=features)
    assert sorted(clouds[Rule.parse("ssp").rows(basis, 6)].tolist()) == list(range(6))


def test_counts_of_each_class_are_kept() -> None:
    counts = np.array([3, 0, 11, 1])
    for name in ALL:
        rows = Rule.parse(name).rows_of_each(made(), counts)
        assert np.bincount(LABELS[rows], minlength=4).tolist() == counts.tolist()
    best = Rule("el2n", "easy", balanced=False).rows_of_each(made(), counts)
    scores = made().scores("el2n")
    assert (np.diff(scores[best]) >= 0).all()


def test_what_is_not_there_cannot_be_chosen() -> None:
    for count in (0, 121):
        with pytest.raises(BadOption, match=f"^{count} of 120 patches"):
            Rule().rows(made(), count)
    with pytest.raises(BadOption, match="cannot be kept"):
        Rule().rows_of_each(made(), np.array([1000, 0, 0, 0]))
    with pytest.raises(BadOption, match="cannot be kept"):
        Rule().rows_of_each(made(), np.array([1, 1]))
    bare = Basis(LABELS, 4)
    with pytest.raises(BadOption, match=r"no scores by 'lbpe' .* score the set first"):
        Rule().rows(bare, 3)
    with pytest.raises(BadOption, match="features of a trained network"):
        Rule.parse("ssp").rows(bare, 3)


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
    assert better_end(kept, patches, ipc) == end


def test_a_rule_leaves_the_end_to_the_size() -> None:
    basis = made()  # 30 images per class: the turning point is near 33 %
    auto, easy, hard = (Rule("lbpe", prefer, False) for prefer in ("auto", "easy", "hard"))  # type: ignore[arg-type]
    assert auto.rows(basis, 60).tolist() == easy.rows(basis, 60).tolist()
    assert auto.rows(basis, 90).tolist() == hard.rows(basis, 90).tolist()
    assert [auto.end(basis, count) for count in (60, 90)] == ["easy", "hard"]
