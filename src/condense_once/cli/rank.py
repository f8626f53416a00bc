from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from condense_once.cli.options import (
    CompileName,
    Device,
    File,
    Force,
    Json,
    LabelUseName,
    LbpeEpochs,
    Net,
    Params,
    PrecisionName,
    Runs,
    ScoringEpochs,
    Seed,
    UntilStable,
)
from condense_once.cli.printing import echo, print_json, set_facts, suggest, track
from condense_once.cli.score import note_estimate, note_reused, print_plan
from condense_once.text import plural

Anew = Annotated[bool, typer.Option("--anew", help="Also rank a nested set, whose order then is lost.")]
Metric = Annotated[str, typer.Option("--metric", help="Metric to rank by. See: condense-once list metrics.")]


def rank(
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The ranked file to write.")],
    metric: Metric = "lbpe",
    prefer: Annotated[
        Literal["easy", "hard", "auto"], typer.Option(help="Which patches come first; auto works only with select.")
    ] = "easy",
    unbalanced: Annotated[
        bool, typer.Option("--unbalanced", help="Rank all patches together, without balancing classes.")
    ] = False,
    anew: Anew = False,
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
    """Rank the patches of a set, best first; after that, every smaller set is a prefix.

    Example: `condense-once rank cifar10-idc-ipc10 -o ranked.safetensors`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.file import refuse_output, save
    from condense_once.metrics import METRICS
    from condense_once.metrics.score import scoring_config
    from condense_once.selection.rank import rank as ranked
    from condense_once.selection.rank import ranking_preference, refuse_nested
    from condense_once.train.compute_config import ComputeConfig

    path = find_set(file)
    refuse_output(out, force, inputs=[path])
    METRICS.get(metric)  # before anything is read
    ranking_preference(prefer, metric, not unbalanced)
    data, compute = load(path), ComputeConfig(precision, compilation, device)
    if not anew:
        refuse_nested(data, metric)
    config = scoring_config(
        data,
        [metric],
        lbpe_epochs=lbpe_epochs,
        scoring_epochs=scoring_epochs,
        params=params,
        labels=labels,
        until_stable=until_stable,
    )
    note_estimate(data, [metric], replace(config, seed=seed), runs, net, compute)
    with track(plural(runs, "run")) as progress:
        made = ranked(
            data,
            metric,
            prefer=prefer,
            balanced=not unbalanced,
            runs=runs,
            seed=seed,
            net=net,
            config=config,
            compute=compute,
            progress=progress,
            anew=anew,
        )
    save(made, out, force=force)
    note_reused(data, made, [metric], file)
    if as_json:
        print_json(set_facts(made, out))
        return
    order = "in random order" if metric == "random" else f"{prefer} first by {metric}"
    echo(f"{out}: {plural(len(made), 'patch')}, {order}{'' if unbalanced else ', balanced classes'}.")
    suggest("resize", out, "--ipc", 1, "-o", "small.safetensors")


def plan(
    file: File,
    metric: Metric = "lbpe",
    anew: Anew = False,
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
    """Estimate the time and memory of `rank` without running it; stored scores that would be reused cost nothing.

    Example: `condense-once plan rank cifar10-idc-ipc10`
    """
    from condense_once.condensed.bundled import load
    from condense_once.metrics.score import scoring_config
    from condense_once.selection.rank import refuse_nested
    from condense_once.train.compute_config import ComputeConfig

    data = load(file)
    if not anew:
        refuse_nested(data, metric)
    config = scoring_config(
        data,
        [metric],
        lbpe_epochs=lbpe_epochs,
        scoring_epochs=scoring_epochs,
        params=params,
        labels=labels,
        until_stable=until_stable,
    )
    compute = ComputeConfig(precision, compilation, device)
    print_plan(data, [metric], replace(config, seed=seed), runs, net, compute, as_json=as_json)
