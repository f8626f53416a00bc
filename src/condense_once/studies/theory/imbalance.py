"""Theorems 2.1 and 2.2: the generalisation gap and the test loss, against the imbalance of selections of equal size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.evaluation.evaluate import evaluate
from condense_once.selection.select import select
from condense_once.studies.theory.measurement import THEORY, Chart, Measurement, Record, TheoryConfig, scored
from condense_once.studies.theory.rademacher import imbalance_of
from condense_once.train.seeds import numpy_generator

PURPOSE = "imbalance"  # goes into the seeds
RULE = "yoco"  # which patches of a class are kept; how many is what varies
BY_SCORE = "lbpe"  # the paper's unbalanced selection, for comparison


def imbalance(data: CondensedSet, config: TheoryConfig) -> Iterator[Record]:
    """For each size and ratio: losses and accuracy of a network trained on a long-tailed selection; each seed is a run.

    Which class is large and which is small is sampled by the seed.
    """
    data = scored(data, config)
    for size in config.sizes or (len(data) // 10,):
        for kind, name, chosen in _selections(data, size, config):
            result = evaluate(
                chosen,
                config.test,
                protocol=config.protocol,
                net=config.net,
                repeats=1,
                seed=config.seed,
                compute=config.compute,
            )
            run = result.runs[0]
            yield {
                "set": data.name,
                "patches": size,
                "kind": kind,
                "selection": name,
                "imbalance": imbalance_of(chosen),
                "training loss": run.train_loss,
                "test loss": run.test_loss,
                "generalisation gap": run.test_loss - run.train_loss,
                "accuracy": run.accuracy,
            }


def long_tail(total: int, sizes: NDArray[np.int64], ratio: float) -> NDArray[np.int64]:
    """Counts of `total` patches that fall geometrically from the first class to the last, which has 1/`ratio` as many.

    `sizes` [C] is what the classes have; a class that has too few passes the rest on to the others.

    >>> long_tail(40, np.full(4, 40), 1).tolist(), long_tail(40, np.full(4, 40), 8).tolist()
    ([10, 10, 10, 10], [21, 11, 5, 3])
    """
    if total > sizes.sum():
        raise BadOption(f"A selection of {total} patches cannot be made of {sizes.sum()}; lower `sizes`.")
    steps = np.arange(len(sizes)) / max(1, len(sizes) - 1)
    weights = float(ratio) ** -steps
    counts = np.zeros(len(sizes), np.int64)
    for _ in range(total):  # the class that is furthest behind its part of the total
        behind = np.where(counts < sizes, weights / weights.sum() * total - counts, -np.inf)
        counts[int(behind.argmax())] += 1
    return counts


def _selections(data: CondensedSet, size: int, config: TheoryConfig) -> Iterator[tuple[str, str, CondensedSet]]:
    """Long-tailed selections, and the paper's unbalanced one: kind, name and patches."""
    order = numpy_generator(config.seed, PURPOSE).permutation(len(data.classes))
    available = data.counts()[order]
    for ratio in config.ratios:
        counts = dict(zip(order.tolist(), long_tail(size, available, ratio).tolist(), strict=True))
        per_class = {data.classes[label]: count for label, count in sorted(counts.items()) if count}
        yield "long-tailed", f"{ratio:g} : 1", select(data, RULE, per_class=per_class)
    yield "lowest LBPE", BY_SCORE, select(data, BY_SCORE, total=size)


IMBALANCE = THEORY.add(
    Measurement(
        "imbalance",
        "Theorems 2.1 and 2.2: generalisation gap against the imbalance of selections of equal size",
        "At equal size a balanced selection has the smaller expected loss, and imbalance harms small sets more than large ones.",
        keys=("set", "patches", "kind", "selection"),
        values=("imbalance", "training loss", "test loss", "generalisation gap", "accuracy"),
        chart=Chart("imbalance", "generalisation gap", lines=("kind", "patches"), panels=("set",)),
        measure=imbalance,
    )
)
