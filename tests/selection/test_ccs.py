"""CCS against plain loops, the golden values of the reference, and the authors' table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from condense_once.errors import BadOption
from condense_once.selection.ccs import CUTOFFS, STRATA, ccs_rows, cutoff, even_shares


def plain_shares(sizes: list[int], count: int) -> list[int]:
    shares, asked = [0] * len(sizes), []
    while len(asked) < len(sizes):
        smallest = min((size, k) for k, size in enumerate(sizes) if k not in asked)[1]
        shares[smallest] = min(sizes[smallest], (count - sum(shares)) // (len(sizes) - len(asked)))
        asked.append(smallest)
    return shares


def plain_strata(scores: list[float], drop: float, count: int) -> list[list[int]]:
    """The rows of each stratum, hardest first, of what is left when the hardest are dropped."""
    left = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    left = left[min(int(drop * len(scores)), len(scores) - count) :]
    low, high = min(scores[row] for row in left), max(scores[row] for row in left) * 1.0001
    width = (high - low) / STRATA
    strata: list[list[int]] = []
    for k in range(STRATA):
        start, end = low + k * width, low + (k + 1) * width
        last = k == STRATA - 1  # rounding must lose nobody
        strata.append([row for row in left if scores[row] >= start and (scores[row] < end or last)])
    return strata


@pytest.mark.parametrize(
    ("sizes", "count", "shares"),
    [
        ([5, 0, 3, 10, 2], 10, [3, 0, 2, 3, 2]),
        ([1] * 6, 4, [0, 0, 1, 1, 1, 1]),
        ([4, 4], 8, [4, 4]),
        ([7], 0, [0]),
    ],
)
def test_golden_shares(sizes: list[int], count: int, shares: list[int]) -> None:
    assert even_shares(np.array(sizes), count).tolist() == shares == plain_shares(sizes, count)


def test_shares_equal_plain_loops_and_miss_nobody() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        sizes = rng.integers(0, 12, rng.integers(1, 20))
        count = int(rng.integers(0, sizes.sum() + 1))
        shares = even_shares(sizes, count)
        assert shares.tolist() == plain_shares(sizes.tolist(), count)
        assert shares.sum() == count


def test_a_selection_has_the_shares_of_its_strata() -> None:
    rng = np.random.default_rng(2)
    for trial in range(100):
        scores = rng.choice([rng.random(80), rng.integers(0, 4, 80) / 3], axis=0).astype(np.float32)
        count, drop = int(rng.integers(1, 81)), float(rng.choice([0, 0.1, 0.3, 0.5]))
        strata = plain_strata(scores.tolist(), drop, count)
        shares = plain_shares([len(rows) for rows in strata], count)
        fixed = ccs_rows(scores, count, drop)
        assert fixed.tolist() == sorted(row for rows, share in zip(strata, shares, strict=True) for row in rows[:share])
        drawn = ccs_rows(scores, count, drop, np.random.default_rng(trial))
        assert [len(set(rows) & set(drawn.tolist())) for rows in strata] == shares
        assert len(drawn) == len(set(drawn.tolist())) == count
        np.testing.assert_array_equal(drawn, ccs_rows(scores, count, drop, np.random.default_rng(trial)))


def test_within_a_stratum_anyone_can_be_drawn() -> None:
    scores = np.ones(10, np.float32)  # one stratum
    seen = {row for seed in range(40) for row in ccs_rows(scores, 2, 0.0, np.random.default_rng(seed)).tolist()}
    assert seen == set(range(10))
    assert ccs_rows(scores, 2, 0.0).tolist() == [0, 1]


def test_the_hardest_are_dropped_as_far_as_enough_are_left() -> None:
    scores = np.linspace(0, 1, 100, dtype=np.float32)
    assert ccs_rows(scores, 20, 0.3, np.random.default_rng(0)).max() < 70
    assert ccs_rows(scores, 90, 0.3).tolist() == list(range(90))
    assert ccs_rows(scores, 100, 0.5).tolist() == list(range(100))
    assert ccs_rows(np.zeros(5, np.float32), 0, 0.5).tolist() == []


@pytest.mark.parametrize(
    ("dataset", "before", "after", "drop"),
    [(name, *sizes, drop) for name, table in CUTOFFS.items() for sizes, drop in table.items()],
)
def test_the_authors_cutoffs_are_taken_where_there_are_any(
    dataset: str, before: float, after: float, drop: float
) -> None:
    assert cutoff(dataset, before, after) == drop
    # what other sizes get is read off the same numbers, so at another size of the same share it is nearly theirs
    assert cutoff(dataset, 3 * before, 3 * after) == pytest.approx(drop, abs=0.0500001)


def test_cutoffs_in_between() -> None:
    assert cutoff("cifar10", 100, 15) == pytest.approx(0.2)  # between 0.3 at a tenth and 0.1 at a fifth
    assert cutoff("cifar10", 100, 1) == 0.3
    assert cutoff("cifar100", 100, 75) == pytest.approx(0.1)
    assert cutoff("imagenet10", 100, 50) == pytest.approx(0.1)
    for other in (None, "my photos"):
        assert cutoff(other, 10, 1) == pytest.approx((0.3 + 0.5 + 0.3) / 3)
        assert cutoff(other, 10, 10) == 0
    shares = [cutoff(None, 1000, kept) for kept in range(1, 1001)]
    assert all(one >= other for one, other in pairwise(shares))
    assert all(drop <= 1 - kept / 1000 for kept, drop in enumerate(shares, 1))  # enough are always left


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(BadOption, match=r"^6 of 5 patches cannot be kept\.$"):
        ccs_rows(np.ones(5), 6, 0.1)
    with pytest.raises(BadOption, match=r"from 0 to 1, not 1\.5"):
        ccs_rows(np.ones(5), 1, 1.5)
