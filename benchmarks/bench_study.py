"""A whole small study by its engine, against its cells one by one with all threads; and what store and scheduling cost.

The study: three rules, two sizes, two repeats of the bundled set with a narrow network, tested on the bundled images. One by
one means: score, select and evaluate in this process, one after the other, two threads (or as many as there are cores)
sharing each training. Both begin with an empty store and nothing prepared.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from machine import cpu_model

import condense_once
from condense_once.metrics.scoring_run import record_scoring_run
from condense_once.studies import Study
from condense_once.studies.engines import Done, LocalEngine
from condense_once.studies.grid import Subject, cells_of
from condense_once.studies.run import run_study
from condense_once.studies.store import Store
from condense_once.train.hardware import ComputeConfig, cores

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
    dynamics=2,
)


class Watched(LocalEngine):
    """Counts the seconds in which jobs were done, and those in which its user waited for them."""

    busy, waited = 0.0, 0.0

    def finished(self, seconds: float) -> Sequence[Done]:
        start = time.perf_counter()
        done = super().finished(seconds)
        self.waited += time.perf_counter() - start
        self.busy += sum(each.seconds for each in done)
        return done


def one_by_one(subject: Subject) -> list[float]:
    runs, found = {}, []
    for cell in cells_of(STUDY, {STUDY.sets[0]: subject}):
        seed = cell.settings.seed
        if seed not in runs:
            runs[seed] = record_scoring_run(subject.data, ["lbpe", "el2n"], cell.settings, net=NET, seed=seed)
        rows = cell.rows(runs[seed])
        compute = ComputeConfig(workers=1, threads=cores())
        result = condense_once.evaluate(
            subject.data.take(rows),
            subject.test,
            protocol="quick",
            net=NET,
            repeats=1,
            seed=cell.repeat,
            compute=compute,
        )
        found.append(result.mean)
    return found


def main() -> None:
    subject = Subject(condense_once.load(STUDY.sets[0]), condense_once.open_source("cifar10-sample"))
    subjects = {STUDY.sets[0]: subject}
    with TemporaryDirectory() as folder:
        engine = Watched([subject], ComputeConfig())
        start = time.perf_counter()
        states = run_study(STUDY, subjects, Store(Path(folder) / "store.sqlite"), engine)
        ours = time.perf_counter() - start
    torch.set_num_threads(cores())
    start = time.perf_counter()
    plain = one_by_one(subject)
    theirs = time.perf_counter() - start
    alike = max(
        abs(state.measured.result["accuracy"] - accuracy)
        for state, accuracy in zip(states, plain, strict=True)
        if state.measured and state.measured.result
    )
    kept = 1 - engine.waited / ours
    idle = 1 - engine.busy / (engine.slots * ours)
    print(f"{cpu_model()}; {len(states)} trainings and {STUDY.dynamics} scoring runs of {NET}")
    print(f"one by one, {cores()} threads   {theirs:8.1f} s")
    print(f"as a study, {engine.slots} processes {ours:8.1f} s   {theirs / ours:.2f} × faster")
    print(f"store and scheduling took {kept:.1%} of that; processes started, or had no more to do, for {idle:.1%}")
    print(f"largest difference of accuracies: {alike:.2%}")


if __name__ == "__main__":
    main()
