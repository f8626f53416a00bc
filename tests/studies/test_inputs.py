"""What cannot be measured is refused before anything is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from condense_once.condensed.file import save
from condense_once.condensed.space import Space
from condense_once.data import decoded_cache
from condense_once.data.arrays import save_arrays
from condense_once.errors import CondenseOnceError
from condense_once.studies.grid import StudyInput
from condense_once.studies.inputs import open_inputs
from condense_once.studies.study import Study


@pytest.fixture
def files(study: Study, inputs: dict[str, StudyInput], tmp_path: Path) -> Study:
    """The study of a set and test images in files."""
    pair = inputs["tiny"]
    save(pair.data, tmp_path / "tiny.safetensors")
    save_arrays(pair.test, tmp_path / "test.npz")
    return study.replace(sets=(str(tmp_path / "tiny.safetensors"),), test=str(tmp_path / "test.npz"))


def test_a_set_comes_with_its_test_images_and_nothing_else(files: Study, inputs: dict[str, StudyInput]) -> None:
    opened, notes = open_inputs(files)
    (pair,) = opened.values()
    assert pair.set_key == inputs["tiny"].set_key
    assert list(pair.test.splits) == ["test"]
    assert notes == []


def test_a_sample_that_was_not_asked_for_is_noted(tmp_path: Path) -> None:
    _, notes = open_inputs(Study("mine", "mine", sets=("cifar10-real-ipc10",)), tmp_path)
    assert notes == [
        "The test images are the bundled cifar10-sample; download cifar10 to test on its whole test split."
    ]


def test_decoding_of_many_test_images_is_told_once(
    files: Study, inputs: dict[str, StudyInput], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded_cache, "MANY", 2)
    pair = inputs["tiny"]
    for number, label in enumerate(pair.test.test.labels):
        folder = tmp_path / "photos" / "test" / pair.test.classes[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB" if pair.data.channels == 3 else "L", (9, 9)).save(folder / f"{number}.png")
    told: list[str] = []
    open_inputs(files.replace(test=str(tmp_path / "photos")), notify=told.append)
    assert told == [f"Decoding {len(pair.test.test.labels)} images, once."]


def test_that_rules_cannot_differ_is_noted(files: Study) -> None:
    _, notes = open_inputs(files.replace(sizes=("4",)))
    assert notes == ["All patches are kept, so all rules are the same; choose a smaller size, such as 50%."]
    assert open_inputs(files.replace(sizes=("1", "4")))[1] == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"test": "cifar10-sample"}, "test images of 3×32×32"),
        ({"nets": ("nope",)}, "nope"),
        ({"scored_by": "nope"}, "nope"),
        ({"sizes": ("9",)}, "fewer than 27"),
        ({"sizes": ("4", "9"), "fitting": True}, "Every size of small keeps all of .*tiny.safetensors"),
        ({"scoring_epochs": 5000}, "at most 1000 epochs, not 5000"),
        ({"rules": ("el2n", "yoco")}, "needs 10 epochs, but the scoring run has 3"),
    ],
)
def test_what_would_make_every_cell_fail_is_refused(files: Study, changes: dict[str, object], expected: str) -> None:
    with pytest.raises(CondenseOnceError, match=expected):
        open_inputs(files.replace(**changes))


def test_test_images_of_other_classes_are_refused(files: Study, inputs: dict[str, StudyInput], tmp_path: Path) -> None:
    other = replace(inputs["tiny"].test, classes=("dark", "grey", "white"))
    save_arrays(other, tmp_path / "other.npz")
    with pytest.raises(CondenseOnceError, match="no class 'light'"):
        open_inputs(files.replace(test=str(tmp_path / "other.npz")))


def test_a_whitened_set_needs_its_source_unless_the_protocol_leaves_whitening_out(
    files: Study, inputs: dict[str, StudyInput], tmp_path: Path
) -> None:
    recipe = {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"}
    data = inputs["tiny"].data
    white = replace(
        data, cells=data.inputs().astype(np.float32), space=Space("zca", data.space.mean, data.space.std, recipe)
    )
    save(white, tmp_path / "white.safetensors")
    whitened = files.replace(sets=(str(tmp_path / "white.safetensors"),))
    with pytest.raises(CondenseOnceError, match="cifar10 is not on this machine; download it"):
        open_inputs(whitened, tmp_path)
    open_inputs(whitened.replace(protocol="quick-twice"), tmp_path)
