"""Measure accuracy over size: evaluate a ranked set at a few sizes, as stored and coded in few layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from condense_once.condensed.accuracy_curve import ENTRY, AccuracyCurve, CurvePoint
from condense_once.condensed.bundled import as_set
from condense_once.condensed.codec.layered import LAYERS, decode_layers
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import require_ranking
from condense_once.condensed.subset import resize as resized
from condense_once.data.source import Source
from condense_once.evaluation.evaluate import evaluate
from condense_once.evaluation.inputs import resolve_test
from condense_once.evaluation.protocols import Protocol, as_protocol
from condense_once.evaluation.result import Result
from condense_once.nets import NetChoice, default_net, net_name
from condense_once.progress import Progress
from condense_once.train.compute_config import ComputeConfig

SIZES = 6  # at which patches are evaluated as stored
FEWEST_PER_CLASS = 4  # patches of the smallest size, if there are more
CODED = {1.0: (1, 2, 3, 4), 0.4: (1, 2)}  # fraction of the patches: numbers of layers


def measure_curve(
    data: CondensedSet | str | Path,
    test: Source | str | Path | None = None,
    *,
    protocol: str | Protocol = "quick",
    net: NetChoice | None = None,
    repeats: int = 2,
    seed: int = 0,
    compute: ComputeConfig | None = None,
    data_dir: Path | None = None,
    progress: Progress | None = None,
    measured: Callable[[CondensedSet], None] | None = None,
) -> CondensedSet:
    """The ranked set with its curve of accuracy over size, from which `info` and `resize` predict.

    A dozen evaluations, each of `repeats` networks, on sets of all sizes. Points that the set has already, measured in the same
    way, are kept. `progress` counts patches of all evaluations; `measured` receives the set after each, so that nothing is lost.
    """
    data, protocol = as_set(data), as_protocol(protocol)
    require_ranking(data.ranking, data.name)
    source, _ = resolve_test(data, test, data_dir=data_dir)
    chosen, todo = net_name(net or default_net(data.shape)), list(points_of(data))
    found = _known(data, protocol, chosen, source)
    done, total = 0, sum(patches for patches, _ in todo)
    for patches, layers in todo:
        if (patches, layers) not in found:
            result = evaluate(
                part_of(data, patches, layers),
                source,
                protocol=protocol,
                net=net,
                repeats=repeats,
                seed=seed,
                compute=compute,
                data_dir=data_dir,
            )
            found[patches, layers] = result.mean
            data = _with_points(data, result, found)
            if measured is not None:
                measured(data)
        done += patches
        if progress is not None:
            progress(done, total)
    return data


def points_of(data: CondensedSet) -> Iterator[tuple[int, int | None]]:
    """Numbers of patches, and of the layers they are coded in, at which a curve is measured; the quickest first.

    >>> from condense_once import load
    >>> list(points_of(load("cifar10-idc-ipc10")))[5:]
    [(160, 2), (250, None), (400, None), (400, 1), (400, 2), (400, 3), (400, 4)]
    """
    classes = int((data.counts() > 0).sum())
    rounds = len(data) // classes
    first = min(FEWEST_PER_CLASS, rounds)
    sizes = {classes * round(size) for size in np.geomspace(first, rounds, SIZES)}
    points: set[tuple[int, int | None]] = {(size, None) for size in sizes}
    for fraction, numbers in CODED.items():
        points |= {(classes * max(first, round(fraction * rounds)), layers) for layers in numbers}
    return iter(sorted(points, key=lambda point: (point[0], point[1] or 0)))


def part_of(data: CondensedSet, patches: int, layers: int | None) -> CondensedSet:
    """The first patches of a ranked set, as stored or as decoded from so many layers."""
    part = data if patches == len(data) else resized(data, total=patches)
    return part if layers is None else replace(part, cells=decode_layers(part, layers))


def _known(data: CondensedSet, protocol: Protocol, net: str, test: Source) -> dict[tuple[int, int | None], float]:
    """The points of the set's own curve, if it was measured in the same way."""
    curve = AccuracyCurve.of(data.provenance)
    if curve is None or (curve.protocol, curve.net, curve.test) != (protocol.id, net, _tested_on(test)):
        return {}
    return {(point.patches, point.layers): point.accuracy for point in curve.points}


def _tested_on(test: Source) -> str:
    return f"{len(test.test.labels)} images of {test.name}"


def _with_points(data: CondensedSet, result: Result, found: dict[tuple[int, int | None], float]) -> CondensedSet:
    tested = f"{result.test_images} images of {result.test}"
    points = tuple(CurvePoint(patches, layers, round(mean, 4)) for (patches, layers), mean in found.items())
    curve = AccuracyCurve(result.protocol, result.net, tested, len(data.classes), LAYERS, points)
    return replace(data, provenance={**data.provenance, ENTRY: curve.to_json()})
