"""The jobs of a study in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType

from condense_once.studies.engines import MAX_CRASHES, Outcome, perform
from condense_once.studies.jobs import Inputs, Job, use_one_thread
from condense_once.train.compute_config import ComputeConfig, cores
from condense_once.train.memory import keep_freed_memory


class LocalEngine:
    """Worker processes with one thread each, by default as many as there are cores, or one for a GPU."""

    def __init__(self, inputs: Inputs, compute: ComputeConfig, workers: int | None = None) -> None:
        self._inputs, self._compute = list(inputs), compute
        self._workers: list[_Worker] = []
        self._queue: deque[Job] = deque()
        self._crashes: Counter[str] = Counter()  # by the key of the job
        self._given_up: list[Outcome] = []
        self.slots = workers or (cores() if compute.device == "cpu" else 1)

    def submit(self, job: Job) -> None:
        self._queue.append(job)
        self._assign()

    def finished(self, seconds: float) -> Sequence[Outcome]:
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        outcomes = []
        for pipe in wait(list(busy), 0 if self._given_up else seconds):
            worker = busy[pipe]  # type: ignore[index]
            try:
                message = worker.pipe.recv()
                if worker.starting:
                    worker.pipe.send((self._inputs, self._compute))
                    worker.pipe.send(worker.job)
                    worker.starting = False
                else:
                    outcomes.append(message)
                    worker.job = None
            except (EOFError, OSError):
                self._handle_crash(worker)
        self._assign()
        outcomes, self._given_up = outcomes + self._given_up, []
        return outcomes

    def close(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in list(self._workers):
            self._remove(worker)

    def _assign(self) -> None:
        while self._queue:
            worker = next((worker for worker in self._workers if worker.job is None), None)
            if worker is None and len(self._workers) == self.slots:
                return
            if worker is None:
                worker = _Worker.start()
                self._workers.append(worker)
            job = self._queue.popleft()
            if not worker.starting:
                try:
                    worker.pipe.send(job)
                except OSError:  # it died while idle, so no job is to blame
                    self._remove(worker)
                    self._queue.appendleft(job)
                    continue
            worker.job = job

    def _handle_crash(self, worker: _Worker) -> None:
        """A worker died: killed, out of memory, segmentation fault. Its job runs again, up to a limit."""
        self._remove(worker)
        job = worker.job
        if job is None:
            return
        self._crashes[job.key] += 1
        if self._crashes[job.key] < MAX_CRASHES:
            self._queue.appendleft(job)
            return
        code = worker.process.exitcode
        reason = f"Its process died {MAX_CRASHES} times (exit code {code}); it may have run out of memory."
        self._given_up.append(Outcome(job, None, reason, 0.0))

    def _remove(self, worker: _Worker) -> None:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job | None = None
    starting: bool = True  # takes seconds, so nothing waits for it; its first message says that it is ready

    @classmethod
    def start(cls) -> _Worker:
        context = multiprocessing.get_context("spawn")  # PyTorch's threads do not survive a fork
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True)
        with _ignore_sigint(), _skip_unguarded_script():
            process.start()
        theirs.close()
        return cls(process, ours)


@contextmanager
def _ignore_sigint() -> Iterator[None]:
    """Processes started in the block ignore Ctrl-C: a terminal sends it to all, and the parent decides."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _skip_unguarded_script() -> Iterator[None]:
    """Keep workers from importing a script without `if __name__ == "__main__":`, which would run the study again.

    Workers do import a guarded script, so that networks registered in it are known there.
    """
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    source = "__name__"
    if path is not None and getattr(main, "__spec__", None) is None:
        with suppress(OSError):
            source = Path(path).read_text(encoding="utf-8", errors="replace")
    if "__name__" not in source:
        sys.modules["__main__"] = ModuleType("__main__")  # multiprocessing imports nothing for a module without a file
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _work(pipe: Connection) -> None:
    """Say that we are ready, receive what all jobs share, then run jobs until the pipe closes."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    keep_freed_memory()
    use_one_thread()
    with suppress(EOFError):
        pipe.send("ready")
        inputs, compute = pipe.recv()
        while True:
            pipe.send(perform(pipe.recv(), inputs, compute))


def _exit_with_parent() -> None:
    """A parent that is killed cannot stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
