from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from condense_once.cli.printing import Force, suggest, track


def rank(
    file: Annotated[str, typer.Argument(help="A condensed-set file, or the name of a bundled set.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The ranked file to write.")],
    metric: Annotated[str, typer.Option(help="See: condense-once list metrics.")] = "lbpe",
    prefer: Annotated[Literal["easy", "hard"], typer.Option(help="Which patches go first.")] = "easy",
    unbalanced: Annotated[bool, typer.Option("--unbalanced", help="The best go first, whatever their class.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Training runs whose scores are averaged.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of the first run.")] = 0,
    net: Annotated[str | None, typer.Option(help="See: condense-once list nets.")] = None,
    force: Force = False,
) -> None:
    """Order the patches of a set, best first: after that, a smaller set is a prefix.

    Example: `condense-once rank cifar10-real-ipc10 -o ranked.safetensors`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.file import save
    from condense_once.files import refuse_existing
    from condense_once.metrics import METRICS
    from condense_once.select.ranking import rank as ranked

    path = find_set(file)
    refuse_existing(out, force, inputs=[path])
    METRICS.get(metric)
    with track(f"{runs} run{'s' if runs > 1 else ''}") as progress:
        data = ranked(
            load(path), metric, prefer=prefer, balanced=not unbalanced, runs=runs, seed=seed, net=net, progress=progress
        )
    save(data, out, force=force)
    typer.echo(
        f"{out}: {len(data)} patches, {prefer} first by {metric}{'' if unbalanced else ', classes taking turns'}."
    )
    suggest(f"condense-once resize {out} --ipc 1 -o small.safetensors")
