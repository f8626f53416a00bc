"""The tensors of a file with the codec `layered`: one stream of chunks that may end anywhere.

What a device does not need comes last: a chunk of details holds origins, scores and the long part of the provenance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.accuracy_curve import AccuracyCurve
from condense_once.condensed.codec.chunks import DETAILS, HEAD, Chunk, read_chunks
from condense_once.condensed.codec.layered import GroupCoder
from condense_once.condensed.codec.planes import compress, decompress
from condense_once.condensed.header import Header
from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.mosaic import cell_size
from condense_once.condensed.set import CondensedSet, Ranking, subset_name, subset_provenance
from condense_once.container import DTYPES, MAX_HEADER, ByteRanges, Index, parse_json
from condense_once.errors import BadFile
from condense_once.text import short_line

STREAM = "stream"  # the only tensor of such a file
SCORES = "scores/"
SHORT = 100  # bytes of JSON up to which an entry of the provenance stays in the header


@dataclass(frozen=True)
class Details:
    """What comes last in a stream."""

    origin: NDArray[np.int64]
    scores: Mapping[str, NDArray[np.float32]]
    provenance: Mapping[str, Any]  # the entries that are not in the header
    settings: Mapping[str, Any]  # of the ranking

    @classmethod
    def of(cls, data: CondensedSet) -> Details:
        _, long = split_provenance(data.provenance)
        return cls(data.origin, data.scores, long, {} if data.ranking is None else data.ranking.settings)

    def to_chunk(self) -> Chunk:
        facts = {"metrics": [*self.scores], "provenance": dict(self.provenance), "settings": dict(self.settings)}
        text = json.dumps(facts, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()
        arrays = [self.origin.astype("<u4").tobytes(), *(s.astype("<f4").tobytes() for s in self.scores.values())]
        return Chunk(DETAILS, 0, memoryview(compress(len(text).to_bytes(4, "little") + text + b"".join(arrays))))

    @classmethod
    def of_chunk(cls, chunk: Chunk, patches: int, where: str) -> Details:
        content = memoryview(decompress(chunk.content, MAX_HEADER + 4 * patches * 64))
        start = 4 + int.from_bytes(content[:4], "little")
        try:
            text = bytes(content[4:start]).decode()
        except UnicodeDecodeError:
            raise BadFile("its details are not text.") from None
        match parse_json(text, where):
            case {"metrics": list(metrics), "provenance": dict(provenance), "settings": dict(settings)} if (
                all(isinstance(metric, str) for metric in metrics)
                and len(set(metrics)) == len(metrics)
                and len(content) == start + 4 * patches * (1 + len(metrics))
            ):
                arrays = np.frombuffer(content[start:], "<u4").reshape(-1, patches)
                scores = {metric: arrays[1 + k].view("<f4") for k, metric in enumerate(metrics)}
                return cls(arrays[0].astype(np.int64), scores, provenance, settings)
        raise BadFile("its details do not match its header.")


class LayeredTensors:
    """The rows of a stream, as many as there are, decoded when they are first asked for."""

    def __init__(self, file: ByteRanges, index: Index, header: Header) -> None:
        self._file, self._index, self._promised = file, index, header
        spec = index.tensors.get(STREAM)
        if spec is None or len(index.tensors) > 1 or spec.code != "U8" or len(spec.shape) != 1 or header.code is None:
            raise BadFile(f"{file.name} is damaged: its tensors do not match its header.")
        self.code, self._stream = header.code, spec
        channels, *size = header.image
        shape = (channels, *cell_size((size[0], size[1]), header.factor))
        coding = LabelCoding.parse(header.label_coding) if header.soft_labels else None
        with self._naming_the_file():
            if header.dtype not in DTYPES:
                raise BadFile(f"its cells cannot be {short_line(repr(header.dtype), 40)}.")
            self._coder = GroupCoder(self.code, shape, header.dtype, len(header.classes), coding)

    @property
    def is_cut(self) -> bool:
        """Whether the file ends before its stream does."""
        return self._index.stop > self._file.size

    @property
    def whole_size(self) -> int:
        """Bytes of the file that this is the beginning of."""
        return self._index.stop

    @property
    def promised(self) -> Header:
        """The header as written, of the whole stream."""
        return self._promised

    @cached_property
    def header(self) -> Header:
        """The header of the patches that are there."""
        header, there = self._promised, self._promised.patches
        if self.is_cut:
            there = min(len(self.layers) * self.code.group, header.patches)
        if there == header.patches:
            return header
        name = subset_name(header.name, header.ranking, header.provenance, total=header.patches, patches=there)
        return replace(
            header, patches=there, name=name, provenance=subset_provenance(header.provenance, header.patches)
        )

    @cached_property
    def described(self) -> Header:
        """The header with all that the stream adds: how fine the patches are, and details if they are there."""
        header, details = self.header, self.details
        provenance, ranking = dict(header.provenance), header.ranking
        if details is not None:
            provenance |= {key: value for key, value in details.provenance.items() if key not in provenance}
            if ranking is not None:
                ranking = Ranking(ranking.metric, ranking.prefer, ranking.balanced, details.settings)
        return replace(header, provenance=provenance | {"coded": self.quality()}, ranking=ranking)

    @property
    def metrics(self) -> tuple[str, ...]:
        return () if self.details is None else tuple(self.details.scores)

    def quality(self) -> dict[str, Any]:
        """How many patches end with which layer, from the first to the last."""
        ends = np.repeat(self.layers, self.code.group)[: self.header.patches]
        return {"codec": "layered", "patches": np.bincount(ends, minlength=self.code.layers + 1)[1:].tolist()}

    def prefixes(self) -> list[tuple[int, int]]:
        """The bytes of the file up to the end of each layer of all patches, as far as they are there, by layer."""
        sizes = np.zeros(self.code.layers, np.int64)
        for chunks in self._chunks[0]:
            for chunk in chunks:
                sizes[chunk.layer] += len(chunk)
        ends = (self._stream.start + np.cumsum(sizes)).tolist()
        return [(layer + 1, ends[layer]) for layer in range(min(self.layers))]

    @property
    def curve(self) -> AccuracyCurve | None:
        """The accuracies among the details, if they are there."""
        return None if self.details is None else AccuracyCurve.of(self.details.provenance)

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks of patches, in the order of the default stream."""
        return [group[layer] for layer in range(self.code.layers) for group in self._chunks[0] if layer < len(group)]

    def rows(self, name: str, stop: int) -> NDArray[Any]:
        if name.startswith(SCORES) and self.details is not None:
            return self.details.scores[name.removeprefix(SCORES)][:stop]
        if name == "origin":
            return (np.arange(self.header.patches) if self.details is None else self.details.origin)[:stop]
        return self._decoded[name][:stop]

    def is_intact(self) -> bool:
        """Whether every chunk matches its checksum; one that does not raises an error that names it."""
        return bool(self._chunks)

    @cached_property
    def layers(self) -> list[int]:
        """How many layers of each group are there."""
        return [len(chunks) for chunks in self._chunks[0]]

    @cached_property
    def details(self) -> Details | None:
        chunk = self._chunks[1]
        if chunk is None:
            return None
        with self._naming_the_file():
            return Details.of_chunk(chunk, self.header.patches, self._file.name)

    @cached_property
    def _chunks(self) -> tuple[list[list[Chunk]], Chunk | None]:
        """The chunks of each group that are there, and that of details."""
        stop = min(self._stream.stop, self._file.size)
        data = self._file.read(self._stream.start, stop)
        with self._naming_the_file():
            chunks = list(read_chunks(data))
            groups, details = self._grouped(chunks)
        if not groups:
            needed = self._stream.start + HEAD.size
            needed += HEAD.unpack_from(data)[1] if len(data) >= HEAD.size else 0
            raise BadFile(f"{self._file.name} ends before its first patches; they need {needed:,} bytes.")
        if not self.is_cut:
            whole = sum(map(len, chunks)) == len(data) and len(groups) == self.code.groups(self._promised.patches)
            if not whole:
                raise BadFile(f"{self._file.name} is damaged: its stream does not match its header.")
        return groups, details

    def _grouped(self, chunks: Sequence[Chunk]) -> tuple[list[list[Chunk]], Chunk | None]:
        groups: list[list[Chunk]] = []
        count, details = self.code.groups(self._promised.patches), None
        for number, chunk in enumerate(chunks):
            if chunk.layer == DETAILS and number == len(chunks) - 1 and len(groups) == count:
                details = chunk
            elif chunk.layer == 0 and chunk.group == len(groups) < count:
                groups.append([chunk])
            elif chunk.group < len(groups) and len(groups[chunk.group]) == chunk.layer < self.code.layers:
                groups[chunk.group].append(chunk)
            else:
                raise BadFile("the chunks of its stream are in an impossible order.")
        return groups, details

    @cached_property
    def _decoded(self) -> dict[str, NDArray[Any]]:
        from condense_once.data.limits import check_memory  # late: devices that only open a file need no more

        groups, patches = self._chunks[0], self.header.patches
        coefficients = self._coder.transform.coefficients
        needed = 2 * DTYPES[self._promised.dtype].itemsize * patches + 40 * min(patches, self.code.group)
        check_memory(coefficients * needed, self._file.size, self._file.name)
        parts: dict[str, list[NDArray[Any]]] = {}
        for group, chunks in enumerate(groups):
            count = min(self.code.group, patches - group * self.code.group)
            with self._naming_the_file():
                cells, labels, soft = self._coder.decode(chunks, count)
            for name, array in {"cells": cells, "labels": labels, **soft}.items():
                parts.setdefault(name, []).append(array)
        return {name: np.ascontiguousarray(np.concatenate(arrays)) for name, arrays in parts.items()}

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except BadFile as error:
            text = str(error)
            raise BadFile(text if self._file.name in text else f"{self._file.name} is damaged: {text}") from None


def split_provenance(provenance: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries for the header, which are short, and those for the details.

    The accuracy of the set as it was before it was coded is left out.

    >>> split_provenance({"method": "idc", "losses": [0.1] * 99, "accuracy": [60.4]})[0]
    {'method': 'idc'}
    """
    entries = {key: value for key, value in provenance.items() if key not in ("accuracy", "coded")}
    short = {k: v for k, v in entries.items() if k == "kept" or len(json.dumps({k: v}, ensure_ascii=False)) <= SHORT}
    return short, {key: value for key, value in entries.items() if key not in short}
