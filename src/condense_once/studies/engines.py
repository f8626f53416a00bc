"""Where the jobs of a study run. An engine takes jobs, and hands back what became of them in any order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from condense_once.errors import CondenseOnceError
from condense_once.studies.jobs import Job, Subjects, use_one_thread
from condense_once.train.hardware import ComputeConfig, cores
from condense_once.train.memory import keep_freed_memory

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


def perform(job: Job, subjects: Subjects, compute: ComputeConfig) -> Done:
    """Do a job here; what goes wrong with it is an outcome, too, and the others go on."""
    start = time.perf_counter()
    found, error = None, None
    try:
        found = job.perform(subjects, compute)
    except Exception as problem:  # of a network of somebody else's, for instance
        error = complaint(problem)
    return Done(job, found, error, time.perf_counter() - start)


def complaint(error: Exception) -> str:
    """An error in a line: ours say all themselves."""
    if isinstance(error, CondenseOnceError):
        return str(error)
    return " ".join("".join(traceback.format_exception_only(error)).split())


class LocalEngine:
    """Processes of this machine with one thread each, as many as there are cores; one, for a GPU."""

    def __init__(self, subjects: Subjects, compute: ComputeConfig, workers: int | None = None) -> None:
        self._subjects, self._compute = list(subjects), compute
        self._workers: list[_Worker] = []
        self._waiting: deque[Job] = deque()
        self._deaths: Counter[str] = Counter()
        self._given_up: list[Done] = []
        self.slots = workers or (cores() if compute.device == "cpu" else 1)

    def submit(self, job: Job) -> None:
        self._waiting.append(job)
        self._hand_out()

    def finished(self, seconds: float) -> Sequence[Done]:
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        done = []
        for pipe in wait(list(busy), 0 if self._given_up else seconds):
            worker = busy[pipe]  # type: ignore[index]
            try:
                told = worker.pipe.recv()
                if worker.starting:
                    worker.pipe.send((self._subjects, self._compute))
                    worker.pipe.send(worker.job)
                    worker.starting = False
                else:
                    done.append(told)
                    worker.job = None
            except (EOFError, OSError):
                self._bury(worker)
        self._hand_out()
        done, self._given_up = done + self._given_up, []
        return done

    def close(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in list(self._workers):
            self._dismiss(worker)

    def _hand_out(self) -> None:
        while self._waiting:
            worker = next((worker for worker in self._workers if worker.job is None), None)
            if worker is None and len(self._workers) == self.slots:
                return
            if worker is None:
                worker = _Worker.start()
                self._workers.append(worker)
            job = self._waiting.popleft()
            if not worker.starting:
                try:
                    worker.pipe.send(job)
                except OSError:  # it died while it had nothing to do, so that no job is to blame
                    self._dismiss(worker)
                    self._waiting.appendleft(job)
                    continue
            worker.job = job

    def _bury(self, worker: _Worker) -> None:
        """A process died: killed, out of memory, crashed. Its job gets another chance, but not for ever."""
        self._dismiss(worker)
        job = worker.job
        if job is None:
            return
        self._deaths[job.key] += 1
        if self._deaths[job.key] < DEATHS:
            self._waiting.appendleft(job)
            return
        code = worker.process.exitcode
        reason = f"Its process died {DEATHS} times (exit code {code}); perhaps memory ran out."
        self._given_up.append(Done(job, None, reason, 0.0))

    def _dismiss(self, worker: _Worker) -> None:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job | None = None
    starting: bool = True  # which takes seconds, so nobody waits for it; then it says so, and is told everything

    @classmethod
    def start(cls) -> _Worker:
        context = multiprocessing.get_context("spawn")  # threads of PyTorch do not live through a fork
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _deaf_to_control_c():
            process.start()
        theirs.close()
        return cls(process, ours)


@contextmanager
def _deaf_to_control_c() -> Iterator[None]:
    """Processes that are started in the block ignore Ctrl-C from their first moment: it reaches all, the first one decides."""
    if threading.current_thread() is not threading.main_thread():  # others cannot say so
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(pipe: Connection) -> None:
    """Say that we are there, take what all jobs share, and then do what comes in until nothing can come any more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_freed_memory()
    use_one_thread()
    with suppress(EOFError):
        pipe.send("here")
        subjects, compute = pipe.recv()
        while True:
            pipe.send(perform(pipe.recv(), subjects, compute))


def _end_with_parent() -> None:
    """A parent that is killed cannot say goodbye."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
