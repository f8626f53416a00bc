"""How every verb prints: tables for people, JSON for machines, notes and the next command to type."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from condense_once.text import human_time as human_time
from condense_once.text import readable as readable

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet

# Names and paths may hold [brackets] and :colons:, so nothing that is printed is read as markup.
console = Console(highlight=False, markup=False, emoji=False)
# Progress and notes, so that standard output can be piped.
aside = Console(stderr=True, highlight=False, markup=False, emoji=False)

CLASSES_SHOWN = 12
NAME_SHOWN = 32  # characters of a class name in a list of them


def print_json(value: Any) -> None:
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(json.dumps(value, indent=2, ensure_ascii=not unicode))


def print_facts(title: str, facts: Mapping[str, object]) -> None:
    """Names on the left, values on the right."""
    console.print(readable(title), style="italic", soft_wrap=True)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", overflow="fold")
    table.add_column(overflow="fold")
    _print_table(table, facts.items())


def print_rows(
    columns: Sequence[str], rows: Iterable[Sequence[object]], strong: Collection[tuple[int, int]] = ()
) -> None:
    """A table; what stands out on a terminal is said by row and column."""
    _print_table(Table(*map(readable, columns), box=None, padding=(0, 2, 0, 0), header_style="bold"), rows, strong)


def note(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        aside.print(f"note: {readable(sentence)}", soft_wrap=True)


def suggest(*words: object) -> None:
    """The command that a person would type next, by its words."""
    command = shlex.join(["condense-once", *map(str, words)])
    aside.print(f"next: {readable(command)}", style="dim", soft_wrap=True)


@contextmanager
def track(what: str, *columns: ProgressColumn) -> Iterator[Callable[[int, int | None], None]]:
    """A bar with the time left, on a terminal; the block gets a function to call with how much is done and how much there is.

    `columns` say how much is done; by default as one number of another.
    """
    if not aside.is_terminal:
        yield lambda done, total: None
        return
    name, done = TextColumn("{task.description}", markup=False), columns or (MofNCompleteColumn(),)
    with Progress(name, BarColumn(), *done, TimeRemainingColumn(), console=aside, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def classes_there(data: CondensedSet) -> str:
    """How many classes a set has patches of, and how many it has names of if these are more."""
    there, named = int((data.counts() > 0).sum()), len(data.classes)
    return f"{named}" if there == named else f"{there} of {named}"


def class_list(classes: Sequence[str]) -> str:
    """How many classes there are and what the first are called.

    >>> class_list(("cat", "dog", "brown bear, bruin, Ursus arctos"))
    '3: cat, dog, brown bear, bruin, Ursus arctos'
    """
    names = (name if len(name) <= NAME_SHOWN else f"{name[: NAME_SHOWN - 1]}…" for name in classes[:CLASSES_SHOWN])
    return f"{len(classes)}: {', '.join(names)}{' …' if len(classes) > CLASSES_SHOWN else ''}"


def numbers(values: Iterable[float]) -> str:
    """Means, deviations and the like.

    >>> numbers((0.4914, 0.5))
    '0.4914 0.5000'
    """
    return " ".join(f"{value:.4f}" for value in values)


def spread(counts: Iterable[float]) -> str:
    """One number if all are the same, else the range they lie in.

    >>> spread([40, 40]), spread([2.5, 1_000_000])
    ('40', '2.5 to 1000000')
    """
    several = [int(count) if count == int(count) else round(float(count), 2) for count in counts]
    low, high = min(several), max(several)
    return f"{low}" if low == high else f"{low} to {high}"


def human_bytes(count: int) -> str:
    """A size in binary units.

    >>> human_bytes(999), human_bytes(315_392)
    ('999 B', '308.0 KiB')
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _print_table(table: Table, rows: Iterable[Sequence[object]], strong: Collection[tuple[int, int]] = ()) -> None:
    """Folded to the width of a terminal; in a pipe a row a line, however long, so that grep finds whole values."""
    lines = [[readable(value) for value in row] for row in rows]
    if console.file.isatty():
        for row, line in enumerate(lines):
            styles = ("bold" if (row, column) in strong else "" for column in range(len(line)))
            table.add_row(*map(Text, line, styles))
        console.print(table)
        return
    if table.show_header:
        lines.insert(0, [str(column.header) for column in table.columns])
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True))
        console.print("  ".join(padded).rstrip(), soft_wrap=True)
