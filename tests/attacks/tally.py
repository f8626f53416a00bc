"""Run attempts in processes of their own and count how they ended."""

from __future__ import annotations

import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HANGS = 300.0  # seconds without a word, after which a process is ended


@dataclass
class Tally:
    """How the attempts of one kind ended."""

    kind: str
    outcomes: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)  # one line each, with the number of the attempt
    skipped: str | None = None

    @property
    def tries(self) -> int:
        return self.outcomes.total()

    def add(self, number: int, outcome: str, detail: str) -> None:
        self.outcomes[outcome] += 1
        if outcome == "lost":
            self.lost.append(f"{self.kind}, attempt {number}: {detail}")


def environment(folder: str) -> dict[str, str]:
    """That of a child: one thread, this code, and a cache of its own."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "CONDENSE_ONCE_CACHE": f"{folder}/cache"}


def run_cases(
    counts: Mapping[str, int],
    *,
    module: str = "cases",
    seed: int,
    until: float = math.inf,
    step: Callable[[str], None] = lambda _: None,
) -> list[Tally]:
    """Make so many attempts of each kind in `module`, or as many as there is time for until `until`, a time of `time.monotonic`.

    A process that dies or hangs is a lost attempt; another one goes on with the next attempt.
    """
    tallies = {kind: Tally(kind) for kind in counts}
    while time.monotonic() < until:
        plan = {kind: range(tally.tries, counts[kind]) for kind, tally in tallies.items() if tally.tries < counts[kind]}
        plan = {kind: numbers for kind, numbers in plan.items() if tallies[kind].skipped is None}
        if not plan:
            break
        _run_process(tallies, plan, [module, str(seed)], until, step)
    return list(tallies.values())


def _run_process(
    tallies: Mapping[str, Tally],
    plan: Mapping[str, range],
    module_and_seed: Sequence[str],
    until: float,
    step: Callable[[str], None],
) -> None:
    """Attempts in one process, until it ends or the time is up."""
    with tempfile.TemporaryDirectory(prefix="condense-once-attack-") as folder:
        words = [f"{kind}:{numbers.start}:{numbers.stop}" for kind, numbers in plan.items()]
        module, seed = module_and_seed
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.attacks.{module}", folder, seed, *words],
            cwd=ROOT,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process, lines))
        reader.start()
        expected, begun = sum(map(len, plan.values())), None
        try:
            while expected and time.monotonic() < until:
                if (line := _next(lines)) is None:
                    _count_dead_process(process, begun or tallies[next(iter(plan))])
                    return
                said = json.loads(line)
                tally = tallies[said["kind"]]
                if "skipped" in said:
                    tally.skipped = said["skipped"]
                    expected -= len(plan[tally.kind])
                    continue
                if said["outcome"] == "begun":
                    begun = tally
                    continue
                tally.add(said["number"], said["outcome"], said["detail"])
                expected -= 1
                step(said["outcome"])
        finally:
            process.kill()
            process.wait()
            reader.join()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def _count_dead_process(process: subprocess.Popen[str], tally: Tally) -> None:
    """Count what a process was about to attempt when it died or hung as lost."""
    process.kill()
    code, errors = process.wait(), process.stderr.read() if process.stderr else ""
    why = (errors.strip().splitlines() or ["no message"])[-1]
    if code == 1:  # an exception of its own
        raise RuntimeError(f"The attempts cannot be made: {why}")
    tally.add(tally.tries, "lost", f"the process ended with {code}: {why}")


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def _next(lines: queue.Queue[str | None]) -> str | None:
    try:
        return lines.get(timeout=HANGS)
    except queue.Empty:
        return None
