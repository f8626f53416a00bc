"""Which condenser is best in little time? CIFAR-10, ten images per class: accuracy over minutes, for each method.

Each method runs once for the largest number of minutes, its recipe shortened accordingly; its images at the earlier times are
saved, too. All are evaluated under `quick` on the full test split. Sets and results are kept in the folder, and a second call
resumes from there (a condensing run that was interrupted starts again):

    python benchmarks/condensers.py FOLDER [--methods dm dsa idc dream] [--minutes 5 10 20] [--repeats 3]

At the end it prints the table and draws `condensers.png` and `condensers.svg` in the folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from log import Log
from machine import cpu_model

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.data.source import Source
from condense_once.studies.figures.style import RC, colour

METHODS = ("dm", "dsa", "idc", "dream")
Curve = Mapping[float, Sequence[float]]  # accuracies in percent, by minutes


def condensed_sets(
    source: Source, method: str, minutes: Sequence[float], factor: int, folder: Path
) -> dict[float, CondensedSet]:
    """The sets of a method by minutes, ascending; condensed only if one is missing."""
    name = f"{method}-factor{factor}-{{:g}}-of-{minutes[-1]:g}.safetensors"
    paths = {moment: folder / name.format(moment) for moment in minutes}
    if not all(path.exists() for path in paths.values()):
        _condense(source, method, factor, paths)
    return {moment: condense_once.load(str(path)) for moment, path in paths.items()}


def _condense(source: Source, method: str, factor: int, paths: Mapping[float, Path]) -> None:
    *before, last = sorted(paths)

    class Snapshots(Callback):
        def on_step_end(self, progress: RunProgress) -> None:
            while before and progress.seconds >= 60 * before[0]:
                condense_once.save(progress.result(), paths[before.pop(0)], force=True)

    notify: Callable[[str], None] = lambda sentence: print(sentence, flush=True)  # noqa: E731
    data = condense_once.condense(
        source, method=method, ipc=10, factor=factor, minutes=last, callbacks=[Snapshots()], notify=notify
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
        axes.set_xlabel("minutes of condensing")
        axes.set_ylabel("accuracy, %")
        axes.legend()
        for kind in ("png", "svg"):
            figure.savefig(folder / f"condensers.{kind}", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--minutes", nargs="+", type=float, default=[5.0, 10.0, 20.0])
    parser.add_argument("--factor", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    log, source = Log(args.folder / "log.jsonl"), condense_once.open_source("cifar10")
    moments = sorted(args.minutes)
    shared = {"factor": args.factor, "of": moments[-1]}
    init = condense_once.condense(source, method="idc", ipc=10, factor=args.factor, overrides={"iterations": 0})
    sets = {method: condensed_sets(source, method, moments, args.factor, args.folder) for method in args.methods}
    initial = accuracies(log, init, source, args.repeats, method="initial", minutes=0.0, factor=args.factor)
    found = {}
    for moment in reversed(moments):  # the most important first
        for method, of in sets.items():
            key = {"method": method, "minutes": moment, **shared}
            found[method, moment] = accuracies(log, of[moment], source, args.repeats, **key)
    curves = {method: {0.0: initial, **{at: found[method, at] for at in moments}} for method in sets}
    runs = f"n = {args.repeats} runs on one set each"
    print(f"{cpu_model()}; ten images per class, factor {args.factor}, quick, {runs}")
    print(f"| method | {' | '.join(f'{moment:g} min' for moment in moments)} |")
    print(f"|---|{'---|' * len(moments)}")
    print(f"| encoded real images | {' | '.join([mean_std(initial)] * len(moments))} |")
    for method, curve in curves.items():
        print(f"| {method} | {' | '.join(mean_std(curve[moment]) for moment in moments)} |")
    draw(curves, args.folder)


if __name__ == "__main__":
    main()
