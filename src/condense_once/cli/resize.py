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
    TimedNet,
    TimedProtocol,
    Total,
    budget_of,
    timed_budget,
)
from condense_once.cli.options import Force, Json, LabelCodingName, StoredDtypeName
from condense_once.cli.printing import classes_there, echo, note, print_json, set_facts, suggest_evaluate
from condense_once.errors import BadOption
from condense_once.text import human_bytes, plural


def resize(
    file: Annotated[str, typer.Argument(help="A ranked file, or the name of a bundled set.")],
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
    label_coding: LabelCodingName = None,
    protocol: TimedProtocol = None,
    net: TimedNet = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Resize a ranked set in milliseconds, without training or condensing.

    Example: `condense-once resize ranked.safetensors --ipc 1 -o small.safetensors`

    To keep patches by another rule than the ranking of the file, use `select`.
    """
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.file import refuse_output, save
    from condense_once.condensed.subset import require_ranking
    from condense_once.condensed.subset import resize as resized

    path = find_set(file)
    refuse_output(out, force, inputs=[path])
    if seconds is None and (protocol or net):
        raise BadOption("--protocol and --net apply to --seconds only; leave them out.")
    budget = budget_of(ipc, total, fraction, max_bytes, classes, per_class, renumber, seconds)
    if seconds is not None:
        data = load(path)
        require_ranking(data.ranking, file)
        budget = timed_budget(data, seconds, budget, protocol, net)
    data = resized(file, budget, dtype=dtype, label_coding=label_coding, notify=lambda sentence: note([sentence]))
    save(data, out, force=force)
    if as_json:
        print_json(set_facts(data, out))
        return
    echo(f"{out}: {plural(len(data), 'patch')} of {classes_there(data)}, {human_bytes(out.stat().st_size)}.")
    suggest_evaluate(data, out)
