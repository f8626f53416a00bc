"""Measuring accuracy over size: the points, what is kept of an interrupted run, and what they are of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import condense_once
from condense_once.condensed.accuracy_curve import AccuracyCurve
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.errors import BadOption
from condense_once.evaluation.curve import part_of, points_of
from condense_once.evaluation.protocols import PROTOCOLS, Protocol

NET = "convnet-d1-w4"


@pytest.fixture
def ranked() -> CondensedSet:
    data = condense_once.load("cifar10-real-ipc10", first=60)
    return replace(data, ranking=Ranking("lbpe"))


@pytest.fixture
def short() -> Protocol:
    quick = PROTOCOLS.get("quick")
    return replace(quick, name="short", small=replace(quick.small, epochs=1))


def test_points_are_balanced_ascending_and_end_with_all(ranked: CondensedSet) -> None:
    points = list(points_of(ranked))
    assert all(patches % 10 == 0 for patches, _ in points)
    assert (60, None) in points
    assert {layers for patches, layers in points if patches == 60} == {None, 1, 2, 3, 4}
    assert len(set(points)) == len(points)


def test_a_curve_is_measured_once_and_every_point_is_handed_over(ranked: CondensedSet, short: Protocol) -> None:
    seen: list[CondensedSet] = []
    ticks: list[tuple[int, int]] = []
    made = condense_once.measure_curve(
        ranked,
        "cifar10-sample",
        protocol=short,
        net=NET,
        repeats=1,
        measured=seen.append,
        progress=lambda done, total: ticks.append((done, total)),
    )
    points = list(points_of(ranked))
    assert len(seen) == len(ticks) == len(points)
    assert ticks[-1][0] == ticks[-1][1]
    curve = AccuracyCurve.of(made.provenance)
    assert curve is not None
    assert {(point.patches, point.layers) for point in curve.points} == set(points)
    assert curve.test == "1000 images of cifar10-sample"
    alone = condense_once.evaluate(part_of(ranked, 60, 1), "cifar10-sample", protocol=short, net=NET, repeats=1)
    assert {(p.patches, p.layers): p.accuracy for p in curve.points}[60, 1] == round(alone.mean, 4)

    again: list[CondensedSet] = []
    part = seen[len(points) // 2]
    condense_once.measure_curve(part, "cifar10-sample", protocol=short, net=NET, repeats=1, measured=again.append)
    assert len(again) == len(points) - 1 - len(points) // 2
    assert again[-1].provenance["curve"]["points"] == made.provenance["curve"]["points"]


def test_points_of_another_network_are_not_kept(ranked: CondensedSet, short: Protocol) -> None:
    seen: list[CondensedSet] = []
    made = condense_once.measure_curve(ranked, "cifar10-sample", protocol=short, net=NET, repeats=1)
    condense_once.measure_curve(
        made, "cifar10-sample", protocol=short, net="convnet-d1-w2", repeats=1, measured=seen.append
    )
    assert len(seen) == len(list(points_of(ranked)))


def test_a_set_that_is_not_ranked_is_refused() -> None:
    with pytest.raises(BadOption, match="is not ranked"):
        condense_once.measure_curve(replace(condense_once.load("cifar10-real-ipc10"), ranking=None), "cifar10-sample")


def test_coded_parts_differ_from_stored_ones_less_and_less(ranked: CondensedSet) -> None:
    cells = part_of(ranked, 40, None).cells.astype(np.float64)
    errors = [np.abs(part_of(ranked, 40, layers).cells - cells).mean() for layers in (1, 2, 3, 6)]
    assert errors == sorted(errors, reverse=True)
    assert 0 < errors[-1] < 4
