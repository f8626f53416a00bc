"""The study `nested`: accuracy at every size, by rules, in the own order of nested sets, and of a set for each size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.studies.conftest import InProcessEngine, tiny_input

from condense_once.condensed.file import save
from condense_once.condensed.set import NESTED, CondensedSet, Ranking
from condense_once.condensed.subset import resize
from condense_once.data.arrays import save_arrays
from condense_once.data.catalogue import CIFAR10
from condense_once.errors import BadOption
from condense_once.studies import STUDIES, Study
from condense_once.studies.figures import DRAWINGS, FigureData
from condense_once.studies.grid import StudyInput, cells_of
from condense_once.studies.inputs import open_inputs
from condense_once.studies.make_table import make_table
from condense_once.studies.published_numbers import published, source_notes
from condense_once.studies.result import StudyResult
from condense_once.studies.scheduler import run_missing
from condense_once.studies.state import cell_state
from condense_once.studies.store import Store
from condense_once.studies.study_file import read_study


def nested(pair: StudyInput, name: str = "nested") -> StudyInput:
    """The same patches as a nested set: the first of every class, then the second, and so on."""
    data = pair.data
    rows = np.arange(len(data)).reshape(3, 4).T.ravel()
    made = replace(data.take(rows), ranking=Ranking(NESTED, settings={"sizes": [1, 2, 4]}), name=name)
    return replace(pair, data=made)


def alone(pair: StudyInput, ipc: int) -> StudyInput:
    """A set condensed for one size."""
    data = pair.data.take(np.concatenate([np.flatnonzero(pair.data.labels == label)[:ipc] for label in range(3)]))
    return replace(pair, data=replace(data, name=f"alone-{ipc}"))


@pytest.fixture
def sets() -> dict[str, StudyInput]:
    plain = tiny_input("plain")
    return {
        "plain": plain,
        "nested": nested(tiny_input("it", 1)),
        "one": alone(tiny_input("it", 2), 1),
        "two": alone(tiny_input("it", 3), 2),
    }


@pytest.fixture
def every(study: Study) -> Study:
    """The small study with the shape of the one that is shipped."""
    shipped = STUDIES.get("nested")
    same = {name: getattr(shipped, name) for name in ("fitting", "to_whole", "own_order", "rows", "columns", "shown")}
    return study.replace(
        **same,
        sizes=tuple("123456"),
        rules=("random-balanced",),
        sets=("plain", "nested"),
        ceiling=("one", "two"),
        repeats=1,
    )


def test_rules_apply_to_plain_sets_nested_ones_keep_their_order_and_others_are_whole(
    every: Study, sets: dict[str, StudyInput]
) -> None:
    places = list(dict.fromkeys((cell.at("set"), cell.at("rule"), cell.at("size")) for cell in cells_of(every, sets)))
    assert places == [
        *(("plain", "random-balanced", size) for size in "1234"),
        *(("nested", "stored", size) for size in "1234"),
        ("a set for each size", "whole", "1"),
        ("a set for each size", "whole", "2"),
    ]
    assert not any(cell.needs_scoring_run for cell in cells_of(every, sets))
    both = every.replace(own_order=False, rules=("yoco", "stored"), sets=("nested",), ceiling=())
    assert {cell.at("rule") for cell in cells_of(both, sets)} == {"yoco", "stored"}
    fewer = every.only(["1"])
    assert [cell.at("size") for cell in cells_of(fewer, sets) if cell.at("rule") == "whole"] == ["1"]


def test_the_own_order_of_a_nested_set_is_what_resizing_keeps(
    every: Study, sets: dict[str, StudyInput], store: Store
) -> None:
    engine = InProcessEngine(sets)
    states = run_missing(every, sets, store, engine)
    data = sets["nested"].data
    for state in states:
        if state.cell.at("rule") == "stored":
            assert state.selection is not None
            kept = resize(data, ipc=int(state.cell.at("size")))
            assert np.array_equal(np.sort(kept.origin), np.sort(data.origin[state.selection.rows]))
    table = make_table(every, states)
    assert table.columns == ("1", "2", "3", "4", "Avg.")
    assert [row.labels for row in table.rows] == [
        ("plain", "random-balanced"),
        ("nested", "stored"),
        ("a set for each size", "whole"),
    ]
    *each, average = table.rows[1].entries
    assert average.mean == pytest.approx(np.mean([entry.mean for entry in each]))
    assert np.isnan(table.rows[2].entries[-1].mean)  # not every size has a set of its own


def test_its_figure_has_every_row_in_one_panel(
    every: Study, sets: dict[str, StudyInput], store: Store, tmp_path: Path
) -> None:
    matplotlib = pytest.importorskip("matplotlib.figure")
    states = run_missing(every, sets, store, InProcessEngine(sets))
    figure = matplotlib.Figure()
    caption = DRAWINGS.get("curves").draw(figure, FigureData(every, sets, states, store))
    (area,) = figure.axes
    assert [text.get_text() for text in area.get_legend().get_texts()] == [
        "plain, random-balanced",
        "nested, stored",
        "a set for each size, whole",
    ]
    assert [line.get_xdata().tolist() for line in area.get_lines()] == [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2]]
    assert caption.startswith("Bands: ± one standard deviation.")
    result = StudyResult(every, make_table(every, states), tuple(states), (), sets, store.path)
    result.save(tmp_path / "nested.png")
    assert (tmp_path / "nested.png").stat().st_size > 10_000


def test_sets_of_the_ceiling_are_read_from_files_and_must_differ_in_size(
    every: Study, sets: dict[str, StudyInput], tmp_path: Path
) -> None:
    for name, pair in sets.items():
        save(pair.data, tmp_path / f"{name}.safetensors")
    save_arrays(sets["plain"].test, tmp_path / "test.npz")
    written = 'sets = ["plain.safetensors"]\nceiling = ["one.safetensors", "two.safetensors"]\ntest = "test.npz"\nsizes = [1, 2]'
    (tmp_path / "mine.toml").write_text(f'{written}\nrules = ["random"]\nprotocol = "tiny"\nrepeats = 1\n')
    mine = read_study(tmp_path / "mine.toml")
    assert mine.ceiling[0] == str(tmp_path / "one.safetensors")
    inputs, _ = open_inputs(mine)
    assert len(inputs) == 3
    assert Study.of_spec(mine.spec) == mine
    again = replace(sets["one"].data, name="again")
    save(again, tmp_path / "again.safetensors")
    with pytest.raises(BadOption, match=r"one.safetensors and .*again.safetensors both have 1 image per class"):
        open_inputs(mine.replace(ceiling=(mine.ceiling[0], str(tmp_path / "again.safetensors"))))
    with pytest.raises(BadOption, match="add 'set' to its `rows`"):
        mine.replace(rows=("size",))


def test_fields_that_are_not_used_leave_stored_studies_as_they_were() -> None:
    assert not {"ceiling", "own_order", "to_whole"} & set(Study("mine", "mine").spec)
    assert STUDIES.get("nested").spec["own_order"] is True


def cifar10(method: str, *, order: bool) -> StudyInput:
    """A set of ten blank images per class."""
    labels = np.tile(np.arange(10), 10)
    blank = np.zeros((100, 3, 1, 1), np.uint8)
    space = tiny_input().data.space
    data = CondensedSet(blank, labels, CIFAR10.classes, (1, 1), 1, space, np.arange(100), name=method)
    ranking = Ranking(NESTED, settings={"sizes": [1, 2, 5, 10]}) if order else None
    return replace(tiny_input(), data=replace(data, ranking=ranking, provenance={"method": method}))


def test_the_means_that_mdc_reports_are_shown_beside_ours(store: Store) -> None:
    shipped = STUDIES.get("nested").replace(sets=("idc", "mdc"), rules=("random-balanced",), repeats=1)
    inputs = {"idc": cifar10("idc", order=False), "mdc": cifar10("mdc", order=True)}
    states = [cell_state(cell, store) for cell in cells_of(shipped, inputs)]
    table = make_table(shipped, states, published(shipped, inputs))
    assert table.columns == (*map(str, range(1, 11)), "Avg.")
    plain, mdc = (row.entries[-1].published for row in table.rows)
    assert plain is None
    assert mdc is not None
    assert (mdc.accuracy, round(mdc.std or 0, 4)) == (0.5896, 0.0083)
    (note,) = [note for note in source_notes(shipped, inputs, table) if "MDC" in note]
    assert note.startswith("Avg. is 58.37 and 59.55 in the two runs of MDC's authors, and 53.15 for their baseline")
    fewer = shipped.replace(sizes=("1", "2"))
    assert not [note for note in source_notes(fewer, inputs, table) if "MDC" in note]
