from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from condense_once.cli.options import (
    CompileName,
    Device,
    EpochsCounted,
    File,
    Force,
    Json,
    Metrics,
    Net,
    PrecisionName,
    Runs,
    Training,
)
from condense_once.cli.planning import cost_text, scoring_cost
from condense_once.cli.printing import note, print_json, print_rows, suggest, track

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from condense_once.condensed.set import CondensedSet
    from condense_once.metrics import MetricConfig
    from condense_once.train.hardware import ComputeConfig

Seed = Annotated[int, typer.Option(min=0, help="Seed of everything drawn; further runs count on from it.")]


def score(
    file: File,
    metric: Metrics = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where to write the set with its scores.")] = None,
    epochs: EpochsCounted = None,
    training: Training = None,
    runs: Runs = 1,
    seed: Seed = 0,
    net: Net = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score every patch by one metric or all of them, from one training run.

    Example: `condense-once score cifar10-idc-ipc10 --metric lbpe --metric el2n -o scored.safetensors`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.file import refuse_output, save
    from condense_once.metrics import METRICS
    from condense_once.metrics.score import one_run_metrics
    from condense_once.metrics.score import score as scored
    from condense_once.train.hardware import ComputeConfig

    path = find_set(file)
    if out is not None:
        refuse_output(out, force, inputs=[path])
    names = list(dict.fromkeys(metric or one_run_metrics()))
    infos = [METRICS.get(name) for name in names]
    data = load(path)
    settings = settings_for(data, names, epochs, training)
    compute = ComputeConfig(precision, compilation, device)
    say_scoring_plan(data, names, replace(settings, seed=seed), runs, net, compute)
    if out is None:
        note(["The scores will be told and not kept; stop and pass -o FILE to keep them."])
    with track(runs_text(runs)) as progress:
        made = scored(data, names, runs=runs, seed=seed, net=net, settings=settings, compute=compute, progress=progress)
    if out is not None:
        save(made, out, force=force)
    say_reused(data, made, names, file)
    table = {info.name: {"easy": info.easy, **_summary(made.scores[info.name])} for info in infos}
    if as_json:
        print_json({"set": made.name, "patches": len(made), "metrics": table, "out": None if out is None else str(out)})
        return
    print_rows(
        ("metric", "min", "median", "max", "easy is"),
        (
            (name, f"{row['min']:.4g}", f"{row['median']:.4g}", f"{row['max']:.4g}", row["easy"])
            for name, row in table.items()
        ),
    )
    if data.ranking is not None and made.ranking is None:
        note([f"{file} was ranked by other scores of {data.ranking.metric}, so what was made of it is not ranked."])
    if out is not None:
        best = "lbpe" if "lbpe" in names else names[0]
        used = {"--epochs": epochs, "--training": training, "--runs": runs if runs > 1 else None}
        used |= {"--seed": seed or None, "--net": net, "--precision": None if precision == "auto" else precision}
        same = [word for option, value in used.items() if value is not None for word in (option, value)]
        suggest("rank", out, "--metric", best, *same, "-o", "ranked.safetensors")


def _summary(scores: NDArray[Any]) -> dict[str, float]:
    import numpy as np

    return {"min": float(scores.min()), "median": float(np.median(scores)), "max": float(scores.max())}


def settings_for(data: CondensedSet, names: list[str], epochs: str | None, training: int | None) -> MetricConfig:
    """What the authors used for such a set, unless something else is said."""
    from condense_once.errors import BadOption
    from condense_once.metrics import METRICS, Epochs, MetricConfig

    if epochs is not None and not any("lbpe" in METRICS.get(name).depends for name in names):
        raise BadOption(f"--epochs says which epochs count for lbpe; {names[0]} has its own, so leave it out.")
    return MetricConfig.for_data(data).counting(Epochs.parse(epochs) if epochs else None, training)


def plan(
    file: File,
    metric: Metrics = None,
    epochs: EpochsCounted = None,
    training: Training = None,
    runs: Runs = 1,
    net: Net = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Estimate the time and memory of `score`, or with one metric of `rank`, without running it.

    Example: `condense-once plan score cifar10-idc-ipc10 --metric lbpe`
    """
    from condense_once.condensed.bundled import load
    from condense_once.metrics.score import one_run_metrics
    from condense_once.train.hardware import ComputeConfig

    names, data = list(dict.fromkeys(metric or one_run_metrics())), load(file)
    compute = ComputeConfig(precision, compilation, device)
    estimate = scoring_cost(data, names, settings_for(data, names, epochs, training), runs, net, compute)
    if as_json:
        print_json({} if estimate is None else asdict(estimate))
    elif estimate is None:
        typer.echo("Nothing has to be trained for that.")
    else:
        typer.echo(cost_text(estimate))


def say_scoring_plan(
    data: CondensedSet,
    names: list[str],
    settings: MetricConfig,
    runs: int,
    net: str | None,
    compute: ComputeConfig,
) -> None:
    """Say how long it will take, unless nothing is to be trained, and why scores that are there are not used."""
    from condense_once.metrics.score import how_scored, to_be_made

    made = to_be_made(data, names, runs, net, settings, compute)
    otherwise: dict[str, list[str]] = {}
    for name, record in made.items():
        if there := how_scored(data, name):
            ways = (f"{what} {there.get(what)}, not {said}" for what, said in record.items() if there.get(what) != said)
            otherwise.setdefault(", ".join(ways), []).append(name)
    note(
        f"The scores by {', '.join(several)} that are there were made with {ways}; new ones are made."
        for ways, several in otherwise.items()
    )
    lacking = list(made)
    if compute.device == "cpu" and (estimate := scoring_cost(data, lacking, settings, runs, net, compute)):
        note([cost_text(estimate)])


def runs_text(runs: int) -> str:
    return f"{runs} run{'s' if runs > 1 else ''}"


def say_reused(before: CondensedSet, after: CondensedSet, names: list[str], file: str) -> None:
    """Tell which scores were there already, made in the same way."""
    from condense_once.metrics.score import how_scored

    there = [name for name in names if how_scored(before, name) and how_scored(before, name) == how_scored(after, name)]
    if there:
        trained = "" if len(there) < len(names) else "; nothing was trained"
        note([f"{file} has scores by {', '.join(there)} already, made with the same settings{trained}."])
