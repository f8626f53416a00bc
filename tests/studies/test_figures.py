"""Figures show what was measured, where it was measured, and nothing else."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import sqrt
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

from condense_once.condensed import class_labels
from condense_once.condensed.space import Space
from condense_once.condensing.runner import condense
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption, MissingExtra, UnknownName
from condense_once.metrics import ScoringRun
from condense_once.selection.rule import Rule
from condense_once.studies.figures import DRAWINGS, FigureData, save_figure
from condense_once.studies.figures.balance import mean_counts
from condense_once.studies.figures.distribution import log_spaced
from condense_once.studies.figures.lines import crossings, expected_turn
from condense_once.studies.figures.patches import easiest_first, ends
from condense_once.studies.grid import Cell, StudyInput, cells_of, scoring_cells
from condense_once.studies.jobs import evaluation_job, scoring_job
from condense_once.studies.scoring_run_io import pack
from condense_once.studies.state import cell_state
from condense_once.studies.store import Store, StoredSelection
from condense_once.studies.study import STUDIES, Study
from condense_once.train.dynamics import Dynamics

Inputs = Mapping[str, StudyInput]
EPOCHS = 3  # of the training in the fixture `study`


@pytest.fixture
def errors(inputs: Inputs) -> NDArray[np.float32]:
    """Of every patch in every epoch, all different."""
    values = np.random.default_rng(1).permutation(EPOCHS * len(inputs["tiny"].data)) / 30
    return values.reshape(EPOCHS, -1).astype(np.float32)


@pytest.fixture
def scored(study: Study, inputs: Inputs, store: Store, errors: NDArray[np.float32]) -> Study:
    """A study of scores alone, whose scoring run is known."""
    only = study.replace(sizes=(), rules=("yoco",), epochs=("1-1", "0-0"))
    record(only, inputs, store, errors)
    return only


def record(study: Study, inputs: Inputs, store: Store, errors: NDArray[np.float32]) -> None:
    for cell in scoring_cells(study, inputs):
        scoring_run = ScoringRun(cell.input.data.labels, Dynamics(errors, -errors, errors, errors < 0.5))
        job = scoring_job(cell)
        assert job is not None
        store.add_scoring_run(job.key, job.facts, pack(scoring_run), work=1, seconds=1)


def select(store: Store, cell: Cell, rows: Sequence[int]) -> str:
    job, run = evaluation_job(cell, np.array(rows)), scoring_job(cell)
    store.add_selection(cell.key, cell.facts, StoredSelection(job.rows, job.key, None if run is None else run.key))
    return job.key


def measure(store: Store, cell: Cell, accuracy: float) -> None:
    """As if this were the accuracy that a cell's training reached; each cell keeps patches of its own."""
    selected = store.selection(cell.key)
    key = f"made up for {cell.key}" if selected is None else selected.evaluation_key
    if selected is None:
        store.add_selection(cell.key, cell.facts, StoredSelection(np.arange(cell.patches), key, None))
    result = {
        "accuracy": accuracy,
        "test": "tiny-test",
        "test_images": 30,
        "machine": {"processor": "a fast one"},
        "versions": {"torch": "2.0"},
    }
    store.add_evaluation(key, {}, result, work=1, seconds=1)


def results(study: Study, inputs: Inputs, store: Store) -> FigureData:
    return FigureData(study, inputs, [cell_state(cell, store) for cell in cells_of(study, inputs)], store)


def made(name: str, of: FigureData) -> tuple[Figure, str]:
    """A figure before it is written, and its caption."""
    figure = Figure()
    return figure, DRAWINGS.get(name).draw(figure, of)


def draw_to(path: Path, study: Study, inputs: Inputs, store: Store, *, force: bool = False) -> Path:
    save_figure(results(study, inputs, store), path, force=force)
    return path


def texts(path: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def heading(area: Axes) -> str:
    return area.get_title(loc="left")


def legend_of(area: Axes) -> list[str]:
    legend = area.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


# Balance


def test_counts_are_means_over_selections() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 40)
    selections = [rng.choice(40, 9, replace=False) for _ in range(3)]
    naive = [sum(int(labels[row]) == label for rows in selections for row in rows) / 3 for label in range(5)]
    assert mean_counts(selections, labels, 5).tolist() == pytest.approx(naive)


def test_bars_are_what_is_kept_of_each_class_and_a_cross_marks_those_of_which_nothing_is(
    study: Study, inputs: Inputs, store: Store
) -> None:
    kept = {("random", 0): [0, 1, 2], ("random", 1): [0, 1, 4], ("yoco", 0): [0, 4, 8], ("yoco", 1): [1, 5, 9]}
    accuracy = {("yoco", 0): 0.40, ("yoco", 1): 0.44, ("random", 0): 0.30}
    one = study.replace(sizes=("1",))
    for cell in cells_of(one, inputs):
        place = (cell.at("rule"), cell.repeat)
        select(store, cell, kept[place])
        if place in accuracy:
            measure(store, cell, accuracy[place])
    figure, caption = made("balance", results(one, inputs, store))
    (area,) = figure.axes
    bars = [patch.get_data() for patch in area.patches]
    assert [bar.values[::2].tolist() for bar in bars] == [[2.5, 0.5, 0], [1, 1, 1]]
    assert [np.isnan(bar.values[1::2]).all() for bar in bars] == [True, True]
    crosses = [line.get_xdata() for line in area.lines]
    assert [len(places) for places in crosses] == [1, 0]
    edges = bars[0].edges
    assert edges[4] < crosses[0][0] < edges[5], "the third class of the first rule"
    assert heading(area) == "tiny, 1 image per class"
    assert legend_of(area) == ["random, accuracy 30.0 %", "yoco, accuracy 42.0 ± 2.8 %"]
    assert "ImageNet-10" not in caption
    _, caption = made("balance", replace(results(one, inputs, store), with_paper=True))
    assert "In the paper balance gains most on ImageNet-10 (10 → 1): 19.37 points" in caption
    assert [label.get_text() for label in area.get_xticklabels()] == ["dark", "grey", "light"]
    assert "mean ± std over n = 1 to 2 runs, protocol tiny-" in caption
    assert "tested on 30 images of tiny-test." in caption
    assert "1 of 4 runs are missing, 0 failed." in caption
    assert "on a fast one with torch 2.0." in caption


def test_bars_keep_their_colours_while_others_are_missing(study: Study, inputs: Inputs, store: Store) -> None:
    cells = [cell for cell in cells_of(study, inputs) if cell.at("rule") == "yoco"]
    select(store, cells[0], [0, 4, 8])
    few, _ = made("balance", results(study, inputs, store))
    for cell in cells_of(study, inputs):
        select(store, cell, [0, 4, 8])
    all_of_them, _ = made("balance", results(study, inputs, store))
    assert len(few.axes) == 1
    assert len(all_of_them.axes) == 2
    assert few.axes[0].patches[0].get_facecolor() == all_of_them.axes[0].patches[1].get_facecolor()


def test_many_classes_are_numbered_and_not_named(study: Study, inputs: Inputs, store: Store) -> None:
    data = replace(inputs["tiny"].data, classes=tuple(f"class {number}" for number in range(100)))
    many = {"tiny": replace(inputs["tiny"], data=data)}
    one = study.replace(sizes=("50%",), repeats=1)
    for cell in cells_of(one, many):
        select(store, cell, [0, 4, 8])
    written = texts(draw_to(store.path.with_name("a.svg"), one.replace(shown="balance"), many, store))
    assert "class index" in written
    assert not any("class 1" in text for text in written)


# Lines


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ([1, 1, 1, 1], [0, 0.5, 2.5, 3], [22.5]),  # a quarter of the way from 20 to 30
        ([0, 2, 0, 2], [1, 1, 1, 1], [15, 25, 35]),
        ([2, 2, 2, 2], [1, 2, 1, 1], []),  # they touch
        ([2, 1, 1, 0], [1, 1, 1, 1], [25]),  # together from 20 to 30
        ([2, 1, 0, 0], [1, 1, 1, 1], [20]),
        ([1, 2, 2, 1], [1, 1, 1, 1], []),  # together at both ends
        ([1, 1, 1, 1], [1, 1, 1, 1], []),
    ],
)
def test_lines_cross_where_they_change_sides(first: list[float], second: list[float], found: list[float]) -> None:
    assert crossings([10, 20, 30, 40], first, second) == pytest.approx(found)
    assert crossings([10, 20, 30, 40], second, first) == pytest.approx(found)


def test_crossings_are_those_that_one_meets_walking_along() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        places = np.cumsum(rng.uniform(1, 3, 6))
        first, second = rng.normal(size=(2, 6))
        walk = np.linspace(places[0], places[-1], 20_001)
        ahead = np.interp(walk, places, first) > np.interp(walk, places, second)
        met = [walk[step] for step, (before, after) in enumerate(pairwise(ahead)) if before != after]
        assert crossings(places, first, second) == pytest.approx(met, abs=walk[1] - walk[0])


def test_few_points_do_not_cross() -> None:
    assert crossings([], [], []) == crossings([10], [1], [2]) == []


def test_where_easy_and_hard_should_be_as_good_depends_on_the_size_of_the_set(inputs: Inputs) -> None:
    # Four images per class count as the smallest size of the paper: 24 % pruned
    data = inputs["tiny"].data
    easy, hard = Rule.parse("yoco"), Rule.parse("lbpe-hard-balanced")
    assert expected_turn(data, easy, hard) == pytest.approx(76)
    assert expected_turn(data, hard, easy) == pytest.approx(76)
    assert expected_turn(data, easy, Rule.parse("lbpe-easy")) is None
    larger = data.take(np.tile(np.arange(len(data)), 12))  # 48 per class
    assert expected_turn(larger, easy, hard) == pytest.approx(100 - 24 - 14 * np.log(4.8) / np.log(5))


def test_easy_against_hard_patches_over_shares(study: Study, inputs: Inputs, store: Store) -> None:
    turning = study.replace(
        rules=("yoco", "lbpe-hard-balanced"), sizes=("25%", "50%", "75%"), rows=("set", "rule"), columns=("size",)
    )
    accuracy = {"yoco": {3: 0.40, 6: 0.45, 9: 0.50}, "lbpe-hard-balanced": {3: 0.20, 6: 0.40, 9: 0.65}}
    for cell in cells_of(turning, inputs):
        measure(store, cell, accuracy[cell.at("rule")][cell.patches] + 0.01 * cell.repeat)
    figure, caption = made("lines", results(turning, inputs, store))
    assert heading(figure.axes[0]) == "tiny\nturning point at 56 %"
    assert "paper" not in caption
    figure, caption = made("lines", replace(results(turning, inputs, store), with_paper=True))
    (area,) = figure.axes
    easy, hard, zero, ahead, turn, expected = area.lines
    assert zero.get_ydata() == [0, 0]
    assert ahead.get_ydata().tolist() == pytest.approx([20, 5, -15])
    assert easy.get_xdata().tolist() == hard.get_xdata().tolist() == [25, 50, 75]
    assert easy.get_ydata().tolist() == pytest.approx([40.5, 45.5, 50.5])
    assert hard.get_ydata().tolist() == pytest.approx([20.5, 40.5, 65.5])
    assert list(turn.get_xdata()) == pytest.approx([56.25] * 2)  # 5 behind at 50 %, 15 ahead at 75 %
    assert list(expected.get_xdata()) == pytest.approx([76] * 2)
    assert heading(area) == "tiny\nturning point at 56 %, in the paper at 76 % (dotted)"
    assert caption.count("The paper's turning points are those of its figure 3") == 1
    lower, upper = (extreme(area.collections[0].get_paths()[0].vertices[:, 1]) for extreme in (min, max))
    assert (lower, upper) == pytest.approx((40.5 - sqrt(0.5), 50.5 + sqrt(0.5)))
    assert legend_of(area) == ["yoco", "lbpe-hard-balanced", "easy − hard, points"]
    assert area.get_xlabel() == "fraction of the patches kept, %"
    assert "n = 2 runs" in caption
    assert "missing" not in caption


def test_lines_end_where_nothing_is_known(study: Study, inputs: Inputs, store: Store) -> None:
    sizes = study.replace(sizes=("1", "2", "4"), rows=("set", "rule"), columns=("size",))
    for cell in cells_of(sizes, inputs):
        if cell.at("rule") == "random" and cell.patches < 12:
            measure(store, cell, 0.1)
    figure, caption = made("lines", results(sizes, inputs, store))
    (area,) = figure.axes
    assert [line.get_xdata().tolist() for line in area.lines] == [[1, 2]]
    assert heading(area) == "tiny"
    assert area.get_xlabel() == "images per class"
    assert "8 of 12 runs are missing, 0 failed." in caption


def test_single_epochs_have_places_and_several_are_a_level(study: Study, inputs: Inputs, store: Store) -> None:
    epochs = study.replace(
        rules=("yoco",), sizes=("1",), epochs=("2-2", "0-0", "top2/3"), rows=("set", "rule"), columns=("epochs",)
    )
    accuracy = {"2-2": 0.4, "0-0": 0.2, "top2/3": 0.5}
    for cell in cells_of(epochs, inputs):
        measure(store, cell, accuracy[cell.at("epochs")])
    (area,) = made("lines", results(epochs, inputs, store))[0].axes
    line, level = area.lines
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([0, 2], [20, 40])
    assert set(level.get_ydata()) == {50}
    assert legend_of(area) == ["yoco", "yoco, epochs top2/3"]


def test_lines_over_anything_else_are_refused(study: Study, inputs: Inputs, store: Store) -> None:
    with pytest.raises(BadOption, match=r"over size or epochs, .* not rule"):
        made("lines", results(study, inputs, store))


# Distribution


def test_errors_of_each_class_are_sorted_in_the_epochs_that_are_named(
    scored: Study, inputs: Inputs, store: Store, errors: NDArray[np.float32]
) -> None:
    figure, caption = made("distribution", results(scored, inputs, store))
    assert list(map(heading, figure.axes)) == ["epoch 1", "epoch 0"]
    labels = inputs["tiny"].data.labels
    for area, epoch in zip(figure.axes, (1, 0), strict=True):
        naive = [sorted(float(e) for e, own in zip(errors[epoch], labels, strict=True) if own == c) for c in range(3)]
        assert [line.get_ydata().tolist() for line in area.lines] == naive
        assert [line.get_xdata().tolist() for line in area.lines] == [[1, 2, 3, 4]] * 3
    assert "n = 12 patches" in caption
    assert "Scored by 1 run of 3 epochs of convnet-d1-w8 in 1.0 s, 20" in caption


def test_without_named_epochs_some_of_the_whole_run_are_shown(
    study: Study, inputs: Inputs, store: Store, errors: NDArray[np.float32]
) -> None:
    whole = study.replace(sizes=(), rules=("yoco",), epochs=("",))
    record(whole, inputs, store, errors)
    figure, _ = made("distribution", results(whole, inputs, store))
    assert list(map(heading, figure.axes)) == ["epoch 0", "epoch 1", "epoch 2"]


@pytest.mark.parametrize("epochs", [1, 2, 7, 100, 1000])
def test_several_epochs_begin_with_the_first_and_end_with_the_last(epochs: int) -> None:
    chosen = log_spaced(epochs)
    assert chosen[0] == 0
    assert chosen[-1] == epochs - 1
    assert chosen == sorted(set(chosen))
    assert len(chosen) <= 6


def test_a_rule_without_training_has_no_errors(scored: Study, inputs: Inputs, store: Store) -> None:
    with pytest.raises(BadOption, match="'random' needs no training"):
        made("distribution", results(scored.replace(rules=("random",)), inputs, store))


# Patches


def test_ends_share_no_patch() -> None:
    for count in range(8):
        easy, hard = ends(np.arange(count), 3)
        shown = [*easy.tolist(), *hard.tolist()]
        naive = list(range(count)) if count <= 6 else [0, 1, 2, count - 3, count - 2, count - 1]
        assert shown == naive


@pytest.mark.parametrize(("rule", "high"), [("yoco", False), ("lbpe-hard", False), ("aum", True)])
def test_the_easiest_come_first_whatever_a_rule_prefers(
    study: Study, inputs: Inputs, errors: NDArray[np.float32], rule: str, high: bool
) -> None:
    cell = next(cells_of(study.replace(rules=(rule,), epochs=("1-1",)), inputs))
    margins = np.repeat(errors[1:2], EPOCHS, axis=0)
    scoring_run = ScoringRun(cell.input.data.labels, Dynamics(errors, margins, errors, errors < 0.5))
    naive = sorted(range(12), key=lambda row: float(errors[1, row]), reverse=high)
    assert easiest_first(cell, scoring_run).tolist() == naive


def test_pictures_are_the_patches_from_easy_to_hard_a_class_a_row(
    scored: Study, inputs: Inputs, store: Store, errors: NDArray[np.float32]
) -> None:
    figure, caption = made("patches", results(scored, inputs, store))
    (area,) = figure.axes
    data = inputs["tiny"].data
    shown = {(image.get_extent()[3], image.get_extent()[0]): np.asarray(image.get_array()) for image in area.images}
    for label in range(3):
        pictures = [shown[place] for place in sorted(shown) if place[0] == label]
        rows = sorted(np.flatnonzero(data.labels == label), key=lambda row: float(errors[1, row]))
        for picture, row in zip(pictures, rows, strict=True):
            np.testing.assert_array_equal(picture, data.cells[row].transpose(1, 2, 0))
    assert [label.get_text() for label in area.get_yticklabels()] == ["dark", "grey", "light"]
    assert area.get_ylim() == (3, 0), "the first class is above"
    assert "by lbpe" in caption


def test_the_colours_of_a_whitened_set_need_its_source_which_is_noted(
    study: Study, inputs: Inputs, store: Store, errors: NDArray[np.float32]
) -> None:
    recipe = {"recipe": "kip", "regularisation": 0.1, "source": "unheard-of"}
    space = Space("zca", (0.5,) * 3, (0.25,) * 3, recipe)
    data = inputs["tiny"].data
    white = replace(data, cells=(data.cells / 128 - 1).astype(np.float32), space=space)
    whitened = {"tiny": replace(inputs["tiny"], data=white)}
    only = study.replace(sizes=(), rules=("yoco",))
    record(only, whitened, store, errors)
    assert "download its source unheard-of" in made("patches", results(only, whitened, store))[1]


# Files


@pytest.fixture(params=["balance", "lines", "distribution", "patches"])
def drawn(
    request: pytest.FixtureRequest, study: Study, inputs: Inputs, store: Store, errors: NDArray[np.float32]
) -> Study:
    """A small study of each drawing, with all it needs in the store."""
    name: str = request.param
    if name in ("distribution", "patches"):
        some = study.replace(sizes=(), rules=("yoco",))
        record(some, inputs, store, errors)
    else:
        some = study if name == "balance" else study.replace(rows=("set", "rule"), columns=("size",))
        for cell in cells_of(some, inputs):
            measure(store, cell, 0.3)
    return some.replace(shown=name)


def test_a_picture_and_a_drawing_with_its_words_are_written(
    drawn: Study, inputs: Inputs, store: Store, tmp_path: Path
) -> None:
    with Image.open(draw_to(tmp_path / "a.PNG", drawn, inputs, store)) as picture:
        picture.verify()
        assert picture.format == "PNG"
        assert picture.width == 1280
    written = texts(draw_to(tmp_path / "a.svg", drawn, inputs, store))
    named = {"lines": {"yoco", "random"}}.get(drawn.shown, {"dark", "grey", "light"})
    assert named | {"a small study"} <= set(written)
    assert any("n = " in text for text in written)


def test_without_any_result_a_sentence_says_to_run_the_study(drawn: Study, inputs: Inputs, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=r"small .* run the study first"):
        draw_to(tmp_path / "a.png", drawn, inputs, Store(tmp_path / "empty.sqlite"))
    assert not list(tmp_path.glob("*.p*"))


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_figure_is_the_same_bytes_whatever_the_user_has_set(
    scored: Study, inputs: Inputs, store: Store, tmp_path: Path, suffix: str
) -> None:
    shown = scored.replace(shown="distribution")
    first = draw_to(tmp_path / f"a.{suffix}", shown, inputs, store).read_bytes()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "savefig.transparent": True}):
        before = dict(matplotlib.rcParams)
        second = draw_to(tmp_path / f"b.{suffix}", shown, inputs, store).read_bytes()
        assert dict(matplotlib.rcParams) == before
    assert first == second


def test_what_exists_is_replaced_on_request_only(scored: Study, inputs: Inputs, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text("mine")
    shown = scored.replace(shown="patches")
    with pytest.raises(BadOption, match="pass `force`"):
        draw_to(path, shown, inputs, store)
    assert path.read_text() == "mine"
    draw_to(path, shown, inputs, store, force=True)
    assert "dark" in texts(path)


def test_other_files_and_other_drawings_are_refused(
    scored: Study, inputs: Inputs, store: Store, tmp_path: Path
) -> None:
    with pytest.raises(BadOption, match=r"\.png or \.svg file, not to .*a\.pdf"):
        draw_to(tmp_path / "a.pdf", scored.replace(shown="patches"), inputs, store)
    with pytest.raises(UnknownName, match="did you mean 'balance'"):
        draw_to(tmp_path / "a.png", scored.replace(shown="balanse"), inputs, store)


def test_without_matplotlib_a_sentence_names_the_extra(
    scored: Study, inputs: Inputs, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match="with the extra 'figures'"):
        draw_to(tmp_path / "a.png", scored.replace(shown="patches"), inputs, store)


def test_classes_may_be_called_anything(
    study: Study, make_input: Callable[..., StudyInput], store: Store, tmp_path: Path, errors: NDArray[np.float32]
) -> None:
    odd = ("$\\x{$", "_<&>", "漢字")
    pair = make_input()
    inputs = {"tiny": replace(pair, data=replace(pair.data, classes=odd))}
    only = study.replace(sizes=(), rules=("yoco",), shown="distribution")
    record(only, inputs, store, errors)
    assert set(odd) <= set(texts(draw_to(tmp_path / "a.svg", only, inputs, store)))
    draw_to(tmp_path / "a.png", only, inputs, store)


@pytest.mark.parametrize("drawing", ["distribution", "patches", "balance"])
def test_a_picture_has_no_boxes_for_letters_that_no_font_has(
    study: Study,
    make_input: Callable[..., StudyInput],
    store: Store,
    errors: NDArray[np.float32],
    drawing: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(class_labels, "SYSTEM_FONTS", ())  # only the one of matplotlib is left
    pair = make_input()
    inputs = {"tiny": replace(pair, data=replace(pair.data, classes=("Bär", "naïve", "猫")))}
    named = {"name": "mine", "summary": "Of 犬", "labels": (("tiny", "set ä of 犬"),)}
    only = study.replace(sizes=("1",) if drawing == "balance" else (), rules=("yoco",), shown=drawing, **named)
    record(only, inputs, store, errors)
    for cell in cells_of(only, inputs):
        select(store, cell, [0, 4, 8])
    written: list[str] = []
    save = Figure.savefig

    def look(figure: Figure, *given: object, **named: object) -> None:
        figure.draw_without_rendering()
        written.extend(text.get_text() for text in figure.findobj(Text))
        save(figure, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "savefig", look)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_to(store.path.with_name("a.png"), only, inputs, store)
    assert {"Bär", "naïve", "class 2"} <= set(written)
    assert not set("猫犬") & set("".join(written))
    assert "Of U+72AC" in written
    assert any("no font here has" in " ".join(text.split()) for text in written)
    assert any("written as U+…" in " ".join(text.split()) for text in written)


def test_a_figure_of_other_sets_has_no_number_of_the_paper(scored: Study, inputs: Inputs, store: Store) -> None:
    shipped = STUDIES.get("fig-easy-hard")
    mine = scored.replace(name=shipped.name, summary=shipped.summary, shown="patches", epochs=("1-1",))
    own = texts(draw_to(store.path.with_name("a.svg"), mine, inputs, store))
    assert "The easiest and the hardest patches of each class" in own
    assert not any("Figure" in text for text in own)
    save_figure(replace(results(mine, inputs, store), with_paper=True), store.path.with_name("b.svg"))
    assert shipped.summary in texts(store.path.with_name("b.svg"))


def test_a_bare_figure_has_neither_title_nor_caption(scored: Study, inputs: Inputs, store: Store) -> None:
    path = store.path.with_name("a.svg")
    save_figure(results(scored.replace(shown="patches"), inputs, store), path, bare=True)
    assert "easiest first" in texts(path)
    assert not any("a small study" in text or "Scored by" in text for text in texts(path))


def test_only_an_easy_and_a_hard_rule_have_a_turning_point(study: Study, inputs: Inputs, store: Store) -> None:
    mine = study.replace(rules=("yoco", "random"), sizes=("25%", "75%"), rows=("set", "rule"), columns=("size",))
    for cell in cells_of(mine, inputs):
        measure(store, cell, 0.4 if (cell.at("rule") == "yoco") == (cell.patches == 3) else 0.2)
    (area,) = made("lines", results(mine, inputs, store))[0].axes
    assert heading(area) == "tiny"
    assert len(area.lines) == 2, "although they cross"


def test_counts_have_whole_ticks(study: Study, inputs: Inputs, store: Store, scored: Study) -> None:
    sizes = study.replace(rules=("yoco",), sizes=("1", "2"), rows=("set", "rule"), columns=("size",))
    for cell in cells_of(sizes, inputs):
        measure(store, cell, 0.1)
    areas = [
        *made("lines", results(sizes, inputs, store))[0].axes,
        *made("distribution", results(scored, inputs, store))[0].axes,
    ]
    assert len(areas) == 3
    for area in areas:
        assert all(float(tick).is_integer() for tick in area.get_xticks()), area.get_xticks()


def test_originals_are_drawn_below_the_patches_of_a_set_that_records_them(store: Store) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 3
    images = rng.integers(0, 256, (24, 3, 8, 8), dtype=np.uint8)
    both = {"train": ArraySplit(images, labels), "test": ArraySplit(images, labels)}
    source = Source("noise", ("ant", "bee", "cat"), (0.5,) * 3, (0.25,) * 3, both)  # type: ignore[arg-type]
    made_set = condense(source, method="idc", ipc=1, net="convnet-d1-w4", overrides={"iterations": 0})
    study = Study("noise", "patches", sets=("noise",), rules=("random",), repeats=1, shown="patches")

    def drawn(test: Source) -> tuple[int, str]:
        figure, caption = made("patches", results(study, {"noise": StudyInput(made_set, test)}, store))
        return len(figure.axes[0].images), caption

    with_originals, caption = drawn(source)
    assert "Below each patch: the real image that it started from." in caption
    alone, caption = drawn(replace(source, splits={"test": both["test"]}))
    assert "Below" not in caption
    assert with_originals == 2 * alone == 2 * 12
