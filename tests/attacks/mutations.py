"""Damage to bytes, reproducible by its seed: in the file as it is, or inside its compression with valid checksums around it."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random

NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
PNG = b"\x89PNG\r\n\x1a\n"
TEXTS = (b"nan", b"-1", b"1e308", b"9" * 400, b"[" * 3000, b"{" * 3000, b'"', b"\x00", b"\xff\xfe", b"null", b"\n\n")


def mutate(raw: bytes, rng: Random, other: bytes = b"") -> bytes:
    """One to four edits; `other` is what may be spliced in. Half of those to archives and pictures are made inside."""
    if rng.random() < 0.5 and (inside := _inside(raw)) is not None:
        return inside(rng, other)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        raw = rng.choice(EDITS)(raw, rng, other)
    return raw


def _place(raw: bytes, rng: Random) -> int:
    """Anywhere, but every other time near the beginning or the end, where headers are."""
    size = max(len(raw), 1)
    return rng.choice((rng.randrange(size), rng.randrange(min(size, 200)), size - 1 - rng.randrange(min(size, 100))))


def _flip(raw: bytes, rng: Random, _: bytes) -> bytes:
    at = _place(raw, rng)
    return raw[:at] + bytes([raw[at] ^ (1 << rng.randrange(8))]) + raw[at + 1 :] if raw else raw


def _number(raw: bytes, rng: Random, _: bytes) -> bytes:
    at, width = _place(raw, rng), rng.choice((1, 2, 4, 8))
    value = (rng.choice(NUMBERS) + rng.choice((-1, 0, 0, 0, 1))) % 2 ** (8 * width)
    return raw[:at] + value.to_bytes(width, rng.choice(("little", "big"))) + raw[at + width :]


def _random(raw: bytes, rng: Random, _: bytes) -> bytes:
    at, width = _place(raw, rng), rng.randrange(1, 9)
    return raw[:at] + rng.randbytes(width) + raw[at + width :]


def _text(raw: bytes, rng: Random, _: bytes) -> bytes:
    at = _place(raw, rng)
    return raw[:at] + rng.choice(TEXTS) + raw[at + rng.choice((0, 0, 1, 8)) :]


def _cut(raw: bytes, rng: Random, _: bytes) -> bytes:
    return raw[: _place(raw, rng)]


def _drop(raw: bytes, rng: Random, _: bytes) -> bytes:
    at = _place(raw, rng)
    return raw[:at] + raw[at + rng.choice((1, 2, 4, 8, 64, 512)) :]


def _repeat(raw: bytes, rng: Random, _: bytes) -> bytes:
    at = _place(raw, rng)
    return raw[:at] + raw[at : at + rng.choice((1, 8, 64, 512, 4096))] * rng.choice((2, 2, 3, 100)) + raw[at:]


def _zero(raw: bytes, rng: Random, _: bytes) -> bytes:
    at, width = _place(raw, rng), rng.choice((4, 64, 512, 4096))
    return raw[:at] + bytes(min(width, len(raw) - at)) + raw[at + width :]


def _splice(raw: bytes, rng: Random, other: bytes) -> bytes:
    source = other or raw
    start, at = _place(source, rng), _place(raw, rng)
    piece = source[start : start + rng.choice((4, 16, 256, 4096))]
    return raw[:at] + piece + raw[at + rng.choice((0, len(piece))) :]


def _append(raw: bytes, rng: Random, _: bytes) -> bytes:
    return raw + rng.randbytes(rng.choice((1, 8, 600)))


EDITS = (_flip, _flip, _number, _number, _random, _text, _cut, _drop, _repeat, _zero, _splice, _append)


def _inside(raw: bytes) -> Callable[[Random, bytes], bytes] | None:
    """How to damage what a file holds without damage to the file itself, if we know."""
    if raw.startswith(b"\x1f\x8b"):
        return lambda rng, other: gzip.compress(mutate(gzip.decompress(raw), rng, other), 1)
    if raw.startswith(b"PK\x03\x04"):
        return lambda rng, other: _in_zip(raw, rng, other)
    if raw.startswith(PNG):
        return lambda rng, _: _in_png(raw, rng)
    return None


def _in_zip(raw: bytes, rng: Random, other: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive, zipfile.ZipFile(out, "w") as made:
        chosen = rng.choice(archive.namelist())
        for member in archive.infolist():
            content = archive.read(member)
            made.writestr(member, mutate(content, rng, other) if member.filename == chosen else content)
    return out.getvalue()


def _in_png(raw: bytes, rng: Random) -> bytes:
    """Damage one chunk and correct its CRC-32."""
    chunks, at = [], len(PNG)
    while at + 8 <= len(raw):
        length, kind = struct.unpack(">I4s", raw[at : at + 8])
        chunks.append((kind, raw[at + 8 : at + 8 + length]))
        at += 12 + length
    number = rng.randrange(len(chunks))
    kind, content = chunks[number]
    if kind == b"IDAT" and rng.random() < 0.5:
        content = zlib.compress(mutate(zlib.decompress(content), rng))
    else:
        content = rng.choice(EDITS)(content, rng, b"")
    chunks[number] = (kind, content)
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return PNG + b"".join(parts)
