from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.estimates import cost_text, scoring_cost
from condense_once.cli.options import (
    CompileName,
    Device,
    File,
    Force,
    Json,
    LabelUseName,
    LbpeEpochs,
    Metrics,
    Net,
    Params,
    PrecisionName,
    Runs,
    ScoringEpochs,
    Seed,
    UntilStable,
)
from condense_once.cli.printing import echo, note, print_json, print_rows, set_facts, suggest, track
from condense_once.text import plural

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet
    from condense_once.metrics import MetricConfig
    from condense_once.train.compute_config import ComputeConfig


def score(
    file: File,
    metric: Metrics = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The scored file to write; by default scores are only printed.")
    ] = None,
    lbpe_epochs: LbpeEpochs = None,
    scoring_epochs: ScoringEpochs = None,
    until_stable: UntilStable = None,
    params: Params = None,
    labels: LabelUseName = None,
    runs: Runs = 1,
    seed: Seed = 0,
    net: Net = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Score every patch by one or more metrics, from one training run.

    Example: `condense-once score cifar10-idc-ipc10 --metric lbpe --metric el2n -o scored.safetensors`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.file import refuse_output, save
    from condense_once.metrics.score import score as scored
    from condense_once.metrics.score import scoring_config, single_run_metrics, summarise_scores
    from condense_once.train.compute_config import ComputeConfig

    path = find_set(file)
    if out is not None:
        refuse_output(out, force, inputs=[path])
    names = list(dict.fromkeys(metric or single_run_metrics()))
    data, compute = load(path), ComputeConfig(precision, compilation, device)
    config = scoring_config(
        data,
        names,
        lbpe_epochs=lbpe_epochs,
        scoring_epochs=scoring_epochs,
        params=params,
        labels=labels,
        until_stable=until_stable,
    )
    note_estimate(data, names, replace(config, seed=seed), runs, net, compute)
    if out is None:
        note(["Scores are printed but not saved; pass -o FILE to save them."])
    with track(plural(runs, "run")) as progress:
        made = scored(data, names, runs=runs, seed=seed, net=net, config=config, compute=compute, progress=progress)
    if out is not None:
        save(made, out, force=force)
    note_reused(data, made, names, file)
    table = summarise_scores(made, names)
    if as_json:
        print_json({**set_facts(made, out), "metrics": table})
        return
    print_rows(
        ("metric", "min", "median", "max", "easy is"),
        (
            (name, f"{row['min']:.4g}", f"{row['median']:.4g}", f"{row['max']:.4g}", row["easy"])
            for name, row in table.items()
        ),
    )
    if data.ranking is not None and made.ranking is None:
        note([f"{file} was ranked by other scores of {data.ranking.metric}, so the scored set is not ranked."])
    if out is not None:
        best = "lbpe" if "lbpe" in names else names[0]
        used = {"--lbpe-epochs": lbpe_epochs, "--scoring-epochs": scoring_epochs, "--runs": runs if runs > 1 else None}
        used |= {
            "--until-stable": None if until_stable is None else f"{until_stable:g}",
            "--labels": labels,
            "--seed": seed or None,
            "--net": net,
            "--precision": None if precision == "auto" else precision,
        }
        same = [word for option, value in used.items() if value is not None for word in (option, value)]
        same += [word for param in params or () if param.startswith(f"{best}.") for word in ("--param", param)]
        suggest("rank", out, "--metric", best, *same, "-o", "ranked.safetensors")


def plan(
    file: File,
    metric: Metrics = None,
    lbpe_epochs: LbpeEpochs = None,
    scoring_epochs: ScoringEpochs = None,
    until_stable: UntilStable = None,
    params: Params = None,
    labels: LabelUseName = None,
    runs: Runs = 1,
    seed: Seed = 0,
    net: Net = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Estimate the time and memory of `score` without running it; stored scores that would be reused cost nothing.

    Example: `condense-once plan score cifar10-idc-ipc10 --metric lbpe`
    """
    from condense_once.condensed.bundled import load
    from condense_once.metrics.score import scoring_config, single_run_metrics
    from condense_once.train.compute_config import ComputeConfig

    names, data = list(dict.fromkeys(metric or single_run_metrics())), load(file)
    config = scoring_config(
        data,
        names,
        lbpe_epochs=lbpe_epochs,
        scoring_epochs=scoring_epochs,
        params=params,
        labels=labels,
        until_stable=until_stable,
    )
    compute = ComputeConfig(precision, compilation, device)
    print_plan(data, names, replace(config, seed=seed), runs, net, compute, as_json=as_json)


def print_plan(
    data: CondensedSet,
    names: list[str],
    config: MetricConfig,
    runs: int,
    net: str | None,
    compute: ComputeConfig,
    *,
    as_json: bool,
) -> None:
    """Print what it costs to make the scores by these metrics that a set lacks."""
    from condense_once.metrics.score_records import missing_scores

    missing = list(missing_scores(data, names, runs, net, config, compute))
    estimate = scoring_cost(data, missing, config, runs, net, compute)
    if as_json:
        from condense_once.train.cost import CostEstimate

        print_json(asdict(estimate or CostEstimate(0.0, bytes=0, steps=0, step_seconds=0.0, seconds_range=(0.0, 0.0))))
    else:
        echo("No training is needed." if estimate is None else cost_text(estimate))


def note_estimate(
    data: CondensedSet,
    names: list[str],
    config: MetricConfig,
    runs: int,
    net: str | None,
    compute: ComputeConfig,
) -> None:
    """Print how long scoring takes, if anything is trained, and why stored scores are not reused."""
    from condense_once.metrics.score_records import differences, missing_scores

    missing = missing_scores(data, names, runs, net, config, compute)
    note(
        f"The stored scores by {', '.join(metrics)} were made with {ways}; they are recomputed."
        for ways, metrics in differences(data, missing).items()
    )
    if compute.device == "cpu" and (estimate := scoring_cost(data, list(missing), config, runs, net, compute)):
        note([cost_text(estimate)])


def note_reused(before: CondensedSet, after: CondensedSet, names: list[str], file: str) -> None:
    """Print which stored scores were reused."""
    from condense_once.metrics.score_records import reused_scores

    if reused := reused_scores(before, after, names):
        trained = "" if len(reused) < len(names) else "; nothing was trained"
        note([f"{file} already has scores by {', '.join(reused)} with the same settings{trained}."])
