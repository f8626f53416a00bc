"""How every verb prints: tables for people, JSON for machines, notes and the next command to type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

console = Console(highlight=False)
aside = Console(stderr=True, highlight=False)  # progress and notes, so that standard output can be piped

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_facts(title: str, facts: Mapping[str, object]) -> None:
    """Names on the left, values on the right."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, str(value))
    console.print(table)


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    table = Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="bold")
    for row in rows:
        table.add_row(*(str(value) for value in row))
    console.print(table)


def note(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        aside.print(f"note: {sentence}", markup=False)


def suggest(command: str) -> None:
    """The command that a person would type next."""
    aside.print(f"next: {command}", markup=False, style="dim", soft_wrap=True)


@contextmanager
def track(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left; the block gets a function to call with how much is done and how much there is."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=aside, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def human_time(seconds: float) -> str:
    """A duration as people say it.

    >>> human_time(0.4), human_time(75), human_time(7500)
    ('0.4 s', '1 min 15 s', '2 h 5 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


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
