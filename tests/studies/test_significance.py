from __future__ import annotations

import pytest

from condense_once.studies.significance import is_ahead


@pytest.mark.parametrize(
    ("ours", "other", "ahead"),
    [
        ((0.42, 0.43), (0.30, 0.30), True),
        ((0.42, 0.30), (0.30, 0.30), False),  # t = 1 with one degree of freedom
        ((0.42,), (0.30,), False),  # one pair has no variance
        ((0.30, 0.31, 0.32), (0.42, 0.43, 0.44), False),
        ((0.42, 0.43, 0.44), (0.41, 0.42, 0.43), True),  # by little, but each time
    ],
)
def test_pairs_are_compared_by_their_differences(
    ours: tuple[float, ...], other: tuple[float, ...], ahead: bool
) -> None:
    assert is_ahead(dict(enumerate(ours)), dict(enumerate(other))) is ahead


def test_it_is_a_paired_t_test() -> None:
    """p values of scipy.stats.ttest_rel(ours, other, alternative="greater"), computed once: 0.0514 and 0.0489."""
    other = {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}
    assert not is_ahead({0: 0.01, 1: 0.02, 2: 0.03, 3: 0.0}, other)
    assert is_ahead({0: 0.01, 1: 0.02, 2: 0.03, 3: 0.0005}, other)


def test_repeats_of_one_scoring_run_count_as_one_pair() -> None:
    """Nine repeats over three runs: ahead in one by twice as much as behind in another is not significant."""
    ours = {repeat: 0.4 + (0.04, -0.02, 0.01)[repeat % 3] + 0.001 * (repeat // 3) for repeat in range(9)}
    other = dict.fromkeys(range(9), 0.4)
    assert is_ahead(ours, other) is False
    clear = {repeat: 0.4 + (0.04, 0.01, 0.02)[repeat % 3] for repeat in range(9)}
    assert is_ahead(clear, other)  # nine pairs
    assert not is_ahead(clear, other, scoring_runs=3)  # three: t = 2.65 with two degrees of freedom
