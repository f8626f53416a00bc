"""Forgetting events (Toneva et al., 2019): how often a correct patch became incorrect."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.checks import check_recorded, recorded
from condense_once.metrics.config import NeverLearned
from condense_once.metrics.registry import METRICS, MetricInfo


def forgetting(correct: NDArray[np.bool_], never_learned: NeverLearned = "zero") -> NDArray[np.float32]:
    """Number of t with correct_{t−1} and not correct_t; before the first epoch nothing is correct.

    Toneva et al. count patches that were never correct as forgotten infinitely often; YOCO's authors score them 0, like
    patches that were never forgotten. `never_learned` is "zero" for the latter and "worst" for a score of E, which is finite
    but larger than any other.

    Args:
        correct: `[E, N]` whether the label had the largest probability.
        never_learned: the score of patches that were never correct.

    Returns:
        `[N]` integers, low for easy patches; ties are common, and go to later patches.

    >>> correct = np.array([[0, 0], [1, 0], [0, 0], [1, 0], [1, 0], [0, 0]], bool)
    >>> forgetting(correct), forgetting(correct, never_learned="worst")
    (array([2., 0.], dtype=float32), array([2., 6.], dtype=float32))
    """
    check_recorded("correctness", correct)
    if correct.dtype != np.bool_:
        raise BadOption(f"`correct` must be boolean, not {correct.dtype}.")
    if never_learned not in ("zero", "worst"):
        raise BadOption(f"`never_learned` must be 'zero' or 'worst', not {never_learned!r}.")
    events = np.zeros(correct.shape[1], np.float32)
    learned = np.zeros(correct.shape[1], np.bool_)
    before = learned
    for now in correct:  # row by row: a memory-mapped file need not fit in memory
        events += before & ~now
        learned = learned | now
        before = now
    if never_learned == "worst":
        events[~learned] = len(correct)
    return events


FORGETTING = METRICS.add(
    MetricInfo(
        "forgetting",
        "forgetting events over the whole run: correct in one epoch, incorrect in the next",
        easy="low",
        keeps="hard",
        ties="last",  # the paper prunes equals in the order of their index
        needs=frozenset({"dynamics"}),
        stage="whole",
        depends=frozenset({"never_learned"}),
        compute=lambda run, config: forgetting(
            recorded(run.dynamics).correct[: config.scoring_epochs], config.never_learned
        ),
    )
)
