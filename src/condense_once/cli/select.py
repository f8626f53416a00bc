from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.budget_options import (
    Bytes,
    Classes,
    FractionOfPatches,
    Ipc,
    PerClass,
    Renumber,
    Seconds,
    TimedProtocol,
    Total,
    budget_of,
    timed_budget,
)
from condense_once.cli.options import (
    SEED_HELP,
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
    StoredDtypeName,
)
from condense_once.cli.printing import classes_there, echo, note, print_json, set_facts, suggest_evaluate, track
from condense_once.errors import BadOption
from condense_once.text import human_bytes, plural


def select(
    file: File,
    rule: Annotated[str, typer.Option("--rule", help="Which patches to keep. See: condense-once list rules.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The smaller file to write.")],
    ipc: Ipc = None,
    total: Total = None,
    fraction: FractionOfPatches = None,
    max_bytes: Bytes = None,
    seconds: Seconds = None,
    classes: Classes = None,
    per_class: PerClass = None,
    renumber: Renumber = False,
    dtype: StoredDtypeName = None,
    protocol: TimedProtocol = None,
    lbpe_epochs: LbpeEpochs = None,
    scoring_epochs: ScoringEpochs = None,
    params: Params = None,
    labels: LabelUseName = None,
    runs: Runs = 1,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help=f"{SEED_HELP} By default 0.")] = None,
    net: Net = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Select a smaller set by any rule, from stored scores or a new scoring run.

    Example: `condense-once select cifar10-idc-ipc10 --rule ccs --ipc 1 -o small.safetensors`
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.file import refuse_output, save
    from condense_once.metrics.score import scoring_config
    from condense_once.selection.rule import Rule
    from condense_once.selection.select import select as selected
    from condense_once.train.compute_config import ComputeConfig

    path = find_set(file)
    refuse_output(out, force, inputs=[path])
    chosen = Rule.parse(rule)
    if protocol and seconds is None:
        raise BadOption("--protocol applies to --seconds only; leave it out.")
    budget = budget_of(ipc, total, fraction, max_bytes, classes, per_class, renumber, seconds)
    data = load(path)
    if seconds is not None:
        budget = timed_budget(data, seconds, budget, protocol, net)
    config = None
    if lbpe_epochs or scoring_epochs or params or labels:
        metrics = [chosen.metric]
        config = scoring_config(
            data, metrics, lbpe_epochs=lbpe_epochs, scoring_epochs=scoring_epochs, params=params, labels=labels
        )
    with track(plural(runs, "run")) as progress:
        small = selected(
            data,
            chosen,
            budget,
            dtype=dtype,
            runs=runs,
            seed=seed,
            net=net,
            config=config,
            compute=ComputeConfig(precision, compilation, device),
            progress=progress,
            notify=lambda sentence: note([sentence]),
        )
    save(small, out, force=force)
    if as_json:
        print_json(set_facts(small, out))
        return
    echo(f"{out}: {plural(len(small), 'patch')} of {classes_there(small)}, {human_bytes(out.stat().st_size)}.")
    suggest_evaluate(small, out)
