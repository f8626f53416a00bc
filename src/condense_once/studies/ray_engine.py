"""The jobs of a study as tasks on a Ray cluster, whose nodes may come and go.

The Python that Ray runs in must have this package on every node, in the same version: nothing is sent there but the jobs and,
once, the sets with their test images. What a job reads from files (a folder of pictures, the source of a whitened set) must lie
in the same place on every node.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Sequence
from textwrap import shorten
from typing import Any

from condense_once.errors import BadOption, MissingExtra
from condense_once.studies.engines import DEATHS, Done, perform
from condense_once.studies.jobs import Job, Subjects, use_one_thread
from condense_once.train.hardware import ComputeConfig
from condense_once.train.memory import keep_freed_memory

LOST_NODES = 10  # under one job, until the job is given up; machines that are lent may well be taken back a few times
KNOCK = 5.0  # seconds for a cluster to open its door
REASON = 300  # letters of what Ray has to say, which can be pages
# What Ray is told before it is loaded.
PLAIN = {
    "RAY_USAGE_STATS_ENABLED": "0",  # report to nobody
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # send no copy of the environment to the nodes
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # print nothing among our tables, not even that a node was lost
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # attempts to connect, of 40 seconds each; otherwise 20
}


class RayEngine:
    """Tasks of one CPU each, as many at a time as the cluster has at the moment.

    `address` is that of a running cluster (host:port), or `local`: start one on this machine for as long as the engine is open.
    By default the cluster that this process or this machine is part of is joined; if there is none, one is started.

    The sets lie on the node that this process is connected to, which it could not survive the loss of anyway. All other nodes
    may be lost: what ran there runs again. Ray itself would repeat what runs out of memory for ever, so that is done here.
    """

    def __init__(self, subjects: Subjects, compute: ComputeConfig, address: str | None = None) -> None:
        self._ray = _load()
        self._guest = self._ray.is_initialized()  # whoever connected this process will disconnect it
        if self._guest and address is not None:
            raise BadOption(f"This process is part of a Ray cluster already; leave out {address} to use that one.")
        if not self._guest:
            _connect(self._ray, address)
        gpus = int(compute.device.startswith("cuda"))  # Ray hides those that a task does not ask for
        self._kind = "GPU" if gpus else "CPU"
        self._task = self._ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(_perform)
        self._subjects, self._compute = self._ray.put(subjects), compute
        self._running: dict[Any, Job] = {}  # by the references to what they will find
        self._losses: Counter[tuple[str, str]] = Counter()
        self.slots = self._count_slots()
        if not self.slots:
            self.close()
            raise BadOption(f"The Ray cluster has no {self._kind} for the jobs of a study; let a node with one join.")

    def submit(self, job: Job) -> None:
        self._running[self._task.remote(job, self._subjects, self._compute)] = job

    def finished(self, seconds: float) -> Sequence[Done]:
        self.slots = self._count_slots()
        if not self._running:
            time.sleep(seconds)
            return []
        tasks = list(self._running)
        self._ray.wait(tasks, timeout=seconds)  # for the first of them
        ended, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0)
        return [outcome for task in ended if (outcome := self._outcome(task))]

    def close(self) -> None:
        try:
            for task in self._running:
                self._ray.cancel(task, force=True)
        finally:
            self._running.clear()
            if not self._guest:
                self._ray.shutdown()  # which ends the cluster only if it was started here

    def _count_slots(self) -> int:
        return int(self._ray.cluster_resources().get(self._kind, 0))

    def _outcome(self, task: Any) -> Done | None:
        job, errors = self._running.pop(task), self._ray.exceptions
        try:
            done: Done = self._ray.get(task)
        except errors.RayTaskError as error:  # what goes wrong in a job is an outcome, so this one did not even begin
            reason = str(error).strip().splitlines()[-1]
            raise BadOption(
                f"A node of the Ray cluster cannot do the jobs of this study ({shorten(reason, REASON)}); give all nodes"
                " the same version of condense-once."
            ) from None
        except (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError) as error:
            return self._bury(job, "node", LOST_NODES, error)
        except errors.RayError as error:
            return self._bury(job, "process", DEATHS, error)
        return done

    def _bury(self, job: Job, what: str, limit: int, error: Exception) -> Done | None:
        self._losses[job.key, what] += 1
        if self._losses[job.key, what] < limit:
            self.submit(job)
            return None
        reason = f"Its {what} died {limit} times ({type(error).__name__}); perhaps memory ran out."
        return Done(job, None, reason, 0.0)


def _perform(job: Job, subjects: Subjects, compute: ComputeConfig) -> Done:
    """What runs on a node."""
    keep_freed_memory()
    use_one_thread()
    return perform(job, subjects, compute)


def _load() -> Any:
    for name, value in PLAIN.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise MissingExtra("Running a study on a Ray cluster", "ray") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        _knock(address or "")
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL)
    except (OSError, OverflowError, ValueError, RuntimeError, ImportError, ray.exceptions.RayError) as error:
        ray.shutdown()
        where = f"at {address}" if address else "on this machine"
        raise BadOption(
            f"There is no connection to a Ray cluster {where} ({shorten(str(error), REASON)}); pass the address"
            " that `ray start --head` printed, or local."
        ) from None


def _knock(address: str) -> None:
    """Fail soon where nobody is: Ray itself would wait for 40 seconds."""
    host, _, port = address.rpartition("://")[-1].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), KNOCK).close()
