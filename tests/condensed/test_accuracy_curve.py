"""Accuracy over size: what is predicted between measured points, and what it makes `--bytes` and `--accuracy` choose."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from condense_once.condensed.accuracy_curve import AccuracyCurve, CurvePoint
from condense_once.condensed.bundled import load
from condense_once.condensed.codec.choose import Cut, Cuts
from condense_once.condensed.codec.layered import encode_set
from condense_once.condensed.codec.within import best_within, expected_accuracy, expected_cuts, smallest_for
from condense_once.condensed.file import from_bytes, to_bytes
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import resize
from condense_once.errors import BadOption

STORED = {40: 0.36, 80: 0.42, 200: 0.51, 400: 0.60}
CODED = {(80, 1): 0.30, (80, 2): 0.38, (400, 1): 0.45, (400, 2): 0.57}


def curve_of(stored: dict[int, float] = STORED, coded: dict[tuple[int, int], float] = CODED) -> AccuracyCurve:
    points = [CurvePoint(n, None, accuracy) for n, accuracy in stored.items()]
    points += [CurvePoint(n, layers, accuracy) for (n, layers), accuracy in coded.items()]
    return AccuracyCurve("quick", "convnet-d3", "10000 images of cifar10", 10, 6, tuple(points))


def with_curve(curve: AccuracyCurve) -> CondensedSet:
    data = load("cifar10-idc-ipc10")
    return replace(data, provenance={**data.provenance, "curve": curve.to_json()})


@pytest.mark.parametrize(("low", "high", "between"), [(40, 80, 50), (80, 200, 120), (200, 400, 390)])
def test_between_measured_sizes_accuracy_is_linear_in_the_logarithm(low: int, high: int, between: int) -> None:
    share = math.log(between / low) / math.log(high / low)
    wanted = (1 - share) * STORED[low] + share * STORED[high]
    assert curve_of().predict(between).accuracy == pytest.approx(wanted, abs=1e-12)


def test_measured_points_are_predicted_as_they_are() -> None:
    curve = curve_of()
    for patches, accuracy in STORED.items():
        assert curve.predict(patches).accuracy == pytest.approx(accuracy)
    for (patches, layers), accuracy in CODED.items():
        assert curve.predict(patches, layers).accuracy == pytest.approx(accuracy)
    assert curve.predict(400, 6).accuracy == pytest.approx(0.60)  # all layers: as stored
    assert curve.predict(400, 0).accuracy == pytest.approx(0.1)  # none: chance


def test_a_curve_serves_codes_of_more_or_fewer_coarse_layers() -> None:
    curve = curve_of()
    for (patches, layers), accuracy in CODED.items():
        assert curve.predict(patches, layers + 2, of=8).accuracy == pytest.approx(accuracy)
    assert curve.predict(400, 1, of=5).accuracy == pytest.approx(CODED[400, 2])
    assert curve.predict(400, 1, of=8).accuracy == pytest.approx(0.1)  # coarser than any that was measured


def test_below_the_smallest_size_the_first_line_goes_on_but_not_below_zero() -> None:
    curve = curve_of()
    assert curve.predict(20).accuracy == pytest.approx(0.30)
    assert curve.predict(1).accuracy >= 0
    assert curve_of({40: 0.3}, {}).predict(7).accuracy == 0.3


def test_noise_does_not_make_a_larger_set_worse() -> None:
    curve = curve_of({40: 0.40, 80: 0.38, 200: 0.51, 400: 0.50}, {})
    predicted = [curve.predict(n).accuracy for n in range(10, 401, 10)]
    assert predicted == sorted(predicted)
    layered = [curve_of(coded={(400, 1): 0.5, (400, 2): 0.45}).predict(400, k / 4).accuracy for k in range(21)]
    assert layered == sorted(layered)


def test_the_interval_is_half_of_what_leaving_points_out_costs() -> None:
    stored = {10: 0.2, 100: 0.4, 1000: 0.5}
    off = abs((0.2 + 0.5) / 2 - 0.4)
    found = curve_of(stored, {}).predict(30)
    assert found.high - found.accuracy == pytest.approx(2 * off / 2)
    assert found.accuracy - found.low == pytest.approx(2 * off / 2)
    straight = curve_of({10: 0.2, 100: 0.3, 1000: 0.4}, {}).predict(30)
    assert straight.high - straight.accuracy == pytest.approx(2 * 0.005)


def test_the_fewest_patches_for_an_accuracy() -> None:
    curve = curve_of()
    patches = curve.patches_for(0.45)
    assert curve.predict(patches).accuracy >= 0.45 > curve.predict(patches - 10).accuracy
    with pytest.raises(BadOption, match=r"expected to reach 61 %; all of it reaches 60.0 %"):
        curve.patches_for(0.61)


def test_a_curve_survives_its_file() -> None:
    data = with_curve(curve_of())
    for content in (to_bytes(data), to_bytes(data, codec="layered")):
        assert AccuracyCurve.of(from_bytes(content, "a file").provenance) == curve_of()
    assert "curve" not in resize(data, ipc=1).provenance


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {"protocol": "quick"},
        {**curve_of().to_json(), "points": []},
        {**curve_of().to_json(), "points": [[400, 1, 0.5]]},
        {**curve_of().to_json(), "points": [[-1, None, 0.5], [0, None, 0.5], [4, None, 7], ["4", None, 0.5]]},
        {**curve_of().to_json(), "classes": 0},
        {**curve_of().to_json(), "points": [[400, None, math.nan]]},
    ],
    ids=str,
)
def test_what_is_no_curve_is_none(entry: Any) -> None:
    assert AccuracyCurve.of({"curve": entry}) is None


def every_cut(data: CondensedSet, curve: AccuracyCurve) -> list[Cut]:
    """By plain loops."""
    code, chunks = encode_set(data)
    found = []
    for groups in range(1, code.groups(len(data)) + 1):
        size, kept = 0, 0
        patches = min(groups * code.group, len(data))
        for chunk in chunks:
            if chunk.group < groups:
                size, kept = size + len(chunk), kept + 1
                if kept >= groups:
                    accuracy = curve.predict(patches, kept / groups).accuracy
                    found.append(Cut(groups, patches, kept, size, accuracy))
    return found


def test_cuts_are_the_best_of_all() -> None:
    data, curve = load("cifar10-idc-ipc10"), curve_of()
    code, chunks = encode_set(data)
    cuts, every = Cuts(curve, code, chunks, len(data)), every_cut(data, curve)
    for limit in (1000, 4000, 9000, 20_000, 50_000, 10**6):
        fitting = [cut for cut in every if cut.bytes <= limit]
        best = cuts.best(limit)
        assert (best is None) == (not fitting)
        if best is not None:
            assert best in fitting
            assert best.accuracy == max(cut.accuracy for cut in fitting)
    for accuracy in (0.2, 0.4, 0.55, 0.6):
        smallest = cuts.smallest(accuracy)
        assert smallest is not None
        assert smallest.bytes == min(cut.bytes for cut in every if cut.accuracy >= accuracy)
    assert cuts.smallest(0.7) is None


def test_bytes_are_spent_as_the_curve_says() -> None:
    patches_first = curve_of(coded={(400, 1): 0.59})
    finer_first = curve_of(stored={40: 0.58, 400: 0.60}, coded={(400, 1): 0.2, (400, 2): 0.3})
    many = from_bytes(best_within(with_curve(patches_first), 25_000), "a file")
    few = from_bytes(best_within(with_curve(finer_first), 25_000), "a file")
    assert len(few) < len(many) == 400


def test_the_smallest_file_for_an_accuracy() -> None:
    data, curve = with_curve(curve_of()), curve_of()
    content = smallest_for(data, 0.45)
    assert expected_accuracy(curve, from_bytes(content, "a file")).accuracy >= 0.45
    smaller = from_bytes(best_within(data, len(content) - 200), "a file")
    assert expected_accuracy(curve, smaller).accuracy < 0.45
    assert expected_accuracy(curve, resize(data, ipc=2)).accuracy == pytest.approx(0.42)
    with pytest.raises(BadOption, match="all of it reaches"):
        smallest_for(data, 0.9)
    with pytest.raises(BadOption, match="measure it first"):
        smallest_for(load("cifar10-idc-ipc10"), 0.3)


def test_expected_accuracies_rise_with_bytes() -> None:
    found = expected_cuts(with_curve(curve_of()), curve_of())
    assert [cut.bytes for cut in found] == sorted(cut.bytes for cut in found)
    assert [cut.accuracy for cut in found] == sorted(cut.accuracy for cut in found)
    assert json.dumps(curve_of().to_json())
