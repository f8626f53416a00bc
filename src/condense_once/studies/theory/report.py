"""Findings of a measurement as text, CSV and figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from condense_once.errors import BadOption, MissingExtra
from condense_once.files import atomic_file, refuse_existing
from condense_once.studies.theory.measurement import Findings, Record, mean_and_std

if TYPE_CHECKING:  # an extra
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TABLES, FIGURES = (".md", ".csv"), (".png", ".svg")
MAX_CLASSIC = 12  # places along a horizontal axis that are all labelled


def table_rows(findings: Findings) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Column names, and a row of means ± std over runs for each combination of keys."""
    measurement = findings.measurement
    rows = []
    for keys, group in findings.groups().items():
        values = (_number([float(record[name]) for record in group]) for name in measurement.values)
        rows.append((*map(str, keys), *values, str(len(group))))
    return (*measurement.keys, *measurement.values, "n"), rows


def save_findings(findings: Findings, path: Path, *, force: bool = False) -> None:
    """Write the means as Markdown (.md), all records as CSV (.csv), or the chart (.png, .svg)."""
    check_file(path, force=force)
    suffix = path.suffix.lower()
    if suffix in FIGURES:
        content = _drawn(findings, suffix)
    else:
        content = (to_markdown(findings) if suffix == ".md" else to_csv(findings)).encode()
    with atomic_file(path, force=force) as out:
        out.write(content)


def check_file(path: Path, *, force: bool = False) -> None:
    """Refuse a file that could not be written, before anything is measured."""
    refuse_existing(path, force)
    if path.suffix.lower() not in (*TABLES, *FIGURES):
        raise BadOption(
            f"Findings are written as Markdown (.md), CSV (.csv) or a figure (.png, .svg), not as {path}; choose another"
            " suffix."
        )
    if path.suffix.lower() in FIGURES:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise MissingExtra("Drawing figures", "figures") from None


def to_markdown(findings: Findings) -> str:
    columns, rows = table_rows(findings)
    left = len(findings.measurement.keys)
    rules = ["---"] * left + ["---:"] * (len(columns) - left)
    lines = [f"| {' | '.join(cells)} |" for cells in (columns, rules, *rows)]
    notes = [f"\n{note}" for note in findings.notes]
    return "\n".join(
        [f"## {findings.measurement.summary}", "", f"Claim: {findings.measurement.claim}", "", *lines, *notes, ""]
    )


def to_csv(findings: Findings) -> str:
    """One line per record, that is, per run."""
    text = io.StringIO()
    names = ("run", *findings.measurement.keys, *findings.measurement.values)
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(findings.records)
    return text.getvalue()


def _number(values: Sequence[float]) -> str:
    """Mean ± std.

    >>> _number([0.5, 0.7]), _number([1234.5]), _number([float("nan")])
    ('0.600 ± 0.141', '1234.500', '–')
    """
    mean, std = mean_and_std(values)
    if isnan(mean):
        return "–"
    return f"{mean:.3f}" if std is None else f"{mean:.3f} ± {std:.3f}"


def _drawn(findings: Findings, suffix: str) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure

    from condense_once.studies.figures.save import DPI, METADATA
    from condense_once.studies.figures.style import RC

    out, settings = io.BytesIO(), cast(dict[Any, Any], RC)
    with matplotlib.rc_context(settings):
        figure = Figure(layout="constrained")
        draw(figure, findings)
        figure.savefig(out, format=suffix[1:], dpi=DPI, metadata=dict(METADATA[suffix]))
    return out.getvalue()


def draw(figure: Figure, findings: Findings) -> None:
    """One panel per set and size, one line per kind, over epochs or imbalance; bands are ± one standard deviation."""
    from condense_once.studies.figures.style import panels

    chart = findings.measurement.chart
    known = [record for record in findings.records if not isnan(float(record[chart.y]))]
    if not known:
        raise BadOption(f"There is no {chart.y} to draw; measure it, or write a table.")
    places = _grouped(known, chart.panels)
    for area, (place, group) in zip(panels(figure, len(places), across=2, height=2.9), places.items(), strict=True):
        for number, (line, records) in enumerate(_grouped(group, chart.lines).items()):
            _draw_line(area, findings, number, line, records)
        area.set_title(
            ", ".join(_labelled(name, value) for name, value in zip(chart.panels, place, strict=True)), loc="left"
        )
        area.set_xlabel(chart.x)
        area.set_ylabel(chart.y)
        area.legend(loc="best")
    figure.suptitle(findings.measurement.summary, fontsize="large", x=0.01, ha="left")


def _draw_line(
    area: Axes, findings: Findings, number: int, line: tuple[str | int | float, ...], records: Sequence[Record]
) -> None:
    from condense_once.studies.figures.style import colour, dash

    chart = findings.measurement.chart
    by_keys = Findings(findings.measurement, tuple(records)).groups().values()
    points = sorted(
        (mean_and_std([float(r[chart.x]) for r in group])[0], *mean_and_std([float(r[chart.y]) for r in group]))
        for group in by_keys
    )
    where, means, stds = zip(*points, strict=True)
    spread = [std or 0.0 for std in stds]
    if chart.x == "epoch":
        area.set_xscale("symlog", linthresh=1)
        area.set_xticks(where[:MAX_CLASSIC], [f"{place:g}" for place in where[:MAX_CLASSIC]])
    name = ", ".join(_labelled(key, value) for key, value in zip(chart.lines, line, strict=True))
    area.plot(where, means, color=colour(number), linestyle=dash(number), marker="o", markersize=4, label=name)
    low, high = ([m + sign * s for m, s in zip(means, spread, strict=True)] for sign in (-1, 1))
    area.fill_between(where, low, high, color=colour(number), alpha=0.18, linewidth=0)


def _grouped(records: Sequence[Record], names: Sequence[str]) -> dict[tuple[str | int | float, ...], list[Record]]:
    found: dict[tuple[str | int | float, ...], list[Record]] = {}
    for record in records:
        found.setdefault(tuple(record[name] for name in names), []).append(record)
    return found


def _labelled(name: str, value: str | int | float) -> str:
    return f"{value} patches" if name == "patches" else str(value)
