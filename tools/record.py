"""Keep measured accuracies in results/cells.jsonl, and write the tables of the docs from them.

    condense-once study table1 --set FILE … -o table1.csv
    python tools/record.py add table1.csv --set FILE …    # one line per cell, with the digest of its set and the versions;
                                                          # also of the accuracies that the headers of the sets state
    python tools/record.py tables                         # rewrite the tables between markers; --check only compares

A table in a Markdown file stands between `<!-- cells QUERY -->` and `<!-- /cells -->`. The query is JSON: `rows` and `columns`
each name a field of the cells and its values, with or without labels, or map labels to fields; `where` gives the other fields,
one value or a list of them. `paper` shows the paper's numbers in brackets, `average` names a last row of means. At the size of
the whole set all rules keep the same patches; the rule of such a cell is `whole`, and it is shown in the first column.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

from condense_once.condensed.bundled import find_set
from condense_once.condensed.file import SetFile
from condense_once.nets.registry import NETS

ROOT = Path(__file__).resolve().parent.parent
CELLS = ROOT / "results" / "cells.jsonl"
PAGES = ("README.md", "results/*.md", "docs/**/*.md")
DEFAULTS = {"net": "convnet-d3", "test": "cifar10", "protocol": "quick"}  # of queries
IDENTITY = ("set", "digest", "rule", "ipc", "net", "test", "protocol")  # of a cell; measured again, it is replaced
USUAL_RUNS = 3
AVERAGE = "Avg."  # the column of a study's table that is no cell
TABLE = re.compile(r"(<!-- cells (?P<query>\{.*?\}) -->\n)(?P<table>.*?)(<!-- /cells -->)", re.DOTALL)

Cell = Mapping[str, Any]
Axis = Mapping[str, Mapping[str, Any]]  # label → values of fields


def read_cells() -> list[Cell]:
    return [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []


def cells_of(table: Path, sets: Mapping[str, SetFile], date: str, net: str) -> list[Cell]:
    """The cells of a study's table in CSV; its column is a rule, a network, a set or a size."""
    with table.open() as lines:
        rows = [
            row for row in csv.DictReader(lines) if int(row["n"]) and row["column"] != AVERAGE and _size(row).isdigit()
        ]
    named = [(row, row.get("set", row["column"])) for row in rows]
    return [_cell(row, sets[name], date, net) for row, name in named if name in sets]


def _cell(row: Mapping[str, str], file: SetFile, date: str, net: str) -> Cell:
    header, column, ipc = file.header, row["column"], int(_size(row))
    whole = ipc * len(header.classes) * header.factor**2 >= header.patches
    return {
        "set": header.name,
        "digest": header.checksums.sha256[:16],
        "rule": "whole" if whole else _rule(row),
        "ipc": ipc,
        "net": column if column in NETS else net,
        "test": row["test"],
        "protocol": row["protocol"],
        "mean": round(100 * float(row["mean"]), 4),
        "std": round(100 * float(row["std"]), 4) if row["std"] else None,
        "n": int(row["n"]),
        "seconds": round(float(row["seconds"])),
        "published": round(100 * float(row["published"]), 2) if row["published"] else None,
        "version": version("condense-once"),
        "torch": version("torch").partition("+")[0],
        "date": date,
    }


def _size(row: Mapping[str, str]) -> str:
    """Images per class, as text; the paper's smaller tables are about one."""
    return row.get("size", row["column"] if row["column"].isdigit() else "1")


def _rule(row: Mapping[str, str]) -> str:
    """The rule of a row; the study of balance has a column for each metric with and without it."""
    metric, column = row.get("method"), row["column"]
    if metric is None:
        return row.get("rule", column)
    if column == "not balanced":
        return metric
    return "yoco" if metric == "lbpe" else f"{metric}-balanced"


def recorded_cells(file: SetFile) -> list[Cell]:
    """The accuracies of the whole set that its header states."""
    header = file.header
    ipc = header.patches // (len(header.classes) * header.factor**2)
    return [
        {
            "set": header.name,
            "digest": header.checksums.sha256[:16],
            "rule": "whole",
            "ipc": ipc,
            "net": entry["net"],
            "test": entry["test"].rpartition(" of ")[2],
            "protocol": entry["protocol"],
            "mean": entry["mean, %"],
            "std": entry["sample std"],
            "n": entry["runs"],
            "seconds": entry.get("seconds"),
            "version": version("condense-once"),
            "torch": version("torch").partition("+")[0],
            "date": entry["date"],
        }
        for entry in header.provenance.get("accuracy", [])
    ]


def add(cells: Iterable[Cell]) -> None:
    """Write the cells, sorted; one that was measured again replaces the older one, unless that has more runs."""
    known = {tuple(cell[field] for field in IDENTITY): cell for cell in read_cells()}
    for cell in cells:
        older = known.get(tuple(cell[field] for field in IDENTITY), cell)
        if cell["n"] >= older["n"]:
            published = cell.get("published") or older.get("published")
            known[tuple(cell[field] for field in IDENTITY)] = {**cell, "published": published}
    ordered = sorted(known.values(), key=lambda cell: [str(cell[field]).rjust(4) for field in IDENTITY])
    CELLS.write_text("".join(json.dumps(cell) + "\n" for cell in ordered))


def render(query: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    """The Markdown table of a query, the best rule at each place in bold."""
    rows, columns = _axis(query["rows"]), _axis(query["columns"])
    where = DEFAULTS | query.get("where", {})
    found = [[find_cell(cells, {**where, **row, **column}) for column in columns.values()] for row in rows.values()]
    for line, row in zip(found, rows.values(), strict=True):
        if not any(line):
            line[0] = find_cell(cells, {**where, **row, **next(iter(columns.values())), "rule": "whole"})
    labels = list(rows)
    if "average" in query:
        found.append([_average(column) for column in zip(*found, strict=True)])
        labels.append(query["average"])
    best = [_best(line) for line in _compared(rows, columns, found)]
    lines = [" | ".join([query.get("corner", ""), *columns])]
    for label, line in zip(labels, found, strict=True):
        bold = [cell is not None and any(cell is one for one in best) for cell in line]
        texts = [
            _text(cell, paper=query.get("paper", False), bold=is_bold) for cell, is_bold in zip(line, bold, strict=True)
        ]
        lines.append(" | ".join([label, *texts]))
    lines = [f"| {line} |\n".replace("|  ", "| ").replace("|  ", "| ") for line in lines]
    return "".join([lines[0], "|---" * (1 + len(columns)) + "|\n", *lines[1:]])


def _compared(rows: Axis, columns: Axis, lines: list[list[Cell | None]]) -> Iterable[Sequence[Cell | None]]:
    """The cells that differ by their rule, and perhaps by their set: rows or columns of the table, if either."""
    if all("rule" in fields for fields in columns.values()):
        return lines
    return zip(*lines, strict=True) if all("rule" in fields for fields in rows.values()) else ()


def _best(line: Sequence[Cell | None]) -> Cell | None:
    cells = [cell for cell in line if cell]
    return max(cells, key=lambda cell: cell["mean"]) if len(cells) > 1 else None


def _average(column: Sequence[Cell | None]) -> Cell | None:
    cells = [cell for cell in column if cell]
    published = [cell["published"] for cell in cells if cell.get("published")]
    if len(cells) < len(column):
        return None
    return {
        "mean": mean(cell["mean"] for cell in cells),
        "std": None,
        "n": min(cell["n"] for cell in cells),
        "published": mean(published) if published else None,
    }


def _axis(spec: Mapping[str, Any]) -> Axis:
    """What the cells of each row or column have in common, by its label."""
    if not set(spec) <= set(IDENTITY):  # labels, each with fields of its own
        return dict(spec)
    ((field, values),) = spec.items()
    if isinstance(values, Mapping):
        return {label: {field: int(value) if field == "ipc" else value} for value, label in values.items()}
    return {str(value): {field: value} for value in values}


def find_cell(cells: Sequence[Cell], wanted: Mapping[str, Any]) -> Cell | None:
    """The one cell with these values; a protocol goes by its name, without the digest of its settings."""
    found = [cell for cell in cells if all(_matches(cell, field, value) for field, value in wanted.items())]
    if len(found) > 1:
        raise SystemExit(f"{len(found)} cells are {dict(wanted)}; the query must say which.")
    return found[0] if found else None


def _matches(cell: Cell, field: str, value: Any) -> bool:
    if isinstance(value, list):
        return cell[field] in value
    return bool(cell[field] == value or (field == "protocol" and cell[field].rpartition("-")[0] == value))


def _text(cell: Cell | None, *, paper: bool, bold: bool) -> str:
    """A mean with its std, n if it is not the usual one, and the paper's number."""
    if cell is None:
        return ""
    text = _rounded(cell["mean"]) if cell["std"] is None else f"{_rounded(cell['mean'])} ± {_rounded(cell['std'])}"
    text = f"**{text}**" if bold else text
    few = "" if cell["n"] >= USUAL_RUNS else f", n = {cell['n']}"
    return text + few + (f" ({_rounded(cell['published'])})" if paper and cell.get("published") else "")


def _rounded(value: float) -> str:
    """To one decimal, halves up."""
    return str(Decimal(str(value)).quantize(Decimal("0.1"), ROUND_HALF_UP))


def with_tables(page: str, cells: Sequence[Cell]) -> str:
    """A page with its tables written anew."""
    return TABLE.sub(lambda found: found[1] + render(json.loads(found["query"]), cells) + found[4], page)


def pages() -> list[Path]:
    return [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]


def outdated() -> list[Path]:
    """Pages with a table that is not what the cells say."""
    cells = read_cells()
    return [page for page in pages() if with_tables(page.read_text(), cells) != page.read_text()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    adding = verbs.add_parser("add")
    adding.add_argument("tables", nargs="*", type=Path)
    adding.add_argument(
        "--set", action="append", required=True, help="a set of the study: [its name there=]FILE or bundled name"
    )
    adding.add_argument("--date", default=datetime.now(UTC).date().isoformat())
    adding.add_argument("--net", default="convnet-d3", help="the network of a study that compares rules")
    verbs.add_parser("tables").add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.verb == "add":
        named = [(name, SetFile.open(find_set(file))) for name, _, file in (spec.rpartition("=") for spec in args.set)]
        sets = {name or file.header.name: file for name, file in named}
        add(cell for file in sets.values() for cell in recorded_cells(file))
        add(cell for table in args.tables for cell in cells_of(table, sets, args.date, args.net))
    elif args.check:
        raise SystemExit("\n".join(f"{page} has outdated tables" for page in outdated()) or None)
    else:
        for page in outdated():
            page.write_text(with_tables(page.read_text(), read_cells()))
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
