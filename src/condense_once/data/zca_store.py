"""ZCA fits, kept in the folder of datasets: one file per content of a train split and way of preparing its images.

A file holds the spectrum of the covariance, so it serves every regularisation.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from condense_once.container import LocalFile, raw_bytes, read_index, write_container
from condense_once.data.source import Split, data_folder
from condense_once.data.zca import Spectrum, Zca, fit_spectrum, zca_of
from condense_once.errors import CondenseOnceError
from condense_once.files import atomic_file

KEY = "condense_once.zca"
ARRAYS = ("centre", "values", "vectors")
CHUNK = 1000  # images read at a time


def kept_zca(
    split: Split,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    description: Mapping[str, Any],
    *,
    data_dir: Path | None = None,
) -> Zca:
    """The whitening of `Space.zca`, fitted on all images of a split unless that was done before."""
    path = zca_path(split, mean, std, description, data_dir)
    spectrum = read_spectrum(path, split.shape)
    if spectrum is None:
        spectrum = fit_spectrum(split, mean, std, description["recipe"])
        with suppress(OSError, CondenseOnceError):  # a folder that cannot be written to only costs the time again
            _write(path, spectrum)
    return zca_of(spectrum, mean, std, description)


def find_zca(
    split: Split,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    description: Mapping[str, Any],
    *,
    data_dir: Path | None = None,
) -> Zca | None:
    """The same, if it is kept already."""
    if not (data_folder(data_dir) / "zca").is_dir():
        return None
    spectrum = read_spectrum(zca_path(split, mean, std, description, data_dir), split.shape)
    return None if spectrum is None else zca_of(spectrum, mean, std, description)


def zca_by_name(
    name: object,
    shape: tuple[int, int, int],
    mean: tuple[float, ...],
    std: tuple[float, ...],
    description: Mapping[str, Any],
    *,
    data_dir: Path | None = None,
) -> Zca | None:
    """A kept fit by the name that a set records of it (`zca_path(…).stem`): its source need not be there."""
    if not isinstance(name, str) or not re.fullmatch("[0-9a-f]{32}", name):
        return None
    spectrum = read_spectrum(data_folder(data_dir) / "zca" / f"{name}.safetensors", shape)
    return None if spectrum is None else zca_of(spectrum, mean, std, description)


def zca_path(
    split: Split,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    description: Mapping[str, Any],
    data_dir: Path | None = None,
) -> Path:
    """The file of a fit, named by the digest of all images and of how they are prepared."""
    method = description["recipe"]
    prepared = {"method": method, "shape": split.shape, "images": content_digest(split)}
    if method != "kornia":  # which takes pixels as they are
        prepared |= {"mean": mean, "std": std}
    name = hashlib.sha256(json.dumps(prepared, sort_keys=True).encode()).hexdigest()[:32]
    return data_folder(data_dir) / "zca" / f"{name}.safetensors"


def content_digest(split: Split) -> str:
    """SHA-256 of all images of a split."""
    digest = hashlib.sha256()
    for start in range(0, len(split.labels), CHUNK):
        digest.update(np.ascontiguousarray(split.take(slice(start, start + CHUNK))).data)
    return digest.hexdigest()


@lru_cache(maxsize=2)
def read_spectrum(path: Path, shape: tuple[int, int, int]) -> Spectrum | None:
    """The spectrum in a file; None if there is no such file, or a damaged one."""
    size = int(np.prod(shape))
    try:
        file = LocalFile(path)
        index = read_index(file)
        arrays = {
            name: np.frombuffer(file.read(spec.start, spec.stop), spec.dtype).reshape(spec.shape)
            for name, spec in index.tensors.items()
        }
        said = json.loads(index.metadata[KEY])
        spectrum = Spectrum(*(arrays[name] for name in ARRAYS))
        shapes = [array.shape for array in spectrum]
        if shapes != [(size,), spectrum.values.shape, (size, *spectrum.values.shape)] or said != _sums(spectrum):
            return None
    except (CondenseOnceError, OSError, KeyError, ValueError):
        return None
    return spectrum


def _write(path: Path, spectrum: Spectrum) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, force=True) as out:
        write_container(out, spectrum._asdict(), {KEY: json.dumps(_sums(spectrum))})
    read_spectrum.cache_clear()


def _sums(spectrum: Spectrum) -> dict[str, str]:
    return {name: f"{zlib.crc32(raw_bytes(array)):08x}" for name, array in spectrum._asdict().items()}
