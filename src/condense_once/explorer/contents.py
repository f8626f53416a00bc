"""What a page contains, as plain JSON with packed arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once._version import __version__
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.sprite import PAD, Sprite
from condense_once.explorer.accuracies import Measured
from condense_once.explorer.assemble import packed
from condense_once.explorer.layout import map_positions
from condense_once.explorer.rankings import PageRanking
from condense_once.explorer.real_images import RealImages
from condense_once.explorer.scoring import SeenPatches
from condense_once.explorer.story import citations_of, facts_of, recorded_accuracies, summary_of
from condense_once.metrics import METRICS
from condense_once.selection.rule import RULES
from condense_once.studies.figures.style import COLOURS

MAX_EPOCHS = 60  # points of an error curve
WORST = 2**0.5  # the largest error


def page_contents(
    data: CondensedSet,
    sprite: Sprite,
    seen: SeenPatches,
    rankings: Sequence[PageRanking],
    measured: Sequence[Measured],
    real: RealImages | None = None,
) -> dict[str, Any]:
    return {
        "by": f"condense-once {__version__}",
        "name": data.name,
        "summary": summary_of(data),
        "classes": list(data.classes),
        "factor": data.factor,
        "labels": packed(data.labels.astype(np.uint16)),
        "origin": packed(data.origin.astype(np.uint32)),
        "places": _places(data),
        "sprite": _shape(sprite),
        "real": None if real is None else _real(real),
        "metrics": [_metric(name, values) for name, values in data.scores.items()],
        "rankings": [_ranking(ranking) for ranking in rankings],
        "rules": {info.name: info.summary for info in RULES},
        "map": _map(seen),
        "errors": None if seen.errors is None else _errors(seen.errors),
        "accuracy": [asdict(way) for way in measured],
        "recorded": recorded_accuracies(data),
        "facts": facts_of(data),
        "cite": citations_of(data),
        "notes": list(sprite.notes),
        "colours": list(COLOURS),
    }


def _metric(name: str, values: NDArray[np.float32]) -> dict[str, Any]:
    known = METRICS.get(name) if name in METRICS else None
    return {
        "name": name,
        "summary": "" if known is None else known.summary,
        "easy": "low" if known is None else known.easy,
        "scores": packed(values.astype(np.float32)),
    }


def _ranking(ranking: PageRanking) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: getattr(ranking, name) for name in ("label", "command", "rule", "metric", "prefer", "balanced", "net")
    }
    fields["order"] = None if ranking.order is None else packed(ranking.order.astype(np.uint32))
    fields["sizes"] = None
    if ranking.sizes is not None:
        counts, sizes = ranking.sizes
        fields["sizes"] = {"counts": packed(counts.astype(np.uint32)), "bytes": packed(sizes.astype(np.float64))}
    return fields


def _shape(sprite: Sprite) -> dict[str, int]:
    return {"columns": sprite.columns, "width": sprite.width, "height": sprite.height, "pad": PAD}


def _real(real: RealImages) -> dict[str, Any]:
    return {"sprite": _shape(real.sprite), "similarity": packed(real.similarity), "source": real.source}


def _places(data: CondensedSet) -> dict[str, Any] | None:
    """Where each patch is in the mosaics of its class, if all of the set is there: stored image and cell."""
    per_image, counts = data.factor**2, data.counts()
    if data.factor == 1 or (counts % per_image).any() or len(np.unique(data.origin)) < len(data):
        return None
    images, cells = np.zeros(len(data), np.uint32), np.zeros(len(data), np.uint8)
    for label, count in enumerate(counts):
        members = np.flatnonzero(data.labels == label)
        members = members[np.argsort(data.origin[members], kind="stable")]
        place = np.arange(count)  # cell by cell, within a cell image by image
        images[members], cells[members] = place % max(count // per_image, 1), place // max(count // per_image, 1)
    return {"image": packed(images), "cell": packed(cells)}


def _map(seen: SeenPatches) -> dict[str, Any]:
    positions = (map_positions(seen.features) * 65535).round().astype(np.uint16)
    return {"x": packed(positions[:, 0]), "y": packed(positions[:, 1]), "of": seen.source}


def _errors(errors: NDArray[np.float32]) -> dict[str, Any]:
    """Error curves `[N, epochs shown]` in 256 steps."""
    total = len(errors)
    shown = np.unique(np.linspace(0, total - 1, min(total, MAX_EPOCHS)).round().astype(np.int64))
    steps = (errors[shown].T / WORST * 255).clip(0, 255).round().astype(np.uint8)
    return {"epochs": shown.tolist(), "values": packed(steps), "worst": WORST}
