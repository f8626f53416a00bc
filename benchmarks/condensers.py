"""Which condenser is best in little time? CIFAR-10, ten images per class: accuracy over CPU minutes of one core.

Minutes are CPU time of one thread, so other work on the machine hardly matters; experts count. Methods with a constant rate run
once for the largest number of minutes and leave their images at the earlier times, too; the others run for every number. All
are evaluated under `quick` on the full test split. Sets and results are kept in the folder, and a second call resumes there:

    python benchmarks/condensers.py FOLDER [--methods dm dsa …] [--minutes 10 30 90] [--repeats 3]

`tgdd` is what `condense --minutes` runs, `tgdd-paper` the paper's settings with one expert. `tgdd-nested` is `--nested`; it
reuses the experts of `tgdd`, and their training counts as its own. At the end the script prints the table and draws
`condensers.png` and `condensers.svg` in the folder.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import torch
from log import Log
from machine import cpu_model

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.experts.trajectory import load_trajectory
from condense_once.data.source import Source
from condense_once.studies.figures.style import RC, colour


class Contender(NamedTuple):
    method: str
    scheduled: bool = False  # whether its rate falls to the end of the run, so that each length is a run of its own
    overrides: Mapping[str, Any] = {}
    nested: bool = False
    experts_of: str = ""  # the contender whose experts it reuses; it must have run before


PAPER = {"steps": 1, "ahead": 6, "real_batch": 128, "image_lr": 0.1, "final_lr": 1.0}
CONTENDERS = {name: Contender(name) for name in ("dm", "dsa", "idc", "dream")} | {
    "tgdd-paper": Contender("tgdd", overrides=PAPER),
    "tgdd": Contender("tgdd", scheduled=True),
    "tgdd-nested": Contender("tgdd", scheduled=True, nested=True, experts_of="tgdd"),
    "mtt": Contender("mtt", scheduled=True),
    "kip": Contender("kip", scheduled=True),
}
Curve = Mapping[float, Sequence[float]]  # accuracies in percent, by minutes


def condensed_sets(source: Source, name: str, minutes: Sequence[float], folder: Path) -> dict[float, CondensedSet]:
    """The sets of a method by minutes, ascending; condensed only if one is missing."""
    contender = CONTENDERS[name]
    runs = [[moment] for moment in minutes] if contender.scheduled else [list(minutes)]
    paths = {moment: folder / f"{name}-{moment:g}-of-{run[-1]:g}.safetensors" for run in runs for moment in run}
    for run in runs:
        if not all(paths[moment].exists() for moment in run):
            experts = folder / f"{contender.experts_of or name}-{run[-1]:g}" / "experts"
            _condense(
                source, contender, {moment: paths[moment] for moment in run}, folder / f"{name}-{run[-1]:g}", experts
            )
    return {moment: condense_once.load(str(path)) for moment, path in paths.items()}


def _condense(source: Source, contender: Contender, paths: Mapping[float, Path], work: Path, experts: Path) -> None:
    """Run to the last of these moments and save the images at each; the checkpoint is kept in `work`."""
    *before, last = sorted(paths)

    class Snapshots(Callback):
        def on_step_end(self, progress: RunProgress) -> None:
            while before and progress.seconds >= 60 * before[0]:
                condense_once.save(progress.result(), paths[before.pop(0)], force=True)

    notify: Callable[[str], None] = lambda sentence: print(sentence, flush=True)  # noqa: E731
    work.mkdir(exist_ok=True)
    checkpoint = work / "checkpoint"
    reused = (
        sum(load_trajectory(path).seconds for path in experts.rglob("run-*.safetensors"))
        if contender.experts_of
        else 0.0
    )
    data = condense_once.condense(
        source,
        method=contender.method,
        ipc=10,
        minutes=last - reused / 60,
        nested=contender.nested,
        overrides=contender.overrides,
        experts=experts,
        checkpoint=checkpoint,
        resume=checkpoint.exists(),
        callbacks=[Snapshots()],
        notify=notify,
    )
    for moment in (*before, last):  # a run may end slightly early
        condense_once.save(data, paths[moment], force=True)


def accuracies(log: Log, data: CondensedSet, test: Source, repeats: int, **key: object) -> list[float]:
    entry = log.find(**key)
    if entry is None or len(entry["runs"]) < repeats:
        result = condense_once.evaluate(data, test, protocol="quick", repeats=repeats)
        entry = log.add(**key, runs=[100 * run.accuracy for run in result.runs], protocol=result.protocol)
    found: list[float] = entry["runs"][:repeats]
    return found


def mean_std(runs: Sequence[float]) -> str:
    return f"{mean(runs):.1f} ± {stdev(runs):.1f}" if len(runs) > 1 else f"{mean(runs):.1f}"


def draw(curves: Mapping[str, Curve], folder: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(RC):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for number, (method, curve) in enumerate(curves.items()):
            spreads = [stdev(runs) if len(runs) > 1 else 0.0 for runs in curve.values()]
            means = [mean(runs) for runs in curve.values()]
            axes.errorbar(list(curve), means, spreads, marker="o", capsize=2, color=colour(number), label=method)
        axes.set_xlabel("CPU minutes of condensing, one core")
        axes.set_ylabel("accuracy, %")
        axes.legend()
        for kind in ("png", "svg"):
            figure.savefig(folder / f"condensers.{kind}", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", nargs="+", default=list(CONTENDERS), choices=list(CONTENDERS))
    parser.add_argument("--minutes", nargs="+", type=float, default=[10.0, 30.0, 90.0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--condense-only", action="store_true", help="evaluate in another call")
    args = parser.parse_args()
    time.perf_counter = time.process_time  # time budgets in CPU time
    torch.set_num_threads(1)
    args.folder.mkdir(exist_ok=True)
    log, source = Log(args.folder / "log.jsonl"), condense_once.open_source("cifar10")
    moments = sorted(args.minutes)
    sets = {method: condensed_sets(source, method, moments, args.folder) for method in args.methods}
    if args.condense_only:
        return
    init = condense_once.condense(source, method="idc", ipc=10, overrides={"iterations": 0})
    initial = accuracies(log, init, source, args.repeats, method="initial", minutes=0.0)
    found = {}
    for moment in reversed(moments):  # the most important first
        for method, of in sets.items():
            found[method, moment] = accuracies(log, of[moment], source, args.repeats, method=method, minutes=moment)
    curves = {method: {0.0: initial, **{at: found[method, at] for at in moments}} for method in sets}
    runs = f"n = {args.repeats} runs on one set each"
    print(f"{cpu_model()}; ten images per class, factor 2, quick, {runs}")
    print(f"| method | {' | '.join(f'{moment:g} min' for moment in moments)} |")
    print(f"|---|{'---|' * len(moments)}")
    print(f"| encoded real images | {' | '.join([mean_std(initial)] * len(moments))} |")
    for method, curve in curves.items():
        print(f"| {method} | {' | '.join(mean_std(curve[moment]) for moment in moments)} |")
    draw(curves, args.folder)


if __name__ == "__main__":
    main()
