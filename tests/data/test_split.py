from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from condense_once.data.source import Source
from condense_once.data.split import MAX_PER_CLASS, has_holdout, hold_out, rows_by_class, toggle_holdout
from condense_once.errors import BadOption


@pytest.mark.parametrize(("each", "held_out"), [(20, 2), (39, 3), (1500, MAX_PER_CLASS)])
def test_the_last_tenth_of_each_class_is_held_out_and_nothing_else(
    make_source: Callable[..., Source], each: int, held_out: int
) -> None:
    source = make_source(classes=3, each=each, side=4)
    train, held = hold_out(source)
    labels = np.asarray(source.train.labels)
    for label in range(3):
        rows = np.flatnonzero(labels == label)
        for part, expected in ((train.train, rows[:-held_out]), (held.test, rows[-held_out:])):
            mine = np.flatnonzero(np.asarray(part.labels) == label)
            assert np.array_equal(part.take(mine), source.train.take(expected))


def test_the_test_split_is_in_neither(source: Source) -> None:
    whole = replace(source, splits={**source.splits, "test": source.train})
    train, held = hold_out(whole)
    assert (set(train.splits), set(held.splits)) == ({"train"}, {"test"})
    assert len(held.test.labels) == 6


def test_a_class_of_which_no_tenth_can_be_spared_is_named(make_source: Callable[..., Source]) -> None:
    with pytest.raises(BadOption, match="Class 'class 0' of tiny has 9 training images, too few"):
        hold_out(make_source(each=9))


def test_a_holdout_can_be_taken_back_and_made_again(source: Source, make_source: Callable[..., Source]) -> None:
    train, _ = hold_out(source)
    assert (has_holdout(source), has_holdout(train)) == (False, True)
    back, again = toggle_holdout(train), toggle_holdout(source)
    assert back is not None
    assert again is not None
    assert back.train is source.train
    assert np.array_equal(again.train.take(slice(None)), train.train.take(slice(None)))
    assert toggle_holdout(make_source(each=9)) is None


def test_rows_by_class_keep_the_order_of_the_dataset() -> None:
    labels = np.array([2, 0, 2, 0, 4])
    assert [rows.tolist() for rows in rows_by_class(labels, 6)] == [[1, 3], [], [0, 2], [], [4], []]
