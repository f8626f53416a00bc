"""Folders whose images are decoded once, and what may happen to the cache in between."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from condense_once.data import decoded_cache, encoded
from condense_once.data.decoded_cache import CachedImages, decode_once
from condense_once.data.encoded import EncodedSplit
from condense_once.data.image_folder import load_image_folder
from condense_once.data.open import open_source
from condense_once.data.source import Source
from condense_once.errors import BadFile

COUNT = 6


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, for folders of any size."""
    monkeypatch.setenv("CONDENSE_ONCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(decoded_cache, "SMALL_FILES", 0)
    monkeypatch.setattr(decoded_cache, "SETTLED", 0)
    return tmp_path / "cache" / "decoded"


def make_folder(root: Path, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    for row in range(COUNT):
        (root / f"c{row % 2}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(root / f"c{row % 2}" / f"{row}.png")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "photos")


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the images that were decoded."""
    names: list[str] = []
    decode = encoded.decode

    def counted(content: bytes, where: str) -> Image.Image:
        names.append(Path(where).name)
        return decode(content, where)

    monkeypatch.setattr(encoded, "decode", counted)
    return names


def cached_files(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.images"))


def pixels(source: Source) -> np.ndarray:
    return source.train.take(slice(None))


def test_images_are_decoded_once_for_all_processes_and_steps(cache: Path, folder: Path, decodings: list[str]) -> None:
    expected = pixels(load_image_folder(folder))
    decodings.clear()
    for _ in range(3):
        source = open_source(folder)
        assert np.array_equal(pixels(source), expected)
        assert np.array_equal(source.train.take(np.array([5, 0, 0])), expected[[5, 0, 0]])
    assert sorted(decodings) == [f"{row}.png" for row in range(COUNT)]
    assert len(cached_files(cache)) == 1
    assert cache.stat().st_mode & 0o777 == 0o700


def test_few_images_are_decoded_into_memory(cache: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("CONDENSE_ONCE_CACHE", str(cache.parent))
    assert np.array_equal(pixels(open_source(folder)), pixels(load_image_folder(folder)))
    assert not cache.exists()


def test_progress_counts_the_images_of_all_splits(cache: Path, tmp_path: Path) -> None:
    for split in ("train", "test"):
        make_folder(tmp_path / "both" / split)
    counts: list[tuple[int, int]] = []
    open_source(tmp_path / "both", progress=lambda done, total: counts.append((done, total)))
    assert counts == [(done, 2 * COUNT) for done in range(1, 2 * COUNT + 1)]


def test_without_a_bar_decoding_is_reported_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = [0.0], list[str]()
    monkeypatch.setattr(decoded_cache.time, "monotonic", lambda: clock[0])
    few, many = (decoded_cache.announce_decoding(lines.append) for _ in range(2))
    for clock[0], done in ((0.0, 1), (29.0, 900), (31.0, 1000), (40.0, 1200), (62.0, 2000)):
        few(done, 999)
        many(done, 2000)
    assert lines == ["Decoding 2000 images, once.", "Decoded 1000 of 2000 images."]


@pytest.mark.parametrize("change", ["content", "added", "size", "channels"])
def test_another_content_or_size_is_decoded_again(cache: Path, folder: Path, change: str) -> None:
    open_source(folder)
    options: dict[str, int] = {}
    if change == "content":
        path = folder / "c0" / "0.png"
        status = path.stat()
        Image.fromarray(np.full((8, 8, 3), 7, np.uint8)).save(path)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # tar and cp -p keep times, too
    elif change == "added":
        Image.fromarray(np.full((8, 8, 3), 7, np.uint8)).save(folder / "c0" / "9.png")
    else:
        options = {"size": 4} if change == "size" else {"channels": 1}
    assert np.array_equal(pixels(open_source(folder, **options)), pixels(load_image_folder(folder, **options)))
    assert len(cached_files(cache)) == 2


def test_a_file_that_changed_a_moment_ago_is_not_trusted(
    cache: Path, folder: Path, decodings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another change within the resolution of the clock would leave the same times."""
    monkeypatch.setattr(decoded_cache, "SETTLED", 10**12)
    for _ in range(2):
        open_source(folder)
    assert len(decodings) == 2 * COUNT


@pytest.mark.parametrize("damage", ["cut", "header", "table", "empty"])
def test_a_damaged_cache_is_built_again(cache: Path, folder: Path, decodings: list[str], damage: str) -> None:
    expected = pixels(load_image_folder(folder))
    open_source(folder)
    decodings.clear()
    (path,) = cached_files(cache)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        del content[-1]
    elif damage == "empty":
        content.clear()
    else:
        content[20 if damage == "header" else -10] ^= 1
    path.write_bytes(content)
    assert np.array_equal(pixels(open_source(folder)), expected)
    assert len(decodings) == COUNT
    assert path.stat().st_size > 0


def test_a_damaged_image_is_decoded_again_before_it_is_used(cache: Path, folder: Path, decodings: list[str]) -> None:
    open_source(folder)
    (path,) = cached_files(cache)
    content = bytearray(path.read_bytes())
    content[100 + 2 * 192] ^= 1  # in the third image
    path.write_bytes(content)
    decodings.clear()
    source = open_source(folder)
    taken = source.train.take(np.arange(COUNT))
    assert decodings == ["4.png"]
    assert np.array_equal(taken, pixels(load_image_folder(folder)))
    assert not path.exists()  # the next process builds it again


def test_the_least_recently_used_files_make_room(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [make_folder(tmp_path / str(number), number) for number in range(3)]
    open_source(folders[0])
    (first,) = cached_files(cache)
    open_source(folders[1])
    second = next(path for path in cached_files(cache) if path != first)
    os.utime(first, (time.time() - 100,) * 2)
    os.utime(second, (time.time() - 50,) * 2)
    open_source(folders[0])  # used again
    monkeypatch.setenv("CONDENSE_ONCE_CACHE_LIMIT", str(2 * first.stat().st_size))
    open_source(folders[2])
    assert first.exists()
    assert not second.exists()
    assert len(cached_files(cache)) == 2


@pytest.mark.parametrize("reason", ["limit", "read-only", "shared", "disk"])
def test_what_cannot_be_cached_is_kept_in_memory_with_a_note(
    cache: Path, folder: Path, decodings: list[str], monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    said = {"limit": "more than the 100 B of the cache", "read-only": "denied", "shared": "can write", "disk": "full"}
    if reason == "limit":
        monkeypatch.setenv("CONDENSE_ONCE_CACHE_LIMIT", "100")
    elif reason == "read-only":  # root may write everywhere

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(decoded_cache, "_write", refuse)
    elif reason == "shared":
        cache.mkdir(parents=True)
        cache.chmod(0o777)
    else:
        monkeypatch.setattr(decoded_cache, "DISK_RESERVE", 1 << 62)
    notes: list[str] = []
    source = open_source(folder, notify=notes.append)
    for _ in range(2):
        assert np.array_equal(pixels(source), pixels(load_image_folder(folder)))
    assert len(notes) == 1
    assert notes[0].startswith("The decoded images are kept in memory, as they cannot be cached: ")
    assert said[reason] in notes[0]
    assert not list(cache.glob("*.part")) if cache.exists() else True


def test_what_fits_nowhere_is_decoded_as_needed(
    cache: Path, folder: Path, decodings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDENSE_ONCE_CACHE_LIMIT", "100")
    monkeypatch.setattr(decoded_cache, "MEMORY_BYTES", 100)
    notes: list[str] = []
    source = open_source(folder, like="cifar10", notify=notes.append)
    assert decodings == []
    source.train.take(np.array([1]))
    assert decodings == ["2.png"]
    assert "which is slow" in notes[0]


def test_a_broken_image_is_named_and_leaves_nothing_behind(cache: Path, folder: Path) -> None:
    path = folder / "c1" / "3.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(BadFile, match=r"c1/3\.png cannot be decoded"):
        open_source(folder)
    assert not list(cache.glob("*.part"))
    assert cached_files(cache) == []


def test_what_a_killed_process_left_is_removed(cache: Path, folder: Path) -> None:
    cache.mkdir(parents=True, mode=0o700)
    for letter in "0123456789abcdef":
        (cache / f"{letter * 32}.part").write_bytes(b"half")
    open_source(folder)
    assert not list(cache.glob("*.part"))


OPEN_AND_COUNT = """
import sys
from condense_once.data import decoded_cache
from condense_once.data.open import open_source
decoded_cache.SMALL_FILES, decoded_cache.SETTLED, counts = 0, 0, []
print("ready", flush=True)
sys.stdin.readline()
source = open_source(sys.argv[1], progress=lambda done, total: counts.append(done))
print(source.train.take(slice(None)).sum(), len(counts))
"""


def test_two_processes_at_once_decode_once(cache: Path, folder: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AND_COUNT, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [[int(word) for word in process.communicate(timeout=60)[0].split()] for process in processes]
    expected = int(pixels(load_image_folder(folder)).sum())
    assert sorted(found) == [[expected, 0], [expected, COUNT]]
    assert len(cached_files(cache)) == 1


def test_a_source_is_sent_to_another_process_by_its_cache(cache: Path, folder: Path, decodings: list[str]) -> None:
    split = open_source(folder).train
    assert isinstance(split, EncodedSplit)
    assert isinstance(split.decoded, CachedImages)
    sent = pickle.dumps(split)
    (path,) = cached_files(cache)
    assert len(sent) < path.stat().st_size + 3000
    decodings.clear()
    assert np.array_equal(pickle.loads(sent).take(slice(None)), split.take(slice(None)))
    assert decodings == []
    path.unlink()
    again = pickle.loads(sent)  # on a machine without the cache
    assert np.array_equal(again.take(slice(None)), pixels(load_image_folder(folder)))


def test_decoding_is_a_choice_of_the_caller(cache: Path, folder: Path) -> None:
    decode: Callable[..., dict[str, EncodedSplit]] = partial(decode_once, notify=print)
    source = load_image_folder(folder, decode=decode)
    assert source.train.decoded is not None  # type: ignore[attr-defined]
    assert load_image_folder(folder).train.decoded is None  # type: ignore[attr-defined]
