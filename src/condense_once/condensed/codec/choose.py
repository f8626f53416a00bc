"""What to store in a given number of bytes. By default: all patches coarsely before any of them finely.

A set that fits as it is stays lossless. Else its stream is cut; the order of the stream is the choice (`encode_set`).
"""

from __future__ import annotations

from condense_once.condensed.codec.writer import cut_bytes
from condense_once.condensed.file import SetFile, to_bytes
from condense_once.condensed.set import CondensedSet
from condense_once.text import plural


def best_within(data: CondensedSet, limit: int, source: SetFile | None = None) -> bytes:
    """The content of the best file of at most `limit` bytes of a ranked set.

    If all of it comes from the layered file `source`, its chunks are kept as they are.
    """
    if source is not None and source.layered is not None and len(data) == source.header.patches:
        return cut_bytes(source.layered, limit)
    if len(lossless := to_bytes(data)) <= limit:
        return lossless
    return to_bytes(data, codec="layered", bytes=limit)


def fineness(data: CondensedSet) -> str:
    """How finely the patches of a decoded set were stored, as the rest of a sentence; nothing of one without loss.

    >>> from condense_once.condensed.bundled import load
    >>> fineness(load("cifar10-idc-ipc10"))
    ''
    """
    coded = data.provenance.get("coded")
    ends = coded.get("patches") if isinstance(coded, dict) else None
    if not isinstance(ends, list) or not ends:
        return ""
    parts = [f"{count} in {end} of {plural(len(ends), 'layer')}" for end, count in enumerate(ends, 1) if count]
    return f" ({', '.join(parts)})"
