from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.condensed.verify import verify


def findings(data: CondensedSet, folder: Path) -> list[tuple[str, str]]:
    save(data, folder / "a.safetensors", force=True)
    return [(finding.level, finding.text) for finding in verify(folder / "a.safetensors")]


def test_a_sound_set_has_no_findings(pixel_set: CondensedSet, tmp_path: Path) -> None:
    assert findings(pixel_set, tmp_path) == []
    taking_turns = pixel_set.take(np.argsort(np.arange(24) % 8, kind="stable"))
    assert findings(replace(taking_turns, ranking=Ranking("lbpe")), tmp_path) == []
    falling = {"lbpe": -np.arange(24, dtype=np.float32)}
    assert findings(replace(taking_turns, ranking=Ranking("lbpe"), scores=falling), tmp_path) == []


@pytest.mark.parametrize("balanced", [True, False])
def test_a_ranking_that_its_scores_deny_is_found(pixel_set: CondensedSet, tmp_path: Path, balanced: bool) -> None:
    taking_turns = pixel_set.take(np.argsort(np.arange(24) % 8, kind="stable"))
    scores = np.arange(24, dtype=np.float32)
    scores[[0, 3]] = scores[[3, 0]]  # both of class 0
    swapped = replace(taking_turns, ranking=Ranking("lbpe", balanced=balanced), scores={"lbpe": scores})
    assert findings(swapped, tmp_path) == [
        ("error", "The ranking should follow lbpe, but its scores are not monotonic.")
    ]


@pytest.mark.parametrize(
    ("change", "level", "text"),
    [
        (lambda s: s.take(np.arange(23)), "error", "not balanced"),
        (lambda s: s.take(np.flatnonzero(s.labels != 1)), "error", "none of bee"),
        (lambda s: replace(s.take(np.arange(23)), ranking=Ranking("lbpe", balanced=False)), "warning", "not balanced"),
        (lambda s: replace(s, ranking=Ranking("lbpe", balanced=True)), "error", "do not alternate"),
        (lambda s: s.take(np.r_[0, 0:24]), "error", "more than once"),
        (
            lambda s: replace(s, cells=np.where(s.origin[:, None, None, None] == 3, 7, s.cells)),
            "error",
            "1 patch of a single colour",
        ),
        (lambda s: replace(s, cells=s.cells // 200), "error", "scaled down twice"),
        (
            lambda s: replace(s, cells=s.cells / np.float32(255), space=Space("normalised", s.space.mean, s.space.std)),
            "error",
            "not normalised",
        ),
    ],
)
def test_what_is_off_is_found(pixel_set: CondensedSet, tmp_path: Path, change: object, level: str, text: str) -> None:
    found = findings(change(pixel_set), tmp_path)  # type: ignore[operator]
    assert any(level == one and text in other for one, other in found), found


def test_labels_that_contradict_the_soft_labels_are_an_error(soft_set: CondensedSet, tmp_path: Path) -> None:
    assert ("error", "Labels are not the largest entries of the soft labels.") in findings(
        replace(soft_set, labels=(soft_set.labels + 1) % 3), tmp_path
    )


def test_damage_is_a_finding_not_an_exception(pixel_set: CondensedSet, tmp_path: Path) -> None:
    save(pixel_set, tmp_path / "a.safetensors")
    raw = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "a.safetensors").write_bytes(raw[:-3])
    (finding,) = verify(tmp_path / "a.safetensors")
    assert finding.level == "error"
    assert "truncated" in finding.text
