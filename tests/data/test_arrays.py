from __future__ import annotations

import io
import json
import mmap
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from condense_once.data.arrays import (
    channels_first,
    check_arrays,
    load_arrays,
    load_npy_folder,
    load_npz,
    save_arrays,
    save_npz,
)
from condense_once.data.catalogue import CIFAR10, FASHION_MNIST
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadFile, BadOption

CLASSES = ("ant", "bee", "cat")


def images(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def content(**changes: Any) -> dict[str, Any]:
    labels = np.array([0, 1, 2, 1])
    usual = {"x_train": images(4, 6, 5, 3), "y_train": labels, "x_test": images(3, 6, 5, 3), "y_test": labels[:3]}
    return {key: value for key, value in (usual | changes).items() if value is not None}


def save(path: Path, **changes: Any) -> Path:
    np.savez_compressed(path, **content(**changes))
    return path


@pytest.fixture
def source() -> Source:
    labels = np.array([0, 1, 2, 1])
    splits = {"train": ArraySplit(images(4, 3, 6, 5), labels), "test": ArraySplit(images(3, 3, 6, 5), labels[:3])}
    return Source("insects", CLASSES, (0.5, 0.4, 0.3), (0.1, 0.2, 0.3), splits)  # type: ignore[arg-type]


def test_channels_last_become_channels_first(tmp_path: Path) -> None:
    source = load_npz(save(tmp_path / "mine.npz"))
    assert source.name == "mine"
    assert source.classes == ("0", "1", "2")
    assert np.array_equal(source.train.take(slice(None)), images(4, 6, 5, 3).transpose(0, 3, 1, 2))
    assert source.mean == pytest.approx((images(4, 6, 5, 3) / 255).mean((0, 1, 2)))
    assert source.std == pytest.approx((images(4, 6, 5, 3) / 255).std((0, 1, 2)))


@pytest.mark.parametrize(
    ("shape", "channels"), [((4, 3, 6, 5), 3), ((4, 1, 6, 5), 1), ((4, 6, 5, 1), 1), ((4, 6, 5), 1)]
)
def test_every_clear_layout_is_read(tmp_path: Path, shape: tuple[int, ...], channels: int) -> None:
    np.savez(tmp_path / "a.npz", images=images(*shape), labels=np.array([[0], [1], [2], [1]], np.uint8))
    source = load_npz(tmp_path / "a.npz")
    assert list(source.splits) == ["train"]
    assert source.train.shape == (channels, 6, 5)
    assert source.train.labels.tolist() == [0, 1, 2, 1]


def test_the_names_of_medmnist_are_known(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        train_images=images(2, 4, 4),
        train_labels=[0, 1],
        test_images=images(2, 4, 4),
        test_labels=[1, 0],
    )
    assert list(load_npz(tmp_path / "a.npz").splits) == ["train", "test"]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int16])
def test_channels_come_first_whatever_the_numbers_are(dtype: type[np.generic]) -> None:
    stored = images(4, 6, 5, 3).astype(dtype)
    assert np.array_equal(channels_first(stored, "it"), stored.transpose(0, 3, 1, 2))
    assert channels_first(stored, "it").dtype == dtype
    assert channels_first(stored.transpose(0, 3, 1, 2), "it").shape == (4, 3, 6, 5)
    for shape, complaint in (
        ((4, 6, 5), "must be"),
        ((4, 1, 6, 3), "first or last"),
        ((4, 6, 5, 4), "neither 1 nor 3"),
    ):
        with pytest.raises(BadFile, match=f"it .*{complaint}"):
            channels_first(np.zeros(shape, dtype), "it")


def test_arrays_that_nobody_asked_for_are_not_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(save(tmp_path / "a.npz"), "a") as archive:
        archive.writestr("notes.npy", b"no array")
    assert len(load_npz(tmp_path / "a.npz").train.labels) == 4
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("x_train", b"no array")
    with pytest.raises(BadFile, match="two arrays of the same name"):
        load_npz(tmp_path / "a.npz")


def test_the_order_of_classes_that_a_file_states_stays(tmp_path: Path) -> None:
    names = tuple(reversed(CIFAR10.classes))
    source = load_npz(save(tmp_path / "a.npz", classes=np.array(names)))
    assert (source.classes, source.mean) == (names, CIFAR10.mean)
    assert source.train.labels.tolist() == [0, 1, 2, 1]


def test_names_of_classes_are_read_and_known_ones_recognised(tmp_path: Path) -> None:
    assert load_npz(save(tmp_path / "a.npz", classes=np.array(CLASSES))).classes == CLASSES
    known = load_npz(save(tmp_path / "b.npz", classes=np.array(CIFAR10.classes)))
    assert (known.mean, known.std) == (CIFAR10.mean, CIFAR10.std)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (
            {"x_train": images(4, 6, 5, 3) / 255},
            r"float64 pixels; if .* open it with `values` unit or .* data pack`, or else store 0…255 as uint8",
        ),
        ({"x_train": images(4, 6, 5, 3).astype(np.int32)}, "must be uint8"),
        ({"x_train": images(4, 3, 6, 3)}, "is ambiguous, channels first or last"),
        ({"x_train": images(4, 6, 5, 4)}, "neither 1 nor 3 channels"),
        ({"x_train": images(3, 6, 5, 3)}, "3 images need as many labels"),
        ({"x_test": images(3, 6, 6, 3)}, "of one shape"),
        ({"x_train": None}, "one pair of images and labels per split"),
        ({"images": images(4, 6, 5, 3), "labels": np.zeros(4, int)}, "one pair of images and labels per split"),
        ({"y_train": np.array([0.0, 1, 2, 1])}, "must be integers"),
        ({"y_train": np.eye(4, dtype=int)}, "must be integers"),
        ({"y_train": np.array([0, 1, 2, -1])}, "numbered from 0"),
        ({"y_train": np.array([0, 1, 2, 2**63], np.uint64)}, "numbered from 0"),
        ({"y_train": np.array([0, 1, 2, 7])}, "from 0 without gaps"),
        ({"classes": np.array(["a", "b"])}, "only 2 class names"),
        ({"classes": np.array([1, 2, 3])}, "list of strings"),
        ({"classes": np.array(["a", "\x1b[2J", "c"])}, "is not printable"),
        ({"y_test": np.array([0, 1, None])}, "not an array of numbers"),
    ],
    ids=range(17),
)
def test_wrong_content_is_named(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadFile, match=complaint):
        load_npz(save(tmp_path / "a.npz", **changes))


def test_an_npz_of_something_else_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", weights=images(3))
    with pytest.raises(BadFile, match="holds weights, but no x_train and y_train"):
        load_npz(tmp_path / "a.npz")


def test_a_pickle_in_an_npz_is_not_loaded(tmp_path: Path) -> None:
    class Command:
        def __reduce__(self) -> Any:
            return (tmp_path / "was-here").touch, ()

    save(tmp_path / "a.npz", y_train=np.array([Command()] * 4, object))
    with pytest.raises(BadFile, match="not an array of numbers"):
        load_npz(tmp_path / "a.npz")
    assert not (tmp_path / "was-here").exists()


def npy(array: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize(
    "member",
    [
        npy(images(4, 6, 5, 3)).replace(b"(4, 6", b"(9, 6"),
        npy(images(4, 6, 5, 3)).replace(b"(4, 6, 5, 3), }        ", b"(4, 99999999999999, 3)}"),
        npy(images(4, 6, 5, 3)).replace(b"(4, 6, 5, 3), }", b"-1            }"),
        npy(images(4, 6, 5, 3)).replace(b"'|u1'", b"'|V1'"),
        npy(images(4, 6, 5, 3)).replace(b"{'descr'", b"{{descr' "),
        npy(images(4, 6, 5, 3))[:20],
        b"",
        pickle.dumps([1]),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        b"\x93NUMPY\x01\x00\xf0\x00" + b"(" * 240,
        npy(images(4, 6, 5, 3)).replace(b"'descr'", b"'des\\e'"),
    ],
    ids=range(11),
)
def test_a_header_that_lies_is_not_believed(tmp_path: Path, member: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x_train.npy", member)
        archive.writestr("y_train.npy", npy(np.array([0, 1, 2, 1])))
    with pytest.raises(BadFile, match="x_train in "):
        load_npz(tmp_path / "a.npz")


def test_saved_arrays_come_back_and_stay_on_disk(tmp_path: Path, source: Source, same: Callable[..., bool]) -> None:
    save_arrays(source, tmp_path / "insects")
    back = load_arrays(tmp_path / "insects")
    assert same(back, source)
    assert (back.name, back.mean, back.std) == (source.name, source.mean, source.std)
    owner: object = back.train.take(slice(None))
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert isinstance(owner, mmap.mmap)
    assert load_arrays(tmp_path / "insects", like=CIFAR10).mean == CIFAR10.mean


def test_a_source_in_a_folder_that_exists_is_not_overwritten(tmp_path: Path, source: Source) -> None:
    with pytest.raises(BadOption, match="existing folder"):
        save_arrays(source, tmp_path)


def test_a_part_of_saved_arrays_that_is_lost_is_named(tmp_path: Path, source: Source) -> None:
    for name in ("train-images.npy", "test-labels.npy", "source.json"):
        save_arrays(source, tmp_path / name)
        (tmp_path / name / name).unlink()
        with pytest.raises(BadFile, match=f"There is no file .*{name}"):
            load_arrays(tmp_path / name)


@pytest.mark.parametrize(
    "change",
    [
        {"classes": "ant"},
        {"classes": ["ant", "bee", "\ud800"]},
        {"mean": [0.5]},
        {"mean": [0.5, 0.5, float("nan")]},
        {"std": [0.1, 0.1, 0.0]},
        {"std": [10**400] * 3},
        {"std": None},
        {"name": "\x07"},
        {"name": 3},
        {"splits": []},
    ],
)
def test_a_note_that_makes_no_sense_is_refused(tmp_path: Path, source: Source, change: dict[str, Any]) -> None:
    save_arrays(source, tmp_path / "a")
    note = json.loads((tmp_path / "a" / "source.json").read_text()) | change
    (tmp_path / "a" / "source.json").write_text(json.dumps(note))
    with pytest.raises(BadFile):
        load_arrays(tmp_path / "a")


@settings(max_examples=80)
@given(data=st.data())
def test_damage_to_an_npz_is_an_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, damaged, outcome, same, data: st.DataObject
) -> None:
    path = save(tmp_path_factory.getbasetemp() / "damaged.npz", classes=np.array(CLASSES))
    whole = load_npz(path)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    source = outcome(lambda: load_npz(path, like=CIFAR10))
    assert source is None or same(source, whole)


def zero(path: Path, count: int = 8) -> None:
    """Overwrite the last bytes, as a bad sector would; the length stays."""
    with path.open("r+b") as file:
        file.seek(-count, 2)
        file.write(bytes(count))


@pytest.mark.parametrize("name", ["train-images.npy", "train-labels.npy", "test-images.npy", "test-labels.npy"])
def test_bytes_that_changed_on_disk_are_found_when_they_are_opened(tmp_path: Path, source: Source, name: str) -> None:
    save_arrays(source, tmp_path / "a")
    check_arrays(tmp_path / "a")
    load_arrays(tmp_path / "a")
    zero(tmp_path / "a" / name)
    for read in (check_arrays, load_arrays):
        with pytest.raises(BadFile, match="a has changed since it was saved; download the source again"):
            read(tmp_path / "a")


def test_saved_arrays_are_compared_with_their_digest_once(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_arrays(source, tmp_path / "a")
    load_arrays(tmp_path / "a")
    monkeypatch.setattr("condense_once.data.arrays.check_arrays", lambda _: pytest.fail("read every byte again"))
    load_arrays(tmp_path / "a")


@pytest.mark.parametrize(
    "change", [{"classes": ["ant", "bee", "cow"]}, {"mean": [0.5, 0.4, 0.2]}, {"splits": ["train"]}, {"sha256": None}]
)
def test_a_note_that_changed_is_found_too(tmp_path: Path, source: Source, change: dict[str, Any]) -> None:
    save_arrays(source, tmp_path / "a")
    path = tmp_path / "a" / "source.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BadFile, match="has changed since it was saved"):
        load_arrays(tmp_path / "a")


def test_a_header_of_another_shape_is_found_too(tmp_path: Path, source: Source) -> None:
    save_arrays(source, tmp_path / "a")
    for name in ("train-images.npy", "test-images.npy"):
        path = tmp_path / "a" / name
        path.write_bytes(path.read_bytes().replace(b"3, 6, 5)", b"3, 5, 6)"))
    with pytest.raises(BadFile, match="has changed since it was saved"):
        load_arrays(tmp_path / "a")


@settings(max_examples=80)
@given(data=st.data())
def test_damage_to_saved_arrays_is_an_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, damaged, outcome, same, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("arrays") / "source"
    train = ArraySplit(images(2, 1, 3, 3), np.arange(2))
    save_arrays(Source("clothes", FASHION_MNIST.classes, (0.5,), (0.5,), {"train": train}), folder)
    whole = load_arrays(folder)
    path = folder / data.draw(st.sampled_from(["source.json", "train-images.npy", "train-labels.npy"]))
    shutil.copytree(folder, folder.with_name("damaged"))
    path = folder.with_name("damaged") / path.name
    path.write_bytes(data.draw(damaged(path.read_bytes())))

    source = outcome(lambda: load_arrays(path.parent))
    assert source is None or same(source, whole)
    assert source is None or (source.name, source.mean, source.std) == (whole.name, whole.mean, whole.std)


def test_floats_in_0_to_1_are_pixels_if_the_caller_says_so(tmp_path: Path) -> None:
    pixels = images(4, 6, 5, 3)
    path = save(tmp_path / "a.npz", x_train=pixels / 255, x_test=None, y_test=None)
    source = load_npz(path, values="unit")
    assert np.array_equal(source.train.take(slice(None)), pixels.transpose(0, 3, 1, 2))
    for wrong in (pixels / 128, pixels / 255 - 0.1, np.where(pixels > 3, pixels / 255, np.nan)):
        save(path, x_train=wrong, x_test=None, y_test=None)
        with pytest.raises(BadFile, match="not from 0 to 1; leave out `values`"):
            load_npz(path, values="unit")


def test_a_folder_of_npy_files_is_a_source(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, array in content(classes=np.array(CLASSES)).items():
        np.save(folder / f"{name}.npy", array)
    source = load_npy_folder(folder)
    assert (source.name, source.classes, source.train.shape) == ("mine", CLASSES, (3, 6, 5))
    (folder / "y_train.npy").unlink()
    with pytest.raises(BadFile, match="one pair of images and labels per split"):
        load_npy_folder(folder)


def test_a_packed_source_opens_again(tmp_path: Path, source: Source, same: Callable[..., bool]) -> None:
    counts: list[tuple[int, int]] = []
    save_npz(source, tmp_path / "a.npz", progress=lambda done, total: counts.append((done, total)))
    assert same(load_npz(tmp_path / "a.npz"), source)
    assert counts[-1] == (7, 7)
    with pytest.raises(BadOption, match="exists already"):
        save_npz(source, tmp_path / "a.npz")


def test_a_small_npz_may_not_unpack_to_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    blank = np.zeros((1000, 8, 8, 3), np.uint8)
    np.savez_compressed(path, x_train=blank, y_train=np.zeros(1000, int))
    assert path.stat().st_size < 2000
    load_npz(path)
    monkeypatch.setattr("condense_once.data.limits.FREE_BYTES", 1000)
    with pytest.raises(BadFile, match=r"unpacks to 187\.6 KiB, more than the .* set \$CONDENSE_ONCE_MAX_MEMORY"):
        load_npz(path)
    monkeypatch.setenv("CONDENSE_ONCE_MAX_MEMORY", "1MiB")
    load_npz(path)
    monkeypatch.setenv("CONDENSE_ONCE_MAX_MEMORY", "lots")
    with pytest.raises(BadOption, match="must be a size such as 8GiB, not 'lots'"):
        load_npz(path)


def test_an_npz_as_large_as_its_arrays_always_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("FREE_BYTES", "MAX_BYTES"):
        monkeypatch.setattr(f"condense_once.data.limits.{limit}", 10)
    np.savez(tmp_path / "a.npz", **content())
    load_npz(tmp_path / "a.npz")


def test_the_name_of_an_array_is_one_line(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x\n\x1b[2J.npy", b"")
    with pytest.raises(BadFile, match="name that is not printable") as caught:
        load_npz(tmp_path / "a.npz")
    assert str(caught.value).isprintable()
