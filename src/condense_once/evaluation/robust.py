"""DD-Ranking's two scores (Li et al., 2025): how much better than random images a set is, whatever labels and augmentation do.

Label-robust, LRS: α = w·(syn-any − rdm-any) − (1 − w)·(real-hard − syn-hard). Augmentation-robust, ARS:
β = w·(syn-aug − rdm-aug) + (1 − w)·(syn-naug − rdm-naug). Both are mapped to 0…1 by (eᵃ − e⁻¹) / (e − e⁻¹). Accuracies are
fractions; w = 0.5 as on the leaderboard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, nan
from pathlib import Path
from statistics import mean, stdev

import numpy as np

from condense_once.condensed.bundled import as_set
from condense_once.condensed.class_matching import match_classes
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.soft_labels import LabelUse
from condense_once.condensed.space import Space
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.evaluation.evaluate import evaluate, labels_for
from condense_once.evaluation.inputs import resolve_test
from condense_once.evaluation.protocols import Protocol, as_protocol
from condense_once.nets import NetChoice
from condense_once.text import plural
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.seeds import Stream, numpy_generator

WEIGHT = 0.5  # of either part of a score, as on DD-Ranking's leaderboard


@dataclass(frozen=True)
class RobustScores:
    """The accuracies of every repeat, as fractions, and the scores that follow from them."""

    set_name: str
    protocol: str  # its id
    labels: LabelUse  # that the protocol trains on
    real_images: int  # random ones that the set is compared with
    syn_any: tuple[float, ...]  # the set, as the protocol trains
    syn_hard: tuple[float, ...]  # with hard labels
    syn_plain: tuple[float, ...]  # without augmentation and CutMix
    random_any: tuple[
        float, ...
    ]  # random real images, as the protocol trains; with hard labels, as there is no teacher
    random_plain: tuple[float, ...]  # and without augmentation
    full_accuracy: float | None = None  # of a network trained on all real images

    @property
    def lrs(self) -> tuple[float, float]:
        """Mean and standard deviation of the label-robust score; NaN without `full_accuracy`."""
        if self.full_accuracy is None:
            return nan, nan
        runs = zip(self.syn_any, self.random_any, self.syn_hard, strict=True)
        return _spread([label_robust(any_, random, hard, self.full_accuracy) for any_, random, hard in runs])

    @property
    def ars(self) -> tuple[float, float]:
        """Mean and standard deviation of the augmentation-robust score."""
        runs = zip(self.syn_any, self.random_any, self.syn_plain, self.random_plain, strict=True)
        return _spread([augmentation_robust(*run) for run in runs])


def label_robust(syn_any: float, random_any: float, syn_hard: float, real_hard: float, weight: float = WEIGHT) -> float:
    """LRS of four accuracies.

    >>> round(label_robust(1.0, 0.0, 1.0, 1.0, weight=1), 3), round(label_robust(0.6, 0.4, 0.6, 0.85), 3)
    (1.0, 0.258)
    """
    return _normalised(weight * (syn_any - random_any) - (1 - weight) * (real_hard - syn_hard))


def augmentation_robust(
    syn_aug: float, random_aug: float, syn_plain: float, random_plain: float, weight: float = WEIGHT
) -> float:
    """ARS of four accuracies.

    >>> round(augmentation_robust(0.4, 0.4, 0.3, 0.3), 3), round(augmentation_robust(0.6, 0.4, 0.5, 0.3), 3)
    (0.269, 0.363)
    """
    return _normalised(weight * (syn_aug - random_aug) + (1 - weight) * (syn_plain - random_plain))


def robust_scores(
    data: CondensedSet | str | Path,
    test: Source | str | Path | None = None,
    *,
    full_accuracy: float | None = None,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 3,
    seed: int = 0,
    compute: ComputeConfig | None = None,
    data_dir: Path | None = None,
) -> RobustScores:
    """Measure DD-Ranking's scores by one of our protocols. It takes four evaluations, five if the set has soft labels.

    The set is compared with random training images of `test`, as many per class as it stores images, another sample for every
    repeat. `full_accuracy`, a fraction, is that of a network trained on all of them with hard labels; without it there is
    no LRS. Scores by different protocols or networks do not compare, with each other or with the leaderboard.
    """
    data, chosen = as_set(data), as_protocol(protocol)
    if full_accuracy is not None and not 0 <= full_accuracy <= 1:
        raise BadOption(f"`full_accuracy` is a fraction from 0 to 1, not {full_accuracy}; divide percents by 100.")
    if data.space.kind == "zca":
        raise BadOption(f"{data.name} is ZCA-whitened, and random images are not; robust scores need pixels.")
    source, _ = resolve_test(data, test, data_dir=data_dir)
    samples = [random_images(data, source, seed + repeat) for repeat in range(repeats)]
    plain = without_augmentation(chosen)
    use = labels_for(data, chosen)

    def accuracies(sets: Sequence[CondensedSet], by: Protocol, labels: LabelUse) -> tuple[float, ...]:
        """Of one run per repeat: of the one set all at once, of several one each."""
        runs = repeats if len(sets) == 1 else 1
        results = [
            evaluate(
                one,
                source,
                protocol=by,
                net=net,
                repeats=runs,
                seed=seed,
                compute=compute,
                data_dir=data_dir,
                labels=labels,
            )
            for one in sets
        ]
        return tuple(run.accuracy for result in results for run in result.runs)

    any_ = accuracies([data], chosen, use)
    return RobustScores(
        set_name=data.name,
        protocol=chosen.id,
        labels=use,
        real_images=len(samples[0]),
        syn_any=any_,
        syn_hard=any_ if use == "hard" else accuracies([data], chosen, "hard"),
        syn_plain=accuracies([data], plain, use),
        random_any=accuracies(samples, chosen, "hard"),
        random_plain=accuracies(samples, plain, "hard"),
        full_accuracy=full_accuracy,
    )


def without_augmentation(protocol: Protocol) -> Protocol:
    """The same protocol without augmentation and CutMix."""
    small, large = (replace(recipe, augmentation="none", cutmix=0.0) for recipe in (protocol.small, protocol.large))
    return replace(protocol, name=f"{protocol.name}-plain", small=small, large=large)


def random_images(data: CondensedSet, source: Source, seed: int) -> CondensedSet:
    """Random training images of a source, as many of each class as the set stores images, rounded up."""
    numbers = match_classes(data, source)[source.train.labels]  # labels in the numbering of the set
    rng = numpy_generator(seed, Stream.RANDOM_IMAGES)
    rows = []
    for label, patches in enumerate(data.counts()):
        members, wanted = np.flatnonzero(numbers == label), -(-int(patches) // data.factor**2)
        if len(members) < wanted:
            raise BadOption(
                f"{source.name} has {plural(len(members), 'training image')} of {data.classes[label]!r}, fewer than the"
                f" {wanted} that {data.name} stores; pass a `test` with its whole train split."
            )
        rows.append(rng.choice(members, wanted, replace=False))
    chosen = np.sort(np.concatenate(rows))
    return CondensedSet(
        cells=source.train.take(chosen),
        labels=numbers[chosen],
        classes=data.classes,
        size=data.size,
        factor=1,
        space=Space("pixels", data.space.mean, data.space.std),
        origin=chosen,
        name=f"random images of {source.name}",
    )


def _normalised(value: float) -> float:
    """From −1…1 to 0…1."""
    return (exp(value) - exp(-1)) / (exp(1) - exp(-1))


def _spread(values: Sequence[float]) -> tuple[float, float]:
    return mean(values), stdev(values) if len(values) > 1 else nan
