"""Write a set, or as much of it as fits, as a file with the codec `layered`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from condense_once.condensed.accuracy_curve import AccuracyCurve
from condense_once.condensed.codec.choose import Cut, Cuts
from condense_once.condensed.codec.chunks import Chunk
from condense_once.condensed.codec.code import Code
from condense_once.condensed.codec.layered import encode_set
from condense_once.condensed.codec.layered_tensors import STREAM, Details, LayeredTensors, split_provenance
from condense_once.condensed.header import Header
from condense_once.condensed.set import CondensedSet, Ranking, subset_name, subset_provenance
from condense_once.container import header_bytes
from condense_once.errors import BadOption


def layered_bytes(data: CondensedSet, header: Header, limit: int | None = None) -> bytes:
    """The content of a file of at most `limit` bytes: what is best of the set's stream, and details if there is room.

    `header` is the set's, without checksums.
    """
    lean, code, chunks = _encoded(data, header)
    whole = _file(lean, [*chunks, Details.of(data).to_chunk()], len(data))
    if limit is None or len(whole) <= limit:
        return whole
    return _fitting(lean, code, chunks, limit, AccuracyCurve.of(data.provenance))


def smallest_bytes(data: CondensedSet, header: Header, curve: AccuracyCurve, accuracy: float) -> bytes:
    """The content of the smallest file that is expected to reach an accuracy."""
    lean, code, chunks = _encoded(data, header)
    cut = Cuts(curve, code, chunks, len(data)).smallest(accuracy)
    if cut is None:
        raise curve.out_of_reach(accuracy)
    kept = [chunk for chunk in chunks if chunk.group < cut.groups][: cut.chunks]
    return _file(lean, kept, min(cut.groups * code.group, len(data)))


def best_cuts(data: CondensedSet, header: Header, curve: AccuracyCurve, limits: Sequence[int]) -> list[Cut]:
    """What is kept within each of these limits, with the bytes of the whole file; nothing where not even a group fits."""
    lean, code, chunks = _encoded(data, header)
    every, head = Cuts(curve, code, chunks, len(data)), len(_head(lean, 0))
    found = (every.best(limit - head) for limit in limits)
    return [cut._replace(bytes=cut.bytes + head) for cut in found if cut is not None]


def cut_bytes(layered: LayeredTensors, limit: int) -> bytes:
    """The same for the chunks of a file that has been read, without coding them again."""
    return _fitting(layered.header, layered.code, layered.chunks, limit, layered.curve)


def _encoded(data: CondensedSet, header: Header) -> tuple[Header, Code, list[Chunk]]:
    """The header of a layered file of all patches, its code and its chunks."""
    code, chunks = encode_set(data)
    short, _ = split_provenance(header.provenance)
    ranking = header.ranking and Ranking(header.ranking.metric, header.ranking.prefer, header.ranking.balanced)
    return replace(header, code=code, codec="layered", provenance=short, ranking=ranking), code, chunks


def _fitting(lean: Header, code: Code, chunks: Sequence[Chunk], limit: int, curve: AccuracyCurve | None) -> bytes:
    """A file of the chunks that are best within a limit: the first ones, of as many groups as the curve says."""
    if curve is not None:
        best = Cuts(curve, code, chunks, lean.patches).best(limit - len(_head(lean, 0)))
        chunks = chunks if best is None else [chunk for chunk in chunks if chunk.group < best.groups]
    kept, size = 0, len(_head(lean, 0))
    while kept < len(chunks) and size + len(chunks[kept]) <= limit:
        size += len(chunks[kept])
        kept += 1
    for count in range(kept, 0, -1):  # the header of a subset may be a few bytes longer
        patches = min(sum(chunk.layer == 0 for chunk in chunks[:count]) * code.group, lean.patches)
        content = _file(lean, chunks[:count], patches)
        if len(content) <= limit:
            return content
    first = len(_file(lean, chunks[:1], min(code.group, lean.patches)))
    raise BadOption(f"The first patches of {lean.name} need {first:,} bytes; raise `bytes` to that.")


def _file(header: Header, chunks: Sequence[Chunk], patches: int) -> bytes:
    if patches < (total := header.patches):
        name = subset_name(header.name, header.ranking, header.provenance, total=total, patches=patches)
        provenance = subset_provenance(header.provenance, total)
        header = replace(header, patches=patches, name=name, provenance=provenance)
    stream = b"".join(chunk.to_bytes() for chunk in chunks)
    return _head(header, len(stream)) + stream


def _head(header: Header, stream: int) -> bytes:
    return header_bytes({STREAM: ("U8", (stream,))}, header.to_metadata())
