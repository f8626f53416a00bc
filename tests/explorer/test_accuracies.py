from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.explorer.conftest import ranked_set

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.explorer.accuracies import Point, measured_accuracies
from condense_once.explorer.same_patches import SamePatches, studied_sets
from condense_once.studies.grid import set_key
from condense_once.studies.store import Store, StoredSelection


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store.sqlite")
    yield made
    made.close()


def add(store: Store, data: CondensedSet, rule: str, patches: int, repeat: int, accuracy: float, **facts: Any) -> None:
    """A cell of a study that is done."""
    scores = {"seed": 0, "net": "convnet-d3", "patches": len(data), **facts.pop("scores", {})}
    all_facts = {"set": set_key(data), "rule": rule, "patches": patches, "scores": scores, "repeat": repeat}
    all_facts |= {"net": "convnet-d3", "protocol": "quick-1", "test": "t", **facts}
    key = f"{rule} {patches} {repeat} {sorted(facts.items())} {sorted(scores.items())} {set_key(data)}"
    store.add_selection(key, all_facts, StoredSelection(np.arange(patches), f"e {key}", None))
    result = {"accuracy": accuracy, "test": "digits", "test_images": 100}
    store.add_evaluation(f"e {key}", {}, result, work=1.0, seconds=1.0)


def found(data: CondensedSet, store: Store) -> dict[str, dict[str, tuple[Point, ...]]]:
    ways = measured_accuracies(SamePatches.of(data), store)
    return {way.label: {line.label: line.points for line in way.lines} for way in ways}


def test_accuracies_are_means_over_repeats_by_ascending_size(store: Store) -> None:
    data = ranked_set()
    for repeat, accuracy in enumerate((0.5, 0.6)):
        add(store, data, "yoco", 9, repeat, accuracy)
        add(store, data, "yoco", 3, repeat, accuracy - 0.2)
    add(store, data, "random", 3, 0, 0.1)
    ((label, lines),) = found(data, store).items()
    assert label == "convnet-d3, protocol quick-1, 100 test images of digits"
    assert lines == {
        "yoco": (Point(3, 35.0, 7.071, 2), Point(9, 55.0, 7.071, 2)),
        "random": (Point(3, 10.0, 0.0, 1),),
    }


def test_only_what_was_measured_in_the_same_way_shares_a_chart(store: Store) -> None:
    data = ranked_set()
    add(store, data, "yoco", 3, 0, 0.5)
    add(store, data, "yoco", 3, 0, 0.7, net="resnet10")
    assert [*found(data, store)] == [
        "convnet-d3, protocol quick-1, 100 test images of digits",
        "resnet10, protocol quick-1, 100 test images of digits",
    ]


def test_scores_made_in_two_ways_make_two_lines_that_say_how_they_differ(store: Store) -> None:
    data = ranked_set()
    add(store, data, "yoco", 3, 0, 0.5, scores={"lbpe": "0-9"})
    add(store, data, "yoco", 3, 0, 0.7, scores={"lbpe": "top10/100"})
    add(store, data, "yoco", 3, 1, 0.9, scores={"lbpe": "top10/100", "seed": 1})  # the same but for the seed
    (lines,) = found(data, store).values()
    assert {label: points[0].runs for label, points in lines.items()} == {
        "yoco (lbpe 0-9)": 1,
        "yoco (lbpe top10/100)": 2,
    }


def test_a_study_of_the_set_before_it_was_ranked_counts(store: Store) -> None:
    data = ranked_set()
    add(store, data.take(np.argsort(data.origin)), "yoco", 3, 0, 0.5)
    add(store, ranked_set(seed=1), "yoco", 3, 0, 0.9)  # another set does not
    (lines,) = found(data, store).values()
    assert lines == {"yoco": (Point(3, 50.0, 0.0, 1),)}


def test_a_study_of_another_ranking_of_the_set_counts(store: Store, tmp_path: Path) -> None:
    data, other = ranked_set(), ranked_set(prefer="hard", balanced=False)
    condense_once.save(other, tmp_path / "other.safetensors")
    sets = [str(tmp_path / name) for name in ("other.safetensors", "gone.safetensors")] + ["cifar10-idc-ipc10"]
    store.add_study("key", {"study": {"sets": sets}, "home": None})
    add(store, other, "yoco", 3, 0, 0.5)
    same = SamePatches.of(data, studied_sets(store))
    assert [line.rule for way in measured_accuracies(same, store) for line in way.lines] == ["yoco"]
