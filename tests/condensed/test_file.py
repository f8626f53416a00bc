from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from condense_once.condensed import header as header_module
from condense_once.condensed.bundled import load
from condense_once.condensed.file import SetFile, save
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.condensed.verify import verify
from condense_once.container import MAX_HEADER, MappedFile
from condense_once.errors import BadFile, BadOption, CondenseOnceError


def assert_same(one: CondensedSet, other: CondensedSet) -> None:
    for name in ("cells", "labels", "origin", "soft_labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.scores.keys() == other.scores.keys()
    for metric, values in one.scores.items():
        np.testing.assert_array_equal(values, other.scores[metric])
    rest = ("classes", "size", "factor", "space", "ranking", "name", "provenance")
    assert all(getattr(one, name) == getattr(other, name) for name in rest)


@pytest.mark.parametrize("which", ["pixel_set", "soft_set"])
def test_what_was_saved_is_loaded(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    data: CondensedSet = request.getfixturevalue(which)
    ranked = replace(
        data,
        scores={"lbpe": np.linspace(0, 1, len(data), dtype=np.float32), "el2n": np.ones(len(data), np.float32)},
        ranking=Ranking("lbpe", "easy", True, {"epochs": 100}),
    )
    for number, version in enumerate((data, ranked)):
        save(version, tmp_path / f"{number}.safetensors")
        assert_same(load(tmp_path / f"{number}.safetensors"), version)


def test_half_precision_is_kept_to_the_bit(soft_set: CondensedSet, tmp_path: Path) -> None:
    half = replace(soft_set, cells=soft_set.cells.astype(np.float16))
    save(half, tmp_path / "half.safetensors")
    assert load(tmp_path / "half.safetensors").cells.tobytes() == half.cells.tobytes()


def test_the_first_rows_are_a_smaller_set(pixel_set: CondensedSet, tmp_path: Path) -> None:
    save(pixel_set, tmp_path / "a.safetensors")
    assert_same(load(tmp_path / "a.safetensors", first=7), pixel_set.take(slice(7)))
    with pytest.raises(BadOption, match="`first` must be 1 to 24"):
        load(tmp_path / "a.safetensors", first=25)


def test_the_safetensors_package_reads_the_same_arrays(soft_set: CondensedSet, tmp_path: Path) -> None:
    save(soft_set, tmp_path / "a.safetensors")
    with safe_open(tmp_path / "a.safetensors", "np") as file:
        np.testing.assert_array_equal(file.get_tensor("cells"), soft_set.cells)
        np.testing.assert_array_equal(file.get_tensor("labels"), soft_set.labels)
        np.testing.assert_array_equal(file.get_tensor("soft_labels"), soft_set.soft_labels)
        assert json.loads(file.metadata()["condense_once"])["format"] == "condense-once"


def test_taking_a_prefix_reads_only_its_blocks(pixel_set: CondensedSet, tmp_path: Path) -> None:
    big = pixel_set.take(np.tile(np.arange(24), 400))
    save(big, tmp_path / "big.safetensors")

    class Counting(MappedFile):
        touched = 0

        def read(self, start: int, stop: int) -> memoryview:
            self.touched += stop - start
            return super().read(start, stop)

    file = Counting(tmp_path / "big.safetensors")
    opened = SetFile(file)
    header_bytes = file.touched
    opened.read(first=10)
    assert file.touched - header_bytes <= 3 * opened.header.checksums.block


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_wherever_it_is(
    pixel_set: CondensedSet, tmp_path: Path, place: float, bit: int
) -> None:
    path = tmp_path / "flip.safetensors"
    save(pixel_set, path, force=True)
    raw = bytearray(path.read_bytes())
    raw[int(place * len(raw))] ^= 1 << bit
    path.write_bytes(raw)
    with pytest.raises(CondenseOnceError):
        load(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keep=st.floats(0, 1, exclude_max=True), tail=st.binary(max_size=20))
def test_a_file_that_is_cut_or_lengthened_is_noticed(
    pixel_set: CondensedSet, tmp_path: Path, keep: float, tail: bytes
) -> None:
    path = tmp_path / "cut.safetensors"
    save(pixel_set, path, force=True)
    raw = path.read_bytes()
    for damaged in (raw[: int(keep * len(raw))], raw + b"\0" + tail):
        path.write_bytes(damaged)
        with pytest.raises(CondenseOnceError):
            load(path)


@settings(max_examples=300)
@given(junk=st.binary(max_size=400))
def test_junk_is_never_a_set(junk: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "junk.safetensors"
    path.write_bytes(len(junk).to_bytes(8, "little") + junk if len(junk) % 2 else junk)
    with pytest.raises(BadFile):
        load(path)


def test_an_oversized_header_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.safetensors"
    path.write_bytes((MAX_HEADER + 1).to_bytes(8, "little") + b"{}")
    with pytest.raises(BadFile, match="not a condensed set"):
        load(path)


def rewrite_header(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    """Change the inner header and make its checksum right again, as another writer could."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    outer = json.loads(raw[8 : 8 + length])
    inner = json.loads(outer["__metadata__"][header_module.KEY])
    change(inner)
    text = json.dumps(inner)
    outer["__metadata__"] = {header_module.KEY: text, header_module.KEY_CRC: f"{zlib.crc32(text.encode()):08x}"}
    head = json.dumps(outer).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + raw[8 + length :])


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("version", 2, "label_coding"),  # soft labels in fewer bits, of which there are none
        ("version", 3, "update condense-once"),  # a raw file has no such version
        ("version", 4, "version 4"),
        ("label_kind", "logits", "soft labels cannot be"),
        ("codec", "jpeg", "encodes its cells as 'jpeg'"),
        ("format", "other", "format is 'other'"),
        ("factor", 0, "must be positive"),
        ("factor", 9, "`factor` 9"),
        ("factor", 1, "do not match its header"),
        ("patches", 23, "do not match its header"),
        ("patches", True, "wrong type"),
        ("dtype", "F32", "do not match its header"),
        ("classes", ["ant", "bee"], "2 classes"),
        ("classes", [1, 2, 3], "strings"),
        ("image", [3, 8], "channels, height, width"),
        ("space", {"kind": "lab", "mean": [0], "std": [1], "zca": {}}, "pixels, normalised or zca"),
        ("space", None, "space"),
        ("soft_labels", True, "do not match its header"),
        ("version", True, "version True"),
        ("name", "a\nb", "printable"),
        ("classes", ["ant", "bee", "\ud800"], "surrogates"),
        ("classes", ["ant", "bee", "\x1b[31m"], "printable"),
        ("space", {"kind": "pixels", "mean": [1e308] * 3, "std": [1, 1, 1], "zca": {}}, "cannot be .1e.308"),
        ("space", {"kind": "pixels", "mean": [0.5] * 3, "std": [1e-300] * 3, "zca": {}}, "cannot be"),
        ("space", {"kind": "pixels", "mean": [10**400] * 3, "std": [1, 1, 1], "zca": {}}, "damaged"),
        ("checksums", {"block": 4096, "sha256": "", "crc32": {"cells": 5}}, "crc32.cells"),
        ("ranking", {"metric": "lbpe", "prefer": "banana", "balanced": True, "settings": {}}, "easy or hard"),
    ],
)
def test_a_header_that_is_not_true_of_the_file_is_refused(
    pixel_set: CondensedSet, tmp_path: Path, field: str, value: object, complaint: str
) -> None:
    path = tmp_path / "a.safetensors"
    save(pixel_set, path)
    rewrite_header(path, lambda header: header.update({field: value}))
    with pytest.raises(CondenseOnceError, match=complaint):
        load(path)


def test_a_header_that_is_nested_too_deeply_is_refused(pixel_set: CondensedSet, tmp_path: Path) -> None:
    path, nested = tmp_path / "a.safetensors", json.loads('{"a":' * 300 + "1" + "}" * 300)
    save(pixel_set, path)
    rewrite_header(path, lambda header: header.update({"provenance": nested}))
    with pytest.raises(BadFile, match="nested more than 64 levels deep"):
        load(path)
    (finding,) = verify(path)
    assert finding.level == "error"
    with pytest.raises(BadOption, match="`provenance` and the settings of `ranking` must be plain JSON"):
        save(replace(pixel_set, provenance=nested), tmp_path / "b.safetensors")


@pytest.mark.parametrize("text", ['"\\ud800"', "1e999"])
def test_a_header_that_cannot_be_written_again_is_refused(pixel_set: CondensedSet, tmp_path: Path, text: str) -> None:
    head = f'{{"__metadata__":{{"condense_once":{text},"condense_once.crc32":"00000000"}}}}'.encode()
    (tmp_path / "a.safetensors").write_bytes(len(head).to_bytes(8, "little") + head)
    with pytest.raises(BadFile, match="not JSON"):
        load(tmp_path / "a.safetensors")


def test_fields_that_a_later_writer_adds_do_no_harm(pixel_set: CondensedSet, tmp_path: Path) -> None:
    save(pixel_set, tmp_path / "a.safetensors")
    rewrite_header(tmp_path / "a.safetensors", lambda header: header.update({"mood": "good"}))
    assert_same(load(tmp_path / "a.safetensors"), pixel_set)


@pytest.mark.parametrize(
    ("name", "answer"), [("missing.safetensors", BadFile), (".", BadOption), ("empty.safetensors", BadFile)]
)
def test_what_is_no_file_is_said_so(tmp_path: Path, name: str, answer: type[Exception]) -> None:
    (tmp_path / "empty.safetensors").touch()
    with pytest.raises(answer):
        load(tmp_path / name)


def test_an_existing_file_is_kept_unless_forced(
    pixel_set: CondensedSet, soft_set: CondensedSet, tmp_path: Path
) -> None:
    path = tmp_path / "a.safetensors"
    save(pixel_set, path)
    with pytest.raises(BadOption, match="pass `force`"):
        save(soft_set, path)
    assert_same(load(path), pixel_set)
    save(soft_set, path, force=True)
    assert_same(load(path), soft_set)


def test_what_goes_into_the_header_must_be_plain(pixel_set: CondensedSet, tmp_path: Path) -> None:
    for change in ({"provenance": {"when": object()}}, {"ranking": Ranking("lbpe", settings={"a": float("nan")})}):
        with pytest.raises(BadOption, match="plain JSON"):
            save(replace(pixel_set, **change), tmp_path / "a.safetensors")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


WRITER = """
import sys
from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
data = load(sys.argv[1])
print("ready", flush=True)
while True:
    save(data, sys.argv[2], force=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_at_any_moment_leaves_a_whole_file(pixel_set: CondensedSet, tmp_path: Path) -> None:
    big = pixel_set.take(np.tile(np.arange(24), 2000))
    save(big, tmp_path / "from.safetensors")
    target = tmp_path / "to.safetensors"
    save(pixel_set, target)
    for delay in (0.0, 0.003, 0.01, 0.02):
        arguments = [sys.executable, "-c", WRITER, str(tmp_path / "from.safetensors"), str(target)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            try:
                writer.wait(delay)
            except subprocess.TimeoutExpired:
                writer.send_signal(signal.SIGKILL)
        assert len(load(target)) in (len(pixel_set), len(big))


LIMITED = """
import resource, signal, sys
from condense_once.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
sys.argv = ["condense-once", "export", sys.argv[1], "-o", sys.argv[2], "pass `force`"]
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on file sizes")
def test_a_disk_that_fills_up_costs_nothing(pixel_set: CondensedSet, tmp_path: Path) -> None:
    save(pixel_set, tmp_path / "from.safetensors")
    (tmp_path / "out.npz").write_bytes(b"precious")
    arguments = [sys.executable, "-c", LIMITED, str(tmp_path / "from.safetensors"), str(tmp_path / "out.npz")]
    result = subprocess.run(arguments, capture_output=True, text=True)
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    assert (tmp_path / "out.npz").read_bytes() == b"precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["from.safetensors", "out.npz"]


def test_a_set_that_was_read_does_not_change_with_its_file(pixel_set: CondensedSet, tmp_path: Path) -> None:
    path = tmp_path / "set.safetensors"
    save(pixel_set, path)
    read, mapped = load(path), load(path, mmap=True)
    with path.open("r+b") as file:
        file.seek(-100, 2)
        file.write(bytes(100))
    np.testing.assert_array_equal(read.cells, pixel_set.cells)
    assert (mapped.cells != pixel_set.cells).any()  # as asked for
    os.truncate(path, 0)
    np.testing.assert_array_equal(read.cells, pixel_set.cells)


TRUNCATED = """
import os, sys
from pathlib import Path
from condense_once.condensed.bundled import load
from condense_once.condensed.file import SetFile
from condense_once.errors import BadFile
opened, read = SetFile.open(Path(sys.argv[1])), load(sys.argv[1])
os.truncate(sys.argv[1], 5000)
print(int(read.cells.sum()) > 0)
try:
    opened.read()
except BadFile as error:
    print(error)
"""


def test_truncating_the_file_of_a_large_set_does_not_end_the_process(tmp_path: Path) -> None:
    path, rng = tmp_path / "set.safetensors", np.random.default_rng(0)
    labels, space = np.repeat(np.arange(2), 200), Space("pixels", (0.5,) * 3, (0.2,) * 3)
    images = np.tile(rng.integers(0, 256, (1, 3, 256, 256), dtype=np.uint8), (400, 1, 1, 1))  # 79 MB
    save(CondensedSet.from_mosaics(images, labels, factor=1, space=space, classes=("a", "b")), path)
    done = subprocess.run([sys.executable, "-c", TRUNCATED, path], capture_output=True, text=True)
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == ["True", f"{path} was truncated while it was open; open it again."]


@pytest.mark.parametrize("field", ["image", "format", "version", "codec", "factor"])
def test_what_a_forged_header_says_is_quoted_shortly(pixel_set: CondensedSet, tmp_path: Path, field: str) -> None:
    path = tmp_path / "set.safetensors"
    save(pixel_set, path)
    rewrite_header(path, lambda header: header.update({field: list(range(5000))}))
    with pytest.raises(BadFile) as caught:
        load(path)
    assert len(str(caught.value)) < 300 + len(str(path))


def test_checksum_blocks_cannot_make_a_prefix_expensive(
    pixel_set: CondensedSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "set.safetensors"
    monkeypatch.setattr("condense_once.condensed.file.block_size", lambda total: 2**62)
    save(pixel_set, path)
    monkeypatch.undo()
    with pytest.raises(BadFile, match="checksum blocks are larger than 4,096 bytes"):
        SetFile.open(path)
