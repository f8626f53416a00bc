from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condense_once.cli.printing import Json, aside, human_bytes, human_time, note, print_json, print_rows, track
from condense_once.errors import BadOption

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet
    from condense_once.data.source import Source
    from condense_once.evaluation.running import Result, Settings
    from condense_once.train.planning import Plan

File = Annotated[str, typer.Argument(help="A condensed-set file, or the name of a bundled set.")]
Test = Annotated[
    str | None, typer.Option("--test", help="Source of the test images; by default the one the set is from.")
]
Net = Annotated[
    str | None,
    typer.Option("--net", help="See: condense-once list nets; convnet-d5, convnet-d3-w64-bn and the like go, too."),
]
ProtocolName = Annotated[str, typer.Option("--protocol", help="See: condense-once list protocols.")]
Repeats = Annotated[int, typer.Option(min=1, help="Trainings, each from other weights.")]
Home = Annotated[Path | None, typer.Option("--home", help="Where sources are kept.")]


PrecisionName = Annotated[
    Literal["auto", "float32", "bfloat16"], typer.Option("--precision", help="Of the multiplications.")
]
CompileName = Annotated[
    Literal["auto", "on", "off"],
    typer.Option("--compile", help="Layers of ours and PyTorch's compiler: where they pay, all, or none."),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 …")]
Threads = Annotated[int, typer.Option(min=1, help="Of each training; repeats run side by side.")]


def evaluate(
    file: File,
    test: Test = None,
    net: Net = None,
    protocol: ProtocolName = "quick",
    repeats: Repeats = 3,
    seed: Annotated[int, typer.Option(help="Same seed, same machine: same result.")] = 0,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    threads: Threads = 1,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Train fresh networks on a set, test them on real images, and report accuracy with its spread.

    Example: `condense-once evaluate cifar10-real-ipc10 --repeats 2`
    """
    from condense_once.condensed.bundled import load
    from condense_once.evaluation.protocols import PROTOCOLS
    from condense_once.evaluation.running import Settings
    from condense_once.evaluation.running import evaluate as run

    chosen = PROTOCOLS.get(protocol)
    data = load(file)
    source = open_test(data, test, home)
    settings = Settings(precision=precision, compilation=compilation, device=device, threads=threads)
    if data.soft_labels is not None:
        note(["Trained with the class of each patch's largest label; the learned label vectors are not used."])
    if device == "cpu":
        say_plan(make_plan(data, source, protocol, net, repeats, settings))
    with track(f"{repeats} × {chosen.recipe(data).epochs} epochs") as progress:
        result = run(
            data,
            source,
            protocol=chosen,
            net=net,
            repeats=repeats,
            seed=seed,
            settings=settings,
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
    threads: Threads = 1,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Estimate the time and memory of `evaluate` without running it.

    Example: `condense-once plan evaluate cifar10-real-ipc10 --protocol paper`
    """
    from condense_once.condensed.bundled import load
    from condense_once.evaluation.running import Settings

    data = load(file)
    settings = Settings(precision=precision, compilation=compilation, threads=threads)
    estimate = make_plan(data, open_test(data, test, home), protocol, net, repeats, settings)
    if as_json:
        print_json(asdict(estimate))
    else:
        say_plan(estimate)


def open_test(data: CondensedSet, spec: str | None, home: Path | None) -> Source:
    """The source named, or the one whose classes the set has; without it its bundled sample."""
    from condense_once.data.known import SOURCES, recognise
    from condense_once.data.opening import is_here, open_source

    if spec is not None:
        folder = spec not in SOURCES and Path(spec).is_dir()
        return open_source(spec, home=home, size=data.size[0] if folder and data.size[0] == data.size[1] else None)
    known = recognise(data.classes, data.channels)
    if known is None:
        raise BadOption(f"What to test {data.name} on cannot be known from its classes; pass --test SOURCE.")
    sample = f"{known.name}-sample"
    if is_here(known, home) or sample not in SOURCES:
        return open_source(known.name, home=home)
    note([f"Testing on the bundled {sample}; for the whole test split: condense-once data get {known.name}."])
    return open_source(sample)


def make_plan(
    data: CondensedSet, source: Source, protocol: str, net: str | None, repeats: int, settings: Settings
) -> Plan:
    from condense_once.evaluation.plan import plan_evaluation

    with aside.status("measuring this machine"):
        return plan_evaluation(
            data, len(source.test.labels), protocol=protocol, net=net, repeats=repeats, settings=settings
        )


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


def say_plan(plan: Plan) -> None:
    note([f"{plan.steps} steps, about {human_time(plan.seconds)} and {human_bytes(plan.bytes)} of memory."])
