"""Measure what a fleet reaches: `python -m examples.fleet.run --runs 3`.

Fifty devices would be a hundred and fifty trainings. They take six sizes of the file, so six are trained `--runs` times. Every
finished run is a line of the log; an interrupted measurement resumes with what is missing.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch

from condense_once import open_source
from condense_once.device import open_set
from examples.fleet.devices import LEVELS, level_of, make_fleet
from examples.fleet.report import draw, table
from examples.fleet.training import Trained, missing, train

SET = "cifar10-idc-ipc10"


def read_log(path: Path) -> list[Trained]:
    """The runs that are done; a last line cut short by a crash is left out."""
    done = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            done.append(Trained(**json.loads(line)))
        except json.JSONDecodeError:
            continue
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="training runs at each size")
    parser.add_argument("--devices", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("results/fleet"), help="folder of the log, table and figure")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    log, opened, test = given.out / "log.jsonl", open_set(SET), open_source("cifar10")
    done, classes = read_log(log), len(opened.header.classes)
    for level, seed in missing(LEVELS, given.runs, done):
        done.append(train(opened.take(total=level * classes), test, seed=seed))
        write_log(log, done)
        print(f"{level:2} patches per class, seed {seed}: {done[-1].accuracy:.1f} %", flush=True)
    levels = {device: level_of(device, opened) for device in make_fleet(given.devices)}
    (given.out / "table.md").write_text(table(levels, done, 3 * 16 * 16, classes), encoding="utf-8")
    draw(levels, done, given.out / "fleet.png")


def write_log(path: Path, done: list[Trained]) -> None:
    """All runs, in one step: the log is either the one before or the new one."""
    partial = path.with_suffix(".partial")
    partial.write_text("".join(json.dumps(asdict(each)) + "\n" for each in done), encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    main()
