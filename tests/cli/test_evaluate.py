from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.coreset import coreset
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.arrays import save_arrays
from condense_once.data.catalogue import CIFAR10
from condense_once.data.source import ArraySplit, Source
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.train.recipe import Recipe

Run = Callable[..., tuple[int, str, str]]
BUNDLED = "cifar10-real-ipc10"
NET = ("--net", "convnet-d1-w8-gn")


@pytest.fixture
def best_and_last() -> Iterator[str]:
    """The name of a protocol of two short epochs that tests and reports as the authors' does."""
    recipe = Recipe(epochs=2)
    protocol = Protocol("best-and-last-of-a-test", "two epochs", recipe, recipe, num_evals=2, report="best and last")
    with PROTOCOLS.registered(protocol):
        yield protocol.name


def test_best_and_last_are_printed_with_the_authors_std(run: Run, best_and_last: str) -> None:
    words = ("evaluate", BUNDLED, *NET, "--protocol", best_and_last, "--repeats", 2, "--test", "cifar10-sample")
    code, out, err = run(*words)
    header, row = out.splitlines()
    assert code == 0
    assert header.split()[4:6] == ["best", "last"]
    assert row.count(" ± ") == 2
    assert "so it is optimistic" in err
    result = json.loads(run(*words, "--json")[1])
    last, best = ([one[key] for one in result["runs"]] for key in ("accuracy", "best"))
    assert (result["mean"], result["std"]) == (pytest.approx(np.mean(last)), pytest.approx(np.std(last)))
    assert result["best"] == {"mean": pytest.approx(np.mean(best)), "std": pytest.approx(np.std(best))}


def test_one_repeat_has_no_std(run: Run, best_and_last: str) -> None:
    words = ("evaluate", BUNDLED, *NET, "--protocol", best_and_last, "--repeats", 1, "--test", "cifar10-sample")
    code, out, _ = run(*words)
    assert (code, "±" in out) == (0, False)
    result = json.loads(run(*words, "--json")[1])
    assert (result["std"], result["best"]["std"]) == (None, None)


@pytest.mark.parametrize("verb", [("evaluate",), ("plan", "evaluate")])
def test_a_network_nobody_knows_is_answered_with_names_that_go(run: Run, verb: tuple[str, ...]) -> None:
    code, out, err = run(*verb, BUNDLED, "--net", "convnet-d3-bm", "--test", "cifar10-sample")
    assert (code, out) == (2, "")
    assert "did you mean 'convnet-d3-bn'" in err
    assert "convnet-dDEPTH" in err


def test_a_whitened_set_finds_its_source_where_it_is_kept(
    run: Run, best_and_last: str, pixel_set: CondensedSet, rng: np.random.Generator, tmp_path: Path
) -> None:
    split = ArraySplit(rng.integers(0, 256, (12, 3, 8, 8), dtype=np.uint8), np.arange(12) % 3)
    (tmp_path / "home").mkdir()
    names = pixel_set.classes
    source = Source("cifar10", names, CIFAR10.mean, CIFAR10.std, {"train": split, "test": split})
    save_arrays(source, tmp_path / "home" / "cifar10")
    np.savez(tmp_path / "test.npz", x_test=split.images, y_test=split.labels, classes=np.array(names))
    zca = {"recipe": "kip", "regularisation": 0.1, "source": "cifar10"}
    space = Space("zca", CIFAR10.mean, CIFAR10.std, zca)
    save(replace(pixel_set, cells=pixel_set.cells.astype(np.float32), space=space), tmp_path / "white.safetensors")
    words = ("evaluate", "white.safetensors", "--test", "test.npz", *NET, "--protocol", best_and_last)
    assert run(*words, "--data-dir", tmp_path / "home")[0] == 0
    code, _, err = run(*words, "--data-dir", tmp_path / "nowhere")
    assert (code, "condense-once data get cifar10" in err) == (2, True)


# Presses Ctrl-C in the first step that a worker takes, and marks every step.
STOPPED_IN_TRAINING = """
import os, signal, sys, threading
from torch.optim import SGD
from condense_once.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without
pressed, step = False, SGD.step

def marked_step(self, closure=None):
    global pressed
    if threading.current_thread() is not threading.main_thread():
        print(end=".", flush=True)
        if not pressed:
            pressed = True
            os.kill(os.getpid(), signal.SIGINT)
    return step(self, closure)

SGD.step = marked_step
main()
"""


def test_control_c_ends_a_training_at_once_and_in_one_word() -> None:
    words = ("evaluate", BUNDLED, *NET, "--protocol", "paper", "--compile", "off", "--test", "cifar10-sample")
    program = [sys.executable, "-c", STOPPED_IN_TRAINING, *words]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 130
    assert ended.stderr.splitlines()[-1] == "stopped"
    assert "Traceback" not in ended.stderr
    assert 1 <= len(ended.stdout) < 700  # of 7000 in each repeat


# Presses Ctrl-C when a worker begins something long that cannot be interrupted, as compiling is.
STOPPED_IN_COMPILING = """
import os, signal, threading
from condense_once.cli import main
from condense_once.train.trainer import Trainer

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without

def busy_for_ever(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()

make = Trainer.__init__

def make_quiet(self, *words, **options):
    make(self, *words, **options)
    if threading.current_thread() is not threading.main_thread():
        self.fit = busy_for_ever

Trainer.__init__ = make_quiet
main()
"""


def test_control_c_does_not_wait_for_a_compiler() -> None:
    words = ("evaluate", BUNDLED, *NET, "--repeats", "2", "--test", "cifar10-sample")
    program = [sys.executable, "-c", STOPPED_IN_COMPILING, *words]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr.splitlines()[-1] == "stopped"
    assert "Traceback" not in ended.stderr


def test_a_part_of_the_classes_is_tested_on_these_or_on_all_as_its_labels_say(
    run: Run, best_and_last: str, tmp_path: Path
) -> None:
    whole = ("resize", "cifar10-idc-ipc10", "--classes", "cat,dog", "--ipc", 1)
    run(*whole, "-o", "two.safetensors")
    run(*whole, "--renumber", "-o", "renumbered.safetensors")
    words = (*NET, "--protocol", best_and_last, "--repeats", 1, "--data-dir", tmp_path)
    code, _, err = run("evaluate", "two.safetensors", *words)
    assert (code, "no patches of 8 of its 10 classes, which are tested too" in err) == (0, True)
    assert "Tested on 1000 images of cifar10-sample (bundled sample)" in err
    assert "next: condense-once data get cifar10" in err
    assert "download cifar10" in json.loads(run("evaluate", "two.safetensors", *words, "--json")[1])["note"]
    code, _, err = run("evaluate", "renumbered.safetensors", *words)
    assert (code, "no patches of" in err) == (0, False)
    assert "Tested on 200 images" in err


def test_test_images_without_class_names_are_described_by_a_known_source(run: Run, best_and_last: str) -> None:
    images, labels = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8), np.arange(20) % 10
    np.savez("test.npz", x_test=images, y_test=labels)
    words = ("evaluate", BUNDLED, *NET, "--protocol", best_and_last, "--repeats", 1, "--test", "test.npz")
    code, _, err = run(*words)
    assert code == 2
    assert "pass the known source with their names as --like, or another --test" in " ".join(err.split())
    code, out, _ = run(*words, "--like", "cifar10", "--json")
    assert (code, json.loads(out)["test_images"]) == (0, 20)
    assert run("verify", BUNDLED, "--test", "test.npz", "--like", "cifar10")[0] == 0
    assert "steps, about" not in err
    code, out, _ = run("verify", BUNDLED, "--test", "test.npz")
    assert (code, "as --like, or another --test" in out) == (1, True)
    assert "--like describes a path" in run("plan", "evaluate", BUNDLED, "--like", "cifar10")[2]


def test_robust_scores_are_printed_and_say_what_is_missing(
    run: Run, best_and_last: str, make_source: Callable[..., Source], tmp_path: Path
) -> None:
    source = make_source()
    save_arrays(replace(source, splits={**source.splits, "test": source.train}), tmp_path / "tiny")
    save(coreset(source, np.arange(30)), tmp_path / "set.safetensors")
    words = ("evaluate", tmp_path / "set.safetensors", "--test", tmp_path / "tiny", *NET, "--protocol", best_and_last)
    code, out, err = run(*words, "--repeats", 1, "--robust")
    assert code == 0, err
    assert out.splitlines()[0].split() == ["set", "LRS", "ARS", "n", "protocol"]
    assert "LRS needs the accuracy on all real images; pass it by --full-accuracy." in err
    found = json.loads(run(*words, "--repeats", 2, "--robust", "--full-accuracy", 0.9, "--json")[1])
    assert 0 < found["lrs"][0] < 1
    assert len(found["random_plain"]) == 2
    code, _, err = run(*words, "--full-accuracy", 0.9)
    assert (code, "is for the scores of --robust; pass both." in err) == (2, True)
