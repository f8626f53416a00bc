"""One small registry class for everything that has a name: sources, formats, metrics, networks and so on.

An entry is a frozen dataclass with at least a `name` and a one-line `summary`. Other distributions add entries through
entry points in the group `condense_once.<kind>`; each must load to one entry. One that fails to load is skipped, and
asking for it by name reports the reason.

Entries are data, cheap to import and to list. What builds something from heavy libraries is `Lazy`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from condense_once.errors import BadOption, UnknownName

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
from condense_once.text import comma_list

MAX_CHOICES = 40  # names in a message; a source may have a thousand classes


class Entry(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...


E = TypeVar("E", bound=Entry)


@dataclass(frozen=True)
class Lazy:
    """A function or class of an entry by its place, `module:name`, imported when it is called; `settings` go to every call.

    >>> Lazy("os.path:join")("a", "b")
    'a/b'
    """

    place: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)(*args, **self.settings, **kwargs)


class Registry(Generic[E]):
    """Entries of one kind by name, in the order of registration.

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
        self._broken: dict[str, str] = {}  # entry point → why it failed to load
        self._plugins_loaded = False

    def add(self, entry: E) -> E:
        if entry.name in self._entries:
            raise BadOption(f"There are two {self.kind} called {entry.name!r}; rename one of them.")
        self._entries[entry.name] = entry
        return entry

    @contextmanager
    def registered(self, entry: E) -> Iterator[E]:
        """Register an entry for the duration of a block, replacing any other of its name."""
        before = dict(self._entries)
        self._entries[entry.name] = entry
        try:
            yield entry
        finally:
            self._entries = before

    def get(self, name: str) -> E:
        if not isinstance(name, str):
            raise UnknownName(
                f"The {self.kind} go by names, such as {next(iter(self)).name!r}, not {type(name).__name__}."
            )
        if name not in self._entries:
            self._load_plugins()
        if name in self._entries:
            return self._entries[name]
        if name in self._broken:
            raise BadOption(self._broken[name])
        raise UnknownName(f"There is no {name!r} among the {self.kind}; {nearest(name, self._entries)}")

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
            try:
                entry = point.load()
                if not isinstance(entry.name, str) or not isinstance(entry.summary, str):
                    raise TypeError(f"it loads to a {type(entry).__name__} without a name and a summary")
                self.add(entry)
            except Exception as error:  # third-party code can raise anything; the other entries must still work
                self._broken[point.name] = _complaint(point, error)


def entry_points(group: str) -> Iterable[EntryPoint]:
    """The entry points of other distributions; looking for them needs modules that a device never loads."""
    from importlib import metadata

    return metadata.entry_points(group=group)


def _complaint(point: EntryPoint, error: Exception) -> str:
    owner = point.dist.name if point.dist else "an unnamed distribution"
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{point.name!r} cannot be loaded from {point.value} of {owner} ({reason}); fix or uninstall it."


def canonical(name: str, known: Iterable[str]) -> str | None:
    """The known name that is meant: case, hyphens, underscores, spaces and -ize for -ise make no difference.

    >>> canonical("CIFAR-10", ["cifar10", "cifar100"]), canonical("normalized", ["pixels", "normalised"])
    ('cifar10', 'normalised')
    >>> canonical("cifar", ["cifar10", "cifar100"])
    """
    names = list(known)
    return name if name in names else next((one for one in names if _folded(one) == _folded(name)), None)


def nearest(name: str, known: Iterable[str]) -> str:
    """Advice for an unknown name: the closest valid ones, or all of them."""
    names = list(known)
    typed = name.lower()
    # A typing error changes a few letters or leaves the end out: organamnist and pathmnist are not mnist.
    plausible = [one for one in names if abs(len(one) - len(typed)) <= 3 or one.startswith(typed)]
    near = get_close_matches(typed, plausible, n=3, cutoff=0.65)
    if near:
        return f"did you mean {' or '.join(repr(n) for n in near)}?"
    return f"choose one of: {comma_list(names[:MAX_CHOICES])}{' …' if len(names) > MAX_CHOICES else ''}."


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold()).replace("iz", "is")
