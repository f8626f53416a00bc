"""The jobs of a study as tasks on a Ray cluster, whose nodes may come and go.

Every node needs the same version of this package: only jobs are sent there and, once, the sets with their test images. Files
that jobs read (a folder of test images, the source of a whitened set) must have the same path on every node.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import shorten
from typing import Any

from condense_once.errors import BadOption, MissingExtra
from condense_once.studies.engines import MAX_CRASHES, Outcome, perform
from condense_once.studies.jobs import Inputs, Job, use_one_thread
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.memory import keep_freed_memory

MAX_LOST_NODES = 10  # while running one job, before it counts as failed; spot instances may be lost several times
CONNECT_TIMEOUT = 5.0  # seconds
MAX_REASON = 300  # characters of Ray's messages, which can be pages
LOOPBACK = "127.0.0.1"
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
# Set before Ray is imported.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage reports
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # no copy of the environment for the nodes
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # no output among our tables
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # attempts to connect, of 40 seconds each; by default 20
}


class RayEngine:
    """Tasks of one CPU each, as many at a time as the cluster has CPUs.

    `address` is that of a running cluster (host:port), or `local` to start one on this machine until the engine is closed. By
    default it joins the cluster of this process or machine, or starts one if there is none.

    The sets live on the node that this process is connected to. Any other node may be lost: its jobs run again. Retries are
    ours, because Ray would repeat a job that runs out of memory forever.
    """

    def __init__(self, inputs: Inputs, compute: ComputeConfig, address: str | None = None) -> None:
        self._ray = _load()
        self._joined = self._ray.is_initialized()  # then the caller also disconnects
        if self._joined and address is not None:
            raise BadOption(
                f"This process is connected to a Ray cluster already; leave out `address` {address} to use it."
            )
        if not self._joined:
            _connect(self._ray, address)
        gpus = int(compute.device.startswith("cuda"))  # Ray hides GPUs from tasks that do not request one
        self._kind = "GPU" if gpus else "CPU"
        self._task = self._ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(_perform)
        self._inputs, self._compute = self._ray.put(inputs), compute
        self._running: dict[Any, Job] = {}  # by Ray's object reference
        self._losses: Counter[tuple[str, str]] = Counter()
        self.slots = self._count_slots()
        if not self.slots:
            self.close()
            raise BadOption(f"The Ray cluster has no {self._kind}; add a node with one.")

    def submit(self, job: Job) -> None:
        self._running[self._task.remote(job, self._inputs, self._compute)] = job

    def finished(self, seconds: float) -> Sequence[Outcome]:
        self.slots = self._count_slots()
        if not self._running:
            time.sleep(seconds)
            return []
        tasks = list(self._running)
        self._ray.wait(tasks, timeout=seconds)  # for the first
        ended, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0)
        return [outcome for task in ended if (outcome := self._outcome(task))]

    def close(self) -> None:
        try:
            for task in self._running:
                self._ray.cancel(task, force=True)
        finally:
            self._running.clear()
            if not self._joined:
                self._ray.shutdown()  # stops the cluster only if it was started here

    def _count_slots(self) -> int:
        return int(self._ray.cluster_resources().get(self._kind, 0))

    def _outcome(self, task: Any) -> Outcome | None:
        job, errors = self._running.pop(task), self._ray.exceptions
        try:
            done: Outcome = self._ray.get(task)
        except errors.RayTaskError as error:  # errors of a job are outcomes, so this one did not start
            reason = str(error).strip().splitlines()[-1]
            raise BadOption(
                f"A node of the Ray cluster cannot run the jobs of this study ({shorten(reason, MAX_REASON)}); install the"
                " same version of condense-once on all nodes."
            ) from None
        except (errors.NodeDiedError, errors.LocalRayletDiedError, errors.ObjectLostError) as error:
            return self._retry(job, "node", MAX_LOST_NODES, error)
        except errors.RayError as error:
            return self._retry(job, "process", MAX_CRASHES, error)
        return done

    def _retry(self, job: Job, what: str, limit: int, error: Exception) -> Outcome | None:
        self._losses[job.key, what] += 1
        if self._losses[job.key, what] < limit:
            self.submit(job)
            return None
        reason = f"Its {what} died {limit} times ({type(error).__name__}); it may have run out of memory."
        return Outcome(job, None, reason, 0.0)


def _perform(job: Job, inputs: Inputs, compute: ComputeConfig) -> Outcome:
    """Runs on a node."""
    keep_freed_memory()
    use_one_thread()
    return perform(job, inputs, compute)


def _load() -> Any:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise MissingExtra("Running a study on a Ray cluster", "ray") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        if address == "local" or (address is None and not _joins_here(ray)):
            _start(ray)
        elif address is not None:
            _check_reachable(address)
            ray.init(address, **QUIET)
    except Exception as error:  # Ray raises anything, also a plain Exception if its processes start too slowly
        ray.shutdown()
        reason = shorten(str(error), MAX_REASON)
        if address in (None, "local"):
            raise BadOption(
                f"Cannot start a Ray cluster on this machine ({reason}); try again when it is less busy, or leave out `engine`."
            ) from None
        raise BadOption(
            f"Cannot connect to a Ray cluster at {address} ({reason}); pass the `address` that ray start --head printed, or"
            " local."
        ) from None


def _joins_here(ray: Any) -> bool:
    """Join the cluster that runs on this machine; False if there is none."""
    try:
        ray.init("auto", **QUIET)
    except ConnectionError:
        return False
    return True


def _start(ray: Any) -> None:
    """Start a cluster that only this machine can reach.

    Ray runs a process for its dashboard even without one, which asks the metadata servers of cloud providers where it runs; if
    the port of the dashboard is in use, Ray goes on without that process. Ray also replaces the loopback address by one that
    other machines can reach, and listens on all of them, unless clusters are disabled, as by default on macOS and Windows.
    """
    with socket.create_server((LOOPBACK, 0)) as used, _clusters_disabled(ray):
        no_dashboard = {"include_dashboard": False, "dashboard_host": LOOPBACK, "dashboard_port": used.getsockname()[1]}
        ray.init("local", _node_ip_address=LOOPBACK, **no_dashboard, **QUIET)


@contextmanager
def _clusters_disabled(ray: Any) -> Iterator[None]:
    """As the variable RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 would, which Ray reads too early for us."""
    constants = ray._private.ray_constants
    before = constants.ENABLE_RAY_CLUSTER
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _check_reachable(address: str) -> None:
    """Fail early: Ray itself would wait for 40 seconds."""
    host, _, port = address.rpartition("://")[-1].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT).close()
