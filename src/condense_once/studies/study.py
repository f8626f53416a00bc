"""A study: a grid of sets, rules, sizes and networks, and how its numbers become a table or a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from condense_once.condensed.budget import Budget
from condense_once.errors import BadFile, BadOption, CondenseOnceError, UnknownName
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.metrics import Epochs
from condense_once.registry import Registry, nearest
from condense_once.selection.rule import Rule

# What a number of a study can be placed by. `method` is a rule without its balance, `balance` is the rest of it.
Axis = Literal["set", "rule", "method", "balance", "size", "net", "epochs"]
AXES: tuple[Axis, ...] = get_args(Axis)
SEVERAL = ("rules", "sizes", "sets", "nets", "epochs", "rows", "columns")  # the fields that are sequences of words
TABLES = ("table", "needs")  # of numbers, and of what metrics need
SHOWN = (*TABLES, "balance", "distribution", "lines", "patches")  # and the drawings of others
PRECISIONS = ("auto", "float32", "bfloat16")


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
    sizes: tuple[str, ...] = ()  # as `Budget.parse` reads them; none: nothing is evaluated
    fitting: bool = False  # sizes that leave nothing of a set out are passed over, instead of refused
    sets: tuple[str, ...] = ("cifar10-idc-ipc10",)  # files, or names of bundled sets
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
    exact: bool = False  # a table with two decimals, and with the deviations that the paper has
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
            "sizes": lambda size: str(Budget.parse(size)),
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
                named[word].add(str(Budget.parse(word)))
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

    @property
    def drawn(self) -> bool:
        """Whether it is a figure; what it evaluates, if anything, is a table as well."""
        return self.shown not in TABLES

    def called(self, name: str) -> str:
        return dict(self.labels).get(name, name)


STUDIES: Registry[Study] = Registry("studies")


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
