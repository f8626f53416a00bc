from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

from condense_once.errors import BadFile, BadOption, CondenseOnceError
from condense_once.selection.rule import Rule
from condense_once.studies import STUDIES, Study
from condense_once.studies.figures import DRAWINGS
from condense_once.studies.grid import StudyInput, cells_of
from condense_once.studies.study import LATER_FIELDS, RENAMED, SHOWN, SPEC_FIELDS
from condense_once.studies.study_file import read_study


@pytest.mark.parametrize(
    ("written", "patches"), [("1", 3), ("4", 12), ("50%", 6), ("0.25", 3), ("100 %", 12), ("all", 12), ("9%", 1)]
)
def test_sizes_are_images_per_class_or_fractions(written: str, patches: int, inputs: dict[str, StudyInput]) -> None:
    study = Study("mine", "one size", sets=("tiny",), sizes=(written,), repeats=1)
    (cell,) = cells_of(study, inputs)
    assert cell.patches == patches


def test_more_than_a_set_has_cannot_be_kept(inputs: dict[str, StudyInput]) -> None:
    with pytest.raises(BadOption, match="12 patches to choose from, fewer than 15"):
        list(cells_of(Study("mine", "one size", sets=("tiny",), sizes=("5",)), inputs))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rules": ("yocoo",)}, "no rule 'yocoo'"),
        ({"rules": ("yoco", "yoco")}, "repeat a value"),
        ({"sizes": ("x",)}, "A size is"),
        ({"epochs": ("first",)}, "Epochs are written"),
        ({"protocol": "slow"}, "'slow' among the protocols"),
        ({"rows": ("rules",)}, "did you mean 'rule'"),
        ({"sets": ()}, "must not be empty"),
        ({"rules": ("yoco", "lbpe-easy-balanced")}, "repeat a value"),
        ({"sizes": ("25%", "0.25")}, "repeat a value"),
        ({"reference": "yocoo"}, "no rule 'yocoo'"),
        ({"nets": ("convnet-d3", "resnet10"), "sizes": ("1",)}, "add 'net' to its `rows` or `columns`"),
        ({"sets": ("a", "b"), "rows": ("size",), "sizes": ("1",)}, "add 'set' to its `rows` or `columns`"),
        ({"repeats": 10**9}, "must be from 1 to 10000"),
        ({"sizes": ("9" * 5000,)}, "A size is images per class"),
        ({"sizes": ("1e-999999999%",)}, "A size is images per class"),
        ({"repeats": 0}, "must be from 1 to 10000, not 0 and 3"),
        ({"shown": "tabel"}, "did you mean 'table'"),
        ({"scoring_epochs": -3}, "at least one epoch, not -3"),
        ({"rows": ("set", "rule"), "columns": ("rule", "size")}, "'rule' in `rows` and in `columns`"),
        ({"sets": "abc"}, r"list such as \['abc'\]"),
        ({"rules": "yoco"}, r"list such as \['yoco'\]"),
        ({"sizes": [1.0]}, "A size is"),
        ({"precision": "half"}, "float32, bfloat16, not 'half'"),
    ],
)
def test_an_invalid_study_is_refused_at_once(changes: dict[str, object], expected: str) -> None:
    with pytest.raises(CondenseOnceError, match=expected):
        Study("mine", "mine", **changes)  # type: ignore[arg-type]


def test_lists_and_tuples_are_the_same_study() -> None:
    lists = Study("mine", "mine", rules=["yoco"], sizes=[1, 0.5], labels=[["yoco", "reference"]])  # type: ignore[arg-type]
    assert lists == Study("mine", "mine", rules=("yoco",), sizes=("1", "50%"), labels=(("yoco", "reference"),))
    assert hash(lists)


def test_every_drawing_can_be_shown() -> None:
    for name in DRAWINGS.names():
        Study("mine", "mine", shown=name)
    assert {*DRAWINGS.names()} == {*SHOWN} - {"table", "requirements"}


def test_float32_is_left_out_of_the_spec() -> None:
    study = Study("mine", "mine", precision="float32")
    assert "precision" not in study.spec
    assert Study.of_spec(study.spec) == study
    half = study.replace(precision="bfloat16")
    assert Study.of_spec(half.spec) == half


def test_paths_in_a_study_file_are_relative_to_it_and_names_stay(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "test").mkdir()
    path.write_text('sets = ["a.safetensors", "deep/b", "cifar10-real-ipc10"]\ntest = "cifar10"')
    study = read_study(path)
    assert study.sets == (str(tmp_path / "a.safetensors"), str(tmp_path / "deep" / "b"), "cifar10-real-ipc10")
    assert study.test == "cifar10"
    path.write_text('test = "test"')
    assert read_study(path).test == str(tmp_path / "test")


def test_a_study_file_is_a_study(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'summary = "Mine"\nsets = "a.safetensors"\nrules = ["yoco", "random"]\nsizes = [1, "50%", 0.3]\nrepeats = 4\n'
        'rows = ["size"]\n[labels]\nyoco = "reference"\n'
    )
    study = read_study(path)
    assert (study.name, study.sets, study.sizes, study.repeats) == (
        "mine",
        (str(tmp_path / "a.safetensors"),),
        ("1", "50 %", "30 %"),
        4,
    )
    assert study.label("yoco") == "reference"
    assert study.label("random") == "random"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("repeats = ", "not TOML"),
        ("repeat = 3", "did you mean 'repeats'"),
        ('repeats = "3"', "repeats must be a number"),
        ("repeats = true", "repeats must be a number"),
        ("protocol = 3", "protocol must be text"),
        ("rules = [true]", "rules must be a list"),
        ("labels = 3", "labels must be a table"),
        ("name = 'other'", "no 'name'"),
        (f"sizes = {'[' * 5000}{']' * 5000}", "nested too deeply for a study"),
        (f"rules = {'{a=' * 5000}", "nested too deeply for a study"),
        (f"repeats = {'9' * 5000}", "not TOML: Exceeds the limit"),
        (f"sets = ['{'a' * 5000}.safetensors']", "File name too long"),
    ],
)
def test_what_is_wrong_with_a_study_file_is_reported(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(BadFile, match=expected):
        read_study(path)


@pytest.mark.parametrize(
    ("words", "rules", "sizes"),
    [
        (["YOCO"], ("yoco",), ("1", "30 %")),
        (["lbpe-easy-balanced", "0.3"], ("yoco",), ("30 %",)),
        (["30%", "random"], ("random",), ("30 %",)),
        ([], ("yoco", "random"), ("1", "30 %")),
    ],
)
def test_a_study_is_kept_to_what_is_named_however_it_is_written(
    words: list[str], rules: tuple[str, ...], sizes: tuple[str, ...]
) -> None:
    only = Study("mine", "mine", rules=("lbpe-balanced", "random"), sizes=("1", "30%")).only(words)
    assert (only.rules, only.sizes) == (rules, sizes)


def test_a_study_of_another_version_is_refused_in_a_sentence() -> None:
    with pytest.raises(BadFile, match="another version"):
        Study.of_spec({"name": "mine", "summary": "mine", "colour": "red"})


def test_the_spec_has_every_field_of_a_study() -> None:
    """A new field needs a name in stores, which then never changes."""
    stored = {RENAMED.get(name, name) for name in SPEC_FIELDS} | set(LATER_FIELDS)
    assert stored == {field.name for field in fields(Study)}


@pytest.mark.parametrize("name", STUDIES.names())
def test_shipped_studies_come_back_from_their_fields(name: str) -> None:
    study = STUDIES.get(name)
    assert Study.of_spec(json.loads(json.dumps(study.spec))) == study
    assert Rule.parse(study.reference).name == study.reference
