"""CCS against plain loops, the golden values of the reference, and the authors' table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from condense_once.errors import BadOption
from condense_once.selection.selectors.ccs import CUTOFFS, STRATA, ccs_rows, cutoff_for, even_counts


def plain_counts(sizes: list[int], count: int) -> list[int]:
    counts, asked = [0] * len(sizes), []
    while len(asked) < len(sizes):
        smallest = min((size, k) for k, size in enumerate(sizes) if k not in asked)[1]
        counts[smallest] = min(sizes[smallest], (count - sum(counts)) // (len(sizes) - len(asked)))
        asked.append(smallest)
    return counts


def plain_strata(scores: list[float], cutoff: float, count: int) -> list[list[int]]:
    """The rows of each stratum, hardest first, of what is left when the hardest are excluded."""
    left = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    left = left[min(int(cutoff * len(scores)), len(scores) - count) :]
    low, high = min(scores[row] for row in left), max(scores[row] for row in left) * 1.0001
    width = (high - low) / STRATA
    strata: list[list[int]] = []
    for k in range(STRATA):
        start, end = low + k * width, low + (k + 1) * width
        last = k == STRATA - 1  # rounding must lose nobody
        strata.append([row for row in left if scores[row] >= start and (scores[row] < end or last)])
    return strata


@pytest.mark.parametrize(
    ("sizes", "count", "counts"),
    [
        ([5, 0, 3, 10, 2], 10, [3, 0, 2, 3, 2]),
        ([1] * 6, 4, [0, 0, 1, 1, 1, 1]),
        ([4, 4], 8, [4, 4]),
        ([7], 0, [0]),
    ],
)
def test_golden_counts(sizes: list[int], count: int, counts: list[int]) -> None:
    assert even_counts(np.array(sizes), count).tolist() == counts == plain_counts(sizes, count)


def test_counts_equal_plain_loops_and_miss_nobody() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        sizes = rng.integers(0, 12, rng.integers(1, 20))
        count = int(rng.integers(0, sizes.sum() + 1))
        counts = even_counts(sizes, count)
        assert counts.tolist() == plain_counts(sizes.tolist(), count)
        assert counts.sum() == count


def test_a_selection_has_the_counts_of_its_strata() -> None:
    rng = np.random.default_rng(2)
    for trial in range(100):
        scores = rng.choice([rng.random(80), rng.integers(0, 4, 80) / 3], axis=0).astype(np.float32)
        count, cutoff = int(rng.integers(1, 81)), float(rng.choice([0, 0.1, 0.3, 0.5]))
        strata = plain_strata(scores.tolist(), cutoff, count)
        counts = plain_counts([len(rows) for rows in strata], count)
        fixed = ccs_rows(scores, count, cutoff)
        assert fixed.tolist() == sorted(row for rows, share in zip(strata, counts, strict=True) for row in rows[:share])
        sampled = ccs_rows(scores, count, cutoff, np.random.default_rng(trial))
        assert [len(set(rows) & set(sampled.tolist())) for rows in strata] == counts
        assert len(sampled) == len(set(sampled.tolist())) == count
        np.testing.assert_array_equal(sampled, ccs_rows(scores, count, cutoff, np.random.default_rng(trial)))


def test_within_a_stratum_any_patch_can_be_sampled() -> None:
    scores = np.ones(10, np.float32)  # one stratum
    seen = {row for seed in range(40) for row in ccs_rows(scores, 2, 0.0, np.random.default_rng(seed)).tolist()}
    assert seen == set(range(10))
    assert ccs_rows(scores, 2, 0.0).tolist() == [0, 1]


def test_the_hardest_are_excluded_as_far_as_enough_are_left() -> None:
    scores = np.linspace(0, 1, 100, dtype=np.float32)
    assert ccs_rows(scores, 20, 0.3, np.random.default_rng(0)).max() < 70
    assert ccs_rows(scores, 90, 0.3).tolist() == list(range(90))
    assert ccs_rows(scores, 100, 0.5).tolist() == list(range(100))
    assert ccs_rows(np.zeros(5, np.float32), 0, 0.5).tolist() == []


@pytest.mark.parametrize(
    ("dataset", "before", "after", "cutoff"),
    [(name, *sizes, cutoff) for name, table in CUTOFFS.items() for sizes, cutoff in table.items()],
)
def test_the_authors_cutoffs_are_taken_where_there_are_any(
    dataset: str, before: float, after: float, cutoff: float
) -> None:
    assert cutoff_for(dataset, before, after) == cutoff
    # what other sizes get is read off the same numbers, so at another size of the same share it is nearly theirs
    assert cutoff_for(dataset, 3 * before, 3 * after) == pytest.approx(cutoff, abs=0.0500001)


def test_cutoffs_in_between() -> None:
    assert cutoff_for("cifar10", 100, 15) == pytest.approx(0.2)  # between 0.3 at a tenth and 0.1 at a fifth
    assert cutoff_for("cifar10", 100, 1) == 0.3
    assert cutoff_for("cifar100", 100, 75) == pytest.approx(0.1)
    assert cutoff_for("imagenet10", 100, 50) == pytest.approx(0.1)
    for other in (None, "my photos"):
        assert cutoff_for(other, 10, 1) == pytest.approx((0.3 + 0.5 + 0.3) / 3)
        assert cutoff_for(other, 10, 10) == 0
    counts = [cutoff_for(None, 1000, kept) for kept in range(1, 1001)]
    assert all(one >= other for one, other in pairwise(counts))
    assert all(cutoff <= 1 - kept / 1000 for kept, cutoff in enumerate(counts, 1))  # enough are always left


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(BadOption, match=r"^`count` must be from 0 to 5, .* not 6\.$"):
        ccs_rows(np.ones(5), 6, 0.1)
    with pytest.raises(BadOption, match=r"`cutoff` must be from 0 to 1, not 1\.5"):
        ccs_rows(np.ones(5), 1, 1.5)
