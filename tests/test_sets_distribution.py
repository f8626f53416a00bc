"""The second distribution, `condense-once-sets`: its entry points, and the files behind them."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import condense_once
from condense_once import registry
from condense_once.condensed.bundled import SETS, BundledSet
from condense_once.condensed.verify import verify

SETS_ROOT = Path(__file__).resolve().parents[1] / "sets"
POINTS: dict[str, str] = tomllib.loads((SETS_ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
    "condense_once.sets"
]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(SETS_ROOT / "src"))
    yield
    sys.modules.pop("condense_once_sets", None)


def entry(place: str) -> BundledSet:
    module, _, name = place.partition(":")
    found = getattr(import_module(module), name)
    assert isinstance(found, BundledSet)
    return found


@pytest.mark.parametrize("name", POINTS)
def test_every_entry_point_is_a_valid_set_of_its_name_that_is_ranked(name: str) -> None:
    found = entry(POINTS[name])
    assert found.name == name
    data = condense_once.load(found.path)
    assert data.name == name
    assert data.ranking is not None
    assert [finding.text for finding in verify(found.path) if finding.level == "error"] == []


def test_every_file_has_an_entry_point() -> None:
    files = {path.stem for path in (SETS_ROOT / "src" / "condense_once_sets").glob("*.safetensors")}
    assert files == set(POINTS)


def test_installed_sets_go_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, place, "condense_once.sets") for name, place in POINTS.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "condense_once.sets" else [])
    monkeypatch.setattr(SETS, "_plugins_loaded", False)
    monkeypatch.setattr(SETS, "_entries", dict(SETS._entries))
    assert set(POINTS) <= set(SETS.names())
    assert len(condense_once.resize(next(iter(POINTS)), ipc=1)) == 40
