"""Tables for programs: CSV and parquet, one record per entry."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from math import isnan
from typing import Any

from condense_once.errors import MissingExtra
from condense_once.studies.table import Table

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a formula starts in spreadsheets
FIELDS: dict[str, type] = {  # of an entry, beside its labels
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


def records(table: Table) -> Iterator[dict[str, Any]]:
    """Every entry with its labels, or only labels if the table has no others; unknown numbers are None.

    Accuracies and differences are fractions.
    """
    for row in table.rows:
        labels = {axis: _encodable(label) for axis, label in zip(table.axes, row.labels, strict=True)}
        if not table.columns:
            yield labels
        for column, entry in zip(table.columns, row.entries, strict=True):
            yield {
                **labels,
                "column": _encodable(column),
                "mean": None if isnan(entry.mean) else entry.mean,
                "std": None if isnan(entry.std) else entry.std,
                "n": len(entry.runs),
                "expected": entry.expected,
                "seconds": entry.seconds,
                "best": entry.best,
                "ahead": entry.ahead,
                "published": None if entry.published is None else entry.published.accuracy,
                "published_std": None if entry.published is None else entry.published.std,
                "protocol": table.protocol,
                "test": _encodable(entry.test),
            }


def to_csv(table: Table) -> str:
    """One line per record; unknown numbers are empty. Text that a spreadsheet would compute is quoted with an apostrophe."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_fields(table)))
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in record.items()} for record in records(table))
    return text.getvalue()


def _inert(value: Any) -> Any:
    """Text that spreadsheets do not take for a formula.

    >>> _inert("=HYPERLINK(1)"), _inert("idc"), _inert(-0.5)
    ("'=HYPERLINK(1)", 'idc', -0.5)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def to_parquet(table: Table) -> bytes:
    """One row per record."""
    pyarrow = load_pyarrow()
    kinds: dict[type, Any] = {
        str: pyarrow.string(),
        float: pyarrow.float64(),
        int: pyarrow.int64(),
        bool: pyarrow.bool_(),
    }
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in _fields(table).items()])
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(records(table)), schema), buffer)
    return buffer.getvalue()


def load_pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Writing parquet files", "hf") from None
    return pyarrow


def _fields(table: Table) -> dict[str, type]:
    return {**dict.fromkeys(table.axes, str), **(FIELDS if table.columns else {})}


def _encodable(text: str) -> str:
    """Escape lone surrogates, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "backslashreplace").decode()
