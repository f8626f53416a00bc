"""Where the jobs of a study run. An engine takes jobs, and hands back what became of them in any order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from condense_once.errors import CondenseOnceError
from condense_once.studies.jobs import Job, Subjects, use_one_thread
from condense_once.train.hardware import Computing, cores

DEATHS = 2  # of a process over one job, until the job is given up


@dataclass(frozen=True)
class Done:
    job: Job
    found: Any  # what it found out
    error: str | None  # or why it did not
    seconds: float


class Engine(Protocol):
    @property
    def slots(self) -> int:
        """How many jobs run at a time."""
        ...

    def submit(self, job: Job) -> None: ...

    def finished(self, seconds: float) -> Sequence[Done]:
        """What ended, after waiting no longer than so."""
        ...

    def close(self) -> None:
        """End at once, with whatever runs."""
        ...


def perform(job: Job, subjects: Subjects, computing: Computing) -> Done:
    """Do a job here; what goes wrong with it is an outcome, too, and the others go on."""
    start = time.perf_counter()
    found, error = None, None
    try:
        found = job.perform(subjects, computing)
    except CondenseOnceError as refused:
        error = str(refused)
    except Exception as problem:  # of a network of somebody else's, for instance
        error = "".join(traceback.format_exception_only(problem)).strip()
    return Done(job, found, error, time.perf_counter() - start)


class LocalEngine:
    """Processes of this machine with one thread each, as many as there are cores."""

    def __init__(self, subjects: Subjects, computing: Computing, workers: int | None = None) -> None:
        self._subjects, self._computing = subjects, computing
        self._workers: list[_Worker] = []
        self._waiting: deque[Job] = deque()
        self._deaths: dict[str, int] = {}
        self.slots = workers or cores()

    def submit(self, job: Job) -> None:
        self._waiting.append(job)
        self._hand_out()

    def finished(self, seconds: float) -> Sequence[Done]:
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        done = [outcome for pipe in wait(list(busy), seconds) if (outcome := self._outcome(busy[pipe]))]  # type: ignore[index]
        self._hand_out()
        return done

    def close(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    def _hand_out(self) -> None:
        while self._waiting:
            free = next((worker for worker in self._workers if worker.job is None), None)
            if free is None and len(self._workers) == self.slots:
                return
            if free is None:
                free = _Worker.start(self._subjects, self._computing)
                self._workers.append(free)
            try:
                free.pipe.send(self._waiting[0])
            except OSError:  # it died while it had nothing to do
                self._dismiss(free)
            else:
                free.job = self._waiting.popleft()

    def _outcome(self, worker: _Worker) -> Done | None:
        job, worker.job = worker.job, None
        assert job is not None  # only busy workers are listened to  # noqa: S101
        try:
            done: Done = worker.pipe.recv()
        except (EOFError, OSError):  # the process died: killed, out of memory, crashed
            self._dismiss(worker)
            return self._bury(job, worker.process.exitcode)
        return done

    def _dismiss(self, worker: _Worker) -> None:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)

    def _bury(self, job: Job, code: int | None) -> Done | None:
        self._deaths[job.key] = self._deaths.get(job.key, 0) + 1
        if self._deaths[job.key] < DEATHS:
            self._waiting.appendleft(job)
            return None
        reason = f"Its process died {DEATHS} times (exit code {code}); perhaps memory ran out."
        return Done(job, None, reason, 0.0)


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job | None = field(default=None)

    @classmethod
    def start(cls, subjects: Subjects, computing: Computing) -> _Worker:
        context = multiprocessing.get_context("spawn")  # threads of PyTorch do not live through a fork
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, subjects, computing), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours)


def _work(pipe: Connection, subjects: Subjects, computing: Computing) -> None:
    """Do what comes in until nothing can come any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    use_one_thread()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(perform(job, subjects, computing))


def _end_with_parent() -> None:
    """A parent that is killed cannot say goodbye."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
