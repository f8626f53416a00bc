"""A JSON header and named arrays in one safetensors file: checksummed, written atomically, nothing in it can be executed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.container import LocalFile, parse_json, raw_bytes, read_index, write_container
from condense_once.errors import BadFile
from condense_once.files import atomic_file
from condense_once.text import short_line

KEY_CRC = "condense_once.crc32"


@dataclass(frozen=True)
class FileKind:
    """What a file holds, in words, the key of its header and the version that this program writes and reads."""

    what: str
    key: str
    version: int

    def write(self, path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the file in place of the one before."""
        sums = {name: _crc(raw_bytes(array)) for name, array in arrays.items()}
        text = json.dumps({"version": self.version, **header, "crc32": sums}, allow_nan=False)
        aligned = dict(sorted(arrays.items(), key=lambda item: -item[1].itemsize))
        with atomic_file(path, force=True) as out:
            write_container(out, aligned, {self.key: text, KEY_CRC: _crc(text.encode())})

    def read(self, path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The header and the arrays, both verified."""
        file = LocalFile(path)
        index = read_index(file)
        if self.key not in index.metadata:
            raise BadFile(f"{path} is not {self.what} of condense-once.")
        text = index.metadata[self.key]
        if _crc(text.encode()) != index.metadata.get(KEY_CRC):
            raise BadFile(f"{path} is damaged, or an older version wrote it: its header does not match its checksum.")
        header = parse_json(text, str(path))
        if header.get("version") != self.version:
            found = header.get("version")
            raise BadFile(
                f"{path} is {self.what} of version {short_line(repr(found), 40)}; this program reads {self.version}."
            )
        try:
            arrays = {
                name: np.frombuffer(file.read(spec.start, spec.stop), spec.dtype).reshape(spec.shape)
                for name, spec in index.tensors.items()
            }
        except ValueError as error:  # more dimensions or larger ones than numpy has
            raise BadFile(f"{path} is damaged: its arrays have impossible shapes ({short_line(error)}).") from None
        sums = header.get("crc32")
        for name, array in arrays.items():
            if not isinstance(sums, dict) or _crc(raw_bytes(array)) != sums.get(name):
                raise BadFile(f"{path} is damaged: {short_line(repr(name), 80)} does not match its checksum.")
        return header, arrays


def _crc(data: bytes | memoryview) -> str:
    return f"{zlib.crc32(data):08x}"
