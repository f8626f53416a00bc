from __future__ import annotations

from pathlib import Path

from examples.photos.shapes import CORNERS, write_folder

import condense_once


def test_the_folder_opens_as_a_source_with_both_splits(tmp_path: Path) -> None:
    source = condense_once.open_source(write_folder(tmp_path / "photos", train=4, test=2), size=32)
    assert sorted(source.classes) == sorted(CORNERS)
    assert (len(source.train.labels), len(source.test.labels)) == (12, 6)


def test_the_same_seed_draws_the_same_pictures(tmp_path: Path) -> None:
    one, same, other = (
        write_folder(tmp_path / name, train=1, test=0, seed=len(name) > 4) for name in ("one", "same", "other")
    )
    for shape in CORNERS:
        picture = Path("train") / shape / "000.png"
        assert (one / picture).read_bytes() == (same / picture).read_bytes() != (other / picture).read_bytes()
