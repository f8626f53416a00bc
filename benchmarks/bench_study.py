"""A small study in parallel processes against its cells one by one on all threads, and the overhead of store and scheduler.

The study: three rules, two sizes, two repeats on the bundled set with a narrow network, tested on the bundled images. One by
one: score, select and evaluate in this process, with one thread per core for each run. Nothing is stored before either.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from machine import cpu_model

import condense_once
from condense_once.metrics import record_scoring_run
from condense_once.studies import Study
from condense_once.studies.engines import Outcome
from condense_once.studies.grid import StudyInput, cells_of
from condense_once.studies.local_engine import LocalEngine
from condense_once.studies.scheduler import run_missing
from condense_once.studies.store import Store
from condense_once.train.compute_config import ComputeConfig, cores

NET = "convnet-d3-w64"
STUDY = Study(
    "small",
    "a small study",
    rules=("random", "el2n", "yoco"),
    sizes=("1", "2"),
    nets=(NET,),
    scored_by=NET,
    protocol="quick",
    repeats=2,
    scoring_runs=2,
)


class TimedEngine(LocalEngine):
    """Measures how long jobs ran, and how long the scheduler waited for them."""

    busy, waited = 0.0, 0.0

    def finished(self, seconds: float) -> Sequence[Outcome]:
        start = time.perf_counter()
        done = super().finished(seconds)
        self.waited += time.perf_counter() - start
        self.busy += sum(each.seconds for each in done)
        return done


def one_by_one(pair: StudyInput) -> list[float]:
    runs, found = {}, []
    for cell in cells_of(STUDY, {STUDY.sets[0]: pair}):
        seed = cell.config.seed
        if seed not in runs:
            runs[seed] = record_scoring_run(pair.data, ["lbpe", "el2n"], cell.config, net=NET, seed=seed)
        rows = cell.rows(runs[seed])
        compute = ComputeConfig(workers=1, threads=cores())
        result = condense_once.evaluate(
            pair.data.take(rows),
            pair.test,
            protocol="quick",
            net=NET,
            repeats=1,
            seed=cell.repeat,
            compute=compute,
        )
        found.append(result.mean)
    return found


def main() -> None:
    pair = StudyInput(condense_once.load(STUDY.sets[0]), condense_once.open_source("cifar10-sample"))
    inputs = {STUDY.sets[0]: pair}
    with TemporaryDirectory() as folder:
        engine = TimedEngine([pair], ComputeConfig())
        start = time.perf_counter()
        states = run_missing(STUDY, inputs, Store(Path(folder) / "store.sqlite"), engine)
        ours = time.perf_counter() - start
    torch.set_num_threads(cores())
    start = time.perf_counter()
    plain = one_by_one(pair)
    theirs = time.perf_counter() - start
    difference = max(
        abs(state.evaluation.result["accuracy"] - accuracy)
        for state, accuracy in zip(states, plain, strict=True)
        if state.evaluation and state.evaluation.result
    )
    overhead = 1 - engine.waited / ours
    idle = 1 - engine.busy / (engine.slots * ours)
    print(f"{cpu_model()}; {len(states)} runs and {STUDY.dynamics} scoring runs of {NET}")
    print(f"one by one, {cores()} threads   {theirs:8.1f} s")
    print(f"as a study, {engine.slots} processes {ours:8.1f} s   {theirs / ours:.2f} × faster")
    print(f"store and scheduler took {overhead:.1%} of that; processes were starting or idle for {idle:.1%}")
    print(f"largest difference in accuracy: {difference:.2%}")


if __name__ == "__main__":
    main()
