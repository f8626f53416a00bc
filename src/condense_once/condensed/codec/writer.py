"""Write a set, or as much of it as fits, as a file with the codec `layered`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from condense_once.condensed.codec.chunks import Chunk
from condense_once.condensed.codec.code import Code
from condense_once.condensed.codec.layered import encode_set
from condense_once.condensed.codec.layered_tensors import STREAM, Details, LayeredTensors, split_provenance
from condense_once.condensed.header import Header
from condense_once.condensed.set import CondensedSet, Ranking, subset_name, subset_provenance
from condense_once.container import header_bytes
from condense_once.errors import BadOption


def layered_bytes(data: CondensedSet, header: Header, limit: int | None = None) -> bytes:
    """The content of a file of at most `limit` bytes: the first chunks of the set's stream, and details if there is room.

    `header` is the set's, without checksums.
    """
    code, chunks = encode_set(data)
    short, _ = split_provenance(header.provenance)
    ranking = header.ranking and Ranking(header.ranking.metric, header.ranking.prefer, header.ranking.balanced)
    lean = replace(header, code=code, codec="layered", provenance=short, ranking=ranking)
    whole = _file(lean, [*chunks, Details.of(data).to_chunk()], len(data))
    return whole if limit is None or len(whole) <= limit else _fitting(lean, code, chunks, limit)


def cut_bytes(layered: LayeredTensors, limit: int) -> bytes:
    """The same for the chunks of a file that has been read, without coding them again."""
    return _fitting(layered.header, layered.code, layered.chunks, limit)


def _fitting(lean: Header, code: Code, chunks: Sequence[Chunk], limit: int) -> bytes:
    """A file of the first chunks that fit."""
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
