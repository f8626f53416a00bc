from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from condense_once.cli.options import (
    CompileName,
    Device,
    EpochsCounted,
    File,
    Force,
    Net,
    PrecisionName,
    Runs,
    Training,
)
from condense_once.cli.printing import suggest, track
from condense_once.cli.score import Seed, runs_text, say_reused, say_scoring_plan, settings_for


def rank(
    file: File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The ranked file to write.")],
    metric: Annotated[str, typer.Option(help="See: condense-once list metrics.")] = "lbpe",
    prefer: Annotated[
        Literal["easy", "hard", "auto"], typer.Option(help="Which patches go first; auto only with resize --rule.")
    ] = "easy",
    unbalanced: Annotated[bool, typer.Option("--unbalanced", help="The best go first, whatever their class.")] = False,
    epochs: EpochsCounted = None,
    training: Training = None,
    runs: Runs = 1,
    seed: Seed = 0,
    net: Net = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    force: Force = False,
) -> None:
    """Order the patches of a set, best first: after that, a smaller set is a prefix.

    Example: `condense-once rank cifar10-idc-ipc10 -o ranked.safetensors`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.file import refuse_output, save
    from condense_once.metrics import METRICS
    from condense_once.select.rank import decided
    from condense_once.select.rank import rank as ranked
    from condense_once.train.hardware import ComputeConfig

    path = find_set(file)
    refuse_output(out, force, inputs=[path])
    METRICS.get(metric)  # before anything is read
    decided(prefer, metric, not unbalanced)
    data = load(path)
    settings, compute = settings_for(data, [metric], epochs, training), ComputeConfig(precision, compilation, device)
    say_scoring_plan(data, [metric], replace(settings, seed=seed), runs, net, compute)
    with track(runs_text(runs)) as progress:
        made = ranked(
            data,
            metric,
            prefer=prefer,
            balanced=not unbalanced,
            runs=runs,
            seed=seed,
            net=net,
            settings=settings,
            compute=compute,
            progress=progress,
        )
    save(made, out, force=force)
    say_reused(data, made, [metric], file)
    order = "in random order" if metric == "random" else f"{prefer} first by {metric}"
    typer.echo(f"{out}: {len(made)} patches, {order}{'' if unbalanced else ', classes taking turns'}.")
    suggest("resize", out, "--ipc", 1, "-o", "small.safetensors")
