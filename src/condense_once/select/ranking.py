"""Ranking: score every patch once, order them once; from then on a smaller set is a prefix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricSettings
from condense_once.metrics.gathering import gather
from condense_once.select.order import Prefer, order_rows

Progress = Callable[[int, int], None]  # epochs done, of all runs together


def rank(
    data: CondensedSet,
    metric: str = "lbpe",
    *,
    prefer: Prefer = "easy",
    balanced: bool = True,
    runs: int = 1,
    seed: int = 0,
    net: str | None = None,
    settings: MetricSettings | None = None,
    progress: Progress | None = None,
) -> CondensedSet:
    """The same patches stored best first, with their scores; YOCO is the rule that stands as default.

    Scores are the mean of `runs` training runs, each from other weights.
    """
    if runs < 1:
        raise BadOption(f"A ranking needs at least one run, not {runs}.")
    chosen, settings = METRICS.get(metric), settings or MetricSettings(seed=seed)
    epochs = chosen.epochs_needed(settings)
    scores = np.zeros(len(data), np.float32)
    for run in range(runs):

        def tick(done: int, before: int = run * epochs) -> None:
            if progress is not None:
                progress(before + done, runs * epochs)

        evidence = gather(data, [metric], settings, net=net, seed=seed + run, progress=tick)
        scores += chosen.score(evidence, settings) / np.float32(runs)
    rows = order_rows(scores, data.labels, easy=chosen.easy, prefer=prefer, balanced=balanced)
    plain = {**asdict(settings), "lbpe": str(settings.lbpe)}
    rule = Ranking(metric, prefer, balanced, {"runs": runs, "seed": seed, "net": net, **plain})
    return replace(replace(data, scores={**data.scores, metric: scores}).take(rows), ranking=rule)
