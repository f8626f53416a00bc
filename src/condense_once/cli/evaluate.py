from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.options import (
    CompileName,
    Device,
    File,
    Home,
    Json,
    Net,
    PrecisionName,
    ProtocolName,
    Repeats,
    Test,
)
from condense_once.cli.planning import evaluation_plan, plan_text
from condense_once.cli.printing import note, print_json, print_rows, track
from condense_once.text import human_time

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet
    from condense_once.data.source import Source
    from condense_once.evaluation.result import Result

Threads = Annotated[int, typer.Option(min=1, help="Threads of each training; repeats run side by side.")]


def evaluate(
    file: File,
    test: Test = None,
    net: Net = None,
    protocol: ProtocolName = "quick",
    repeats: Repeats = 3,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same machine: same result.")] = 0,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    threads: Threads = 1,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Train fresh networks on a set, test them on real images, and report accuracy with its spread.

    Example: `condense-once evaluate cifar10-idc-ipc10 --repeats 2`
    """
    from condense_once.condensed.bundled import load
    from condense_once.evaluation.evaluate import evaluate as run
    from condense_once.evaluation.protocols import PROTOCOLS
    from condense_once.train.hardware import ComputeConfig

    chosen = PROTOCOLS.get(protocol)
    data = load(file)
    source = open_test(data, test, home)
    compute = ComputeConfig(precision, compilation, device, threads=threads)
    if missing := int((data.counts() == 0).sum()):
        some = f"{missing} of its {len(data.classes)} classes"
        note(
            [f"The set has no patches of {some}, which are tested, too; resize --classes … --renumber leaves them out."]
        )
    if data.soft_labels is not None:
        note(["Trained with the class of each patch's largest label; the learned label vectors are not used."])
    if device == "cpu":
        note([plan_text(evaluation_plan(data, source, protocol, net, repeats, compute))])
    with track(f"{repeats} × {chosen.recipe(data).epochs} epochs") as progress:
        result = run(
            data,
            source,
            protocol=chosen,
            net=net,
            repeats=repeats,
            seed=seed,
            compute=compute,
            home=home,
            progress=progress,
        )
    if as_json:
        _print_json(result, data.classes)
    else:
        _print_result(result, data.classes)


def plan(
    file: File,
    test: Test = None,
    net: Net = None,
    protocol: ProtocolName = "quick",
    repeats: Repeats = 3,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    threads: Threads = 1,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Estimate the time and memory of `evaluate` without running it.

    Example: `condense-once plan evaluate cifar10-idc-ipc10 --protocol paper`
    """
    from condense_once.condensed.bundled import load
    from condense_once.train.hardware import ComputeConfig

    data = load(file)
    compute = ComputeConfig(precision, compilation, device, threads=threads)
    estimate = evaluation_plan(data, open_test(data, test, home), protocol, net, repeats, compute)
    if as_json:
        print_json(asdict(estimate))
    else:
        typer.echo(plan_text(estimate))


def open_test(data: CondensedSet, spec: str | None, home: Path | None) -> Source:
    """The source to test a set on; says if it is only a sample that nobody asked for."""
    from condense_once.evaluation.inputs import source_for_testing

    source, sample = source_for_testing(data, spec, home=home)
    if sample is not None:
        note([sample])
    return source


def _print_json(result: Result, classes: tuple[str, ...]) -> None:
    figures: dict[str, object] = {"n": len(result.runs), "mean": result.mean, "std": _number(result.std)}
    if result.best is not None:
        best, std = result.best
        figures["best"] = {"mean": best, "std": _number(std)}
    print_json({**asdict(result), **figures, "classes": dict(zip(classes, result.per_class, strict=True))})


def _print_result(result: Result, classes: tuple[str, ...]) -> None:
    figures = {"accuracy": (result.mean, result.std)}
    if result.best is not None:
        figures = {"best": result.best, "last": (result.mean, result.std)}
    print_rows(
        ("set", "patches", "net", "protocol", *figures, "n", "time in all"),
        [
            (
                result.set_name,
                result.patches,
                result.net,
                result.protocol,
                *(
                    f"{mean:.2%}" if _number(std) is None else f"{mean:.2%} ± {std:.2%}"
                    for mean, std in figures.values()
                ),
                len(result.runs),
                human_time(result.seconds),
            )
        ],
    )
    known = sorted((share, name) for share, name in zip(result.per_class, classes, strict=True) if share is not None)
    (worst, hardest), (best, easiest) = known[0], known[-1]
    note(
        [
            f"Tested on {result.test_images} images of {result.test} at the last epoch;"
            f" best class {easiest} {best:.1%}, worst {hardest} {worst:.1%}."
        ]
    )
    if result.best is not None:
        note(
            ["Best is chosen on the test split itself, so it is no fair accuracy; ± is the deviation of a population."]
        )


def _number(std: float) -> float | None:
    """The deviation, which a single run does not have."""
    return None if math.isnan(std) else std
