from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condense_once.errors import BadOption
from condense_once.metrics import Epochs
from condense_once.metrics.aum import aum
from condense_once.metrics.epochs import mean_over
from condense_once.metrics.forgetting import forgetting
from condense_once.metrics.lbpe import lbpe


@st.composite
def epochs_of(draw: st.DrawFn, length: int) -> Epochs:
    first = draw(st.integers(0, length - 1))
    among = draw(st.integers(1, length))
    return draw(
        st.sampled_from(
            [
                Epochs.all(),
                Epochs.range(first, draw(st.integers(first, length - 1))),
                Epochs.top(draw(st.integers(1, among)), among),
            ]
        )
    )


@settings(deadline=None)  # the machine may be busy
@given(epochs_of(1000))
def test_what_is_written_is_read_back(epochs: Epochs) -> None:
    assert Epochs.parse(str(epochs)) == epochs


@pytest.mark.parametrize(
    ("text", "epochs"),
    [("top10/100", Epochs.top(10, 100)), ("0-9", Epochs.range(0, 9)), ("all", Epochs.all()), (" 7-7 ", Epochs(7, 8))],
)
def test_writing(text: str, epochs: Epochs) -> None:
    assert Epochs.parse(text) == epochs


@pytest.mark.parametrize(
    "text", ["", "top10", "top/100", "10", "0-", "-1-9", "ALL", "top1/2/3", "٣-٤", "9" * 5000 + "-1"]
)
def test_other_writing_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadOption, match=r"written as top10/100, 0-9 or all, not "):
        Epochs.parse(text)


@pytest.mark.parametrize("text", ["top11/10", "top0/10", "top0/0"])
def test_no_more_epochs_can_be_best_than_there_are(text: str) -> None:
    with pytest.raises(BadOption, match=r"^The best \d+ epochs cannot be chosen among the first \d+; [^.]*\.$"):
        Epochs.parse(text)


def test_a_range_must_run_forward_from_zero_or_later() -> None:
    for first, last in ((9, 0), (-1, 3)):
        with pytest.raises(BadOption, match="are not a range"):
            Epochs.range(first, last)
    for fields in ((3, None, None), (0, None, 2)):
        with pytest.raises(BadOption, match="without `stop`"):
            Epochs(*fields)
    with pytest.raises(BadOption, match="cannot be chosen"):
        Epochs(2, 9, 3)


def test_epochs_beyond_the_run_are_refused() -> None:
    with pytest.raises(BadOption, match=r"'top2/9' need a run of 9 epochs, but 8 were recorded"):
        Epochs.top(2, 9).choose(np.ones((8, 3), bool))


def test_of_equally_good_epochs_the_earliest_count() -> None:
    correct = np.zeros((6, 4), bool)
    correct[[1, 3, 5], :2] = True  # epochs 1, 3 and 5 get two right, the others none
    assert Epochs.top(2, 6).choose(correct).tolist() == [1, 3]
    assert Epochs.top(4, 6).choose(correct).tolist() == [0, 1, 3, 5]
    assert Epochs.top(3, 5).choose(correct).tolist() == [0, 1, 3]


@settings(deadline=None)  # the machine may be busy
@given(st.data())
def test_the_choice_equals_plain_loops(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 9))
    epochs = data.draw(epochs_of(length))
    correct = data.draw(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=length, max_size=length))
    among = list(range(length))[epochs.start : epochs.stop]
    chosen = among if epochs.best is None else []
    while epochs.best is not None and len(chosen) < epochs.best:
        best = None
        for epoch in among:
            if epoch not in chosen and (best is None or sum(correct[epoch]) > sum(correct[best])):
                best = epoch
        assert best is not None
        chosen.append(best)
    assert epochs.choose(np.array(correct)).tolist() == sorted(chosen)


def test_values_that_are_no_numbers_are_refused_only_where_they_count() -> None:
    values = np.array([[1.0, 2.0], [np.nan, 0.0]])
    assert mean_over(values, np.array([0]), "error").tolist() == [1, 2]
    with pytest.raises(BadOption, match=r"recorded error contains NaN or infinity"):
        mean_over(values, np.array([0, 1]), "error")


def test_a_run_on_disk_is_scored_without_being_read_into_memory(tmp_path: Path) -> None:
    epochs, patches = 60, 50_000
    values = np.memmap(tmp_path / "values", np.float32, "w+", shape=(epochs, patches))  # 12 MB
    correct = np.memmap(tmp_path / "correct", np.bool_, "w+", shape=(epochs, patches))  # 3 MB
    values[:] = np.arange(epochs)[:, None]
    correct[::2] = True
    tracemalloc.start()
    scores = (
        lbpe(values, correct, Epochs.all()),
        aum(values),
        forgetting(correct),
        lbpe(values, correct, Epochs.top(3, 60)),
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [score[0] for score in scores] == [29.5, 29.5, 30, 2]
    assert peak < 50 * patches  # some numbers per patch, however long the run; 60 × 4 bytes would be all of `values`
