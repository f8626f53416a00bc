from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from condense_once import registry
from condense_once.errors import BadOption, UnknownName
from condense_once.registry import Registry


@dataclass(frozen=True)
class Thing:
    name: str
    summary: str = "a thing"


FROM_ELSEWHERE = Thing("plugin")


@pytest.fixture
def things() -> Registry[Thing]:
    made: Registry[Thing] = Registry("things")
    for name in ("cifar10", "cifar100", "mnist"):
        made.add(Thing(name))
    return made


def test_entries_keep_their_order_and_match_patterns(things: Registry[Thing]) -> None:
    assert things.names() == ["cifar10", "cifar100", "mnist"]
    assert things.names("cifar*") == ["cifar10", "cifar100"]


@pytest.mark.parametrize(
    ("typed", "advice"), [("cifar1O", "'cifar10'"), ("MNIST", "'mnist'"), ("xyz", "choose one of: cifar10")]
)
def test_unknown_names_answer_with_the_nearest(things: Registry[Thing], typed: str, advice: str) -> None:
    with pytest.raises(UnknownName, match=advice):
        things.get(typed)


def test_a_name_is_given_once(things: Registry[Thing]) -> None:
    with pytest.raises(BadOption, match="two things called 'mnist'"):
        things.add(Thing("mnist"))


def test_other_distributions_add_entries_by_entry_points(
    things: Registry[Thing], monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("plugin", f"{__name__}:FROM_ELSEWHERE", "condense_once.things")
    monkeypatch.setattr(EntryPoint, "load", lambda self: FROM_ELSEWHERE)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == "condense_once.things" else [])
    assert things.get("plugin") is FROM_ELSEWHERE
    assert "plugin" in things
