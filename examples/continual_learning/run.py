"""Measure replay policies on CIFAR-10: `python -m examples.continual_learning.run --runs 3`.

Every finished run is a line of the log, so an interrupted measurement resumes with what is missing. The log, a table and a
figure go to `--out`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from examples.continual_learning.experiment import ALL_IMAGES, NO_MEMORY, Data, Run, Setting, run
from examples.continual_learning.policies import POLICIES
from examples.continual_learning.report import draw, table

MEMORY = 30  # KiB: four cells of 16×16 for each of ten classes, or one image of 32×32


def jobs(runs: int, memories: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    """Policy, memory and seed of every run; the limits do not depend on the memory. Complete seeds come first."""
    for seed in range(runs):
        yield from ((limit, 0, seed) for limit in (NO_MEMORY, ALL_IMAGES))
        yield from ((policy, memory, seed) for memory in memories for policy in POLICIES)


def read_log(path: Path, setting: Setting) -> list[Run]:
    """The runs of this setting that are done; a last line cut short by a crash is left out."""
    done = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if entry.pop("setting") == asdict(setting):
            entry["accuracies"], entry["stored"] = tuple(entry["accuracies"]), tuple(entry["stored"])
            done.append(Run(**entry))
    return done


def append(path: Path, result: Run, setting: Setting) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    gap = "" if not text or text.endswith("\n") else "\n"  # after a line cut short
    with path.open("a", encoding="utf-8") as log:
        log.write(gap + json.dumps({**asdict(result), "setting": asdict(setting)}, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each policy, each with its own order of classes")
    parser.add_argument(
        "--out", type=Path, default=Path("results/continual"), help="folder of the log, table and figure"
    )
    parser.add_argument("--memory", type=int, nargs="+", default=[MEMORY], metavar="KiB", help="sizes of the memory")
    for name, value in asdict(Setting()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    runs, out, memories = given.pop("runs"), given.pop("out"), [1024 * size for size in given.pop("memory")]
    setting, log = Setting(**given), out / "log.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    done = read_log(log, setting)
    missing = [
        job for job in jobs(runs, memories) if job not in {(each.policy, each.memory, each.seed) for each in done}
    ]
    torch.set_num_threads(1)
    data = Data.cifar10(setting) if missing else None
    for policy, memory, seed in missing:
        assert data is not None  # noqa: S101 (for the type checker)
        done.append(run(data, policy, memory, seed, setting))
        append(log, done[-1], setting)
        print(
            f"{policy:22} {memory:>6} bytes, seed {seed}: {done[-1].average:.1f} %, {done[-1].seconds:.0f} s",
            flush=True,
        )
    (out / "table.md").write_text(table(done), encoding="utf-8")
    draw(done, out / "accuracy.png")


if __name__ == "__main__":
    main()
