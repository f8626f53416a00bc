from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from condense_once.condensed.exporters import PARQUET_KEY, export_set
from condense_once.condensed.importers import ImportOptions, import_set
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.errors import BadFile, BadOption


def described(path: Path, text: str | None) -> Path:
    """Write a parquet file anew with this description of itself, or without one."""
    table = pyarrow.parquet.read_table(path)
    metadata = {key: value for key, value in table.schema.metadata.items() if key != PARQUET_KEY.encode()}
    if text is not None:
        metadata[PARQUET_KEY.encode()] = text.encode()
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_an_exported_set_is_imported_with_nothing_to_add(pixel_set: CondensedSet, tmp_path: Path) -> None:
    export_set(pixel_set, tmp_path / "a.parquet")
    made = import_set(tmp_path / "a.parquet")
    assert (made.classes, made.space, made.factor) == (pixel_set.classes, pixel_set.space, 1)
    order = np.argsort(pixel_set.labels, kind="stable")
    np.testing.assert_array_equal(made.labels, pixel_set.labels[order])
    np.testing.assert_allclose(made.patches(), pixel_set.patches()[order], atol=0.5 / 255 + 1e-6)


def test_grey_images_stay_grey(soft_set: CondensedSet, tmp_path: Path) -> None:
    pixels = replace(
        soft_set,
        cells=np.random.default_rng(0).integers(0, 256, soft_set.cells.shape, dtype=np.uint8),
        space=Space("pixels", (0.3,), (0.4,)),
        soft_labels=None,
    )
    export_set(pixels, tmp_path / "a.parquet")
    made = import_set(tmp_path / "a.parquet")
    assert made.shape == pixels.shape
    np.testing.assert_array_equal(made.cells, pixels.cells[np.argsort(pixels.labels, kind="stable")])


def test_a_file_of_another_project_needs_the_rest(pixel_set: CondensedSet, tmp_path: Path) -> None:
    export_set(pixel_set, tmp_path / "a.parquet")
    path = described(tmp_path / "a.parquet", None)
    with pytest.raises(BadOption, match=r"pass `factor` \(.*\), `dataset` \(or `mean` and `std`\)"):
        import_set(path)
    made = import_set(path, ImportOptions(factor=1, mean=(0.5,) * 3, std=(0.2,) * 3))
    assert made.classes == pixel_set.classes
    with pytest.raises(BadOption, match="has the class 'ant', which cifar10 does not have"):
        import_set(path, ImportOptions(factor=1, dataset="cifar10"))


@pytest.mark.parametrize("text", ["[", json.dumps({"mean": "grey"}), json.dumps({"mean": [1, "2", 3]})])
def test_an_invalid_description_is_refused(pixel_set: CondensedSet, tmp_path: Path, text: str) -> None:
    export_set(pixel_set, tmp_path / "a.parquet")
    with pytest.raises(BadFile, match=r"a\.parquet"):
        import_set(described(tmp_path / "a.parquet", text))
