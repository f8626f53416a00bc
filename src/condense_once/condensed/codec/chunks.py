"""Chunks: what a stream is cut at. Each has its own length and checksum, so the whole chunks of any prefix can be read."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from condense_once.errors import BadFile

HEAD = struct.Struct("<IIHH")  # CRC-32 of the rest of the chunk, bytes of content, layer, group
DETAILS = 0xFFFF  # in place of a layer: origins, scores and provenance


@dataclass(frozen=True)
class Chunk:
    """One layer of one group of patches, or the details of all of them."""

    layer: int
    group: int
    content: memoryview

    def __len__(self) -> int:
        return HEAD.size + len(self.content)

    def to_bytes(self) -> bytes:
        """The chunk as stored.

        >>> next(read_chunks(memoryview(Chunk(1, 2, memoryview(b"abc")).to_bytes()))).group
        2
        """
        rest = HEAD.pack(0, len(self.content), self.layer, self.group)[4:] + self.content
        return zlib.crc32(rest).to_bytes(4, "little") + rest


def read_chunks(stream: memoryview) -> Iterator[Chunk]:
    """The whole chunks of a stream that may end anywhere; one that does not match its checksum is an error."""
    at = 0
    while at + HEAD.size <= len(stream):
        crc, length, layer, group = HEAD.unpack_from(stream, at)
        stop = at + HEAD.size + length
        if stop > len(stream):
            return
        if zlib.crc32(stream[at + 4 : stop]) != crc:
            raise BadFile(f"the chunk at byte {at:,} of the stream does not match its checksum.")
        yield Chunk(layer, group, stream[at + HEAD.size : stop])
        at = stop
