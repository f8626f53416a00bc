from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from condense_once.condensed.exporters import export_set
from condense_once.condensed.importers import Facts, import_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.errors import BadOption, UnknownName


def plain(data: CondensedSet) -> CondensedSet:
    """The same cells as images of their own: factor 1, nothing to enlarge."""
    return replace(data, factor=1, size=(4, 4))


def test_a_folder_of_pngs_holds_the_patches_by_class(pixel_set: CondensedSet, tmp_path: Path) -> None:
    data = plain(pixel_set)
    export_set(data, "folder", tmp_path / "out")
    again = import_set([tmp_path / "out"], Facts(factor=1, mean=data.space.mean, std=data.space.std))
    assert again.classes == ("000-ant", "001-bee", "002-cat")
    np.testing.assert_array_equal(again.cells, data.cells)


def test_class_names_cannot_leave_the_folder(pixel_set: CondensedSet, tmp_path: Path) -> None:
    export_set(replace(pixel_set, classes=("../../up", "/etc", "a b")), "folder", tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["000-______up", "001-_etc", "002-a b"]


@pytest.mark.parametrize("which", ["pixel_set", "soft_set"])
def test_npz_says_all_that_is_needed_to_come_back(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    data: CondensedSet = request.getfixturevalue(which)
    export_set(data, "npz", tmp_path / "a.npz")
    again = import_set([tmp_path / "a.npz"])
    np.testing.assert_allclose(again.patches(), data.patches(), atol=0.51 / 255)
    assert (again.classes, again.space) == (data.classes, data.space)
    np.testing.assert_array_equal(again.labels, data.labels)


def test_idc_files_come_back_bit_for_bit(pixel_set: CondensedSet, tmp_path: Path) -> None:
    notes = export_set(pixel_set, "idc", tmp_path / "data.pt")
    images, labels = torch.load(tmp_path / "data.pt", weights_only=True)
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    again = import_set([tmp_path / "data.pt"], Facts(factor=2, mean=pixel_set.space.mean, std=pixel_set.space.std))
    np.testing.assert_array_equal(again.cells, pixel_set.cells)
    assert "factor 2" in notes[0]


def test_idc_files_hold_pixels_even_of_normalised_sets(soft_set: CondensedSet, tmp_path: Path) -> None:
    export_set(soft_set, "idc", tmp_path / "data.pt")
    images, _ = torch.load(tmp_path / "data.pt", weights_only=True)
    expected = soft_set.space.to_pixels(soft_set.cells)[np.argsort(soft_set.labels, kind="stable")]
    np.testing.assert_allclose(images.numpy(), expected, atol=1e-5)


def test_parquet_holds_images_and_named_labels_as_hugging_face_reads_them(
    pixel_set: CondensedSet, tmp_path: Path
) -> None:
    export_set(plain(pixel_set), "parquet", tmp_path / "a.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["label"]["names"] == list(pixel_set.classes)
    assert table["label"].to_pylist() == pixel_set.labels.tolist()
    picture = np.asarray(Image.open(io.BytesIO(table["image"][5].as_py()["bytes"])))
    np.testing.assert_array_equal(picture.transpose(2, 0, 1), pixel_set.cells[5])


def test_what_pixels_cannot_show_is_said(soft_set: CondensedSet, tmp_path: Path) -> None:
    assert "clipped" in export_set(soft_set, "folder", tmp_path / "out")[0]


def test_whitened_sets_have_no_pictures(soft_set: CondensedSet, tmp_path: Path) -> None:
    whitened = replace(soft_set, space=Space("zca", (0.3,), (0.4,), {"recipe": "kip"}))
    for name in ("folder", "parquet", "idc"):
        with pytest.raises(BadOption, match="whitened"):
            export_set(whitened, name, tmp_path / "out")
    export_set(whitened, "npz", tmp_path / "a.npz")
    assert import_set([tmp_path / "a.npz"]).space == whitened.space


def test_folders_are_never_replaced(pixel_set: CondensedSet, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(BadOption, match="existing folder"):
        export_set(pixel_set, "folder", tmp_path / "out", force=True)


def test_a_wrong_name_answers_with_the_nearest(pixel_set: CondensedSet, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'parquet'"):
        export_set(pixel_set, "parket", tmp_path / "x")
