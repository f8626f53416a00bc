"""Forgetting events (Toneva et al., 2019): how often a patch that was right became wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.checks import check_recorded
from condense_once.metrics.config import NeverLearnt
from condense_once.metrics.evidence import given
from condense_once.metrics.registry import METRICS, MetricInfo


def forgetting(correct: NDArray[np.bool_], never_learnt: NeverLearnt = "zero") -> NDArray[np.float32]:
    """Number of t with correct_{t−1} and not correct_t; before the first epoch nothing is correct.

    Toneva et al. count patches that were never right as forgotten infinitely often; YOCO's authors leave them at 0, beside
    those that were never forgotten. `never_learnt` is "zero" for the authors' way and "worst" for E, which is more than
    any patch can reach and yet a finite number.

    Args:
        correct: `[E, N]` whether the label had the largest probability.
        never_learnt: what patches score that were right in no epoch.

    Returns:
        `[N]` whole numbers, low for easy patches; ties are many.

    >>> correct = np.array([[0, 0], [1, 0], [0, 0], [1, 0], [1, 0], [0, 0]], bool)
    >>> forgetting(correct), forgetting(correct, never_learnt="worst")
    (array([2., 0.], dtype=float32), array([2., 6.], dtype=float32))
    """
    check_recorded("correctness", correct)
    if correct.dtype != np.bool_:
        raise BadOption(f"Correctness must be of bool, not {correct.dtype}.")
    if never_learnt not in ("zero", "worst"):
        raise BadOption(f"Patches that were never learnt score 'zero' or 'worst', not {never_learnt!r}.")
    events = np.zeros(correct.shape[1], np.float32)
    learnt = np.zeros(correct.shape[1], np.bool_)
    before = learnt
    for now in correct:  # row by row: a mapped file need not fit in memory
        events += before & ~now
        learnt = learnt | now
        before = now
    if never_learnt == "worst":
        events[~learnt] = len(correct)
    return events


FORGETTING = METRICS.add(
    MetricInfo(
        "forgetting",
        "how often a patch was right in one epoch and wrong in the next, over the whole run",
        easy="low",
        keeps="hard",
        needs=frozenset({"dynamics"}),
        stage="whole",
        depends=frozenset({"never_learnt"}),
        compute=lambda evidence, settings: forgetting(
            given(evidence.dynamics).correct[: settings.training], settings.never_learnt
        ),
    )
)
