"""Tables as files, in the format that the suffix names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from condense_once.errors import BadOption
from condense_once.files import atomic_file
from condense_once.studies.table import Table
from condense_once.studies.table_records import load_pyarrow, to_csv, to_parquet
from condense_once.studies.table_text import to_latex, to_markdown

_WRITERS: dict[str, Callable[[Table, bool], bytes]] = {
    ".md": lambda table, exact: to_markdown(table, exact=exact).encode(),
    ".tex": lambda table, exact: to_latex(table, exact=exact).encode(),
    ".csv": lambda table, _: to_csv(table).encode(),
    ".parquet": lambda table, _: to_parquet(table),
}


def write_table(table: Table, path: Path, *, force: bool = False, exact: bool = False) -> None:
    """Write a table; `exact` gives two decimals in Markdown and LaTeX."""
    check_suffix(path)
    content = _WRITERS[path.suffix.lower()](table, exact)
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
