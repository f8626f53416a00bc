"""One tiny registry for everything that has a name: sources, formats, bundled sets, and whatever comes after.

An entry is a frozen dataclass with at least a `name` and a one-line `summary`. Other distributions add entries without
touching this package, through entry points in the group `condense_once.<kind>`; each must load to one entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib.metadata import entry_points
from typing import Generic, Protocol, TypeVar

from condense_once.errors import BadOption, UnknownName


class Entry(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...


E = TypeVar("E", bound=Entry)


class Registry(Generic[E]):
    """Entries of one kind, by name, in the order they were added.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Fruit:
    ...     name: str
    ...     summary: str
    >>> fruits = Registry[Fruit]("fruits")
    >>> _ = fruits.add(Fruit("apple", "round")), fruits.add(Fruit("banana", "bent"))
    >>> fruits.names("b*")
    ['banana']
    >>> fruits.get("bananna")
    Traceback (most recent call last):
    condense_once.errors.UnknownName: There is no 'bananna' among the fruits; did you mean 'banana'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, E] = {}
        self._plugins_loaded = False

    def add(self, entry: E) -> E:
        if entry.name in self._entries:
            raise BadOption(f"There are two {self.kind} called {entry.name!r}; rename one of them.")
        self._entries[entry.name] = entry
        return entry

    def get(self, name: str) -> E:
        if name not in self._entries:
            self._load_plugins()
        if name not in self._entries:
            raise UnknownName(f"There is no {name!r} among the {self.kind}; {nearest(name, self._entries)}")
        return self._entries[name]

    def names(self, pattern: str = "*") -> list[str]:
        return [entry.name for entry in self if fnmatchcase(entry.name, pattern)]

    def __contains__(self, name: object) -> bool:
        return any(entry.name == name for entry in self)

    def __iter__(self) -> Iterator[E]:
        self._load_plugins()
        return iter(list(self._entries.values()))

    def _load_plugins(self) -> None:
        if self._plugins_loaded:
            return
        self._plugins_loaded = True
        for point in entry_points(group=f"condense_once.{self.kind}"):
            self.add(point.load())


def nearest(name: str, known: Iterable[str]) -> str:
    """Advice for somebody who mistyped a name: the nearest right ones, or all of them."""
    names = list(known)
    near = get_close_matches(name.lower(), names, n=3)
    if near:
        return f"did you mean {' or '.join(repr(n) for n in near)}?"
    return f"choose one of: {', '.join(names)}."
