"""The layered code of a set: which layers there are, and the patches ⇄ chunks of a group.

The first layer holds all planes down to a large step, every further one a plane more, which halves the step. A stream has the
first layer of all groups in rank order, then the second of all, and so on: first more patches, then finer ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.codec.chunks import Chunk
from condense_once.condensed.codec.code import MAX_COEFFICIENT, MAX_EXPONENT, Code
from condense_once.condensed.codec.planes import DIGITS, Planes, compress, decompress, plane_symbols
from condense_once.condensed.codec.transform import COLOUR_WEIGHTS, FRACTION_BITS, Transform
from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.mosaic import cell_size
from condense_once.condensed.set import CondensedSet
from condense_once.container import DTYPES
from condense_once.errors import BadFile, BadOption

LAYERS = 6  # the first is worth most per byte at 1,024 bytes a class, see results/README.md
STEP = 5.0  # of the last layer, on the scale of pixels
GROUP = 50  # patches, about: fewer learn too little of the statistics, more make coarser prefixes
SPREAD = 62.0  # standard deviation that float values are scaled to, by a power of two: about that of pixels
MAX_GROUPS = 2**16


@dataclass(frozen=True)
class GroupCoder:
    """The patches ⇄ chunks of the groups of one set."""

    code: Code
    shape: tuple[int, int, int]  # of a cell
    dtype: str  # of cells, as in a header
    classes: int
    label_coding: LabelCoding | None  # of soft labels, if there are any

    def __post_init__(self) -> None:
        if len(self.code.steps) != self.shape[0] or (self.code.opponent and self.shape[0] != 3):
            raise BadFile("its code is for another number of channels.")
        if (self.code.exponent is None) != (self.dtype == "U8"):
            raise BadFile("its code is for other values.")

    @property
    def transform(self) -> Transform:
        return Transform(self.shape, self.code.opponent, self.code.exponent)

    def encode(self, data: CondensedSet, group: int) -> list[Chunk]:
        """All layers of a group, the first one with labels."""
        rows = slice(group * self.code.group, (group + 1) * self.code.group)
        coefficients = self.transform.forward(data.cells[rows])
        steps = _per_coefficient(self.transform, self.code.steps)
        magnitude, negative = (np.abs(coefficients) / steps).astype(np.int64), coefficients < 0
        chunks = []
        for layer in range(self.code.layers):
            symbols = [plane_symbols(magnitude, negative, shift) for shift in self.code.planes_of(layer)]
            labels = self._labels_to_bytes(data, rows) if layer == 0 else b""
            packed = compress(labels + b"".join(digits for digits, _ in symbols))
            content = len(packed).to_bytes(4, "little") + packed + b"".join(bits for _, bits in symbols)
            chunks.append(Chunk(layer, group, memoryview(content)))
        return chunks

    def decode(
        self, chunks: Sequence[Chunk], patches: int
    ) -> tuple[NDArray[Any], NDArray[np.int64], dict[str, NDArray[Any]]]:
        """Cells, labels and the tensors of soft labels of a group of `patches`, by its first chunks."""
        planes, steps = Planes(self.transform.coefficients, patches), _per_coefficient(self.transform, self.code.steps)
        labels, soft = np.empty(0, np.int64), dict[str, NDArray[Any]]()
        for chunk in chunks:
            shifts = self.code.planes_of(chunk.layer)
            digits, bits = self._unpack(chunk, patches, len(shifts))
            if chunk.layer == 0:
                labels, soft, used = self._labels_of_bytes(digits, chunk.group * self.code.group, patches)
                digits = digits[used:]
            for _ in shifts:
                used_digits, used_bits = planes.read(digits, bits)
                digits, bits = digits[used_digits:], bits[used_bits:]
            if digits or bits:
                raise BadFile("a chunk is longer than its planes.")
        shift = self.code.planes_of(chunks[-1].layer)[-1]
        cells = self.transform.inverse(planes.values(steps[:, 0] << shift))
        return cells.astype(DTYPES[self.dtype], copy=False), labels, soft

    def _unpack(self, chunk: Chunk, patches: int, planes: int) -> tuple[memoryview, memoryview]:
        length = int.from_bytes(chunk.content[:4], "little")
        most = planes * (4 + -(-self.transform.coefficients * patches // DIGITS))
        if chunk.layer == 0:
            most += patches * self._label_bytes
        unpacked = decompress(chunk.content[4 : 4 + length], most + 1)
        if len(chunk.content) < 4 + length or len(unpacked) > most:
            raise BadFile("a chunk has another length than its planes.")
        return memoryview(unpacked), chunk.content[4 + length :]

    @property
    def _label_bytes(self) -> int:
        return 2 + (0 if self.label_coding is None else self.label_coding.bytes_per_label(self.classes))

    def _labels_to_bytes(self, data: CondensedSet, rows: slice) -> bytes:
        """Labels as the difference to classes in turn, which is zero in balanced rankings; then soft labels."""
        labels = data.labels[rows]
        turns = (labels - np.arange(rows.start, rows.start + len(labels))) % self.classes
        soft = (
            {}
            if self.label_coding is None or data.soft_labels is None
            else self.label_coding.encode(data.soft_labels[rows])
        )
        parts = (array.astype(array.dtype.newbyteorder("<")).tobytes() for _, array in sorted(soft.items()))
        return turns.astype("<u2").tobytes() + b"".join(parts)

    def _labels_of_bytes(
        self, content: memoryview, start: int, patches: int
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]], int]:
        layout = {} if self.label_coding is None else self.label_coding.layout(patches, self.classes)
        if len(content) < patches * self._label_bytes:
            raise BadFile("a chunk ends within its labels.")
        turns = np.frombuffer(content[: 2 * patches], "<u2").astype(np.int64)
        if len(turns) and turns.max() >= self.classes:
            raise BadFile(f"a label is not of one of the {self.classes} classes.")
        soft, at = {}, 2 * patches
        for name, (kind, shape) in sorted(layout.items()):
            stop = at + DTYPES[kind].itemsize * int(np.prod(shape))
            soft[name], at = np.frombuffer(content[at:stop], DTYPES[kind]).reshape(shape), stop
        return (turns + np.arange(start, start + patches)) % self.classes, soft, at


def fit_code(data: CondensedSet) -> Code:
    """A code with the default layers, fitted to the values of a set."""
    pixels, three = data.space.kind == "pixels", data.channels == 3
    opponent = three and data.space.kind != "zca"  # whitened channels have nothing in common
    exponent = None
    if not pixels:
        spread = float(np.std(data.cells.astype(np.float64))) or 1.0
        exponent = int(np.clip(np.rint(np.log2(SPREAD / spread)), -MAX_EXPONENT, MAX_EXPONENT))
    weights = COLOUR_WEIGHTS if opponent else (1.0,) * data.channels
    steps = tuple(round(STEP * weight * 2**FRACTION_BITS) for weight in weights)
    balanced = data.ranking is not None and data.ranking.balanced
    rounds = len(data.classes) if balanced else 1
    group = max(1, round(GROUP / rounds)) * rounds
    group = max(group, -(-len(data) // MAX_GROUPS))
    transform = Transform(_cell(data), opponent, exponent)
    largest = max(
        int((np.abs(transform.forward(data.cells[rows])) / _per_coefficient(transform, steps)).max())
        for rows in _slices(len(data), group)
    )
    planes = max(LAYERS, largest.bit_length())
    if max(steps) << planes > MAX_COEFFICIENT:
        raise BadOption(f"{data.name} has values too far from the others to be coded in layers; store it losslessly.")
    return Code(planes, LAYERS, group, steps, opponent, exponent)


def coder_of(data: CondensedSet, code: Code) -> GroupCoder:
    """The coder of a set in memory."""
    coding = None if data.soft_labels is None else LabelCoding.parse(data.label_coding)
    dtype = {"uint8": "U8", "float16": "F16", "float32": "F32"}[data.cells.dtype.name]
    return GroupCoder(code, _cell(data), dtype, len(data.classes), coding)


def encode_set(data: CondensedSet, code: Code | None = None) -> tuple[Code, list[Chunk]]:
    """The chunks of a set in the order of a stream: layer by layer, each in rank order."""
    code = fit_code(data) if code is None else code
    coder = coder_of(data, code)
    groups = [coder.encode(data, group) for group in range(code.groups(len(data)))]
    return code, [chunks[layer] for layer in range(code.layers) for chunks in groups]


def decode_layers(data: CondensedSet, layers: int) -> NDArray[Any]:
    """The cells of a set as a file with only so many of its layers has them."""
    code, chunks = encode_set(data)
    coder, groups = coder_of(data, code), code.groups(len(data))
    parts = []
    for group in range(groups):
        count = min(code.group, len(data) - group * code.group)
        cells, _, _ = coder.decode(chunks[group::groups][:layers], count)
        parts.append(cells)
    return np.concatenate(parts)


def _cell(data: CondensedSet) -> tuple[int, int, int]:
    return (data.channels, *cell_size(data.size, data.factor))


def _per_coefficient(transform: Transform, steps: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(steps, np.int64)[transform.components][:, None]


def _slices(count: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, count, size))
