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
from condense_once.condensed.importers import ImportOptions, import_set
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.errors import BadOption, UnknownName


def plain(data: CondensedSet) -> CondensedSet:
    """The same cells as images of their own: factor 1, nothing to enlarge."""
    return replace(data, factor=1, size=(4, 4))


def test_a_folder_of_pngs_holds_the_patches_by_class(pixel_set: CondensedSet, tmp_path: Path) -> None:
    data = plain(pixel_set)
    export_set(data, tmp_path / "out")
    again = import_set([tmp_path / "out"], ImportOptions(factor=1, mean=data.space.mean, std=data.space.std))
    assert again.classes == data.classes
    np.testing.assert_array_equal(again.cells, data.cells)


def test_class_names_cannot_leave_the_folder(pixel_set: CondensedSet, tmp_path: Path) -> None:
    export_set(replace(pixel_set, classes=("../../up", "/etc", "a b")), tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["000-______up", "001-_etc", "002-a b"]


@pytest.mark.parametrize("which", ["pixel_set", "soft_set"])
def test_npz_says_all_that_is_needed_to_come_back(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    data: CondensedSet = request.getfixturevalue(which)
    export_set(data, tmp_path / "a.npz")
    again = import_set([tmp_path / "a.npz"])
    np.testing.assert_allclose(again.patches(), data.patches(), atol=0.51 / 255)
    assert (again.classes, again.space) == (data.classes, data.space)
    np.testing.assert_array_equal(again.labels, data.labels)


def test_idc_files_come_back_bit_for_bit(pixel_set: CondensedSet, tmp_path: Path) -> None:
    notes = export_set(pixel_set, tmp_path / "data.pt")
    images, labels = torch.load(tmp_path / "data.pt", weights_only=True)
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    again = import_set(
        [tmp_path / "data.pt"], ImportOptions(factor=2, mean=pixel_set.space.mean, std=pixel_set.space.std)
    )
    np.testing.assert_array_equal(again.cells, pixel_set.cells)
    assert "factor 2" in notes[0]


def test_idc_files_hold_pixels_even_of_normalised_sets(soft_set: CondensedSet, tmp_path: Path) -> None:
    notes = " ".join(export_set(soft_set, tmp_path / "data.pt"))
    images, _ = torch.load(tmp_path / "data.pt", weights_only=True)
    expected = soft_set.space.to_pixels(soft_set.cells)[np.argsort(soft_set.labels, kind="stable")]
    np.testing.assert_allclose(images.numpy(), expected.clip(0, 1), atol=1e-5)
    assert "clipped" in notes
    assert "soft labels" in notes


def test_parquet_holds_images_and_named_labels_as_hugging_face_reads_them(
    pixel_set: CondensedSet, tmp_path: Path
) -> None:
    export_set(plain(pixel_set), tmp_path / "a.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    features = json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["label"]["names"] == list(pixel_set.classes)
    assert table["label"].to_pylist() == pixel_set.labels.tolist()
    picture = np.asarray(Image.open(io.BytesIO(table["image"][5].as_py()["bytes"])))
    np.testing.assert_array_equal(picture.transpose(2, 0, 1), pixel_set.cells[5])


def test_what_pixels_cannot_show_is_said(soft_set: CondensedSet, tmp_path: Path) -> None:
    assert "clipped" in export_set(soft_set, tmp_path / "out")[0]


def test_whitened_sets_have_no_pictures(soft_set: CondensedSet, tmp_path: Path) -> None:
    zca = {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"}
    whitened = replace(soft_set, space=Space("zca", (0.3,), (0.4,), zca))
    for name in ("folder", "parquet", "idc"):
        with pytest.raises(BadOption, match="whitened"):
            export_set(whitened, tmp_path / "out", name)
    export_set(whitened, tmp_path / "a.npz")
    assert import_set([tmp_path / "a.npz"]).space == whitened.space


def test_a_ranked_set_keeps_order_scores_and_origin_through_npz(pixel_set: CondensedSet, tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(len(pixel_set))
    scores = {"lbpe": np.arange(len(order), dtype=np.float32)}
    ranked = replace(plain(pixel_set).take(order), scores=scores, ranking=Ranking("lbpe", "hard", False, {"epochs": 3}))
    (note,) = export_set(ranked, tmp_path / "a.npz")
    assert note.startswith("Provenance is left out")
    again = import_set([tmp_path / "a.npz"])
    np.testing.assert_array_equal(again.cells, ranked.cells)
    np.testing.assert_array_equal(again.origin, ranked.origin)
    np.testing.assert_array_equal(again.scores["lbpe"], scores["lbpe"])
    assert again.ranking == ranked.ranking
    for name in ("folder", "a.parquet", "a.pt"):
        assert "scores, ranking" in " ".join(export_set(ranked, tmp_path / name))


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 8), (1, 8, 1)])
def test_odd_shapes_are_written_as_they_are(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    channels = shape[0]
    space = Space("pixels", (0.5,) * channels, (0.2,) * channels)
    images = np.arange(2 * np.prod(shape), dtype=np.uint8).reshape(2, *shape)
    data = CondensedSet.from_mosaics(images, np.array([0, 1]), factor=1, space=space, classes=("a", "b"))
    export_set(data, tmp_path / "out")
    with Image.open(tmp_path / "out" / "001-b" / "000001.png") as picture:
        assert picture.size == (shape[2], shape[1])
        assert len(picture.getbands()) == channels


def test_folders_of_many_classes_sort_like_the_labels(tmp_path: Path) -> None:
    labels = np.arange(1005)
    images = labels.astype(np.uint8).reshape(-1, 1, 1, 1)
    space = Space("pixels", (0.5,), (0.2,))
    classes = tuple(f"c{label}" for label in labels)
    export_set(CondensedSet.from_mosaics(images, labels, factor=1, space=space, classes=classes), tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir())[1000] == "1000-c1000"


def test_folders_are_never_replaced(pixel_set: CondensedSet, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(BadOption, match="existing folder"):
        export_set(pixel_set, tmp_path / "out", force=True)


def test_a_wrong_name_answers_with_the_nearest(pixel_set: CondensedSet, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'parquet'"):
        export_set(pixel_set, tmp_path / "x", "parket")
    with pytest.raises(BadOption, match="is not a known format; pass `format_name`"):
        export_set(pixel_set, tmp_path / "x.docx")
