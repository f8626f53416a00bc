from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.estimates import cost_text, evaluation_cost
from condense_once.cli.evaluate import open_test
from condense_once.cli.options import (
    CompileName,
    DataDir,
    Device,
    File,
    Force,
    Json,
    Like,
    Net,
    PrecisionName,
    ProtocolName,
    Repeats,
    Seed,
    Test,
    Values,
)
from condense_once.cli.printing import echo, note, print_json, print_rows, set_facts, suggest, track
from condense_once.text import plural, time_range

if TYPE_CHECKING:
    from condense_once.condensed.accuracy_curve import AccuracyCurve
    from condense_once.condensed.set import CondensedSet
    from condense_once.data.source import Source
    from condense_once.train.compute_config import ComputeConfig
    from condense_once.train.cost import CostEstimate


def curve(
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write: the same set, with its curve.")],
    test: Test = None,
    like: Like = None,
    values: Values = None,
    net: Net = None,
    protocol: ProtocolName = "quick",
    repeats: Repeats = 2,
    seed: Seed = 0,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    data_dir: DataDir = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure accuracy over size once, so that the file can predict it: in `info`, and for `resize --accuracy`.

    Every point is saved when it is measured. To go on after an interruption, pass the file written so far.

    Example: `condense-once curve cifar10-idc-ipc10 -o measured.safetensors`
    """
    from condense_once.condensed.accuracy_curve import AccuracyCurve
    from condense_once.condensed.bundled import load
    from condense_once.condensed.file import refuse_output, save
    from condense_once.condensed.subset import require_ranking
    from condense_once.evaluation.curve import measure_curve, points_of
    from condense_once.train.compute_config import ComputeConfig

    refuse_output(out, force)
    data, compute = load(file), ComputeConfig(precision, compilation, device)
    require_ranking(data.ranking, file)
    source, _ = open_test(data, test, like, values, data_dir)
    points = list(points_of(data))
    if device == "cpu":
        cost = _cost(data, source, protocol, net, repeats, compute)
        note([f"{_evaluations(data, repeats)}: {time_range(*cost.seconds_range)} if none is known."])

    def keep(measured: CondensedSet) -> None:
        nonlocal force
        save(measured, out, force=force)
        force = True  # what was written here first

    with track(plural(len(points), "evaluation")) as progress:
        made = measure_curve(
            data,
            source,
            protocol=protocol,
            net=net,
            repeats=repeats,
            seed=seed,
            compute=compute,
            data_dir=data_dir,
            progress=progress,
            measured=keep,
        )
    keep(made)
    if as_json:
        print_json(set_facts(made, out))
        return
    found = AccuracyCurve.of(made.provenance)
    if found is not None:
        _print_points(found)
    echo(f"{out}: {plural(len(made), 'patch')}, with accuracy over size.")
    suggest("info", out)


def plan(
    file: File,
    test: Test = None,
    like: Like = None,
    values: Values = None,
    net: Net = None,
    protocol: ProtocolName = "quick",
    repeats: Repeats = 2,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Estimate the time and memory of `curve` without running it.

    Example: `condense-once plan curve cifar10-idc-ipc10`
    """
    from condense_once.condensed.bundled import load
    from condense_once.condensed.subset import require_ranking
    from condense_once.train.compute_config import ComputeConfig

    data = load(file)
    require_ranking(data.ranking, file)
    source, _ = open_test(data, test, like, values, data_dir)
    cost = _cost(data, source, protocol, net, repeats, ComputeConfig(precision, compilation, device))
    if as_json:
        print_json(asdict(cost))
    else:
        echo(f"{_evaluations(data, repeats)}: {cost_text(cost)}")


def _cost(
    data: CondensedSet, source: Source, protocol: str, net: str | None, repeats: int, compute: ComputeConfig
) -> CostEstimate:
    """Of all points, from that of an evaluation of the whole set."""
    from condense_once.evaluation.curve import points_of

    cost = evaluation_cost(data, source, protocol, net, repeats, compute)
    share = sum(patches for patches, _ in points_of(data)) / len(data)
    low, high = cost.seconds_range
    return replace(
        cost,
        seconds=share * cost.seconds,
        steps=round(share * cost.steps),
        seconds_range=(share * low, share * high),
    )


def _evaluations(data: CondensedSet, repeats: int) -> str:
    from condense_once.evaluation.curve import points_of

    return f"{plural(len(list(points_of(data))), 'evaluation')} of {plural(repeats, 'run')}"


def _print_points(curve: AccuracyCurve) -> None:
    rows = [
        (point.patches, "as stored" if point.layers is None else point.layers, f"{100 * point.accuracy:.1f} %")
        for point in curve.points
    ]
    print_rows(("patches", "layers", "accuracy"), rows)
