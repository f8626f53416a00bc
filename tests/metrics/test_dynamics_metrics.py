"""Metrics of what a run showed. Oracles are plain loops over one patch at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics import Epochs
from condense_once.metrics.aum import aum
from condense_once.metrics.el2n import el2n
from condense_once.metrics.forgetting import forgetting
from condense_once.metrics.lbpe import lbpe
from condense_once.metrics.memorization import memorization

Matrix = Sequence[Sequence[float]]


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def plain_lbpe(error: Matrix, correct: Matrix, best: int, among: int) -> list[float]:
    chosen = sorted(range(among), key=lambda t: (-sum(correct[t]), t))[:best]
    return [mean([error[t][x] for t in chosen]) for x in range(len(error[0]))]


def plain_mean(values: Matrix, first: int, last: int) -> list[float]:
    return [mean([values[t][x] for t in range(first, last + 1)]) for x in range(len(values[0]))]


def plain_forgetting(correct: Matrix, never: float) -> list[float]:
    scores: list[float] = []
    for x in range(len(correct[0])):
        state, events, learnt = False, 0, False
        for visit in correct:
            if state and not visit[x]:
                events += 1
            state = bool(visit[x])
            learnt = learnt or state
        scores.append(events if learnt else never)
    return scores


def plain_memorization(included: Matrix, probability: Matrix) -> list[float]:
    scores = []
    for x in range(len(included[0])):
        inside = [p[x] for run, p in zip(included, probability, strict=True) if run[x]]
        outside = [p[x] for run, p in zip(included, probability, strict=True) if not run[x]]
        scores.append(mean(inside) - mean(outside))
    return scores


def run_of(seed: int, epochs: int, patches: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Numbers in −1…1 and few different accuracies, so that ties are common."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (epochs, patches)).astype(np.float32), rng.random((epochs, patches)) < 0.5


runs = st.builds(run_of, st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 6))


@settings(deadline=None)  # the machine may be busy
@given(runs, st.data())
def test_lbpe_equals_plain_loops(run: tuple[Any, Any], data: st.DataObject) -> None:
    error, correct = run
    among = data.draw(st.integers(1, len(error)))
    best = data.draw(st.integers(1, among))
    expected = plain_lbpe(error.tolist(), correct.tolist(), best, among)
    np.testing.assert_allclose(lbpe(error, correct, Epochs.top(best, among)), expected, atol=1e-6)
    last = data.draw(st.integers(0, len(error) - 1))
    ranged = lbpe(error, correct, Epochs.range(last // 2, last))
    np.testing.assert_allclose(ranged, plain_mean(error.tolist(), last // 2, last), atol=1e-6)
    np.testing.assert_array_equal(
        lbpe(error, correct, Epochs.all()), lbpe(error, correct, Epochs.range(0, len(error) - 1))
    )


@settings(deadline=None)  # the machine may be busy
@given(runs)
def test_el2n_and_aum_equal_plain_loops(run: tuple[Any, Any]) -> None:
    values, _ = run
    first = (len(values) + 1) // 2
    np.testing.assert_allclose(el2n(values, first), plain_mean(values.tolist(), 0, first - 1), atol=1e-6)
    np.testing.assert_allclose(aum(values), plain_mean(values.tolist(), 0, len(values) - 1), atol=1e-6)


@settings(deadline=None)  # the machine may be busy
@given(runs)
def test_forgetting_equals_plain_loops(run: tuple[Any, Any]) -> None:
    _, correct = run
    assert forgetting(correct).tolist() == plain_forgetting(correct.tolist(), never=0)
    assert forgetting(correct, "worst").tolist() == plain_forgetting(correct.tolist(), never=len(correct))


@settings(deadline=None)  # the machine may be busy
@given(runs, st.permutations(range(6)))
def test_permuting_the_patches_permutes_the_scores(run: tuple[Any, Any], numbers: list[int]) -> None:
    values, correct = run
    order = [x for x in numbers if x < values.shape[1]]
    among = len(values)
    for epochs in (Epochs.top((among + 1) // 2, among), Epochs.all()):
        np.testing.assert_array_equal(
            lbpe(values[:, order], correct[:, order], epochs), lbpe(values, correct, epochs)[order]
        )
    np.testing.assert_array_equal(aum(values[:, order]), aum(values)[order])
    np.testing.assert_array_equal(forgetting(correct[:, order]), forgetting(correct)[order])


def test_golden_values() -> None:
    sure = np.ones((1, 1), bool)
    assert lbpe(np.array([[math.sqrt(0.14)]], np.float32), sure, Epochs.top(1, 1))[0] == pytest.approx(
        0.374166, abs=1e-6
    )
    assert aum(np.array([[-0.3]], np.float32))[0] == pytest.approx(-0.3)
    sequence = np.array([0, 1, 0, 1, 1, 0], bool)[:, None]
    assert forgetting(sequence).tolist() == [2]
    assert forgetting(np.zeros((6, 1), bool)).tolist() == [0]


def test_the_first_epoch_is_no_forgetting_and_never_learned_is_worse_than_anything() -> None:
    correct = np.array([[1, 0], [0, 0], [1, 0], [0, 0], [1, 0]], bool)
    assert forgetting(correct).tolist() == [2, 0]
    assert forgetting(correct, "worst").tolist() == [2, 5]


def test_memorization_equals_plain_loops(rng: np.random.Generator) -> None:
    included = rng.random((12, 20)) < 0.6
    included[0], included[1] = True, False  # every patch is in a run and out of one
    probability = rng.random((12, 20)).astype(np.float32)
    scores = memorization(included, probability)
    np.testing.assert_allclose(scores, plain_memorization(included.tolist(), probability.tolist()), atol=1e-6)
    order = rng.permutation(20)
    np.testing.assert_array_equal(memorization(included[:, order], probability[:, order]), scores[order])


def test_memorization_compares_so_both_sides_must_be_there() -> None:
    included = np.array([[1, 1, 0], [1, 0, 1]], bool)
    with pytest.raises(BadOption, match=r"^1 patches \(such as number 0\) were in all or none of 2 runs; "):
        memorization(included, np.ones((2, 3), np.float32))


def test_wrong_arrays_are_refused_in_one_sentence() -> None:
    flat, square = np.zeros(3, np.float32), np.zeros((3, 4), np.float32)
    wrong, right = square.astype(bool), square.T.astype(bool)
    with pytest.raises(
        BadOption,
        match=r"error and correctness must be non-empty arrays \[epochs, patches\].* not \[3, 4\] and \[4, 3\]\.$",
    ):
        lbpe(square, right, Epochs.all())
    for call in (
        lambda: el2n(flat, 1),
        lambda: aum(flat),
        lambda: forgetting(flat.astype(bool)),
        lambda: aum(square[:0]),
    ):
        with pytest.raises(BadOption, match=r"must be non-empty arrays \[epochs, patches\]"):
            call()
    with pytest.raises(BadOption, match=r"inclusion and probability must be non-empty arrays \[runs, patches\]"):
        memorization(right, square)
    with pytest.raises(BadOption, match=r"need a run of 10 epochs, but 3 were recorded"):
        el2n(square)
    for kinds in (lambda: forgetting(square), lambda: memorization(square, square)):
        with pytest.raises(BadOption, match="must be boolean, not float32"):
            kinds()
    with pytest.raises(BadOption, match="'zero' or 'worst', not 'best'"):
        forgetting(wrong, "best")  # type: ignore[arg-type]
    hole = np.where(np.eye(3, 4) > 0, np.nan, square)
    for call in (lambda: el2n(hole, 1), lambda: aum(hole), lambda: lbpe(hole, wrong, Epochs.all())):
        with pytest.raises(BadOption, match="NaN or infinity"):
            call()
    with pytest.raises(BadOption, match="NaN or infinity"):
        memorization(wrong, hole)
