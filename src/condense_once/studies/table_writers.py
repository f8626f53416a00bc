"""A table of a study for people (terminal, Markdown, LaTeX) and for programs (CSV, parquet)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from condense_once.errors import BadOption, MissingExtra
from condense_once.files import atomic_file
from condense_once.studies.table import Entry, Table
from condense_once.text import human_time, readable

UNKNOWN = "–"
COST = "evaluated in"  # by one thread, all trainings of a row
FACTS: dict[str, type] = {  # what programs are told of an entry beside its labels
    "column": str,
    "mean": float,
    "std": float,
    "n": int,
    "expected": int,
    "seconds": float,
    "best": bool,
    "ahead": bool,
    "published": float,
    "published_std": float,
    "protocol": str,
    "test": str,
}


def text_rows(table: Table, *, exact: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Names of columns and rows of plain text; with `exact`, of two decimals and with the paper's deviations."""
    return (*table.axes, *table.columns, COST), list(_rows(table, _PLAIN, exact))


def to_markdown(table: Table, *, exact: bool = False) -> str:
    columns = (*table.axes, *table.columns, COST)
    return _markdown_page(table.title, columns, len(table.axes), _rows(table, _MARKDOWN, exact), table.notes)


def to_latex(table: Table, *, exact: bool = False) -> str:
    columns = (*table.axes, *table.columns, COST)
    return _latex_page(table.title, columns, len(table.axes), _rows(table, _LATEX, exact), table.notes)


def to_csv(table: Table) -> str:
    """One line an entry, as `records` has them; what is not known is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*table.axes, *FACTS])
    writer.writeheader()
    writer.writerows(records(table))
    return text.getvalue()


def to_parquet(table: Table) -> bytes:
    """One row an entry, as `records` has them."""
    pyarrow = _pyarrow()
    kinds: dict[type, Any] = {
        str: pyarrow.string(),
        float: pyarrow.float64(),
        int: pyarrow.int64(),
        bool: pyarrow.bool_(),
    }
    columns = {**dict.fromkeys(table.axes, str), **FACTS}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(records(table)), schema), buffer)
    return buffer.getvalue()


def records(table: Table) -> Iterator[dict[str, Any]]:
    """Every entry with its labels; accuracies and differences are shares of one, None where nothing is known."""
    for row in table.rows:
        for column, entry in zip(table.columns, row.entries, strict=True):
            yield {
                **{axis: _encodable(label) for axis, label in zip(table.axes, row.labels, strict=True)},
                "column": _encodable(column),
                "mean": None if isnan(entry.mean) else entry.mean,
                "std": None if isnan(entry.std) else entry.std,
                "n": len(entry.runs),
                "expected": entry.expected,
                "seconds": entry.seconds,
                "best": entry.best,
                "ahead": entry.ahead,
                "published": None if entry.published is None else entry.published.accuracy,
                "published_std": None if entry.published is None else entry.published.spread,
                "protocol": table.protocol,
                "test": _encodable(entry.test),
            }


def check_suffix(path: Path, *, words: bool = False) -> None:
    """Refuse a path whose ending names no format of tables, of numbers or of words, or one that cannot be written here."""
    suffix = path.suffix.lower()
    if suffix not in (_WORD_WRITERS if words else _WRITERS):
        parquet = "" if words else " or parquet (.parquet)"
        raise BadOption(
            f"{'A table of words' if words else 'A table'} is written as Markdown (.md), LaTeX (.tex), CSV (.csv){parquet},"
            f" not as {path}; choose another ending."
        )
    if suffix == ".parquet":
        _pyarrow()


def write_table(table: Table, path: Path, *, force: bool = False, exact: bool = False) -> None:
    """Write a table in the format that the ending of the path names; `exact` is for those that people read."""
    check_suffix(path)
    content = _WRITERS[path.suffix.lower()](table, exact)
    with atomic_file(path, force=force) as out:
        out.write(content)


def write_words(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], path: Path, *, force: bool = False
) -> None:
    """Write a table of words, without any number, as Markdown, LaTeX or CSV."""
    check_suffix(path, words=True)
    content = _WORD_WRITERS[path.suffix.lower()](title, columns, rows)
    with atomic_file(path, force=force) as out:
        out.write(content.encode())


_WRITERS: dict[str, Callable[[Table, bool], bytes]] = {
    ".md": lambda table, exact: to_markdown(table, exact=exact).encode(),
    ".tex": lambda table, exact: to_latex(table, exact=exact).encode(),
    ".csv": lambda table, _: to_csv(table).encode(),
    ".parquet": lambda table, _: to_parquet(table),
}

_WORD_WRITERS: dict[str, Callable[[str, Sequence[str], Sequence[Sequence[str]]], str]] = {
    ".md": lambda title, columns, rows: _markdown_page(title, columns, len(columns), _escaped(rows, _markdown)),
    ".tex": lambda title, columns, rows: _latex_page(title, columns, len(columns), _escaped(rows, _latex)),
    ".csv": lambda _, columns, rows: _csv_page(columns, rows),
}


def _escaped(rows: Iterable[Sequence[str]], escape: Callable[[str], str]) -> list[tuple[str, ...]]:
    return [tuple(map(escape, row)) for row in rows]


def _markdown_page(
    title: str, columns: Sequence[str], left: int, rows: Iterable[Sequence[str]], notes: Iterable[str] = ()
) -> str:
    """Of rows that are Markdown already, the first columns to the left."""
    rules = ["---"] * left + ["---:"] * (len(columns) - left)
    lines = [f"| {' | '.join(cells)} |" for cells in ([*map(_markdown, columns)], rules, *rows)]
    return "\n".join([f"## {_markdown(title)}", "", *lines, *(f"\n{_markdown(note)}" for note in notes), ""])


def _latex_page(
    title: str, columns: Sequence[str], left: int, rows: Iterable[Sequence[str]], notes: Iterable[str] = ()
) -> str:
    """Of rows that are LaTeX already, the first columns to the left."""
    return "\n".join(
        [
            r"% \usepackage{booktabs}; letters beyond Latin ones want LuaLaTeX or XeLaTeX",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_latex(title)}}}",
            rf"  \begin{{tabular}}{{{'l' * left}{'r' * (len(columns) - left)}}}",
            r"    \toprule",
            rf"    {' & '.join(map(_latex, columns))} \\",
            r"    \midrule",
            *(rf"    {' & '.join(cells)} \\" for cells in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            *(rf"  \par {{\footnotesize {_latex(note)}}}" for note in notes),
            r"\end{table}",
            "",
        ]
    )


def _csv_page(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([columns, *rows])
    return text.getvalue()


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Writing parquet files", "hf") from None
    return pyarrow


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~&$#])", r"\\\1", readable(text))


_LATEX_FOR = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "'": r"\textquotesingle{}",
        "`": r"\textasciigrave{}",
        '"': r"\symbol{34}",  # some languages of babel's give the character another meaning
        "±": r"$\pm$",
        "–": r"\textendash{}",
        **{letter: rf"\{letter}" for letter in "&%$#_{}"},
        **{letter: f"{{{letter}}}" for letter in "[]*"},  # at the start of a row, \\ would take them for an option
    }
)


def _latex(text: str) -> str:
    escaped = re.sub("-(?=-)", "-{}", readable(text).translate(_LATEX_FOR))  # two hyphens would become a dash
    return re.sub(r"(?<![\w}-])-(?=\d)", "$-$", escaped)


@dataclass(frozen=True)
class _Style:
    escape: Callable[[str], str]
    bold: Callable[[str], str]


_PLAIN = _Style(str, str)
_MARKDOWN = _Style(_markdown, lambda text: f"**{text}**")
_LATEX = _Style(_latex, lambda text: rf"\textbf{{{text}}}")


def _rows(table: Table, style: _Style, exact: bool) -> Iterator[tuple[str, ...]]:
    for row in table.rows:
        cost = human_time(row.seconds) if row.seconds else UNKNOWN
        entries = (_entry(entry, style, exact) for entry in row.entries)
        yield (*map(style.escape, row.labels), *entries, style.escape(cost))


def _entry(entry: Entry, style: _Style, exact: bool) -> str:
    value = style.escape(_value(entry, exact))
    return (style.bold(value) if entry.best else value) + style.escape(_remarks(entry, exact))


def _value(entry: Entry, exact: bool) -> str:
    if isnan(entry.mean):
        return UNKNOWN
    spread = "" if isnan(entry.std) else f" ± {_percent(entry.std, exact)}"
    return _percent(entry.mean, exact, signed=entry.difference is not None) + spread


def _remarks(entry: Entry, exact: bool) -> str:
    runs, told = len(entry.runs), []
    if runs:
        told.append(f"{runs} of {entry.expected}" if runs < entry.expected else f"n = {runs}")
    if entry.published is not None:
        paper = _percent(entry.published.accuracy, exact, signed=entry.difference is not None)
        spread = entry.published.spread if exact else None
        told.append(f"paper {paper}" + ("" if spread is None else f" ± {_percent(spread, exact)}"))
    return ("*" if entry.ahead else "") + (f" ({'; '.join(told)})" if told else "")


def _percent(share: float, exact: bool, *, signed: bool = False) -> str:
    digits = 2 if exact else 1
    rounded = round(100 * share, digits) + 0.0  # which makes a zero of a negative zero
    return f"{rounded:{'+' if signed else ''}.{digits}f}"


def _encodable(text: str) -> str:
    """Halves of characters, which JSON can hold and UTF-8 cannot, written out."""
    return text.encode("utf-8", "backslashreplace").decode()
