"""Tables as files, in the format that the suffix names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from condense_once.errors import BadOption
from condense_once.files import atomic_file
from condense_once.studies.table import Table
from condense_once.studies.table_records import load_pyarrow, to_csv, to_parquet
from condense_once.studies.table_text import to_latex, to_markdown

_WRITERS: dict[str, Callable[[Table, bool, bool], bytes]] = {
    ".md": lambda table, exact, bare: to_markdown(table, exact=exact, bare=bare).encode(),
    ".tex": lambda table, exact, bare: to_latex(table, exact=exact, bare=bare).encode(),
    ".csv": lambda table, *_: to_csv(table).encode(),
    ".parquet": lambda table, *_: to_parquet(table),
}


def write_table(table: Table, path: Path, *, force: bool = False, exact: bool = False, bare: bool = False) -> None:
    """Write a table; in Markdown and LaTeX `exact` gives two decimals, and `bare` leaves out title and notes."""
    check_suffix(path)
    content = _WRITERS[path.suffix.lower()](table, exact, bare)
    with atomic_file(path, force=force) as out:
        out.write(content)


def check_suffix(path: Path) -> None:
    """Refuse an unknown format, or one whose library is not installed."""
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise BadOption(
            f"A table is written as Markdown (.md), LaTeX (.tex), CSV (.csv) or parquet (.parquet), not as {path}; choose"
            " another suffix."
        )
    if suffix == ".parquet":
        load_pyarrow()
