"""Nested and slimmed sets: what they say of themselves, what is checked of them, and reading their prefixes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condense_once.condensed.contact_sheet import contact_sheet
from condense_once.condensed.file import from_bytes, save, to_bytes
from condense_once.condensed.making import describe_ranking, describe_slimming
from condense_once.condensed.set import NESTED, CondensedSet, Ranking
from condense_once.condensed.subset import resize
from condense_once.condensed.verify import verify
from condense_once.condensing.nested import ranked_by_image
from condense_once.device import open_set
from condense_once.errors import BadOption
from condense_once.selection.rank import rank
from condense_once.selection.select import select

SLIMMED = {
    "method": "tgdd",
    "source": "whole, train split",
    "slimmed": {"from": "whole", "patches": 400, "rule": "lbpe, easy first"},
    "config": {"images": "400 6b7e133e 773c1497"},
}


@pytest.fixture
def nested(pixel_set: CondensedSet) -> CondensedSet:
    """Two images of four patches in each of three classes."""
    return ranked_by_image(pixel_set, 2, [1, 2])


def errors(data: CondensedSet) -> list[str]:
    return [finding.text for finding in verify(data) if finding.level == "error"]


def test_a_nested_set_is_known_by_its_ranking(nested: CondensedSet, pixel_set: CondensedSet) -> None:
    assert nested.ranking is not None
    assert nested.ranking.is_nested
    assert nested.ranking.metric == NESTED
    assert nested.is_nested
    assert not pixel_set.is_nested
    assert not replace(pixel_set, ranking=Ranking("lbpe")).is_nested
    assert repr(nested) == "<CondensedSet tiny: 24 patches 3×8×8, factor 2, 3 classes, nested>"
    assert describe_ranking(nested.ranking).endswith("condensed for 1 and 2 images per class")


def test_ranking_a_nested_set_is_refused_unless_it_is_wanted(nested: CondensedSet) -> None:
    with pytest.raises(BadOption, match=r"tiny is nested: .* needs no ranking; resize it as it is, or pass `anew`"):
        rank(nested, "random")
    again = rank(nested, "random", anew=True)
    assert again.ranking is not None
    assert again.ranking.metric == "random"
    assert errors(again) == []


def test_the_stored_order_can_be_selected_by(nested: CondensedSet) -> None:
    kept = select(nested, "stored", ipc=1)
    assert np.array_equal(np.sort(kept.origin), np.sort(resize(nested, ipc=1).origin))
    assert not kept.scores


@pytest.mark.parametrize("ipc", [1, 2])
def test_a_device_reads_only_the_prefix_of_a_nested_set(nested: CondensedSet, tmp_path: Path, ipc: int) -> None:
    save(nested, tmp_path / "nested.safetensors")
    opened = open_set(tmp_path / "nested.safetensors")
    taken = opened.take(ipc=ipc)
    expected = resize(nested, ipc=ipc)
    assert np.array_equal(taken.patches, expected.patches())
    assert np.array_equal(taken.labels, expected.labels)
    assert taken.notes == ()
    assert describe_ranking(opened.header.ranking).startswith("nested")


def test_prefixes_and_classes_of_a_nested_set_are_valid(nested: CondensedSet) -> None:
    assert errors(nested) == []
    assert errors(resize(nested, ipc=1)) == []
    assert errors(resize(nested, classes=["bee", "cat"], ipc=1, renumber=True)) == []


def swapped(data: CondensedSet) -> CondensedSet:
    """The first two patches of each class in turn."""
    return replace(data.take(np.r_[3:6, 0:3, 6:24]), ranking=data.ranking)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (swapped, "not in the order of its images"),
        (
            lambda s: replace(s, ranking=Ranking(NESTED, settings={"sizes": [1]})),
            "up to 1 image per class, but has more",
        ),
        (lambda s: replace(s, ranking=Ranking(NESTED)), "does not record for how many"),
        (lambda s: replace(s, ranking=Ranking(NESTED, settings={"sizes": ["x"]})), "does not record for how many"),
        (lambda s: replace(s, provenance={"slimmed": {"patches": 7}}), "slimmed from 7 patches, but has 24"),
        (lambda s: replace(s, provenance={"slimmed": "yes"}), "does not record from how many"),
    ],
)
def test_what_a_set_cannot_be_is_found(nested: CondensedSet, change: Any, text: str) -> None:
    (found,) = errors(change(nested))
    assert text in found


def test_a_slimmed_set_says_what_it_was_made_from(nested: CondensedSet) -> None:
    made = replace(nested, provenance=SLIMMED)
    assert describe_slimming(made.provenance) == (
        "from whole (400 patches, lbpe, easy first; digest 400 6b7e133e 773c1497) by tgdd, without real images"
    )
    assert errors(made) == []
    _, notes = contact_sheet(made)
    assert notes[-2].startswith("The set was slimmed from whole (400 patches")
    assert notes[-1].startswith("The set is nested")
    assert describe_slimming(nested.provenance) is None


@pytest.mark.parametrize("slimmed", [{}, {"from": "\x1b" * 500, "patches": "many", "rule": [1]}, {"sha256": "ab"}])
def test_headers_of_strangers_are_described_too(slimmed: dict[str, Any]) -> None:
    text = describe_slimming({"slimmed": slimmed, "config": 3})
    assert text is not None
    assert text.isprintable()
    assert len(text) < 300
    assert "sha256" not in slimmed or "digest ab" in text


def test_a_set_as_bytes_is_the_file_that_saving_writes(nested: CondensedSet, tmp_path: Path) -> None:
    save(nested, tmp_path / "a.safetensors")
    assert to_bytes(nested) == (tmp_path / "a.safetensors").read_bytes()
    again = from_bytes(to_bytes(nested), "in memory")
    assert np.array_equal(again.cells, nested.cells)
    assert again.ranking == nested.ranking
