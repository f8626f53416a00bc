"""The JSON header of a condensed set: everything needed to use it, and the checksums.

`docs/format.md` describes each field for readers in other languages.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from condense_once.condensed.codec.code import Code
from condense_once.condensed.label_coding import LabelCoding
from condense_once.condensed.set import Ranking
from condense_once.condensed.soft_labels import LABEL_KINDS, LabelKind
from condense_once.condensed.space import Space
from condense_once.container import check_json, parse_json
from condense_once.errors import BadFile, CondenseOnceError
from condense_once.text import short_line

FORMAT = "condense-once"
VERSION = 1
VERSION_CODED_LABELS = 2  # of files whose soft labels take fewer than 32 bits: older readers could not read them
VERSION_LAYERED = 3  # of files with the codec `layered`
CODECS = {"raw": (VERSION, VERSION_CODED_LABELS), "layered": (VERSION_LAYERED,)}  # and the versions that may have them
KEY = "condense_once"  # key in the safetensors metadata
KEY_CRC = "condense_once.crc32"


@dataclass(frozen=True)
class Checksums:
    """CRC-32 of every block of every tensor, to verify a part without reading the rest, and one SHA-256."""

    block: int  # bytes; blocks count from the start of each tensor, the last may be short
    crc32: Mapping[str, str]  # tensor → eight hex digits per block, concatenated
    sha256: str  # of all tensor bytes, in file order


NO_CHECKSUMS = Checksums(1, {}, "")  # of a stream, whose chunks have their own


@dataclass(frozen=True)
class Header:
    name: str
    patches: int
    image: tuple[int, int, int]  # channels, height, width of a patch
    factor: int
    dtype: str  # of the cells: U8, F16 or F32
    classes: tuple[str, ...]
    space: Space
    soft_labels: bool
    checksums: Checksums
    ranking: Ranking | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    codec: str = "raw"
    label_kind: LabelKind | None = None  # of soft labels
    label_coding: str = "float32"  # of soft labels, see `LabelCoding`
    code: Code | None = None  # of the codec `layered`

    @property
    def version(self) -> int:
        if self.code is not None:
            return VERSION_LAYERED
        return VERSION if self.label_coding == "float32" else VERSION_CODED_LABELS

    def to_json(self) -> dict[str, Any]:
        """Every field as it is stored; those of soft labels only if there are any, those of a codec only with it."""
        absent = {
            "label_kind": self.label_kind is None,
            "label_coding": self.version == VERSION or not self.soft_labels,
            "code": self.code is None,
            "checksums": self.code is not None,  # every chunk has its own
        }
        stored = {name: value for name, value in asdict(self).items() if not absent.get(name)}
        return {"format": FORMAT, "version": self.version, **stored}

    def to_metadata(self) -> dict[str, str]:
        fields = self.to_json()
        check_json(fields)  # what could not be read again is not written
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        return {KEY: text, KEY_CRC: _crc(text)}


def read_header(metadata: Mapping[str, str], where: str) -> Header:
    """Parse and validate the header; any problem is a `BadFile` about the file."""
    text = metadata.get(KEY)
    if text is None:
        raise BadFile(f"{where} is a safetensors file, but not a condensed set.")
    if metadata.get(KEY_CRC) != _crc(text):
        raise BadFile(f"{where} is damaged: its header does not match its checksum.")
    fields = parse_json(text, where)
    if fields.get("format") != FORMAT:
        raise BadFile(f"{where} is not a condensed set: its format is {_quoted(fields.get('format'))}.")
    if fields.get("version") not in range(VERSION, VERSION_LAYERED + 1) or type(fields["version"]) is not int:
        raise BadFile(
            f"{where} has format version {_quoted(fields.get('version'))}, but this version reads {VERSION} to"
            f" {VERSION_LAYERED}; update condense-once."
        )
    codec = fields.get("codec")
    if not isinstance(codec, str) or fields["version"] not in CODECS.get(codec, ()):
        raise BadFile(
            f"{where} encodes its cells as {_quoted(fields.get('codec'))}, which this version cannot read; update condense-once."
        )
    try:
        return _header(_Fields(fields))
    except (CondenseOnceError, OverflowError) as error:
        raise BadFile(f"{where} is damaged: {short_line(error, 300)}") from None


def _quoted(value: object) -> str:
    """What a header says instead of what it should, on one short line."""
    return short_line(repr(value), 40)


def _crc(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _header(fields: _Fields) -> Header:
    space = fields.inner("space")
    image = fields.numbers("image", int)
    if len(image) != 3 or min(image) < 1:
        raise BadFile(f"image must be [channels, height, width], not {_quoted(list(image))}.")
    return Header(
        name=fields.text("name"),
        patches=fields.positive("patches"),
        image=(image[0], image[1], image[2]),
        factor=fields.positive("factor"),
        dtype=fields.get("dtype", str),
        classes=fields.texts("classes"),
        space=Space(
            space.get("kind", str), space.numbers("mean", float), space.numbers("std", float), space.get("zca", dict)
        ),
        soft_labels=fields.get("soft_labels", bool),
        checksums=_checksums(fields),
        ranking=_ranking(fields),
        provenance=fields.get("provenance", dict),
        codec=fields.get("codec", str),
        label_kind=_label_kind(fields),
        label_coding=_label_coding(fields),
        code=_code(fields.inner("code")) if fields.get("codec", str) == "layered" else None,
    )


def _checksums(fields: _Fields) -> Checksums:
    if fields.get("codec", str) == "layered":
        return NO_CHECKSUMS
    sums = fields.inner("checksums")
    return Checksums(sums.positive("block"), sums.inner("crc32").all_text(), sums.get("sha256", str))


def _code(fields: _Fields) -> Code:
    exponent = fields.get("exponent", (int, type(None)))
    planes, layers, group = (fields.positive(name) for name in ("planes", "layers", "group"))
    return Code(planes, layers, group, fields.numbers("steps", int), fields.get("opponent", bool), exponent)


def _label_kind(fields: _Fields) -> LabelKind | None:
    kind: LabelKind | None = fields.get("label_kind", str) if fields.has("label_kind") else None
    if kind is not None and (kind not in LABEL_KINDS or not fields.get("soft_labels", bool)):
        raise BadFile(f"soft labels cannot be {_quoted(kind)}.")
    return kind


def _label_coding(fields: _Fields) -> str:
    if fields.get("version", int) == VERSION or (
        fields.get("codec", str) == "layered" and not fields.has("label_coding")
    ):
        return "float32"
    coding, classes = fields.get("label_coding", str), len(fields.get("classes", list))
    known = LabelCoding.parse(coding)
    if known != known.for_classes(classes) or not fields.get("soft_labels", bool):
        raise BadFile(f"soft labels of {classes} classes cannot be stored as {_quoted(coding)}.")
    return str(known)


def _ranking(fields: _Fields) -> Ranking | None:
    if fields.get("ranking", (dict, type(None))) is None:
        return None
    rule = fields.inner("ranking")
    return Ranking(rule.text("metric"), rule.get("prefer", str), rule.get("balanced", bool), rule.get("settings", dict))


class _Fields:
    """Typed access to a JSON object; errors name the field that is missing or of the wrong type."""

    def __init__(self, values: Mapping[str, Any], at: str = "") -> None:
        self._values = values
        self._at = at

    def get(self, name: str, kind: Any) -> Any:
        value = self._values.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadFile(f"the header's field {self._at}{name} is missing or of the wrong type.")
        return value

    def has(self, name: str) -> bool:
        return name in self._values

    def inner(self, name: str) -> _Fields:
        return _Fields(self.get(name, dict), f"{self._at}{name}.")

    def positive(self, name: str) -> int:
        number: int = self.get(name, int)
        if number < 1:
            raise BadFile(f"the header's field {self._at}{name} must be positive, not {number}.")
        return number

    def numbers(self, name: str, kind: type[int] | type[float]) -> tuple[Any, ...]:
        values = self.get(name, list)
        wanted = int if kind is int else (int, float)
        if not all(isinstance(v, wanted) and not isinstance(v, bool) for v in values):
            raise BadFile(f"the header's field {self._at}{name} must hold numbers.")
        return tuple(kind(v) for v in values)

    def text(self, name: str) -> str:
        value: str = self.get(name, str)
        if not value.isprintable():
            raise BadFile(f"the header's field {self._at}{name} must be printable text.")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        values = self.get(name, list)
        if not all(isinstance(v, str) and v and v.isprintable() for v in values):
            raise BadFile(f"the header's field {self._at}{name} must hold printable strings.")
        return tuple(values)

    def all_text(self) -> dict[str, str]:
        """The whole object, whose values must be strings."""
        return {name: self.get(name, str) for name in self._values}
