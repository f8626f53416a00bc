"""What each metric requires, as in table 6 of the paper, from the registry of metrics."""

from __future__ import annotations

from condense_once.metrics import METRICS, MetricInfo, Need
from condense_once.studies.table import Row, Table

COLUMNS = ("metric", "model", "training dynamics", "training", "label")

MODEL: frozenset[Need] = frozenset({"probabilities", "features", "subset_runs", "untrained"})
DYNAMICS: frozenset[Need] = frozenset({"dynamics", "clean_dynamics"})
TRAINING = {"early": "early", "whole": "full", "end": "full", "none": "none"}


def requirements_table(title: str = "What each metric requires") -> Table:
    """One row per metric, all labels.

    >>> table = requirements_table()
    >>> table.axes, table.rows[METRICS.names().index("lbpe")].labels
    (('metric', 'model', 'training dynamics', 'training', 'label'), ('lbpe', '–', 'yes', 'early', 'yes'))
    """
    return Table(title, COLUMNS, columns=(), rows=tuple(Row(_labels(info), ()) for info in METRICS), notes=())


def _labels(info: MetricInfo) -> tuple[str, ...]:
    several = ", several runs" if "subset_runs" in info.needs else ""
    return (
        info.name,
        _tick(bool(info.needs & MODEL)),
        _tick(bool(info.needs & DYNAMICS)),
        TRAINING[info.stage] + several,
        _tick(info.labels),
    )


def _tick(required: bool) -> str:
    return "yes" if required else "–"
