"""Work that is killed at random moments and begun again: nothing that was written is lost, and the end is the same.

Run as `python -m tests.attacks.kills FOLDER SEED SCENARIO:START:STOP …`; it prints one JSON line per kill. Each run is a fork
of this process, so that a kill costs milliseconds and not the import of PyTorch.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch._dynamo  # noqa: F401  # an optimiser imports it; here once instead of in every fork
from tests.attacks.targets import Content, digest, tiny_set, tiny_source
from tests.studies.conftest import TINY, InProcessEngine, tiny_input

from condense_once.condensed.bundled import load
from condense_once.condensed.exporters import export_set
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensing.checkpoint import load_checkpoint
from condense_once.condensing.distribution.build import build_distribution  # noqa: F401  # likewise
from condense_once.condensing.experts import run as expert_run
from condense_once.condensing.experts import train_experts
from condense_once.condensing.experts.trajectory import load_trajectory
from condense_once.condensing.matching.build import build_matching  # noqa: F401  # likewise
from condense_once.condensing.runner import condense
from condense_once.condensing.slim import slim
from condense_once.errors import CondenseOnceError
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.metrics.config import MetricConfig
from condense_once.metrics.epochs import Epochs
from condense_once.selection.rank import rank
from condense_once.studies.scheduler import run_missing
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train.compute_config import ComputeConfig

PLAIN = ComputeConfig("float32", "off")
TGDD: dict[str, Any] = {"iterations": 10, "steps": 2, "real_batch": 4, "experts": 2, "expert_epochs": 6}
IDC: dict[str, Any] = {"iterations": 6, "steps": 2, "real_batch": 4, "net_batch": 6, "net_images": 6, "image_lr": 0.05}
MAX_KILLS = 12  # of one piece of work; then it may end


@dataclass(frozen=True)
class Scenario:
    name: str
    work: Callable[[Path], None]  # from whatever an earlier, killed run left in the folder
    inspect: Callable[[Path], Content]  # what is there; raises if it is damaged


def _big(number: int) -> CondensedSet:
    data = tiny_set()
    return replace(data.take(np.tile(np.arange(18), 400)), ranking=None, name=f"number {number}")


def _save(folder: Path) -> None:
    for number in range(20):
        save(_big(number), folder / "a.safetensors", force=True)


def _inspect_saved(folder: Path) -> Content:
    path = folder / "a.safetensors"
    return {"cells": digest(load(path).cells)} if path.exists() else {}


def _export(folder: Path) -> None:
    for name in ("a.npz", "images"):
        if not (folder / name).exists():
            export_set(tiny_set(), folder / name)


def _inspect_exported(folder: Path) -> Content:
    found = {}
    if (folder / "a.npz").exists():
        with np.load(folder / "a.npz") as arrays:
            found["npz"] = digest(*(arrays[name] for name in sorted(arrays.files)))
    if (folder / "images").exists():
        found["images"] = digest(*(path.read_bytes() for path in sorted((folder / "images").rglob("*.png"))))
    return found


def _condensing(method: str, *, ipc: int = 2, nested: bool = False, **overrides: float | str) -> Callable[[Path], None]:
    return partial(
        _resume_or_begin,
        partial(condense, tiny_source(), method=method, ipc=ipc, factor=1, nested=nested, overrides=overrides),
    )


def _slimming(**overrides: float) -> Callable[[Path], None]:
    return partial(_resume_or_begin, partial(slim, tiny_set(), ipc=2, minutes=9.0, overrides=overrides))


def _resume_or_begin(run: Callable[..., CondensedSet], folder: Path) -> None:
    expert_run.SAVE_EVERY = 0.0  # after every epoch
    os.environ["CONDENSE_ONCE_DATA"] = str(folder / "data")  # where experts are kept
    out, checkpoint = folder / "a.safetensors", folder / "a.checkpoint"
    if out.exists():
        return
    made = run(net="convnet-d1-w8", checkpoint=checkpoint, resume=checkpoint.exists(), save_every=0.0, compute=PLAIN)
    save(made, out)
    checkpoint.unlink(missing_ok=True)


def _inspect_condensed(folder: Path) -> Content:
    if (folder / "a.checkpoint").exists():
        load_checkpoint(folder / "a.checkpoint")
    path = folder / "a.safetensors"
    return {"cells": digest(load(path).cells, load(path).labels)} if path.exists() else {}


def _train_experts(folder: Path) -> None:
    expert_run.SAVE_EVERY = 0.0
    train_experts(tiny_source(), net="convnet-d1-w8", runs=2, epochs=12, folder=folder / "experts", compute=PLAIN)


def _inspect_experts(folder: Path) -> Content:
    runs = {path.name: load_trajectory(path) for path in folder.glob("experts/*/run-*.safetensors")}
    return {
        name: digest(*(run.weights[each] for each in sorted(run.weights)))
        for name, run in runs.items()
        if run.epochs == 12
    }


def _rank(folder: Path) -> None:
    if not (folder / "a.safetensors").exists():
        plain = replace(tiny_set(), ranking=None, scores={})
        config = MetricConfig(scoring_epochs=15, lbpe_epochs=Epochs.top(2, among=10))
        save(rank(plain, net="convnet-d1-w8", config=config, compute=PLAIN), folder / "a.safetensors")


def _inspect_ranked(folder: Path) -> Content:
    path = folder / "a.safetensors"
    return {"order": digest(load(path).origin, load(path).scores["lbpe"])} if path.exists() else {}


def _study(folder: Path) -> None:
    inputs = {"tiny": tiny_input()}
    with PROTOCOLS.registered(TINY), closing(Store(folder / "a.sqlite")) as store:
        study = Study(
            "small",
            "a small study",
            sets=("tiny",),
            rules=("random", "yoco"),
            sizes=("1", "2"),
            nets=("convnet-d1-w8",),
            scored_by="convnet-d1-w8",
            epochs=("0-1",),
            scoring_epochs=3,
            protocol=TINY.name,
            repeats=3,
        )
        with store._database.transaction() as db:
            db.execute("update claims set beat = 0")  # those of the killed process, as if it were half a minute later
        run_missing(study, inputs, store, InProcessEngine(inputs))


def _inspect_study(folder: Path) -> Content:
    path = folder / "a.sqlite"
    if not path.exists():
        return {}
    with closing(Store(path)) as store:
        keys = [row[0] for row in store._database.all("select key from evaluations")]
        known = {key: store.evaluation(key) for key in keys}
        if store.damaged:
            raise AssertionError(f"damaged rows: {store.damaged}")
        return {key: digest(found.result, found.error) for key, found in known.items() if found is not None}


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("killed save", _save, _inspect_saved),
        Scenario("killed export", _export, _inspect_exported),
        Scenario("killed condense", _condensing("dm", iterations=30, real_batch=4), _inspect_condensed),
        Scenario("killed experts", _train_experts, _inspect_experts),
        Scenario("killed tgdd", _condensing("tgdd", **TGDD), _inspect_condensed),
        Scenario("killed mdc", _condensing("mdc", ipc=3, **IDC, subset_period=2), _inspect_condensed),
        Scenario("killed nested", _condensing("tgdd", ipc=3, nested=True, **TGDD), _inspect_condensed),
        Scenario(
            "killed stages", _condensing("tgdd", ipc=3, nested=True, nesting="stages", **TGDD), _inspect_condensed
        ),
        Scenario("killed nested idc", _condensing("idc", ipc=3, nested=True, **IDC), _inspect_condensed),
        Scenario("killed slim", _slimming(iterations=20, expert_epochs=4, expert_every=1), _inspect_condensed),
        Scenario("killed rank", _rank, _inspect_ranked),
        Scenario("killed study", _study, _inspect_study),
    )
}


def run_in_fork(work: Callable[[Path], None], folder: Path, kill_after: float | None) -> bool:
    """Whether the work ended by itself; after `kill_after` seconds it is killed."""
    child = os.fork()
    if child == 0:
        try:
            work(folder)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        end = time.monotonic() + kill_after
        while time.monotonic() < end:
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                return True
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 1:
        raise RuntimeError("the work failed; its traceback stands above")
    return code == 0


class Killer:
    def __init__(self, scenario: Scenario, folder: Path, seed: int) -> None:
        self._scenario, self._folder = scenario, folder
        self._rng = Random(f"{scenario.name} {seed}")
        began = time.monotonic()
        run_in_fork(scenario.work, self._fresh(), None)
        self._seconds = time.monotonic() - began
        self._expected = scenario.inspect(folder)
        if not self._expected:
            raise RuntimeError(f"{scenario.name} leaves nothing to compare")
        self._fresh()
        self._kills = 0

    def kill_once(self, *, last: bool) -> tuple[str, str]:
        """Let the work go on where it is, kill it, and look at what is left; the `last` time, and now and then, let it end."""
        last = last or self._kills >= MAX_KILLS
        try:
            ended = run_in_fork(
                self._scenario.work, self._folder, None if last else self._rng.uniform(0, self._seconds)
            )
            found = self._scenario.inspect(self._folder)
            wrong = [name for name, value in found.items() if self._expected.get(name) != value]
            if wrong or (ended and found != self._expected):
                return (
                    "lost",
                    f"the result differs from that of an uninterrupted run: {wrong or 'something is missing'}",
                )
            if not ended:
                self._kills += 1
                return "killed", ""
            left = [path.name for path in self._folder.iterdir() if path.name.endswith((".part", ".lock"))]
            if left:
                return "lost", f"left behind: {', '.join(left)}"
        except (CondenseOnceError, RuntimeError, AssertionError, OSError) as error:
            self._fresh()
            return "lost", f"{type(error).__name__}: {error}"
        self._fresh()
        return "ended as without kills", ""

    def _fresh(self) -> Path:
        self._kills = 0
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        return self._folder


def main(folder: str, seed: str, *plan: str) -> None:
    ready = []
    for each in plan:
        name, start, stop = each.split(":")
        killer = Killer(SCENARIOS[name], Path(folder, name), int(seed) + int(start))
        ready.append((name, killer, range(int(start), int(stop))))
    for number in range(min(n.start for *_, n in ready), max(n.stop for *_, n in ready)):  # in turns
        for name, killer, numbers in ready:
            if number in numbers:
                outcome, detail = killer.kill_once(last=number == numbers.stop - 1)
                print(json.dumps({"kind": name, "number": number, "outcome": outcome, "detail": detail}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
