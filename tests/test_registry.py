from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

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
    ("typed", "advice"),
    [
        ("cifar1O", "'cifar10'"),
        ("MNIST", "'mnist'"),
        ("xyz", "choose one of: cifar10"),
        ("organamnist", "choose one of: cifar10"),
        ("pathmnist", "choose one of: cifar10"),
    ],
)
def test_unknown_names_answer_with_the_nearest(things: Registry[Thing], typed: str, advice: str) -> None:
    with pytest.raises(UnknownName, match=advice):
        things.get(typed)


def test_a_name_is_given_once(things: Registry[Thing]) -> None:
    with pytest.raises(BadOption, match="two things called 'mnist'"):
        things.add(Thing("mnist"))


def test_an_entry_can_be_registered_for_a_block(things: Registry[Thing]) -> None:
    with things.registered(Thing("svhn")) as entry:
        assert things.get("svhn") is entry
        assert things.names() == ["cifar10", "cifar100", "mnist", "svhn"]
    assert things.names() == ["cifar10", "cifar100", "mnist"]


def test_a_registered_entry_replaces_another_until_the_block_ends(things: Registry[Thing]) -> None:
    before = things.get("mnist")
    with things.registered(Thing("mnist", "another")) as entry:
        assert things.get("mnist") is entry
    assert things.get("mnist") is before
    with pytest.raises(RuntimeError), things.registered(Thing("mnist", "another")):
        raise RuntimeError
    assert things.get("mnist") is before


def test_other_distributions_add_entries_by_entry_points(
    things: Registry[Thing], monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("plugin", f"{__name__}:FROM_ELSEWHERE", "condense_once.things")
    monkeypatch.setattr(EntryPoint, "load", lambda self: FROM_ELSEWHERE)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == "condense_once.things" else [])
    assert things.get("plugin") is FROM_ELSEWHERE
    assert "plugin" in things


def broken_by(problem: str) -> object:
    """What loading an entry point may come to."""
    match problem:
        case "not installed":
            raise ModuleNotFoundError("No module named 'absent'")
        case "raises anything":
            raise ZeroDivisionError("1 /\n 0")
        case "no entry":
            return object()
        case "nameless":
            return Thing(name=None)  # type: ignore[arg-type]
        case _:
            return Thing("mnist")


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("not installed", "No module named 'absent'"),
        ("raises anything", "ZeroDivisionError: 1 / 0"),
        ("no entry", "no attribute 'name'"),
        ("nameless", "a Thing without a name and a summary"),
        ("taken", "two things called 'mnist'"),
    ],
)
def test_a_broken_plugin_is_named_when_asked_for_and_takes_nothing_else_down(
    things: Registry[Thing], monkeypatch: pytest.MonkeyPatch, problem: str, reason: str
) -> None:
    points = [EntryPoint(name, "elsewhere:thing", "condense_once.things") for name in ("broken", "plugin")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    monkeypatch.setattr(
        EntryPoint, "load", lambda self: FROM_ELSEWHERE if self.name == "plugin" else broken_by(problem)
    )
    for _ in range(2):
        assert things.names() == ["cifar10", "cifar100", "mnist", "plugin"]
        assert things.get("mnist").summary == "a thing"
        assert things.get("plugin") is FROM_ELSEWHERE
        assert "broken" not in things
        with pytest.raises(BadOption, match="'broken' cannot be loaded from elsewhere:thing of ") as caught:
            things.get("broken")
        assert reason in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(UnknownName):
        things.get("neither")


def test_a_broken_plugin_is_said_to_be_of_its_distribution(
    things: Registry[Thing], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    metadata = tmp_path / "acme_things-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: acme-things\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[condense_once.things]\nacme = no_such_module_of_acme:thing\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadOption, match=r"from no_such_module_of_acme:thing of acme-things \(ModuleNotFoundError"):
        things.get("acme")
