"""The codec `layered`: every prefix of a file is a set, the same for every decoder."""

from __future__ import annotations

import hashlib
import lzma
import math
import struct
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.codec.layered import coder_of, encode_set, fit_code
from condense_once.condensed.codec.transform import dct_table
from condense_once.condensed.codec.within import best_within
from condense_once.condensed.file import SetFile, from_bytes, save, to_bytes
from condense_once.condensed.set import CondensedSet, Ranking
from condense_once.condensed.space import Space
from condense_once.condensed.verify import verify
from condense_once.container import InMemory
from condense_once.device import open_set
from condense_once.errors import BadFile, BadOption, CondenseOnceError

CLASSES = ("ant", "bee", "cat")
GOLDEN_FILE = "60ed6625031ab1576a3545b161efaadbd89a74bd0f86cd7f2a6818d4af372380"
GOLDEN_CELLS = "bb9fc5c846bed2604b75b377ee88627e3079d322792167f63b98304d138eba77"
GOLDEN_CUT = "8ab0ad9a2fd42822355407c6821bcef648c93ba5385511bccf2fc19d11474825"
GOLDEN_COUNT = 102


def smooth(count: int, channels: int, height: int, width: int, seed: int = 0) -> Any:
    """Images with most of their energy in low frequencies, in 0…1."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(count, channels, height, width)).cumsum(2).cumsum(3)
    low, high = noise.min((2, 3), keepdims=True), noise.max((2, 3), keepdims=True)
    return (noise - low) / np.maximum(high - low, 1e-6)


def make(
    per_class: int = 40,
    channels: int = 3,
    size: tuple[int, int] = (16, 16),
    factor: int = 1,
    kind: str = "pixels",
    soft: bool = False,
) -> CondensedSet:
    pixels = smooth(3 * per_class, channels, *size)
    zca = {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"} if kind == "zca" else {}
    space = Space(kind, (0.5,) * channels, (0.25,) * channels, zca)  # type: ignore[arg-type]
    images = np.rint(pixels * 255).astype(np.uint8) if kind == "pixels" else ((pixels - 0.5) * 8).astype(np.float32)
    labels = np.repeat(np.arange(3), per_class)
    vectors = np.eye(3, dtype=np.float32)[labels] * 0.5 + np.float32(0.5 / 3) if soft else None
    data = CondensedSet.from_mosaics(
        images, labels, factor=factor, space=space, classes=CLASSES, soft_labels=vectors, name="made"
    )
    order = np.lexsort((data.labels, [int((data.labels[:k] == label).sum()) for k, label in enumerate(data.labels)]))
    scores = {"lbpe": np.linspace(0, 1, len(data), dtype=np.float32)}
    return replace(data.take(order), ranking=Ranking("lbpe", settings={"epochs": [1, 2]}), scores=scores)


# ---------------------------------------------------------------- a second decoder, in plain loops


def decode_plainly(content: bytes, code: Any, shape: tuple[int, int, int], patches: int, classes: int) -> Any:
    """Cells and labels of the whole chunks of a stream, by docs/format.md, without numpy's help. Hard labels only."""
    layers = code["layers"]
    groups: dict[int, list[bytes]] = {}
    at = 0
    while at + 12 <= len(content):
        crc, length, layer, group = struct.unpack_from("<IIHH", content, at)
        if at + 12 + length > len(content):
            break
        assert zlib.crc32(content[at + 4 : at + 12 + length]) == crc
        if layer != 0xFFFF:
            groups.setdefault(group, []).append(content[at + 12 : at + 12 + length])
            assert len(groups[group]) == layer + 1
        at += 12 + length
    cells: list[Any] = []
    labels: list[int] = []
    for group in range(len(groups)):
        start = group * code["group"]
        count = min(code["group"], patches - start)
        values, found = _group(groups[group], code, shape, count, start, classes)
        labels += found
        cells += [_cell(values, patch, code, shape) for patch in range(count)]
    assert layers >= max(map(len, groups.values()))
    return cells, labels


def _group(chunks: list[bytes], code: Any, shape: Any, count: int, start: int, classes: int) -> Any:
    channels, height, width = shape
    blocks = math.ceil(height / 8) * math.ceil(width / 8)
    total = 64 * channels * blocks
    magnitude = [[0] * count for _ in range(total)]
    sign = [[0] * count for _ in range(total)]
    found: list[tuple[int, int]] = []  # in the order of appearance
    labels: list[int] = []
    for layer, chunk in enumerate(chunks):
        length = int.from_bytes(chunk[:4], "little")
        filters = [{"id": lzma.FILTER_LZMA1, "dict_size": 65536, "lc": 0, "lp": 0, "pb": 0}]
        unpacked = lzma.decompress(chunk[4 : 4 + length], lzma.FORMAT_RAW, filters=filters)
        bits, digits = chunk[4 + length :], 0
        if layer == 0:
            turns = [int.from_bytes(unpacked[2 * k : 2 * k + 2], "little") for k in range(count)]
            labels += [(turn + start + k) % classes for k, turn in enumerate(turns)]
            digits = 2 * count
        for _ in range(code["planes"] - code["layers"] + 1 if layer == 0 else 1):
            last = int.from_bytes(unpacked[digits : digits + 4], "little")
            digits += 4
            for k, (row, patch) in enumerate(found):
                magnitude[row][patch] = 2 * magnitude[row][patch] + (bits[k // 8] >> (7 - k % 8) & 1)
            bits = bits[math.ceil(len(found) / 8) :]
            seen = 0
            new = []
            for row in range(last):
                for patch in range(count):
                    if magnitude[row][patch] == 0:
                        digit = unpacked[digits + seen // 4] // 3 ** (seen % 4) % 3
                        seen += 1
                        if digit:
                            new.append((row, patch))
                            sign[row][patch] = 1 if digit == 1 else -1
            for row, patch in new:
                magnitude[row][patch] = 1
            found += new
            digits += math.ceil(seen / 4)
        assert digits == len(unpacked)
        assert not bits
    shift = code["layers"] - len(chunks)
    for row, patch in found:
        step = code["steps"][row // blocks % channels] << shift
        magnitude[row][patch] = sign[row][patch] * (magnitude[row][patch] * step + (step * 7 >> 4))
    return magnitude, labels


def _cell(values: Any, patch: int, code: Any, shape: Any) -> Any:
    channels, height, width = shape
    down, across = math.ceil(height / 8), math.ceil(width / 8)
    table = [
        [round(4096 * math.sqrt((1 if k == 0 else 2) / 8) * math.cos(math.pi * (2 * i + 1) * k / 16)) for i in range(8)]
        for k in range(8)
    ]
    order = sorted(range(64), key=lambda place: (place // 8 + place % 8, place))
    samples = [[[0] * width for _ in range(height)] for _ in range(channels)]
    for channel in range(channels):
        for block in range(down * across):
            coefficients = [0] * 64
            for number, place in enumerate(order):
                coefficients[place] = values[(number * channels + channel) * down * across + block][patch]
            middle = [
                [sum(table[u][y] * coefficients[8 * u + v] for u in range(8)) for v in range(8)] for y in range(8)
            ]
            for y in range(8):
                for x in range(8):
                    row, column = 8 * (block // across) + y, 8 * (block % across) + x
                    if row < height and column < width:
                        total = sum(table[v][x] * middle[y][v] for v in range(8))
                        samples[channel][row][column] = (total + (1 << 27)) >> 28
    cell = np.zeros(shape, np.float32)
    for y in range(height):
        for x in range(width):
            mixed = [samples[channel][y][x] for channel in range(channels)]
            if code["opponent"]:
                luma, orange, green = mixed
                mixed = [luma + orange - green, luma + green, luma - orange - green]
            for channel, value in enumerate(mixed):
                exponent = code["exponent"]
                cell[channel, y, x] = min(max(value + 128, 0), 255) if exponent is None else value * 2.0**-exponent
    return cell


SHAPES = [
    {"per_class": 4},
    {"per_class": 3, "channels": 1, "size": (9, 13)},
    {"per_class": 1, "size": (20, 20), "factor": 2},
    {"per_class": 1, "size": (22, 20), "factor": 3},
    {"per_class": 3, "size": (8, 10), "kind": "normalised"},
    {"per_class": 3, "size": (5, 5), "kind": "zca"},
]


@pytest.mark.parametrize("how", SHAPES)
def test_a_decoder_in_plain_loops_gets_the_same_bits(how: dict[str, Any]) -> None:
    data = make(**how)
    content = to_bytes(data, codec="layered")
    file = SetFile(InMemory(content, "a file"))
    start = 8 + int.from_bytes(content[:8], "little")
    assert file.header.code is not None
    for stop in (len(content), len(content) - 900):
        cut = from_bytes(content[:stop], "a file")
        code = file.header.to_json()["code"]
        cells, labels = decode_plainly(content[start:stop], code, data.cells.shape[1:], len(data), len(CLASSES))
        np.testing.assert_array_equal(cut.cells, np.stack(cells).astype(cut.cells.dtype))
        assert cut.labels.tolist() == labels


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize(
    "how", [*SHAPES, {"per_class": 30, "soft": True}, {"per_class": 70, "size": (28, 28), "channels": 1}]
)
def test_everything_comes_back_and_cells_nearly(how: dict[str, Any]) -> None:
    data = make(**how)
    read = from_bytes(to_bytes(data, codec="layered"), "a file")
    np.testing.assert_array_equal(read.labels, data.labels)
    np.testing.assert_array_equal(read.origin, data.origin)
    np.testing.assert_array_equal(read.scores["lbpe"], data.scores["lbpe"])
    assert (read.ranking, read.classes, read.space, read.name) == (data.ranking, data.classes, data.space, data.name)
    assert read.cells.dtype == data.cells.dtype
    if data.soft_labels is not None:
        np.testing.assert_array_equal(read.soft_labels, data.soft_labels)
    error = (read.cells.astype(np.float64) - data.cells).std() / data.cells.astype(np.float64).std()
    assert error < 0.08
    assert read.provenance["coded"]["patches"][-1] == len(data)
    assert from_bytes(to_bytes(read), "a copy").cells.tobytes() == read.cells.tobytes()  # without further loss


def test_sets_that_are_not_balanced_keep_their_labels() -> None:
    data = make()
    some = data.take(np.flatnonzero((data.labels != 1) | (np.arange(len(data)) < 20)))
    some = replace(some, ranking=Ranking("lbpe", balanced=False))
    for read in (
        from_bytes(to_bytes(some, codec="layered"), "a file"),
        from_bytes(to_bytes(some, codec="layered", bytes=4500), "a file"),
    ):
        np.testing.assert_array_equal(read.labels, some.labels[: len(read)])


def test_half_floats_stay_half_floats() -> None:
    data = make(kind="normalised")
    half = replace(data, cells=data.cells.astype(np.float16))
    assert from_bytes(to_bytes(half, codec="layered"), "a file").cells.dtype == np.float16


def test_values_of_any_scale_are_coded_as_finely() -> None:
    data = make(kind="normalised")
    errors = []
    for scale in (1e-6, 1.0, 3e4):
        scaled = replace(data, cells=data.cells * np.float32(scale))
        read = from_bytes(to_bytes(scaled, codec="layered"), "a file")
        errors.append(float((read.cells - scaled.cells).std() / scaled.cells.std()))
    assert max(errors) < 1.6 * min(errors)


# ---------------------------------------------------------------- every prefix is a set


def test_each_of_200_cuts_decodes_to_the_prefix() -> None:
    data = load("cifar10-idc-ipc10")
    content = to_bytes(data, codec="layered")
    code, chunks = encode_set(data)
    ends = np.cumsum([len(chunk) for chunk in chunks]) + 8 + int.from_bytes(content[:8], "little")
    known: dict[int, Any] = {}  # cells by number of chunks
    coder = coder_of(data, code)
    sizes = []
    for stop in sorted(Random(0).sample(range(int(ends[0]), len(content)), 200)):
        there = int((ends <= stop).sum())
        cut = from_bytes(content[:stop], "a cut file")
        groups = [
            [chunk for chunk in chunks[:there] if chunk.group == group] for group in range(code.groups(len(data)))
        ]
        assert len(cut) == min(code.group * sum(map(bool, groups)), len(data))
        if there not in known:  # decoded from the chunks in memory, without a file
            parts = [
                coder.decode(group, min(code.group, len(data) - 50 * k))[0] for k, group in enumerate(groups) if group
            ]
            known[there] = np.concatenate(parts)
        np.testing.assert_array_equal(cut.cells, known[there])
        np.testing.assert_array_equal(cut.labels, data.labels[: len(cut)])
        error = np.abs(cut.cells.astype(int) - data.cells[: len(cut)]).mean()
        sizes.append((len(cut), -error if len(cut) == len(data) else -256.0))
    assert len(known) > 25
    assert sizes == sorted(sizes)  # first more patches, then finer ones


def test_a_cut_file_opens_everywhere_and_verify_names_the_part(tmp_path: Path) -> None:
    data = make(per_class=60)
    content = to_bytes(data, codec="layered")
    path = tmp_path / "cut.safetensors"
    path.write_bytes(content[:2200])
    cut = load(path)
    assert 0 < len(cut) < len(data)
    assert (cut.name, cut.provenance["kept"]) == (f"made-{len(cut)}of180", {"of": 180})
    assert len(open_set(path).take()) == len(cut)
    (finding,) = verify(path)
    assert finding.level == "warning"
    assert f"2,200 of {len(content):,} bytes: {len(cut)} of 180 patches" in finding.text


def test_a_cut_before_the_first_patches_says_how_many_bytes_they_need() -> None:
    content = to_bytes(make(), codec="layered")
    start = 8 + int.from_bytes(content[:8], "little")
    with pytest.raises(BadFile, match="ends before its first patches; they need") as caught:
        from_bytes(content[: start + 40], "a file")
    needed = int(str(caught.value).split("need ")[1].split(" ")[0].replace(",", ""))
    assert len(from_bytes(content[:needed], "a file")) == 51
    with pytest.raises(BadFile, match="truncated"):
        from_bytes(content[: start - 1], "a file")


@pytest.mark.parametrize("limit", [4000, 6000, 12_000, 20_000])
def test_a_limit_in_bytes_is_kept_and_used(limit: int) -> None:
    data = load("cifar10-idc-ipc10")
    content = best_within(data, limit)
    read = from_bytes(content, "a file")
    assert limit - 3700 < len(content) <= limit
    assert sum(read.provenance["coded"]["patches"]) == len(read)
    again = best_within(from_bytes(content, "a file"), 3600, SetFile(InMemory(content, "a file")))
    assert from_bytes(again, "a file").cells.tobytes() == from_bytes(best_within(data, 3600), "a file").cells.tobytes()


def test_what_fits_as_it_is_stays_without_loss_and_too_little_is_refused() -> None:
    data = make()
    assert from_bytes(best_within(data, 200_000), "a file").cells.tobytes() == data.cells.tobytes()
    with pytest.raises(BadOption, match=r"need .* bytes; raise `bytes`"):
        best_within(data, 700)
    with pytest.raises(BadOption, match="applies to the codec layered"):
        to_bytes(data, bytes=4000)
    with pytest.raises(BadOption, match="must be raw or layered"):
        to_bytes(data, codec="jpeg")


def test_a_header_is_lean_and_details_come_last() -> None:
    data = replace(make(), provenance={"losses": [0.123] * 5000, "method": "idc", "accuracy": [60.0]})
    content = to_bytes(data, codec="layered")
    assert int.from_bytes(content[:8], "little") < 1024
    assert from_bytes(content, "a file").provenance["losses"] == [0.123] * 5000
    cut = from_bytes(content[:-1], "a file")  # without the last chunk
    assert "losses" not in cut.provenance
    assert cut.provenance["method"] == "idc"
    assert (dict(cut.scores), cut.origin.tolist()) == ({}, list(range(len(data))))
    assert "accuracy" not in from_bytes(content, "a file").provenance  # of the set without loss


# ---------------------------------------------------------------- damage


def test_no_damage_is_accepted(tmp_path: Path) -> None:
    data = make(per_class=20, size=(8, 8))
    content = to_bytes(data, codec="layered")
    prefixes = {hashlib.sha256(from_bytes(content, "a").cells).digest()}
    for stop in range(len(content)):
        try:
            cut = from_bytes(content[:stop], "a file")
        except BadFile:
            continue
        prefixes.add(hashlib.sha256(cut.cells).digest())
    rng = Random(0)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 1, 3))):
            damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            read = from_bytes(bytes(damaged), "a file")
        except CondenseOnceError:
            continue
        assert hashlib.sha256(read.cells).digest() in prefixes


def test_chunks_out_of_order_are_refused() -> None:
    content = to_bytes(make(per_class=60), codec="layered")
    start = 8 + int.from_bytes(content[:8], "little")
    first = 12 + struct.unpack_from("<I", content, start + 4)[0]
    twice = content[:start] + content[start : start + first] * 2 + content[start + first :]
    with pytest.raises(BadFile, match="impossible order"):
        from_bytes(twice[: len(content)], "a file")
    with pytest.raises(BadFile, match="too long"):
        from_bytes(content + b"x", "a file")


# ---------------------------------------------------------------- what never changes


def test_a_file_of_today_is_read_for_ever() -> None:
    content = (Path(__file__).parent / "layered.safetensors").read_bytes()
    assert hashlib.sha256(content).hexdigest() == GOLDEN_FILE
    read = from_bytes(content, "a file")
    assert hashlib.sha256(read.cells).hexdigest() == GOLDEN_CELLS
    cut = from_bytes(content[:2000], "a file")
    assert (len(cut), hashlib.sha256(cut.cells).hexdigest()) == (GOLDEN_COUNT, GOLDEN_CUT)


def test_the_table_of_the_transform_never_changes() -> None:
    halves = [[1448, 1448, 1448, 1448], [2009, 1703, 1138, 400], [1892, 784, -784, -1892], [1703, -400, -2009, -1138]]
    halves += [
        [1448, -1448, -1448, 1448],
        [1138, -2009, 400, 1703],
        [784, -1892, 1892, -784],
        [400, -1138, 1703, -2009],
    ]
    table = [row + [(-1) ** k * value for value in reversed(row)] for k, row in enumerate(halves)]
    assert dct_table().tolist() == table


def test_the_default_code_has_the_documented_steps() -> None:
    assert fit_code(make()).steps == (46, 113, 92)
    assert fit_code(make(channels=1)).steps == (80,)
    assert fit_code(make(kind="zca")).steps == (80, 80, 80)


def test_decoding_needs_numpy_alone(tmp_path: Path) -> None:
    save(make(), tmp_path / "a.safetensors", codec="layered")
    program = (
        "import sys; sys.modules |= dict.fromkeys(('torch', 'PIL', 'safetensors'))\n"
        "from condense_once.device import open_set\n"
        f"print(len(open_set({str(tmp_path / 'a.safetensors')!r}).take(bytes=3000)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0


def test_decoding_takes_no_time_to_speak_of() -> None:
    data = load("cifar10-idc-ipc10")
    content = to_bytes(data, codec="layered")
    times = []
    for _ in range(5):
        before = time.process_time()
        from_bytes(content, "a file")
        times.append(time.process_time() - before)
    assert min(times) / len(data) < 500e-6  # ten times what is measured, for busy machines


def test_a_cut_nested_file_is_valid_though_its_details_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "small.safetensors"
    path.write_bytes(to_bytes(load("cifar10-nested-ipc10"), codec="layered")[:20_000])
    assert [finding for finding in verify(path) if finding.level == "error"] == []
