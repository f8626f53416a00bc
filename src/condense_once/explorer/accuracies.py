"""Accuracies of a set in a store: for every way of measuring, one line per rule over the number of patches kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from condense_once.explorer.same_patches import SamePatches
from condense_once.studies.figures.drawing import mean_and_std
from condense_once.studies.store import Store, StoredSelection
from condense_once.text import plural


class Point(NamedTuple):
    """An accuracy in percent, at so many patches."""

    patches: int
    mean: float
    std: float  # 0 for a single run
    runs: int


@dataclass(frozen=True)
class AccuracyLine:
    rule: str
    label: str  # the rule, and what tells it from another line of the same rule
    points: tuple[Point, ...]  # by ascending size
    net: str | None = None  # that scored the patches


@dataclass(frozen=True)
class Measured:
    """Lines that can be compared: the same network, protocol and test images."""

    label: str
    lines: tuple[AccuracyLine, ...]


class _Run(NamedTuple):
    way: str  # how it was measured
    rule: str
    scores: str  # how they were made, as JSON, without the seed
    patches: int
    key: str  # of the evaluation: rules that keep the same patches share it
    repeat: tuple[Any, ...]
    accuracy: float


def measured_accuracies(same: SamePatches, store: Store) -> list[Measured]:
    """Everything that a store knows of a set, the way with the most runs first."""
    runs = list(_runs(same, store))
    ways = {way: [run for run in runs if run.way == way] for way in dict.fromkeys(run.way for run in runs)}
    return [
        Measured(way, tuple(_lines(members))) for way, members in sorted(ways.items(), key=lambda item: -len(item[1]))
    ]


def _runs(same: SamePatches, store: Store) -> Iterator[_Run]:
    for key, facts in store.facts("selections"):
        if facts.get("set") not in same.rows:
            continue
        selection = store.selection(key)
        if not isinstance(selection, StoredSelection):
            continue
        evaluation = store.evaluation(selection.evaluation_key)
        if evaluation is None or evaluation.result is None:
            continue
        result, scores = evaluation.result, dict(facts["scores"])
        seed = scores.pop("seed", None)
        precision = f", {facts['precision']}" if "precision" in facts else ""
        tested = f"{plural(result['test_images'], 'test image')} of {result['test']}"
        yield _Run(
            way=f"{facts['net']}, protocol {facts['protocol']}{precision}, {tested}",
            rule=facts["rule"],
            scores=json.dumps(scores, sort_keys=True),
            patches=int(facts["patches"]),
            key=selection.evaluation_key,
            repeat=(facts["repeat"], seed),
            accuracy=100 * float(result["accuracy"]),
        )


def _lines(runs: list[_Run]) -> Iterator[AccuracyLine]:
    for rule in dict.fromkeys(run.rule for run in runs):
        variants = list(dict.fromkeys(run.scores for run in runs if run.rule == rule))
        for variant, label in zip(variants, _labels(rule, variants), strict=True):
            members = [run for run in runs if (run.rule, run.scores) == (rule, variant)]
            yield AccuracyLine(rule, label, tuple(_points(members)), json.loads(variant).get("net"))


def _points(runs: list[_Run]) -> Iterator[Point]:
    for patches in sorted({run.patches for run in runs}):
        values = {(run.key, run.repeat): run.accuracy for run in runs if run.patches == patches}
        mean, std = mean_and_std(list(values.values()))
        yield Point(patches, round(mean, 3), round(std, 3), len(values))


def _labels(rule: str, variants: list[str]) -> Iterator[str]:
    """The name of the rule, with the settings in which the variants of its scores differ."""
    parsed: list[Mapping[str, Any]] = [json.loads(variant) for variant in variants]
    for own in parsed:
        differ = [name for name in own if any(other.get(name) != own[name] for other in parsed)]
        yield f"{rule} ({', '.join(f'{name} {own[name]}' for name in differ)})" if differ else rule
