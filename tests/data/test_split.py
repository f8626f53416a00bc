from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from condense_once.data.source import Source
from condense_once.data.split import MAX_PER_CLASS, hold_out
from condense_once.errors import BadOption


@pytest.mark.parametrize(("each", "held_of_each"), [(20, 2), (39, 3), (1500, MAX_PER_CLASS)])
def test_the_last_tenth_of_each_class_is_held_back_and_nothing_else(
    make_source: Callable[..., Source], each: int, held_of_each: int
) -> None:
    source = make_source(classes=3, each=each, side=4)
    kept, held = hold_out(source)
    labels = np.asarray(source.train.labels)
    for label in range(3):
        rows = np.flatnonzero(labels == label)
        for part, expected in ((kept.train, rows[:-held_of_each]), (held.test, rows[-held_of_each:])):
            mine = np.flatnonzero(np.asarray(part.labels) == label)
            assert np.array_equal(part.take(mine), source.train.take(expected))


def test_the_test_split_is_in_neither(source: Source) -> None:
    whole = replace(source, splits={**source.splits, "test": source.train})
    kept, held = hold_out(whole)
    assert (set(kept.splits), set(held.splits)) == ({"train"}, {"test"})
    assert len(held.test.labels) == 6


def test_a_class_of_which_no_tenth_can_be_spared_is_named(make_source: Callable[..., Source]) -> None:
    with pytest.raises(BadOption, match="Class 'class 0' of tiny has 9 training images, too few"):
        hold_out(make_source(each=9))
