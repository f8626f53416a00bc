"""Tables as text for people: plain, Markdown, LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isnan

from condense_once.studies.table import Entry, Table
from condense_once.text import human_time, readable

UNKNOWN = "–"
COST = "evaluated in"  # seconds of one thread, for all runs of a row


def text_rows(table: Table, *, exact: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Column names and rows of plain text; `exact` gives two decimals and the paper's std."""
    return _columns(table), list(_rows(table, _PLAIN, exact))


def to_text(table: Table, *, exact: bool = False) -> str:
    """Title, aligned columns, then the notes."""
    columns, rows = text_rows(table, exact=exact)
    lines = [[readable(cell) for cell in line] for line in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    notes = [""] * bool(table.notes) + [readable(note) for note in table.notes]
    return "\n".join([readable(table.title), "", *(line.rstrip() for line in aligned), *notes])


def to_markdown(table: Table, *, exact: bool = False, bare: bool = False) -> str:
    """Title, table and notes; `bare` leaves the table alone."""
    columns, left = _columns(table), len(table.axes)
    rules = ["---"] * left + ["---:"] * (len(columns) - left)
    rows = _rows(table, _MARKDOWN, exact)
    lines = [f"| {' | '.join(cells)} |" for cells in ([*map(_markdown, columns)], rules, *rows)]
    if bare:
        return "\n".join([*lines, ""])
    return "\n".join(
        [f"## {_markdown(table.title)}", "", *lines, *(f"\n{_markdown(note)}" for note in table.notes), ""]
    )


def to_latex(table: Table, *, exact: bool = False, bare: bool = False) -> str:
    """A float with caption, label and notes; `bare` leaves only the tabular, to be put into a float of one's own."""
    columns, left = _columns(table), len(table.axes)
    needs = r"% \usepackage{booktabs}; names beyond Latin letters need LuaLaTeX or XeLaTeX"
    tabular = [
        rf"\begin{{tabular}}{{{'l' * left}{'r' * (len(columns) - left)}}}",
        r"  \toprule",
        rf"  {' & '.join(map(_latex, columns))} \\",
        r"  \midrule",
        *(rf"  {' & '.join(cells)} \\" for cells in _rows(table, _LATEX, exact)),
        r"  \bottomrule",
        r"\end{tabular}",
    ]
    if bare:
        return "\n".join([needs, *tabular, ""])
    return "\n".join(
        [
            needs,
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_latex(table.title)}}}",
            *([rf"  \label{{tab:{_label(table.name)}}}"] if table.name else []),
            *(f"  {line}" for line in tabular),
            *(rf"  \par {{\footnotesize {_latex(note)}}}" for note in table.notes),
            r"\end{table}",
            "",
        ]
    )


def _label(name: str) -> str:
    """A name that LaTeX takes as a label.

    >>> _label("my study_2")
    'my-study-2'
    """
    return re.sub("[^A-Za-z0-9]+", "-", name).strip("-")


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
        '"': r"\symbol{34}",  # some languages of babel give the character another meaning
        "±": r"$\pm$",
        "–": r"\textendash{}",
        **{letter: rf"\{letter}" for letter in "&%$#_{}"},
        **{letter: f"{{{letter}}}" for letter in "[]*"},  # after a \\ they would be its option
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


def _columns(table: Table) -> tuple[str, ...]:
    return (*table.axes, *table.columns, COST) if table.columns else table.axes


def _rows(table: Table, style: _Style, exact: bool) -> Iterator[tuple[str, ...]]:
    for row in table.rows:
        labels = tuple(map(style.escape, row.labels))
        entries = tuple(_entry(entry, style, exact, table.runs is None) for entry in row.entries)
        cost = style.escape(human_time(row.seconds) if row.seconds else UNKNOWN)
        yield (*labels, *entries, cost) if table.columns else labels


def _entry(entry: Entry, style: _Style, exact: bool, with_runs: bool) -> str:
    value = style.escape(_value(entry, exact))
    return (style.bold(value) if entry.best else value) + style.escape(_remarks(entry, exact, with_runs))


def _value(entry: Entry, exact: bool) -> str:
    if isnan(entry.mean):
        return UNKNOWN
    std = "" if isnan(entry.std) else f" ± {_percent(entry.std, exact)}"
    return _percent(entry.mean, exact, signed=entry.difference is not None) + std


def _remarks(entry: Entry, exact: bool, with_runs: bool) -> str:
    """How many runs there are, unless a note says it of all entries, and the paper's number."""
    runs, remarks = len(entry.runs), []
    if runs and with_runs:
        remarks.append(f"{runs} of {entry.expected}" if runs < entry.expected else f"n = {runs}")
    if entry.published is not None:
        paper = _percent(entry.published.accuracy, exact, signed=entry.difference is not None)
        std = entry.published.std if exact else None
        remarks.append(f"paper {paper}" + ("" if std is None else f" ± {_percent(std, exact)}"))
    return ("*" if entry.ahead else "") + (f" ({'; '.join(remarks)})" if remarks else "")


def _percent(fraction: float, exact: bool, *, signed: bool = False) -> str:
    digits = 2 if exact else 1
    rounded = round(100 * fraction, digits) + 0.0  # turns a negative zero into zero
    return f"{rounded:{'+' if signed else ''}.{digits}f}"
