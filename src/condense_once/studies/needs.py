"""What each metric needs, as in table 6 of the paper, from what the metrics say of themselves."""

from __future__ import annotations

from condense_once.metrics import METRICS, MetricInfo, Need

COLUMNS = ("metric", "model", "training dynamics", "training", "label")

MODEL: frozenset[Need] = frozenset({"probabilities", "features", "subset_runs"})
DYNAMICS: frozenset[Need] = frozenset({"dynamics", "clean_dynamics"})
TRAINING = {"early": "early", "whole": "full", "end": "full", "none": "none"}


def needs_table() -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Names of columns and a row for each metric.

    >>> columns, rows = needs_table()
    >>> columns, rows[METRICS.names().index("lbpe")]
    (('metric', 'model', 'training dynamics', 'training', 'label'), ('lbpe', '–', 'yes', 'early', 'yes'))
    """
    return COLUMNS, [_row(info) for info in METRICS]


def _row(info: MetricInfo) -> tuple[str, ...]:
    several = ", several runs" if "subset_runs" in info.needs else ""
    return (
        info.name,
        _tick(bool(info.needs & MODEL)),
        _tick(bool(info.needs & DYNAMICS)),
        TRAINING[info.stage] + several,
        _tick(info.labels),
    )


def _tick(needed: bool) -> str:
    return "yes" if needed else "–"
