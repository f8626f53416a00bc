"""The verbs `condense-once data …`, as they are typed."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from condense_once.data.arrays import save_arrays
from condense_once.data.catalogue import CIFAR10, FASHION_MNIST
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
    code, _, err = run("data", "get", "cifar-10")
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
