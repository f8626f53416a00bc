"""A condensed set on disk: one self-describing safetensors file.

Every read verifies the checksums of just the blocks it touches, so the first patches of a large ranked file cost no more
than themselves, and a damaged byte is never used.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from condense_once.byte_sizes import parse_bytes
from condense_once.condensed.codec.layered_tensors import LayeredTensors
from condense_once.condensed.header import CODECS, Checksums, Header, read_header
from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.mosaic import cell_size
from condense_once.condensed.set import CondensedSet
from condense_once.container import (
    CODES,
    DTYPES,
    ByteRanges,
    InMemory,
    Layout,
    LocalFile,
    MappedFile,
    TensorSpec,
    check_size,
    header_bytes,
    raw_bytes,
    read_index,
    tensor_bytes,
    write_container,
)
from condense_once.errors import BadFile, BadOption, CondenseOnceError, InaccessibleFile
from condense_once.files import atomic_file, refuse_existing

SCORES = "scores/"  # prefix of the tensors that hold one metric's scores
BLOCKS = 4096  # about the maximum number of checksums per file up to 16 GiB: 32 kB of header
SMALLEST_BLOCK = 4096
LARGEST_BLOCK = 4 * 2**20  # about the most that a reader of a few rows reads in vain per tensor
OTHER_FORMATS = (".npy", ".npz", ".parquet", ".png", ".pt", ".pth", ".zip")


class SetFile:
    """An open condensed-set file: its header, and rows on demand."""

    def __init__(self, file: ByteRanges) -> None:
        self.file = file
        self._index = read_index(file, may_be_cut=True)
        self.header = read_header(self._index.metadata, file.name)
        self.layered: LayeredTensors | None = None  # of a file with this codec, of which any prefix is a set
        try:
            if self.header.codec == "layered":
                self.layered = LayeredTensors(file, self._index, self.header)
                self.header = self.layered.header
            else:
                check_size(file, self._index)
                self._check_tensors()
        except BadOption as error:
            raise BadFile(f"{file.name} is damaged: {error}") from None

    @classmethod
    def open(cls, path: Path, *, mmap: bool = False) -> SetFile:
        """Open a local file; with `mmap`, rows that are read stay in the file."""
        try:
            return cls(MappedFile(path) if mmap else LocalFile(path))
        except CondenseOnceError:
            raise
        except OSError as error:
            raise InaccessibleFile(f"{path} cannot be read: {error.strerror or error}.") from error

    @property
    def tensors(self) -> dict[str, TensorSpec]:
        return dict(self._index.tensors)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that the file has scores of."""
        if self.layered is not None:
            return self.layered.metrics
        return tuple(name.removeprefix(SCORES) for name in self._index.tensors if name.startswith(SCORES))

    def rows(self, name: str, stop: int) -> NDArray[Any]:
        """The first `stop` rows of a tensor, verified; only their blocks are read, or with the codec `layered` all there is."""
        if self.layered is not None:
            return self.layered.rows(name, stop)
        spec, sums = self._index.tensors[name], self.header.checksums
        wanted = stop * spec.row_bytes
        padded = min(-(-wanted // sums.block) * sums.block, spec.stop - spec.start)
        data = self.file.read(spec.start, spec.start + padded)
        if len(data) != padded:
            raise BadFile(f"{self.file.name} is truncated inside the tensor {name!r}.")
        if block_sums(data, sums.block) != sums.crc32[name][: 8 * -(-padded // sums.block)]:
            raise BadFile(f"{self.file.name} is damaged: the tensor {name!r} does not match its checksum.")
        return np.frombuffer(data[:wanted], spec.dtype).reshape(stop, *spec.shape[1:])

    def soft_labels(self, stop: int) -> NDArray[np.float32] | None:
        """Soft labels of the first `stop` patches, if there are any."""
        if not self.header.soft_labels:
            return None
        coding = LabelCoding.parse(self.header.label_coding)
        return coding.read(lambda name: self.rows(name, stop), len(self.header.classes))

    def read(self, first: int | None = None) -> CondensedSet:
        """The whole set, or its first `first` patches."""
        header = self.full_header
        count = header.patches if first is None else first
        if not 0 < count <= header.patches:
            raise BadOption(f"`first` must be 1 to {header.patches}, the patches of {self.file.name}, not {count}.")
        try:
            return CondensedSet(
                cells=self.rows("cells", count),
                labels=self.rows("labels", count).astype(np.int64),
                classes=header.classes,
                size=header.image[1:],
                factor=header.factor,
                space=header.space,
                origin=self.rows("origin", count).astype(np.int64),
                soft_labels=self.soft_labels(count),
                scores={metric: self.rows(SCORES + metric, count) for metric in self.metrics},
                ranking=header.ranking,
                name=header.name,
                provenance=header.provenance,
                label_kind=header.label_kind,
                label_coding=header.label_coding,
            )
        except BadFile as error:
            raise BadFile(str(error) if self.file.name in str(error) else f"{self.file.name}: {error}") from None

    @property
    def full_header(self) -> Header:
        """The header with all that is stored elsewhere in the file."""
        return self.header if self.layered is None else self.layered.described

    def matches_sha256(self) -> bool:
        """Whether the SHA-256 of all tensors matches the header; with the codec `layered`, whether every chunk does."""
        if self.layered is not None:
            return self.layered.is_intact()
        digest = hashlib.sha256()
        for start in range(self._index.data_start, self.file.size, 2**20):
            digest.update(self.file.read(start, min(start + 2**20, self.file.size)))
        return digest.hexdigest() == self.header.checksums.sha256

    def _check_tensors(self) -> None:
        """Compare the tensors of the file with those in its header."""
        promised = _layout(self.header, self.metrics) if self.header.dtype in DTYPES else {}
        found = {name: (spec.code, spec.shape) for name, spec in self._index.tensors.items()}
        if found != promised or set(self.header.checksums.crc32) != set(promised):
            raise BadFile(f"{self.file.name} is damaged: its tensors do not match its header.")
        sizes = {name: spec.stop - spec.start for name, spec in self._index.tensors.items()}
        sums, largest = self.header.checksums, block_size(sum(sizes.values()))
        if sums.block > largest:  # a few rows would cost far more than their own bytes
            raise BadFile(f"{self.file.name} is damaged: its checksum blocks are larger than {largest:,} bytes.")
        if any(len(sums.crc32[name]) != 8 * -(-size // sums.block) for name, size in sizes.items()):
            raise BadFile(f"{self.file.name} is damaged: its checksums are not those of its tensors.")


def refuse_output(path: Path, force: bool, *, inputs: Iterable[Path] = ()) -> None:
    """Refuse an output that exists or has the extension of another format, before any work is spent on it."""
    if path.suffix.lower() in OTHER_FORMATS:
        raise BadOption(f"A condensed set is a .safetensors file, not {path.name}; export it to write another format.")
    refuse_existing(path, force, inputs=inputs)


def save(
    data: CondensedSet,
    path: str | Path,
    *,
    force: bool = False,
    codec: str = "raw",
    bytes: int | str | None = None,  # noqa: A002 (as in budgets)
) -> None:
    """Write a condensed set atomically.

    The codec `raw` stores cells as they are. `layered` stores them from coarse to fine, with loss, in a file of which every
    prefix is a set; `bytes` keeps as much as fits, the coarse layer of all patches first.
    """
    refuse_output(Path(path), force)
    content = None if codec == "raw" and bytes is None else to_bytes(data, codec=codec, bytes=bytes)
    with atomic_file(Path(path), force=force) as out:
        if content is None:
            _write(data, out)
        else:
            out.write(content)


def to_bytes(data: CondensedSet, *, codec: str = "raw", bytes: int | str | None = None) -> builtins.bytes:  # noqa: A002
    """The content of the file that `save` writes."""
    if codec not in CODECS:
        raise BadOption(f"`codec` must be {' or '.join(CODECS)}, not {codec!r}.")
    limit = None if bytes is None else parse_bytes(bytes)
    if codec == "layered":
        from condense_once.condensed.codec.writer import layered_bytes

        return layered_bytes(data, header_of(data), limit)
    if limit is not None:
        raise BadOption("`bytes` applies to the codec layered; resize the set first, or pass `codec` layered.")
    out = io.BytesIO()
    _write(data, out)
    return out.getvalue()


def from_bytes(content: bytes, name: str) -> CondensedSet:
    """The set of a file's content; `name` is for messages."""
    return SetFile(InMemory(content, name)).read()


def _write(data: CondensedSet, out: BinaryIO) -> None:
    tensors = _tensors(data)
    block = block_size(sum(array.nbytes for array in tensors.values()))
    digest = hashlib.sha256()
    for array in tensors.values():
        digest.update(raw_bytes(array))
    sums = Checksums(
        block=block,
        crc32={name: block_sums(raw_bytes(array), block) for name, array in tensors.items()},
        sha256=digest.hexdigest(),
    )
    metadata = _metadata(replace(header_of(data), checksums=sums))
    write_container(out, tensors, metadata)


def header_of(data: CondensedSet) -> Header:
    """The header of a set, without checksums."""
    return Header(
        name=data.name,
        patches=len(data),
        image=data.shape,
        factor=data.factor,
        dtype=CODES[data.cells.dtype.name],
        classes=data.classes,
        space=data.space,
        soft_labels=data.soft_labels is not None,
        checksums=Checksums(SMALLEST_BLOCK, {}, ""),
        ranking=data.ranking,
        provenance=data.provenance,
        label_kind=data.label_kind,
        label_coding=data.label_coding,
    )


def saved_size(header: Header, metrics: Iterable[str] = ()) -> int:
    """Size in bytes of the file that `save` writes for this header and scores of these metrics."""
    layout = _layout(header, metrics)
    sizes = {name: tensor_bytes(*tensor) for name, tensor in layout.items()}
    block = block_size(sum(sizes.values()))
    blank = Checksums(block, {name: "0" * (8 * -(-size // block)) for name, size in sizes.items()}, "0" * 64)
    return len(header_bytes(layout, _metadata(replace(header, checksums=blank)))) + sum(sizes.values())


def block_sums(data: memoryview, block: int) -> str:
    """CRC-32 of each block as eight hex digits, concatenated.

    >>> block_sums(memoryview(b"abcd"), 2) == f"{zlib.crc32(b'ab'):08x}{zlib.crc32(b'cd'):08x}"
    True
    """
    return "".join(f"{zlib.crc32(data[start : start + block]):08x}" for start in range(0, len(data), block))


def block_size(total: int) -> int:
    """A power of two that keeps both the list of checksums and the overhead of reading a prefix small.

    >>> block_size(300_000), block_size(2**30), block_size(2**60)
    (4096, 262144, 4194304)
    """
    block = SMALLEST_BLOCK
    while block < LARGEST_BLOCK and total > block * BLOCKS:
        block *= 2
    return block


def _layout(header: Header, metrics: Iterable[str]) -> Layout:
    """The tensors that a header implies: wide dtypes first so that all are aligned, cells last of their width."""
    channels, *size = header.image
    cell = (channels, *cell_size((size[0], size[1]), header.factor))
    small: dict[str, tuple[str, tuple[int, ...]]] = {
        "labels": ("U16", (header.patches,)),
        "origin": ("U32", (header.patches,)),
    }
    if header.soft_labels:
        small |= LabelCoding.parse(header.label_coding).layout(header.patches, len(header.classes))
    small |= {SCORES + metric: ("F32", (header.patches,)) for metric in metrics}
    everything = [*sorted(small.items()), ("cells", (header.dtype, (header.patches, *cell)))]
    return dict(sorted(everything, key=lambda item: -DTYPES[item[1][0]].itemsize))


def _tensors(data: CondensedSet) -> dict[str, NDArray[Any]]:
    """The arrays as stored, in file order."""
    arrays: dict[str, NDArray[Any]] = {
        "cells": data.cells,
        "labels": data.labels,
        "origin": data.origin,
    }
    if data.soft_labels is not None:
        arrays |= LabelCoding.parse(data.label_coding).encode(data.soft_labels)
    arrays |= {SCORES + metric: values for metric, values in data.scores.items()}
    layout = _layout(header_of(data), data.scores)
    return {name: np.asarray(arrays[name]).astype(DTYPES[code], copy=False) for name, (code, _) in layout.items()}


def _metadata(header: Header) -> dict[str, str]:
    try:
        return header.to_metadata()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadOption(f"`provenance` and the settings of `ranking` must be plain JSON: {error}.") from None
