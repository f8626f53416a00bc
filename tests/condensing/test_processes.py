"""What happens to whole processes: killed in the middle, or sharing the work."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.set import CondensedSet
from condense_once.condensing.checkpoint import load_checkpoint
from condense_once.condensing.experts import train_experts
from condense_once.condensing.runner import condense
from condense_once.condensing.slim import slim
from condense_once.data.open import open_source
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.train.compute_config import ComputeConfig

Short = Callable[[str], dict[str, Any]]
Start = Callable[..., subprocess.Popen[str]]

# Arguments: names of jobs, each described in a file; the work item at which to kill itself (DYING names the rank) or to get
# SIGTERM (ENDING); --resume.
PROGRAM = """
import json, os, signal, sys
from pathlib import Path
import torch
from condense_once.condensed.file import save
from condense_once.condensing.distribution.loop import DistributionCondenser
from condense_once.condensing.kernel.loop import KernelCondenser
from condense_once.condensing.runner import condense
from condense_once.condensing.matching.loop import MatchingCondenser
from condense_once.condensing.slim import slim
from condense_once.train.compute_config import ComputeConfig
from condense_once.condensing.distributed import process_group
from condense_once.data.open import open_source
from condense_once.errors import CondenseOnceError

torch.set_num_threads(1)
jobs, item, *rest = sys.argv[1:]
rank = os.environ.get("RANK", "0")

def dying(advance):
    def advance_or_die(loop):
        if loop.done == int(item) and os.environ.get("DYING") == rank:
            os.kill(os.getpid(), signal.SIGKILL)
        if loop.done == int(item) and os.environ.get("ENDING") == rank:
            os.kill(os.getpid(), signal.SIGTERM)
        return advance(loop)
    return advance_or_die

for family in (MatchingCondenser, DistributionCondenser, KernelCondenser):
    family.advance = dying(family.advance)
try:
    with process_group("cpu"):
        for job in jobs.split(","):
            given = json.loads(Path(f"{job}.json").read_text())
            begin = slim if "data" in given else lambda **given: condense(open_source(Path("tiny.npz")), **given)
            made = begin(
                **given,
                net="convnet-d1-w8",
                checkpoint=Path(f"{job}.checkpoint"),
                resume="--resume" in rest,
                compute=ComputeConfig(compilation="off"), save_every=0.0,
            )
            save(made, Path(f"{job}-{rank}.safetensors"))
except CondenseOnceError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def start(source: Source, tmp_path: Path) -> Start:
    """Start the program in a folder that has the source, with any environment."""
    images, labels = source.train.take(slice(None)), np.asarray(source.train.labels)
    np.savez(tmp_path / "tiny.npz", train_images=images, train_labels=labels)
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*words: object, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "program.py", *map(str, words)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )

    return run


def describe(folder: Path, name: str, **job: Any) -> None:
    """Describe a job for the program: by default of the method it is named after."""
    job = job if "data" in job else {"method": name, "ipc": 2, "factor": 2, **job}
    (folder / f"{name}.json").write_text(json.dumps(job))


def whole(folder: Path, name: str) -> CondensedSet:
    """What one process makes of a job that is left in peace."""
    given = json.loads((folder / f"{name}.json").read_text())
    given |= {"net": "convnet-d1-w8", "compute": ComputeConfig(compilation="off")}
    if "data" in given:
        return slim(**{**given, "data": folder / given["data"]})
    return condense(open_source(folder / "tiny.npz"), experts=folder / "experts of one process", **given)


def peers(start: Start, world: int, *words: object, **environment: str) -> list[tuple[int, str]]:
    """Run this many processes of one job in parallel, as `torchrun` does; their exit codes and last lines."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    job = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **environment}
    started = [start(*words, **job, RANK=str(rank)) for rank in range(world)]
    ended = [process.communicate(timeout=120) for process in started]
    return [(process.returncode, words[1]) for process, words in zip(started, ended, strict=True)]


@pytest.mark.parametrize("method", ["idc", "kip"])
def test_a_process_that_is_killed_can_be_resumed_to_the_same_bits(
    start: Start, short: Short, tmp_path: Path, method: str
) -> None:
    describe(tmp_path, method, overrides=short(method))
    killed = start(method, 8, DYING="0")
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / f"{method}.checkpoint").is_file()
    resumed = start(method, 0, "--resume")
    assert resumed.communicate(timeout=120)[1] == ""
    expected = whole(tmp_path, method)
    assert np.array_equal(load(tmp_path / f"{method}-0.safetensors").cells, expected.cells)


def test_two_processes_make_the_sets_that_one_makes(start: Start, short: Short, tmp_path: Path) -> None:
    """Also within a time budget, for which rank 0 alone times the work; here it is long enough for all of it."""
    jobs: dict[str, dict[str, Any]] = {method: {} for method in ("idc", "dream", "mdc", "dsa", "tgdd")}
    jobs |= {"nested idc": {"method": "idc", "nested": True}, "nested": {"method": "tgdd", "nested": True}}
    jobs |= {"timed dsa": {"method": "dsa", "minutes": 9.0}, "timed tgdd": {"method": "tgdd", "minutes": 9.0}}
    for name, job in jobs.items():
        describe(tmp_path, name, overrides=short(job.get("method", name)), **job)
    overrides = {"iterations": 3, "expert_epochs": 2, "expert_every": 1}
    describe(tmp_path, "slim", data="nested-0.safetensors", ipc=1, overrides=overrides, minutes=9.0)
    jobs["slim"] = {}
    assert peers(start, 2, ",".join(jobs), 0) == [(0, ""), (0, "")]
    for name in jobs:
        expected = whole(tmp_path, name)
        for rank in range(2):
            made = load(tmp_path / f"{name}-{rank}.safetensors")
            difference = np.abs(made.cells.astype(np.float32) - expected.cells.astype(np.float32))
            assert difference.max() <= (1e-5 if "dsa" in name else 1), name  # bytes may be rounded to the other side
            assert made.provenance["processes"] == 2
            assert made.provenance.get("subsets") == expected.provenance.get("subsets")


def test_a_process_that_dies_ends_the_job_with_a_sentence_and_a_usable_checkpoint(
    start: Start, short: Short, tmp_path: Path
) -> None:
    describe(tmp_path, "idc", overrides=short("idc"))
    (code, words), (killed, _) = peers(start, 2, "idc", 11, DYING="1")
    assert killed == -signal.SIGKILL
    assert code == 1
    assert "Another process of this run has ended" in words
    assert "`resume`" in words
    assert "Traceback" not in words
    resumed = start("idc", 0, "--resume")  # alone, though two had begun
    assert resumed.communicate(timeout=120)[1] == ""
    expected = whole(tmp_path, "idc")
    assert np.array_equal(load(tmp_path / "idc-0.safetensors").cells, expected.cells)


def test_two_processes_end_together_when_one_is_told_to_even_in_early_lessons(
    start: Start, short: Short, tmp_path: Path
) -> None:
    overrides = {**short("dream"), "pretrain_epochs": 12}  # 84 batches, with two meetings among them
    describe(tmp_path, "dream", overrides=overrides)
    for code, words in peers(start, 2, "dream", 40, ENDING="1"):
        assert (code, words[:10]) == (1, "Stopped at")
    assert load_checkpoint(tmp_path / "dream.checkpoint").done == 64
    in_a_step = 90  # with rows that each has chosen
    for code, words in peers(start, 2, "dream", in_a_step, "--resume", ENDING="0"):
        assert (code, words[:10]) == (1, "Stopped at")
    assert peers(start, 2, "dream", 0, "--resume") == [(0, ""), (0, "")]
    expected = whole(tmp_path, "dream")
    made = load(tmp_path / "dream-1.safetensors").cells.astype(np.float32)
    assert np.abs(made - expected.cells).max() <= 1


def test_experts_are_trained_in_one_process(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with pytest.raises(
        BadOption, match="Experts are trained in parallel, one per core, in one process; start it without"
    ):
        train_experts(source, net="convnet-d1-w8", epochs=1)
