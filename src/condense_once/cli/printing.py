"""What verbs print: tables for people, JSON for machines, notes and the next command to run.

Everything goes through here. Names and paths, which others choose, are made readable: no control character reaches a
terminal, and none starts a line of its own.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from condense_once.cli.option_names import with_options
from condense_once.text import plural, readable

if TYPE_CHECKING:
    from pathlib import Path

    from condense_once.condensed.set import CondensedSet

# Names and paths may contain [brackets] and :colons:, so output is never parsed as markup.
console = Console(highlight=False, markup=False, emoji=False)
# Progress and notes; standard output can be piped.
err_console = Console(stderr=True, highlight=False, markup=False, emoji=False)


def echo(text: str) -> None:
    """Print a line; control characters in names and paths are written out."""
    typer.echo(readable(text))


def print_json(value: Any) -> None:
    """Print one JSON object, the whole of what a verb writes to standard output; NaN and infinity become null."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(_valid_json(value), indent=2, ensure_ascii=not unicode, default=str)
    typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def set_facts(data: CondensedSet, file: Path | None) -> dict[str, Any]:
    """What JSON tells of a set that a verb made, and of its file if there is one, under the names of `info --json`."""
    return {
        "file": file,
        "bytes": None if file is None else file.stat().st_size,
        "name": data.name,
        "patches": len(data),
        "classes": data.classes,
        "counts": data.counts().tolist(),
        "ranking": None if data.ranking is None else asdict(data.ranking),
        "scores": [*data.scores],
        "provenance": data.provenance,
    }


def _valid_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _valid_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_valid_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_fields(title: str, fields: Mapping[str, object]) -> None:
    """Names on the left, values on the right."""
    console.print(readable(title), style="italic", soft_wrap=True)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", overflow="fold")
    table.add_column(overflow="fold")
    _print_table(table, fields.items())


def print_rows(
    columns: Sequence[str], rows: Iterable[Sequence[object]], strong: Collection[tuple[int, int]] = ()
) -> None:
    """A table; cells in `strong`, by row and column, are bold on a terminal."""
    headers = (Column(readable(column), overflow="fold") for column in columns)  # never cut off: rows could look alike
    _print_table(Table(*headers, box=None, padding=(0, 2, 0, 0), header_style="bold"), rows, strong)


def note(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        err_console.print(f"note: {readable(with_options(sentence))}", soft_wrap=True)


def log(line: str) -> None:
    """A line of progress, where there is no terminal for a bar."""
    err_console.print(readable(line), soft_wrap=True)


def suggest(*words: object) -> None:
    """Suggest the next command, given by its words."""
    command = shlex.join(["condense-once", *map(str, words)])
    err_console.print(f"next: {readable(command)}", style="dim", soft_wrap=True)


def suggest_evaluate(data: CondensedSet, file: Path) -> None:
    """Suggest to evaluate a set, if its test images are known; others have to be named."""
    from condense_once.condensed.class_matching import known_source

    if known_source(data) is None:
        note(["To evaluate it, pass a folder of test images: condense-once evaluate … --test FOLDER."])
        suggest("show", file)
    else:
        suggest("evaluate", file)


@contextmanager
def track(what: str, *columns: ProgressColumn) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar with the time left, on a terminal; yields a function to call with (done, total).

    `columns` show the progress, by default as done/total.
    """
    if not err_console.is_terminal:
        yield lambda done, total: None
        return
    name, done = TextColumn("{task.description}", markup=False), columns or (MofNCompleteColumn(),)
    with Progress(name, BarColumn(), *done, TimeRemainingColumn(), console=err_console, transient=True) as bar:
        task = bar.add_task(readable(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def classes_there(data: CondensedSet) -> str:
    """How many classes have patches, and of how many if there are more."""
    there, named = int((data.counts() > 0).sum()), len(data.classes)
    return plural(named, "class") if there == named else f"{there} of {plural(named, 'class')}"


def _print_table(table: Table, rows: Iterable[Sequence[object]], strong: Collection[tuple[int, int]] = ()) -> None:
    """Fold to the width of a terminal; in a pipe print one line per row, so that grep finds whole values."""
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
