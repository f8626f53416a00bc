"""A study: a grid of sets, rules, sizes and networks, and how its numbers become a table or a figure."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from condense_once.condensed.bundled import SETS
from condense_once.condensed.set import CondensedSet
from condense_once.data.known import SOURCES
from condense_once.errors import BadFile, BadOption, CondenseOnceError, UnknownName
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.files import existing_file
from condense_once.metrics import Epochs
from condense_once.registry import Registry, nearest
from condense_once.select.rule import Rule

# What a number of a study can be placed by. `method` is a rule without its balance, `balance` is the rest of it.
Axis = Literal["set", "rule", "method", "balance", "size", "net", "epochs"]
AXES: tuple[Axis, ...] = get_args(Axis)
SEVERAL = ("rules", "sizes", "sets", "nets", "epochs", "rows", "columns")  # the fields that are sequences of words
SHOWN = ("table", "needs", "balance", "distribution", "lines", "patches")  # and the drawings of others
PRECISIONS = ("auto", "float32", "bfloat16")
MOST_BYTES = 1 << 20  # of a study file


@dataclass(frozen=True)
class Size:
    """How much of a set is kept: so many images per class, or a share of its patches.

    >>> str(Size.parse("5")), str(Size.parse("30%")), Size.parse("0.3") == Size.parse("30%"), str(Size.parse("all"))
    ('5', '30 %', True, '100 %')
    """

    ipc: int | None = None
    fraction: float | None = None

    @classmethod
    def parse(cls, text: str | int | float) -> Size:
        written = str(text).strip()
        try:
            if written.isdecimal():
                size = cls(ipc=int(written))
            elif written.endswith("%") or written == "all":
                size = cls(fraction=1.0 if written == "all" else float(written.rstrip("% ")) / 100)
            else:
                share = float(written)
                size = cls(fraction=share if share < 1 else None)  # 1.0 could be one image as well as all of them
        except ValueError:
            size = cls()
        if (size.ipc or 0) >= 1 or 0 < (size.fraction or 0) <= 1:
            return size
        raise BadOption(
            f"A size is a number of images per class, such as 5, a share, such as 30% or 0.3, or all, not {written!r}."
        )

    def patches(self, data: CondensedSet) -> int:
        """How many of a set's patches that is."""
        if self.ipc is not None:
            count = self.ipc * data.factor**2 * len(data.classes)
        else:
            count = max(round((self.fraction or 1) * len(data)), 1)
        if count > len(data):
            raise BadOption(
                f"{data.name} has {len(data)} patches, so {count} ({self} images per class) cannot be kept; leave out"
                " sizes that are too large."
            )
        return count

    def __str__(self) -> str:
        return f"{self.ipc}" if self.fraction is None else f"{100 * self.fraction:g} %"


@dataclass(frozen=True)
class Study:
    """What to measure, and how it is shown.

    Of every place in the grid, `repeats` networks are trained. The k-th goes by the selection that the k-th scoring run brings
    about; `dynamics` runs are there, and taken in turns. The paper has 3 × 3: nine repeats, three runs.

    >>> study = Study("mine", "two rules", rules=("yoco", "random"), sizes=("1", "50%"))
    >>> study.replace(repeats=3).repeats
    3
    """

    name: str
    summary: str
    rules: tuple[str, ...] = ("yoco",)
    sizes: tuple[str, ...] = ()  # as `Size.parse` reads them; none: nothing is evaluated
    sets: tuple[str, ...] = ("cifar10-real-ipc10",)  # files, or names of bundled sets
    nets: tuple[str, ...] = ("",)  # that are evaluated; "": the usual one for such images
    epochs: tuple[str, ...] = ("",)  # which count for lbpe; "": the authors' choice for such a set
    scored_by: str = ""  # the network whose training is watched; "": the usual one
    training: int | None = None  # epochs of that training; by default what the metrics need
    protocol: str = "paper"
    test: str | None = None  # by default the source that a set is from
    repeats: int = 9
    dynamics: int = 3
    precision: str = "auto"  # that networks compute in: float32, bfloat16, or what the processor here is made for
    rows: tuple[Axis, ...] = ("set", "size")
    columns: tuple[Axis, ...] = ("rule",)
    ours: str = "yoco"  # the rule that others are held against
    shown: str = "table"  # or the name of a drawing
    exact: bool = False  # a table with two decimals, and the number of runs in each entry
    labels: tuple[tuple[str, str], ...] = ()  # what names in a table are called instead

    def __post_init__(self) -> None:
        """Bring what can be written in several ways into one, and refuse what cannot be shown."""
        PROTOCOLS.get(self.protocol)
        for name in SEVERAL:
            object.__setattr__(self, name, self._words(name))
        object.__setattr__(self, "labels", tuple((name, label) for name, label in self.labels))
        object.__setattr__(self, "ours", Rule.parse(self.ours).name)
        if unknown := [axis for axis in (*self.rows, *self.columns) if axis not in AXES]:
            raise BadOption(f"{unknown[0]!r} is nothing to place numbers by; {nearest(unknown[0], AXES)}")
        if twice := [axis for axis in self.rows if axis in self.columns]:
            raise BadOption(f"The study {self.name} has {twice[0]!r} in its rows and in its columns; leave it in one.")
        if self.sizes:
            self._check_places()
        if self.repeats < 1 or self.dynamics < 1:
            raise BadOption(
                f"A study needs at least one repeat and one scoring run, not {self.repeats} and {self.dynamics}."
            )
        if self.training is not None and self.training < 1:
            raise BadOption(f"A scoring run of the study {self.name} needs at least one epoch, not {self.training}.")
        if self.precision not in PRECISIONS:
            raise BadOption(f"The study {self.name} is computed in {', '.join(PRECISIONS)}, not in {self.precision!r}.")
        if self.shown not in SHOWN:
            self._check_drawing()

    def _words(self, name: str) -> tuple[str, ...]:
        """A field of several words, each written in the one way that it has."""
        said = getattr(self, name)
        if isinstance(said, str) or not isinstance(said, Sequence):
            raise BadOption(f"The {name} of the study {self.name} must be several, as in [{said!r}], not {said!r}.")
        write: Callable[[Any], str] = {
            "rules": lambda rule: Rule.parse(rule).name,
            "sizes": lambda size: str(Size.parse(size)),
            "epochs": lambda epochs: str(Epochs.parse(epochs)) if epochs else "",
        }.get(name, str)
        words = tuple(map(write, said))
        if len(set(words)) < len(words) or not (words or name == "sizes"):
            raise BadOption(f"The {name} of the study {self.name} must be some, and each once, not {words}.")
        return words

    def _check_drawing(self) -> None:
        from condense_once.studies.figures import DRAWINGS  # late: it has much to import

        if self.shown not in DRAWINGS:
            known = dict.fromkeys((*SHOWN, *DRAWINGS.names()))
            raise UnknownName(f"The study {self.name} cannot be shown as {self.shown!r}; {nearest(self.shown, known)}")

    def _check_places(self) -> None:
        """Numbers of several sets, sizes or the like must not meet in one place."""
        placed = {*self.rows, *self.columns}
        if {"method", "balance"} <= placed:
            placed.add("rule")
        for name, axis in (
            ("sets", "set"),
            ("rules", "rule"),
            ("sizes", "size"),
            ("nets", "net"),
            ("epochs", "epochs"),
        ):
            if len(getattr(self, name)) > 1 and axis not in placed:
                raise BadOption(
                    f"The study {self.name} has several {name} but does not say where they go; put {axis!r} into its rows or"
                    " columns, or keep to one."
                )

    def only(self, words: Sequence[str]) -> Study:
        """The study of these rules, sizes or networks alone, however they are written.

        >>> Study("mine", "two", rules=("yoco", "random"), sizes=("1", "50%")).only(["lbpe-balanced", "0.5"]).sizes
        ('50 %',)
        """
        named = {word: {word} for word in words}
        for word in words:
            with suppress(CondenseOnceError):
                named[word].add(Rule.parse(word).name)
            with suppress(CondenseOnceError):
                named[word].add(str(Size.parse(word)))
        there = {*self.rules, *self.sizes, *self.nets}
        if unknown := [word for word in words if not named[word] & there]:
            known = ", ".join((*self.rules, *self.sizes, *filter(None, self.nets)))
            raise BadOption(f"The study {self.name} has no {unknown[0]!r} to be kept to; it has {known}.")
        chosen = set[str]().union(*named.values())
        parts = {
            name: tuple(each for each in getattr(self, name) if each in chosen) for name in ("rules", "sizes", "nets")
        }
        return self.replace(**{name: part or None for name, part in parts.items()})

    def replace(self, **changes: Any) -> Study:
        """The same study but for some of what it says; what is None stays as it is."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    @property
    def spec(self) -> dict[str, Any]:
        """Its fields, as a store keeps them; float32 goes without saying."""
        spec = asdict(self)
        return spec if self.precision != "float32" else {name: spec[name] for name in spec if name != "precision"}

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any]) -> Study:
        """A study again, from its fields as plain JSON."""
        try:
            return cls(**{"precision": "float32", **{name: _as_tuple(value) for name, value in spec.items()}})
        except TypeError as error:
            raise BadFile(f"A study was kept by another version of condense-once ({error}).") from None

    def called(self, name: str) -> str:
        return dict(self.labels).get(name, name)


STUDIES: Registry[Study] = Registry("studies")


def read_study(path: Path) -> Study:
    """A study of a user's own, from a TOML file with the fields of `Study` as keys; its name is that of the file.

    Paths in it are relative to the folder that it lies in.
    """
    if existing_file(path).stat().st_size > MOST_BYTES:
        raise BadFile(f"{path} is too large for a study; it should be a few lines of TOML.")
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} is not TOML: {error}.") from None
    known = {each.name: str(each.type) for each in fields(Study) if each.name != "name"}
    values: dict[str, Any] = {"summary": f"from {path.name}"}
    for key, value in said.items():
        if key not in known:
            raise BadFile(f"{path}: a study has no {key!r}; {nearest(key, known)}")
        values[key] = _checked(path, key, value, known[key])
    if "sets" in values:
        values["sets"] = tuple(_placed(spec, path.parent, SETS) for spec in values["sets"])
    if "test" in values:
        values["test"] = _placed(values["test"], path.parent, SOURCES)
    return Study(name=path.stem, **values)


def _placed(spec: str, folder: Path, names: Container[str]) -> str:
    """What a study file says, as a path that is understood from any folder; what is a name stays one."""
    path = folder.resolve() / spec
    is_path = path.exists() or bool(path.suffix) or spec != path.name
    return spec if spec in names or not is_path else str(path)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _checked(path: Path, key: str, value: Any, kind: str) -> Any:
    if key == "labels":
        if isinstance(value, dict) and all(isinstance(label, str) for label in value.values()):
            return tuple(value.items())
        raise BadFile(f"{path}: labels is a table of names and what they are called instead.")
    if kind.startswith("tuple"):
        several = value if isinstance(value, list) else [value]
        if all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in several):
            return tuple(map(str, several))
        raise BadFile(f"{path}: {key} must be a list of names or numbers, not {value!r}.")
    if kind == "bool":
        if isinstance(value, bool):
            return value
        raise BadFile(f"{path}: {key} must be true or false, not {value!r}.")
    wanted = int if "int" in kind else str
    if isinstance(value, wanted) and not isinstance(value, bool):
        return value
    raise BadFile(f"{path}: {key} must be {'a number' if wanted is int else 'text'}, not {value!r}.")
