"""Accuracy over size: measured at a few sizes of a ranked set, predicted between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from condense_once.errors import BadOption

ENTRY = "curve"  # of the provenance
SMALLEST_ERROR = 0.005  # training again with another seed differs by as much
ERRORS = 2.0  # on each side of a prediction: about 90 %, as the error itself comes from few points


class Prediction(NamedTuple):
    """The expected accuracy, and the interval that a measured one should be in nine times of ten."""

    accuracy: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.accuracy:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f} %)"


@dataclass(frozen=True)
class CurvePoint:
    """The mean accuracy of networks trained on the first `patches` of a set."""

    patches: int
    layers: int | None  # that each of them was coded in; None: as stored
    accuracy: float

    def to_json(self) -> list[Any]:
        return [self.patches, self.layers, self.accuracy]


@dataclass(frozen=True)
class AccuracyCurve:
    """What prefixes of a ranked set reach, and what is left of that when their patches are coded in few layers.

    Between measured sizes accuracy is linear in the logarithm of the number of patches. Coding in layers leaves a share of what
    is above chance, which is linear in the number of layers.

    >>> points = [CurvePoint(10, None, 0.3), CurvePoint(40, None, 0.5), CurvePoint(160, None, 0.6), CurvePoint(160, 1, 0.35)]
    >>> curve = AccuracyCurve("quick", "convnet-d3", "cifar10", classes=10, layers=6, points=tuple(points))
    >>> str(curve.predict(20))
    '40.0 % (35.0 to 45.0 %)'
    >>> round(curve.predict(160, layers=1).accuracy, 3), curve.patches_for(0.5)
    (0.35, 40)
    """

    protocol: str  # its id
    net: str
    test: str  # the test images
    classes: int
    layers: int  # of the code, in which a patch is nearly as stored
    points: tuple[CurvePoint, ...]

    def __post_init__(self) -> None:
        if not any(point.layers is None for point in self.points):
            raise BadOption("A curve needs the accuracy of the patches as they are stored, at one size at least.")

    def predict(self, patches: int, layers: float | None = None, *, of: int | None = None) -> Prediction:
        """The accuracy of the first `patches`; `layers` may be a fraction, if some patches have one more than others.

        `of` is the number of layers in their code, whose last one is that of the curve: it may have more coarse ones, or fewer.
        """
        whole, chance = self._stored(patches), 1 / self.classes
        coarser = 0 if of is None else self.layers - of
        kept = 1.0 if layers is None else self._kept(patches, layers + coarser)
        expected = chance + kept * (whole - chance)
        error = self._error if layers is None else math.hypot(self._error, self._coding_error)
        return Prediction(expected, max(0.0, expected - ERRORS * error), min(1.0, expected + ERRORS * error))

    def patches_for(self, accuracy: float) -> int:
        """The fewest patches, the same of every class, that are expected to reach an accuracy as they are stored."""
        most = max(point.patches for point in self.points if point.layers is None)
        for patches in range(self.classes, most + 1, self.classes):
            if self._stored(patches) >= accuracy:
                return patches
        raise self.out_of_reach(accuracy)

    def out_of_reach(self, accuracy: float) -> BadOption:
        best = self._stored(max(point.patches for point in self.points))
        return BadOption(
            f"No part of the set is expected to reach {100 * accuracy:g} %; all of it reaches {100 * best:.1f} %."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "net": self.net,
            "test": self.test,
            "classes": self.classes,
            "layers": self.layers,
            "points": [point.to_json() for point in self.points],
        }

    @classmethod
    def of(cls, provenance: Mapping[str, Any]) -> AccuracyCurve | None:
        """The curve in the provenance of a set, if there is one that makes sense."""
        match provenance.get(ENTRY):
            case {
                "protocol": str(protocol),
                "net": str(net),
                "test": str(test),
                "classes": int(classes),
                "layers": int(layers),
                "points": list(rows),
            } if classes > 0 and layers > 0:
                points = tuple(point for row in rows if (point := _point(row)) is not None)
                if any(point.layers is None for point in points):
                    return cls(protocol, net, test, classes, layers, points)
        return None

    def _stored(self, patches: int) -> float:
        return self._interpolated(self._sizes, self._accuracies, patches)

    def _kept(self, patches: int, layers: float) -> float:
        """The share of what is above chance that so many layers keep."""
        measured = [0.0, *(float(np.interp(math.log(patches), *shares)) for _, shares in self._shares), 1.0]
        at = [0, *(number for number, _ in self._shares), self.layers]
        return float(np.interp(layers, at, np.clip(np.maximum.accumulate(measured), 0, 1)))

    @cached_property
    def _lossless(self) -> list[CurvePoint]:
        return sorted((point for point in self.points if point.layers is None), key=lambda point: point.patches)

    @property
    def _sizes(self) -> list[int]:
        return [point.patches for point in self._lossless]

    @cached_property
    def _accuracies(self) -> list[float]:
        return _ascending([point.accuracy for point in self._lossless])

    @cached_property
    def _shares(self) -> list[tuple[int, tuple[list[float], list[float]]]]:
        """By number of layers: at which sizes (logarithms) which share is kept."""
        chance = 1 / self.classes
        found: dict[int, tuple[list[float], list[float]]] = {}
        for point in sorted((p for p in self.points if p.layers is not None), key=lambda p: (p.layers or 0, p.patches)):
            above = self._stored(point.patches) - chance
            if above > 0 and 0 < (point.layers or 0) < self.layers:
                sizes, shares = found.setdefault(point.layers or 0, ([], []))
                sizes.append(math.log(point.patches))
                shares.append((point.accuracy - chance) / above)
        return sorted(found.items())

    @cached_property
    def _error(self) -> float:
        """How far off predictions between measured sizes are: about half as far as where every second one is missing."""
        sizes, accuracies = self._sizes, [point.accuracy for point in self._lossless]

        def without(k: int) -> float:
            return self._interpolated(sizes[:k] + sizes[k + 1 :], accuracies[:k] + accuracies[k + 1 :], sizes[k])

        return _typical([without(k) - accuracies[k] for k in range(1, len(sizes) - 1)])

    @cached_property
    def _coding_error(self) -> float:
        """The same for layers, in accuracy of the whole set."""
        above = self._accuracies[-1] - 1 / self.classes
        numbers = [0, *(number for number, _ in self._shares), self.layers]
        kept = [0.0, *(shares[-1] for _, (_, shares) in self._shares), 1.0]
        off = [
            float(np.interp(numbers[k], [numbers[k - 1], numbers[k + 1]], [kept[k - 1], kept[k + 1]])) - kept[k]
            for k in range(2, len(numbers) - 1)
        ]
        return _typical([above * each for each in off])

    @staticmethod
    def _interpolated(sizes: Sequence[int], accuracies: Sequence[float], patches: int) -> float:
        """Linear in the logarithm of the size; below the smallest one the first line goes on."""
        x, logs = math.log(patches), [math.log(size) for size in sizes]
        if patches < sizes[0] and len(sizes) > 1:
            slope = (accuracies[1] - accuracies[0]) / (logs[1] - logs[0])
            return max(0.0, accuracies[0] + slope * (x - logs[0]))
        return float(np.interp(x, logs, accuracies))


def _typical(errors: Sequence[float]) -> float:
    return max(SMALLEST_ERROR, 0.5 * float(np.sqrt(np.mean(np.square(errors))))) if errors else 4 * SMALLEST_ERROR


def _ascending(values: Sequence[float]) -> list[float]:
    """The nearest values that never fall (least squares, by pooling neighbours).

    >>> _ascending([1, 3, 2, 4])
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = float(value), 1
        while pools and pools[-1][0] > mean:
            before, number = pools.pop()
            mean, count = (mean * count + before * number) / (count + number), count + number
        pools.append((mean, count))
    return [mean for mean, count in pools for _ in range(count)]


def _point(row: Any) -> CurvePoint | None:
    match row:
        case [int(patches), int() | None as layers, float() | int() as accuracy] if patches > 0 and 0 <= accuracy <= 1:
            return CurvePoint(patches, layers, float(accuracy))
    return None
