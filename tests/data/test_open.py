from __future__ import annotations

import gzip
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from condense_once.data.arrays import save_arrays
from condense_once.data.catalogue import CIFAR10, CIFAR100
from condense_once.data.open import is_here, open_source
from condense_once.data.source import SOURCES, ArraySplit, Source, SourceInfo, data_folder
from condense_once.data.webp_zip import save_webp_zip
from condense_once.errors import BadFile, BadOption, CondenseOnceError, UnknownName

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 3, 32, 32), dtype=np.uint8)
LABELS = np.array([0, 1, 2, 1])


@pytest.fixture
def source() -> Source:
    train = ArraySplit(IMAGES, LABELS)
    return Source("cifar10", CIFAR10.classes, CIFAR10.mean, CIFAR10.std, {"train": train, "test": train})


@pytest.fixture
def cifar(tmp_path: Path) -> Path:
    folder = tmp_path / "cifar"
    folder.mkdir()
    batch = {"data": IMAGES.reshape(4, 3072), "fine_labels": LABELS.tolist()}
    for name, content in {"train": batch, "test": batch, "meta": {"fine_label_names": list(CIFAR100.classes)}}.items():
        (folder / name).write_bytes(pickle.dumps(content, 2))
    return folder


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    folder = tmp_path / "digits"
    folder.mkdir()
    images = struct.pack(">4I", 0x803, 4, 32, 32) + IMAGES[:, 0].tobytes()
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 4) + LABELS.astype(np.uint8).tobytes())
    return folder


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    for name, image in zip(["ant", "bee"], IMAGES, strict=False):
        (tmp_path / "photographs" / name).mkdir(parents=True)
        Image.fromarray(image.transpose(1, 2, 0)).save(tmp_path / "photographs" / name / "x.png")
    return tmp_path / "photographs"


def test_every_layout_is_known_by_its_content(
    tmp_path: Path, source: Source, cifar: Path, digits: Path, photographs: Path
) -> None:
    save_arrays(source, tmp_path / "kept")
    save_webp_zip(source, tmp_path / "images.bin")  # whatever it is called
    with (tmp_path / "arrays.bin").open("wb") as out:
        np.savez(out, x_train=IMAGES, y_train=LABELS)
    for path, shape in (
        (cifar, (3, 32, 32)),
        (digits, (1, 32, 32)),
        (photographs, (3, 32, 32)),
        (tmp_path / "kept", (3, 32, 32)),
        (tmp_path / "images.bin", (3, 32, 32)),
        (tmp_path / "arrays.bin", (3, 32, 32)),
    ):
        for spec in (path, str(path)):
            opened = open_source(spec)
            assert opened.train.shape == shape
            assert np.array_equal(opened.train.take(slice(1))[0, 0], IMAGES[0, 0])


def test_a_name_opens_what_was_downloaded(tmp_path: Path, source: Source, same: Callable[..., bool]) -> None:
    assert not is_here(CIFAR10, tmp_path)
    save_arrays(source, tmp_path / "cifar10")
    assert is_here(CIFAR10, tmp_path)
    assert same(open_source("cifar10", data_dir=tmp_path), source)


def test_the_data_home_may_come_from_the_environment(
    tmp_path: Path, source: Source, same: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_arrays(source, tmp_path / "cifar10")
    monkeypatch.setenv("CONDENSE_ONCE_DATA", str(tmp_path))
    assert same(open_source("cifar10"), source)


def test_a_name_that_is_not_here_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cifar10 is not on this machine; download it"):
        open_source("cifar10", data_dir=tmp_path)
    with pytest.raises(BadFile, match=r"imagenet10 is not on this machine; it cannot be downloaded, so pass the path"):
        open_source("imagenet10", data_dir=tmp_path)


def test_a_folder_called_like_a_source_is_opened_by_its_path(
    tmp_path: Path, photographs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photographs.rename(tmp_path / "cifar10")
    monkeypatch.chdir(tmp_path)
    for spec in ("./cifar10", Path("cifar10")):
        assert open_source(spec).classes == ("ant", "bee")
    with pytest.raises(BadFile, match="not on this machine"):
        open_source("cifar10", data_dir=tmp_path / "nowhere")


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'cifar10'.* A path works too, but there is no file or folder"):
        open_source("cifra10")
    with pytest.raises(UnknownName, match=r"no 'organamnist' among the sources; choose one of: cifar10"):
        open_source("organamnist")  # another dataset than mnist
    with pytest.raises(BadFile, match="There is no file or folder"):
        open_source("no/such/folder")
    with pytest.raises(BadFile, match="There is no file or folder"):
        open_source(Path("cifar-10"))
    with pytest.raises(UnknownName):
        open_source(".", like="cifar11")


def test_other_spellings_of_a_name_are_known_unless_there_is_such_a_path(
    tmp_path: Path, source: Source, photographs: Path, same: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_arrays(source, tmp_path / "cifar10")
    for name in ("CIFAR10", "cifar-10", "Cifar_10"):
        assert same(open_source(name, data_dir=tmp_path), source)
        assert open_source(photographs, like=name).mean == CIFAR10.mean
    photographs.rename(tmp_path / "CIFAR-10")
    monkeypatch.chdir(tmp_path)
    assert open_source("CIFAR-10", data_dir=tmp_path).classes == ("ant", "bee")


def test_a_source_of_ones_own_is_opened_by_name(source: Source) -> None:
    info = SourceInfo(
        "ours", "a source from elsewhere", source.classes, (3, 32, 32), source.mean, source.std, lambda: source
    )
    with SOURCES.registered(info):
        assert open_source("ours") is source
        assert open_source("ours", like="cifar100").mean == CIFAR100.mean


def test_like_says_how_to_normalise_whatever_it_is(
    tmp_path: Path, source: Source, cifar: Path, photographs: Path
) -> None:
    save_webp_zip(source, tmp_path / "images.zip")
    save_arrays(source, tmp_path / "svhn")
    for spec in (cifar, photographs, tmp_path / "images.zip", tmp_path / "svhn"):
        assert open_source(spec, like="imagenette").mean == SOURCES.get("imagenette").mean


def test_size_and_channels_are_for_image_files(photographs: Path, cifar: Path) -> None:
    assert open_source(photographs, size=8, channels=1).train.shape == (1, 8, 8)
    assert open_source(cifar, size=32, channels=3).train.shape == (3, 32, 32)
    for options in ({"size": 8}, {"channels": 1}):
        with pytest.raises(BadOption, match="only image folders"):
            open_source(cifar, **options)  # type: ignore[arg-type]


def test_two_layouts_in_one_folder_are_not_chosen_from(cifar: Path, digits: Path) -> None:
    for file in digits.iterdir():
        file.rename(cifar / file.name)
    with pytest.raises(BadFile, match="holds CIFAR batches and idx files"):
        open_source(cifar)


def test_what_is_no_source_is_told_what_is(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello")
    (tmp_path / "nothing").touch()
    Image.fromarray(IMAGES[0, 0]).save(tmp_path / "one.png")
    (tmp_path / "zip").write_bytes(b"PK\3\4")
    (tmp_path / "gz").write_bytes(gzip.compress(b"hello"))
    for name in ("empty", "text", "nothing", "one.png", "zip", "gz"):
        with pytest.raises(BadFile, match=name):
            open_source(tmp_path / name)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadFile, match="pipe is not a regular file"):
        open_source(tmp_path / "pipe")


def test_a_damaged_download_says_how_to_get_it_again(tmp_path: Path, source: Source) -> None:
    for name in ("cifar10", "svhn"):
        save_arrays(source, tmp_path / name)
        with (tmp_path / name / "train-images.npy").open("r+b") as file:
            file.truncate(500)
    with pytest.raises(BadFile, match=r"train-images\.npy has 500 bytes.*\); download it\.$"):
        open_source("cifar10", data_dir=tmp_path)
    with pytest.raises(BadFile, match=r"svhn is damaged .*; it cannot be downloaded"):
        open_source("svhn", data_dir=tmp_path)


def test_without_a_home_the_user_is_asked_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: object) -> None:
        raise KeyError

    for name in ("HOME", "XDG_CACHE_HOME", "CONDENSE_ONCE_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(BadOption, match=r"no home folder .* pass `data_dir` or set \$CONDENSE_ONCE_DATA"):
        open_source("cifar10")
    assert open_source("cifar10-sample").name
    assert data_folder(tmp_path) == tmp_path
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "condense-once"


def test_a_path_no_system_takes_is_an_error_too() -> None:
    for spec in ("x" * 5000, "a\0b", "./a\0b", ""):
        with pytest.raises(CondenseOnceError):
            open_source(spec)
