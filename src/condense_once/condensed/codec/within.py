"""The best file within a number of bytes, and the smallest one for an accuracy."""

from __future__ import annotations

from condense_once.condensed.accuracy_curve import AccuracyCurve, Prediction
from condense_once.condensed.codec.choose import Cut
from condense_once.condensed.codec.writer import best_cuts, cut_bytes, smallest_bytes
from condense_once.condensed.file import SetFile, header_of, to_bytes
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.text import plural

COMMON_BYTES = (512, 1_024, 3_072, 6_144, 12_288, 30_720)  # per class


def best_within(data: CondensedSet, limit: int, source: SetFile | None = None) -> bytes:
    """The content of the best file of at most `limit` bytes of a ranked set; without loss if it fits as it is.

    If all of it comes from the layered file `source`, its chunks are kept as they are.
    """
    if source is not None and source.layered is not None and len(data) == source.header.patches:
        return cut_bytes(source.layered, limit)
    if len(lossless := to_bytes(data)) <= limit:
        return lossless
    return to_bytes(data, codec="layered", bytes=limit)


def smallest_for(data: CondensedSet, accuracy: float) -> bytes:
    """The content of the smallest file of a set with a curve that is expected to reach an accuracy, from 0 to 1."""
    return smallest_bytes(data, header_of(data), curve_of(data), accuracy)


def expected_cuts(data: CondensedSet, curve: AccuracyCurve) -> list[Cut]:
    """What a curve expects of files of common sizes, in bytes per class, smaller than the set is without loss."""
    whole = len(to_bytes(data))
    limits = [size * len(data.classes) for size in COMMON_BYTES if size * len(data.classes) < whole]
    return best_cuts(data, header_of(data), curve, limits)


def curve_of(data: CondensedSet) -> AccuracyCurve:
    curve = AccuracyCurve.of(data.provenance)
    if curve is None:
        raise BadOption(f"{data.name} has no curve of accuracy over size; measure it first, by `condense-once curve`.")
    return curve


def expected_accuracy(curve: AccuracyCurve, data: CondensedSet) -> Prediction:
    """What a curve expects of a part of its set, as it was decoded."""
    ends = _ends(data)
    if not ends:
        return curve.predict(len(data))
    layers = sum(count * (k + 1) for k, count in enumerate(ends)) / len(data)
    return curve.predict(len(data), layers, of=len(ends))


def fineness(data: CondensedSet) -> str:
    """How finely the patches of a decoded set were stored, in words; nothing of one without loss.

    >>> from condense_once.condensed.bundled import load
    >>> fineness(load("cifar10-idc-ipc10"))
    ''
    """
    ends = _ends(data)
    if not ends:
        return ""
    parts = [f"{count} in {end} of {plural(len(ends), 'layer')}" for end, count in enumerate(ends, 1) if count]
    return ", ".join(parts)


def _ends(data: CondensedSet) -> list[int]:
    """How many patches of a decoded set end with which layer; none without loss."""
    coded = data.provenance.get("coded")
    ends = coded.get("patches") if isinstance(coded, dict) else None
    return ends if isinstance(ends, list) else []
