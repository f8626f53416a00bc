"""A study: a grid of sets, rules, sizes and networks, and how to show its numbers as a table or a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, get_args

from condense_once.condensed.budget import Budget
from condense_once.errors import BadFile, BadOption, CondenseOnceError, UnknownName
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.metrics import Epochs
from condense_once.registry import Registry, nearest
from condense_once.selection.rule import Rule
from condense_once.studies.study_rule import StudyRule

# Axes of a table. `method` is a rule without its balance, `balance` the rest of it.
Axis = Literal["set", "rule", "method", "balance", "size", "net", "epochs"]
AXES: tuple[Axis, ...] = get_args(Axis)
SEQUENCES = ("rules", "sizes", "sets", "ceiling", "nets", "epochs", "rows", "columns")  # fields with several values
MAY_BE_EMPTY = ("sizes", "ceiling")
CEILING_AXES = ("set", "size")  # on which sets of the ceiling have places of their own
TABLES = ("table", "requirements")  # of accuracies, and of what metrics require
SHOWN = (*TABLES, "balance", "curves", "distribution", "lines", "patches")  # and figures of other distributions
MAX_REPEATS = 10_000  # the grid has a cell for each
PRECISIONS = ("auto", "float32", "bfloat16")
# Version 1 of the fields in a store. Their names there are part of the key of a study and never change.
SPEC_FIELDS = (
    *("name", "summary", "rules", "sizes", "fitting", "sets", "nets", "epochs", "scored_by", "training", "protocol"),
    *("test", "repeats", "dynamics", "precision", "rows", "columns", "ours", "shown", "exact", "labels"),
)
RENAMED = {"training": "scoring_epochs", "dynamics": "scoring_runs", "ours": "reference"}  # in the code
# Fields from after version 1, left out of a store where they have their defaults: so did all studies before.
LATER_FIELDS: Mapping[str, Any] = {"to_whole": False, "own_order": False, "ceiling": ()}


@dataclass(frozen=True)
class Study:
    """What to measure, and how to show it.

    Each cell of the grid is measured `repeats` times. Repeat k trains on the selection of scoring run k modulo `scoring_runs`;
    the paper has nine repeats on three scoring runs.

    >>> study = Study("mine", "two rules", rules=("yoco", "random"), sizes=("1", "50%"))
    >>> study.replace(repeats=3).repeats
    3
    """

    name: str
    summary: str
    rules: tuple[str, ...] = ("yoco",)
    sizes: tuple[str, ...] = ()  # images per class, percentages or `all`; without any, nothing is evaluated
    fitting: bool = False  # skip sizes that keep all of a set, instead of refusing those that are too large
    to_whole: bool = False  # with `fitting`: also the size that keeps all of a set
    sets: tuple[str, ...] = ("cifar10-idc-ipc10",)  # files, or names of bundled sets
    own_order: bool = False  # nested sets are evaluated in their own order, not by the rules
    ceiling: tuple[str, ...] = ()  # sets condensed for one size each, evaluated whole at that size
    nets: tuple[str, ...] = ("",)  # networks to evaluate; "": the default for the image size
    epochs: tuple[str, ...] = ("",)  # epochs of lbpe; "": the authors' choice for the set
    scored_by: str = ""  # network of the scoring runs; "": the default
    scoring_epochs: int | None = None  # length of a scoring run; by default as many as the metrics need
    protocol: str = "paper"
    test: str | None = None  # by default the source of the set
    repeats: int = 9
    scoring_runs: int = 3
    precision: str = "auto"  # float32, bfloat16, or whichever the hardware is made for
    rows: tuple[Axis, ...] = ("set", "size")
    columns: tuple[Axis, ...] = ("rule",)
    reference: str = "yoco"  # the rule that others are compared with
    shown: str = "table"  # or the name of a drawing
    exact: bool = False  # two decimals, and the paper's std
    labels: tuple[tuple[str, str], ...] = ()  # other names to use in a table

    def __post_init__(self) -> None:
        """Normalise how fields are written, and refuse a study that cannot be run or shown."""
        PROTOCOLS.get(self.protocol)
        for name in SEQUENCES:
            object.__setattr__(self, name, self._normalised(name))
        object.__setattr__(self, "labels", tuple((name, label) for name, label in self.labels))
        object.__setattr__(self, "reference", StudyRule.parse(self.reference).name)
        if unknown := [axis for axis in (*self.rows, *self.columns) if axis not in AXES]:
            raise BadOption(f"A table has no axis {unknown[0]!r}; {nearest(unknown[0], AXES)}")
        if twice := [axis for axis in self.rows if axis in self.columns]:
            raise BadOption(f"The study {self.name} has {twice[0]!r} in `rows` and in `columns`; remove it from one.")
        if self.sizes:
            self._check_axes()
        if not (1 <= self.repeats <= MAX_REPEATS and 1 <= self.scoring_runs <= MAX_REPEATS):
            raise BadOption(
                f"`repeats` and `scoring_runs` of a study must be from 1 to {MAX_REPEATS}, not {self.repeats} and"
                f" {self.scoring_runs}."
            )
        if self.scoring_epochs is not None and self.scoring_epochs < 1:
            raise BadOption(f"`scoring_epochs` must be at least one epoch, not {self.scoring_epochs}.")
        if self.precision not in PRECISIONS:
            raise BadOption(f"`precision` must be one of {', '.join(PRECISIONS)}, not {self.precision!r}.")
        if self.shown not in SHOWN:
            self._check_figure()

    def _normalised(self, name: str) -> tuple[str, ...]:
        """A field with several values, each in its canonical spelling."""
        given = getattr(self, name)
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise BadOption(f"`{name}` of the study {self.name} must be a list such as [{given!r}], not {given!r}.")
        if wrong := [each for each in given if not isinstance(each, str | PathLike | int | float | Rule)]:
            raise BadOption(
                f"`{name}` of the study {self.name} are names or files, not a {type(wrong[0]).__name__}; save it or register it"
                " under a name first."
            )
        write: Callable[[Any], str] = {
            "rules": lambda rule: StudyRule.parse(rule).name,
            "sizes": lambda size: str(Budget.parse(size)),
            "epochs": lambda epochs: str(Epochs.parse(epochs)) if epochs else "",
        }.get(name, str)
        values = tuple(map(write, given))
        if len(set(values)) < len(values) or not (values or name in MAY_BE_EMPTY):
            raise BadOption(f"`{name}` of the study {self.name} must not be empty or repeat a value, not {values}.")
        return values

    def _check_figure(self) -> None:
        from condense_once.studies.figures import DRAWINGS  # late: it imports the rest of this package

        if self.shown not in DRAWINGS:
            known = dict.fromkeys((*SHOWN, *DRAWINGS.names()))
            raise UnknownName(f"The study {self.name} cannot be shown as {self.shown!r}; {nearest(self.shown, known)}")

    def _check_axes(self) -> None:
        """Numbers of several sets, sizes or the like must not share an entry of the table."""
        axes = {*self.rows, *self.columns}
        if {"method", "balance"} <= axes:
            axes.add("rule")
        for name, axis in {"sets": "set", "rules": "rule", "sizes": "size", "nets": "net", "epochs": "epochs"}.items():
            several = len(getattr(self, name)) + bool(self.ceiling and axis in CEILING_AXES) > 1
            if several and axis not in axes:
                raise BadOption(
                    f"The study {self.name} has several {name}; add {axis!r} to its `rows` or `columns`, or keep one."
                )

    def only(self, words: Sequence[str]) -> Study:
        """The study restricted to these rules, sizes or networks, in any spelling.

        >>> Study("mine", "two", rules=("yoco", "random"), sizes=("1", "50%")).only(["lbpe-balanced", "0.5"]).sizes
        ('50 %',)
        """
        named = {word: {word} for word in words}
        for word in words:
            with suppress(CondenseOnceError):
                named[word].add(StudyRule.parse(word).name)
            with suppress(CondenseOnceError):
                named[word].add(str(Budget.parse(word)))
        there = {*self.rules, *self.sizes, *self.nets}
        if unknown := [word for word in words if not named[word] & there]:
            known = ", ".join((*self.rules, *self.sizes, *filter(None, self.nets)))
            raise BadOption(f"The study {self.name} has no rule, size or network {unknown[0]!r}; it has {known}.")
        chosen = set[str]().union(*named.values())
        parts = {
            name: tuple(each for each in getattr(self, name) if each in chosen) for name in ("rules", "sizes", "nets")
        }
        return self.replace(**{name: part or None for name, part in parts.items()})

    def replace(self, **changes: Any) -> Study:
        """The same study with other fields; those that are None stay."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    @property
    def spec(self) -> dict[str, Any]:
        """Its fields for a store, without the precision if it is float32, the default from before there was a choice."""
        omitted = "precision" if self.precision == "float32" else None
        spec = {name: getattr(self, RENAMED.get(name, name)) for name in SPEC_FIELDS if name != omitted}
        later = {name: getattr(self, name) for name in LATER_FIELDS}
        return spec | {name: value for name, value in later.items() if value != LATER_FIELDS[name]}

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any]) -> Study:
        """The study of a `spec`, as read from JSON."""
        try:
            fields = {RENAMED.get(name, name): _as_tuple(value) for name, value in spec.items()}
            return cls(**{"precision": "float32", **fields})
        except TypeError as error:
            raise BadFile(f"A study was stored by another version of condense-once ({error}).") from None

    @property
    def title(self) -> str:
        """The title of its table or figure. The number in the paper is left out: with other sets it is not that figure.

        >>> import condense_once.studies.shipped
        >>> STUDIES.get("fig-easy-hard").title, Study("mine", "Figure 1: mine").title
        ('The easiest and the hardest patches of each class', 'Figure 1: mine')
        """
        if self.name not in STUDIES or STUDIES.get(self.name).summary != self.summary:
            return self.summary
        _, _, title = self.summary.rpartition(": ")
        return title[:1].upper() + title[1:]

    @property
    def every_set(self) -> tuple[str, ...]:
        """All files or names of sets that it reads, each once."""
        return tuple(dict.fromkeys((*self.sets, *self.ceiling)))

    @property
    def drawn(self) -> bool:
        """Whether it is a figure; one with sizes is a table as well."""
        return self.shown not in TABLES

    def label(self, name: str) -> str:
        return dict(self.labels).get(name, name)


STUDIES: Registry[Study] = Registry("studies")


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
