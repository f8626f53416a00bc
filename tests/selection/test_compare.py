from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.selection.compare import compare, compare_rules, rank_correlation
from condense_once.selection.rank import rank, rank_by_scores
from condense_once.selection.select import select


@pytest.fixture(scope="module")
def data() -> CondensedSet:
    scores = np.random.default_rng(0).random(400).astype(np.float32)
    return replace(load("cifar10-real-ipc10"), scores={"lbpe": scores})


def plain_correlation(places: list[int]) -> float:
    """The correlation of two lists of numbers, of which one is 0, 1, 2, …"""
    n = len(places)
    middle = (n - 1) / 2
    along = sum((k - middle) * (place - middle) for k, place in enumerate(places))
    return along / sum((k - middle) ** 2 for k in range(n))


def test_spearman_equals_plain_loops() -> None:
    rng = np.random.default_rng(3)
    for n in (2, 3, 10, 57):
        places = rng.permutation(n)
        assert rank_correlation(places) == pytest.approx(plain_correlation(places.tolist()))
    assert rank_correlation(np.array([0])) == 1


def test_what_two_orders_share(data: CondensedSet) -> None:
    easy = rank_by_scores(data, "lbpe", prefer="easy", balanced=True)
    wild = rank_by_scores(data, "lbpe", prefer="easy", balanced=False)
    found = compare(easy, wild)
    assert [(size.ipc, size.patches) for size in found.sizes] == [(1, 40), (2, 80), (5, 200)]
    for size in found.sizes:
        first, second = easy.origin[: size.patches].tolist(), wild.origin[: size.patches].tolist()
        assert size.shared == tuple(sorted(origin for origin in first if origin in second))
        assert size.counts[0] == (size.ipc * 4,) * 10
        assert size.counts[1] == tuple(wild.labels[: size.patches].tolist().count(label) for label in range(10))
        assert size.by_chance == pytest.approx(size.patches**2 / 400)
    places = [wild.origin.tolist().index(origin) for origin in easy.origin.tolist()]
    assert found.correlation == pytest.approx(plain_correlation(places))
    assert compare(wild, easy).correlation == pytest.approx(found.correlation)


def test_an_order_is_itself_and_nothing_of_its_contrary(data: CondensedSet) -> None:
    easy, hard = (rank_by_scores(data, "lbpe", prefer=end, balanced=False) for end in ("easy", "hard"))  # type: ignore[arg-type]
    assert compare(easy, easy).correlation == 1
    assert all(len(size.shared) == size.patches for size in compare(easy, easy).sizes)
    assert compare(easy, hard).correlation == pytest.approx(-1)
    assert {size.shared for size in compare(easy, hard).sizes} == {()}


def test_sizes_are_those_that_both_can_be_cut_to(data: CondensedSet) -> None:
    lopsided = data.take(np.flatnonzero((data.labels < 9) | (np.arange(400) < 60)))  # of the last class only six
    ranked = rank_by_scores(lopsided, "lbpe", prefer="easy", balanced=True)
    assert [size.ipc for size in compare(ranked, ranked).sizes] == [1]


def test_only_orders_of_the_same_patches_can_be_compared(data: CondensedSet, pixel_set: CondensedSet) -> None:
    ranked = rank_by_scores(data, "lbpe", prefer="easy", balanced=True)
    others = [
        rank(pixel_set, "random"),
        ranked.take(slice(40)),
        replace(ranked, cells=255 - ranked.cells),
        replace(ranked, origin=ranked.origin + 1),
    ]
    for other in others:
        with pytest.raises(BadOption, match="not rankings of the same patches"):
            compare(ranked, other)
    with pytest.raises(BadOption, match="not ranked, so there is nothing to compare"):
        compare(ranked, data)


def test_rules_that_are_orders_compare_like_the_rankings_by_them(data: CondensedSet) -> None:
    easy = rank_by_scores(data, "lbpe", prefer="easy", balanced=True)
    wild = rank_by_scores(data, "lbpe", prefer="hard", balanced=False)
    assert compare_rules(data, "yoco", "lbpe-hard-unbalanced") == compare(easy, wild)


def test_rules_for_one_size_compare_by_what_they_keep(data: CondensedSet) -> None:
    scored = replace(data, scores={**data.scores, "el2n": data.scores["lbpe"][::-1].copy()})
    found = compare_rules(scored, "yoco", "ccs-balanced")
    assert found.correlation is None
    for size in found.sizes:
        kept = [set(select(scored, rule, ipc=size.ipc).origin.tolist()) for rule in ("yoco", "ccs-balanced")]
        assert set(size.shared) == kept[0] & kept[1]
        assert size.counts == ((size.ipc * 4,) * 10, (size.ipc * 4,) * 10)
