from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.studies.conftest import PLAIN

from condense_once.cli import main
from condense_once.condensed.file import save
from condense_once.data.arrays import save_arrays
from condense_once.errors import BadOption, MissingExtra
from condense_once.studies.engines import MAX_CRASHES, Outcome
from condense_once.studies.grid import StudyInput
from condense_once.studies.jobs import scoring_job
from condense_once.studies.local_engine import LocalEngine
from condense_once.studies.progress import StudyProgress
from condense_once.studies.ray_engine import RayEngine, _connect, _load
from condense_once.studies.scheduler import run_missing
from condense_once.studies.state import CellState
from condense_once.studies.store import Store
from condense_once.studies.study import Study
from condense_once.train.compute_config import ComputeConfig

MINE = """
sets = ["tiny.safetensors"]
test = "test.npz"
rules = ["random"]
sizes = [1]
nets = ["convnet-d1-w8"]
protocol = "tiny"
repeats = 1
"""
# 127.0.0.1, ::1 and ::ffff:127.0.0.1, as the kernel lists them
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
STOPPED = """
from condense_once.studies.jobs import scoring_job
from condense_once.studies.local_engine import LocalEngine
from condense_once.studies.progress import StudyProgress
from condense_once.studies.ray_engine import RayEngine
from condense_once.train.compute_config import ComputeConfig

class Endless:
    key = "endless"
    def perform(self, inputs, compute):
        import time
        while True:
            time.sleep(60)

engine = RayEngine([], ComputeConfig(), "local")
try:
    engine.submit(Endless())
    engine.finished(0)
    print("running", flush=True)
    while True:
        engine.finished(60)
finally:
    engine.close()
"""


@pytest.fixture(scope="module")
def surroundings() -> Iterator[None]:
    """Ray in a folder and with a password of its own, so that tests meet no other cluster of this machine."""
    if find_spec("ray") is None:
        pytest.skip("needs the extra ray")
    config = _load()._raylet.Config
    # not the folder of pytest: the names of sockets must be short
    with TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder, pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        config.initialize("")  # Ray looks when it is loaded, and not again
        yield
    config.initialize("")


@pytest.fixture(scope="module")
def cluster(surroundings: None) -> Iterator[Any]:
    """A cluster of one node with one CPU, to which others can be added."""
    from ray.cluster_utils import Cluster

    # a node that is dead should be known to be so soon
    checks = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_failure_threshold": 3}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": checks}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield cluster
    cluster.shutdown()


def measured(states: list[CellState]) -> list[tuple[float, list[float]]]:
    results = [state.evaluation.result for state in states if state.evaluation is not None and state.evaluation.result]
    assert len(results) == len(states)
    return [(result["accuracy"], result["per_class"]) for result in results]


def test_a_study_that_loses_a_node_finds_what_it_finds_on_one_machine(
    cluster: Any, study: Study, inputs: dict[str, StudyInput], store: Store
) -> None:
    study, nodes = study.replace(sizes=("2",)), [cluster.add_node(num_cpus=1)]

    def lose(progress: StudyProgress) -> None:
        if nodes and progress.done:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    there = run_missing(study, inputs, store, RayEngine(list(inputs.values()), PLAIN, cluster.address), progress=lose)
    assert cluster.remaining_processes_alive()  # it was only joined
    local = Store(store.path.with_name("local.sqlite"))
    here = run_missing(study, inputs, local, LocalEngine(list(inputs.values()), PLAIN, workers=1))
    assert measured(there) == measured(here)
    keys = {job.key for state in here if (job := scoring_job(state.cell)) is not None}
    assert keys
    for key in keys:
        assert store.scoring_bytes(key) == local.scoring_bytes(key)  # to the last bit


def test_what_ran_on_a_lost_node_runs_again_elsewhere(
    cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    @dataclass(frozen=True)
    class Patient:
        """Returns where it runs, but waits first."""

        key: str

        def perform(self, inputs: object, compute: object) -> str:
            import ray

            node = str(ray.get_runtime_context().get_node_id())
            (tmp_path / f"{self.key} {node}").touch()
            while not (tmp_path / "go").exists():
                time.sleep(0.01)
            return node

    jobs = [Patient("one"), Patient("other")]
    cluster.wait_for_nodes()  # until one that was lost before is forgotten
    with closing(RayEngine([], PLAIN, cluster.address)) as engine:
        node = cluster.add_node(num_cpus=1)
        assert (engine.slots, engine.finished(0), engine.slots) == (1, [], 2)
        for job in jobs:
            engine.submit(job)  # type: ignore[arg-type]
        deadline = time.monotonic() + 300
        while len(list(tmp_path.iterdir())) < 2:
            assert not engine.finished(0.1)
            assert time.monotonic() < deadline
        cluster.remove_node(node, allow_graceful=False)
        (tmp_path / "go").touch()
        done = outcomes(engine, len(jobs))
    assert capfd.readouterr().out == ""
    head = cluster.head_node.node_id
    assert {outcome.job for outcome in done} == set(jobs)
    assert [outcome.result for outcome in done] == [head, head]
    ran = [path.name.split()[1] for path in tmp_path.glob("* *")]
    assert Counter(ran) == {head: 2, node.node_id: 1}


def test_a_job_whose_process_dies_again_and_again_is_an_outcome(cluster: Any) -> None:
    @dataclass(frozen=True)
    class Deadly:
        key: str = "deadly"

        def perform(self, inputs: object, compute: object) -> None:
            os._exit(1)

    with closing(RayEngine([], PLAIN, cluster.address)) as engine:
        engine.submit(Deadly())  # type: ignore[arg-type]
        (done,) = outcomes(engine)
    assert done.job == Deadly()
    assert f"process died {MAX_CRASHES} times" in str(done.error)


def test_a_node_without_what_jobs_need_ends_the_study(cluster: Any) -> None:
    class Unknown:
        key = "unknown"

        def __reduce__(self) -> tuple[Any, ...]:
            return import_module, ("a_module_that_is_only_here",)

    with closing(RayEngine([], PLAIN, cluster.address)) as engine:
        engine.submit(Unknown())  # type: ignore[arg-type]
        with pytest.raises(BadOption, match="No module named 'a_module_that_is_only_here'"):
            outcomes(engine)


def test_a_connection_that_was_there_before_stays(cluster: Any) -> None:
    import ray

    ray.init(cluster.address, log_to_driver=False)
    try:
        RayEngine([], PLAIN).close()
        with pytest.raises(BadOption, match="already"):
            RayEngine([], PLAIN, cluster.address)
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_a_cluster_without_what_jobs_run_on_is_refused_and_left(cluster: Any) -> None:
    import ray

    with pytest.raises(BadOption, match="no GPU"):
        RayEngine([], ComputeConfig("float32", "off", "cuda"), cluster.address)
    assert not ray.is_initialized()


def test_a_study_is_run_on_a_cluster_by_its_verb(
    cluster: Any,
    study: Study,  # registers its protocol
    inputs: dict[str, StudyInput],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save(inputs["tiny"].data, tmp_path / "tiny.safetensors")
    save_arrays(inputs["tiny"].test, tmp_path / "test.npz")
    (tmp_path / "mine.toml").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    words = ["condense-once", "study", "mine.toml", "--engine", "ray", "--address", cluster.address, "--json"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    assert end.value.code in (None, 0), printed.err
    (cell,) = json.loads(printed.out)["cells"]
    assert 0 <= cell["result"]["accuracy"] <= 1
    assert cluster.remaining_processes_alive()


def outcomes(engine: RayEngine, count: int = 1) -> list[Outcome]:
    found: list[Outcome] = []
    deadline = time.monotonic() + 300
    while len(found) < count:
        found += engine.finished(1)
        assert time.monotonic() < deadline
    return found


@pytest.mark.parametrize(
    "address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}", "nowhere.invalid:6379", "here", "a:99999"]
)
def test_a_wrong_address_is_refused_soon(surroundings: None, address: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = address.format(port=port)
    start = time.monotonic()
    with pytest.raises(BadOption, match="cluster at " + address):
        RayEngine([], PLAIN, address)
    assert time.monotonic() - start < 60  # Ray itself would try for minutes


class FakeRay(ModuleType):
    """Records how it is started; there is no cluster to join."""

    def __init__(self) -> None:
        super().__init__("ray")
        self._private = SimpleNamespace(ray_constants=SimpleNamespace(ENABLE_RAY_CLUSTER=True))
        self.started: list[dict[str, Any]] = []

    def init(self, address: str, **given: Any) -> None:
        if address == "auto":
            raise ConnectionError("Could not find any running Ray instance.")
        if "dashboard_port" in given:
            with socket.socket() as taken, pytest.raises(OSError, match="in use"):
                taken.bind((given["dashboard_host"], given.pop("dashboard_port")))
        self.started.append({"address": address, "clusters": self._private.ray_constants.ENABLE_RAY_CLUSTER, **given})

    def shutdown(self) -> None: ...


@pytest.mark.parametrize("address", ["local", None])
def test_a_cluster_of_our_own_is_for_this_machine_alone(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ray = FakeRay()
    _connect(ray, address)
    (given,) = ray.started
    assert (given["address"], given["_node_ip_address"], given["include_dashboard"]) == ("local", "127.0.0.1", False)
    assert not given["clusters"]  # else Ray replaces the loopback address by one that others can reach
    assert ray._private.ray_constants.ENABLE_RAY_CLUSTER  # for clusters that are joined later


def test_a_cluster_that_is_joined_keeps_its_address() -> None:
    ray = FakeRay()
    _connect(ray, "auto:")  # no port, so nothing is contacted
    (given,) = ray.started
    assert given["clusters"]
    assert not given.keys() & {"_node_ip_address", "include_dashboard", "dashboard_host"}


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
def test_nothing_is_left_of_a_cluster_of_our_own_after_control_c(surroundings: None) -> None:
    mark = f"CONDENSE_ONCE_TEST={secrets.token_hex(8)}"
    name, value = mark.split("=")
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], env={**os.environ, name: value}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        started = marked(mark)
        assert len(started) > 2  # Ray's processes, too
        assert not any("dashboard/dashboard.py" in command for command in started.values())
        assert open_to_others(started) == []
        process.send_signal(signal.SIGINT)
    assert process.returncode == -signal.SIGINT
    deadline = time.monotonic() + 120
    while left := marked(mark):
        assert time.monotonic() < deadline, left


def marked(mark: str) -> dict[int, str]:
    """Processes of this machine that carry a mark in their environment, and their commands."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "cmdline").read_text()
        except OSError:  # it is over, or not ours
            continue
    return found


def open_to_others(processes: Iterable[int]) -> list[str]:
    """The addresses, in hexadecimal, on which some processes listen, except those of the loopback interface."""
    sockets = {link for process in processes for link in links(Path(f"/proc/{process}/fd"))}
    found = []
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:]:
            _, address, _, state = line.split()[:4]
            listens = state == "0A" and f"socket:[{line.split()[9]}]" in sockets
            if listens and not address.startswith(LOOPBACK):
                found.append(address)
    return found


def links(folder: Path) -> Iterator[str]:
    with suppress(OSError):  # the process is over
        for link in folder.iterdir():
            with suppress(OSError):
                yield str(link.readlink())


def test_without_ray_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match="with the extra 'ray'"):
        RayEngine([], PLAIN)
