"""Replay policies: what is stored of a class once its task is over, best first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from condense_once import CondensedSet, Source, coreset
from condense_once.metrics.herding import herding
from examples.continual_learning.memory import at_half_size

Features = Callable[[NDArray[np.int64]], NDArray[np.float32]]  # rows of the source → [n, d], by the current network


@dataclass(frozen=True)
class Task:
    """What a policy knows when a task is over."""

    source: Source
    rows: Mapping[int, NDArray[np.int64]]  # label → the training images of that class
    condensed: CondensedSet  # all classes, ranked
    features: Features
    rng: np.random.Generator


Policy = Callable[[Task, int], CondensedSet]  # (task, label) → exemplars, best first


def condensed_ranked(task: Task, label: int) -> CondensedSet:
    """Condensed patches in YOCO's order."""
    return task.condensed.take(task.condensed.labels == label)


def condensed_shuffled(task: Task, label: int) -> CondensedSet:
    """The same patches in random order, to see what the ranking adds."""
    part = condensed_ranked(task, label)
    return part[task.rng.permutation(len(part))]


def random_exemplars(task: Task, label: int) -> CondensedSet:
    """Real images at full size, in random order."""
    return coreset(task.source, task.rng.permutation(task.rows[label]))


def herded_exemplars(task: Task, label: int) -> CondensedSet:
    """Real images at full size in the order of herding, as in iCaRL."""
    rows = task.rows[label]
    places = herding(task.features(rows), np.zeros(len(rows), np.int64))
    return coreset(task.source, rows[np.argsort(places, kind="stable")])


def random_small(task: Task, label: int) -> CondensedSet:
    """Real images at half size, four in the bytes of one, in random order."""
    return at_half_size(random_exemplars(task, label))


def herded_small(task: Task, label: int) -> CondensedSet:
    """Real images at half size in the order of herding."""
    return at_half_size(herded_exemplars(task, label))


POLICIES: dict[str, Policy] = {
    "condensed, ranked": condensed_ranked,
    "condensed, shuffled": condensed_shuffled,
    "real 16×16, herding": herded_small,
    "real 16×16, random": random_small,
    "real 32×32, herding": herded_exemplars,
    "real 32×32, random": random_exemplars,
}
