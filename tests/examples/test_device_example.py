"""The device that trains: numpy alone, over HTTP."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.examples.conftest import EXAMPLES

import condense_once

PROGRAM = EXAMPLES / "device" / "train_on_device.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("train_on_device", PROGRAM)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_fetches_a_subset_and_learns_from_it(folder_site: tuple[str, Path, Any]) -> None:
    url, folder, handler = folder_site
    ranked = condense_once.load("cifar10-idc-ipc10")
    condense_once.save(ranked, folder / "ranked.safetensors")
    test = condense_once.open_source("cifar10-sample").test
    np.savez(folder / "test.npz", x_test=test.images[:300], y_test=test.labels[:300])
    words = [f"{url}/ranked.safetensors", "--ipc", "1", "--epochs", "60", "--test", str(folder / "test.npz")]
    program = (
        "import runpy, sys; sys.modules['torch'] = sys.modules['PIL'] = None; "
        "sys.argv = ['device', *sys.argv[1:]]; "
        f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.stderr == ""
    assert "fetched 40 patches of 10 classes" in ended.stdout
    accuracy = re.search(r"test accuracy (\S+) % on 300 images \(chance: 10.0 %\)", ended.stdout)
    assert accuracy
    assert float(accuracy[1]) > 18  # chance is 10 ± 1.7
    assert re.search(r"trained 60 epochs in \S+ s", ended.stdout)
    assert re.search(r"peak memory \d+ MiB", ended.stdout)
    assert handler.sent < 100_000  # of 313 kB


def test_its_gradients_are_those_of_finite_differences(example: Any, rng: np.random.Generator) -> None:
    net = example.SmallNet((2, 16, 16), 3, 2, rng)
    net.weights = [w.astype(np.float64) for w in net.weights]
    x, slope = rng.normal(size=(2, 2, 16, 16)), rng.normal(size=(2, 3))
    found = net.backward(slope, net.forward(x)[1])
    for weight, gradient in zip(net.weights, found, strict=True):
        at = np.unravel_index(np.abs(gradient).argmax(), weight.shape)
        weight[at] += 1e-5
        above = (net.forward(x)[0] * slope).sum()
        weight[at] -= 2e-5
        below = (net.forward(x)[0] * slope).sum()
        weight[at] += 1e-5
        assert (above - below) / 2e-5 == pytest.approx(gradient[at], rel=1e-3)


def test_a_missing_file_ends_it_with_one_sentence(folder_site: tuple[str, Path, Any]) -> None:
    words = [sys.executable, str(PROGRAM), f"{folder_site[0]}/none.safetensors"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "404" in ended.stderr
