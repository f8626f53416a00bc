"""Checkpoints with valid checksums that no run has written."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condense_once.condensing.array_file import KEY_CRC
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.checkpoint import FILE, load_checkpoint
from condense_once.condensing.runner import condense
from condense_once.container import write_container
from condense_once.data.source import Source
from condense_once.errors import BadFile
from condense_once.train.compute_config import ComputeConfig

Short = Callable[[str], dict[str, Any]]


class _Over(Exception):
    pass


class _End(Callback):
    def on_checkpoint(self, progress: RunProgress) -> None:
        if progress.done >= 6:
            raise _Over


def run(source: Source, short: Short, path: Path, *, resume: bool = False, callbacks: Any = ()) -> None:
    condense(
        source, method="dream", overrides=short("dream"), compute=ComputeConfig(compilation="off"), net="convnet-d1-w8",
        ipc=2, factor=2, checkpoint=path, resume=resume, save_every=0.0, callbacks=callbacks,
    )  # fmt: skip


@pytest.fixture
def path(source: Source, short: Short, tmp_path: Path) -> Path:
    with pytest.raises(_Over):
        run(source, short, tmp_path / "run.checkpoint", callbacks=[_End()])
    return tmp_path / "run.checkpoint"


def forge(path: Path, header: dict[str, str], arrays: dict[str, Any]) -> None:
    """Rewrite a checkpoint with these JSON texts and arrays in place of its own, and with checksums that match."""
    fields, stored = FILE.read(path)
    changed = {**stored, **arrays}
    texts = {name: json.dumps(value) for name, value in fields.items() if name != "crc32"} | header
    sums = {name: f"{zlib.crc32(array.tobytes()):08x}" for name, array in changed.items()}
    text = ",".join(f"{json.dumps(name)}:{value}" for name, value in {**texts, "crc32": json.dumps(sums)}.items())
    with path.open("wb") as out:
        sized = dict(sorted(changed.items(), key=lambda item: -item[1].itemsize))
        write_container(out, sized, {FILE.key: f"{{{text}}}", KEY_CRC: f"{zlib.crc32(f'{{{text}}}'.encode()):08x}"})


@pytest.mark.parametrize(
    "header",
    [
        *({"done": "1e999"}, {"done": "null"}, {"done": "[1]"}, {"done": "1.5"}, {"done": "true"}),
        *({"seconds": "1e999"}, {"seconds": "-1"}, {"seconds": '"long"'}),
        *({"losses": "3"}, {"losses": "[1e999]"}, {"losses": '["low"]'}),
        *({"identity": "[]"}, {"identity": '"idc"'}, {"identity": "{}"}, {"identity": "[1, 2]"}),
        *({"recipe": "[]"}, {"recipe": "3"}, {"recipe": "{}"}, {"recipe": "[[1, 2]]"}),
        *({"extra": "[" * 5000 + "]" * 5000}, {"extra": '{"a":' * 300 + "1" + "}" * 300}),
        {"version": "[3]"},
    ],
)
def test_headers_that_no_run_has_written_are_refused(
    source: Source, short: Short, path: Path, header: dict[str, str]
) -> None:
    forge(path, header, {})
    with pytest.raises(ValueError, match=r"run\.checkpoint") as refusal:  # BadFile, or BadOption for another run's
        run(source, short, path, resume=True)
    assert "Traceback" not in str(refusal.value)


@pytest.mark.parametrize(
    "arrays",
    [
        {"images": np.zeros(1, np.float32)},  # which PyTorch would repeat
        {"images": np.zeros((1, 1, 1, 1), np.float32)},
        {"images": np.zeros((0, 3), np.uint16)},
        {"velocity": np.zeros(1, np.float32)},
        {"curve/steps": np.zeros((2, 2), np.uint32)},
        {"curve/losses": np.zeros(99, np.float32)},
        {"selected/0": np.array([10**9], np.uint32)},
        {"selected/0": np.zeros((2, 2), np.uint32)},
        {"selected/99": np.zeros(2, np.uint32)},
        {"selected/x": np.zeros(2, np.uint32)},
        {"selected/-1": np.zeros(2, np.uint32)},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_are_refused(source: Source, short: Short, path: Path, arrays: dict[str, Any]) -> None:
    forge(path, {}, arrays)
    with pytest.raises(BadFile, match=r"run\.checkpoint (is damaged|does not fit)"):
        run(source, short, path, resume=True)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_images_that_are_not_finite_are_refused(source: Source, short: Short, path: Path, value: float) -> None:
    images = load_checkpoint(path).arrays["images"].copy()
    images.flat[5] = value
    forge(path, {}, {"images": images})
    with pytest.raises(BadFile, match=r"run\.checkpoint does not fit"):
        run(source, short, path, resume=True)


def test_a_header_that_is_no_text_is_refused(path: Path) -> None:
    with path.open("wb") as out:
        write_container(out, {}, {FILE.key: "PLACE", KEY_CRC: "00000000"})
    path.write_bytes(path.read_bytes().replace(b'"PLACE"', b'"\\ud8"'))  # not JSON at all
    with pytest.raises(BadFile):
        load_checkpoint(path)
    raw = b'{"__metadata__":{"condense_once.checkpoint":"\\ud800","condense_once.crc32":"00000000"}}'
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)
    with pytest.raises(BadFile):
        load_checkpoint(path)
