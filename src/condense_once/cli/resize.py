from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.budget_options import (
    Accuracy,
    Bytes,
    Classes,
    FractionOfPatches,
    Ipc,
    Lossless,
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
    accuracy: Accuracy = None,
    seconds: Seconds = None,
    classes: Classes = None,
    per_class: PerClass = None,
    renumber: Renumber = False,
    lossless: Lossless = False,
    dtype: StoredDtypeName = None,
    label_coding: LabelCodingName = None,
    protocol: TimedProtocol = None,
    net: TimedNet = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Resize a ranked set in milliseconds, without training or condensing.

    Example: `condense-once resize ranked.safetensors --ipc 1 -o small.safetensors`

    With `--bytes` and `--accuracy` patches are stored in fewer bits where that leaves room for more of them, unless
    `--lossless` is passed.
    To keep patches by another rule than the ranking of the file, use `select`.
    """
    from condense_once.condensed.accuracy_curve import AccuracyCurve
    from condense_once.condensed.budget import Budget, parse_fraction
    from condense_once.condensed.bundled import find_set, load
    from condense_once.condensed.codec.within import best_within, curve_of, expected_accuracy, fineness, smallest_for
    from condense_once.condensed.file import SetFile, from_bytes, refuse_output, save
    from condense_once.condensed.subset import require_ranking
    from condense_once.condensed.subset import resize as resized
    from condense_once.files import atomic_file

    path = find_set(file)
    refuse_output(out, force, inputs=[path])
    if seconds is None and (protocol or net):
        raise BadOption("--protocol and --net apply to --seconds only; leave them out.")
    budget = budget_of(ipc, total, fraction, max_bytes, classes, per_class, renumber, seconds, accuracy)
    if seconds is not None:
        data = load(path)
        require_ranking(data.ranking, file)
        budget = timed_budget(data, seconds, budget, protocol, net)
    wanted = None if accuracy is None else float(parse_fraction(accuracy))
    if wanted is not None and lossless:
        budget = Budget(total=curve_of(load(path)).patches_for(wanted))
    limit = None if lossless else budget.max_bytes
    whole = replace(budget, bytes=None) if limit is not None else budget
    opened = SetFile.open(path)
    if limit is not None or wanted is not None:
        require_ranking(opened.header.ranking, file)
    data = resized(file, whole, dtype=dtype, label_coding=label_coding, notify=lambda sentence: note([sentence]))
    curve = (
        AccuracyCurve.of(opened.full_header.provenance) if whole.classes is None and whole.per_class is None else None
    )
    if limit is None and (wanted is None or lossless):
        save(data, out, force=force)
    else:
        kept = opened if dtype is None and label_coding is None else None
        content = smallest_for(data, wanted) if wanted is not None else best_within(data, limit or 0, kept)
        with atomic_file(out, force=force) as target:
            target.write(content)
        data = from_bytes(content, str(out))
    expected = None if curve is None else expected_accuracy(curve, data)
    if as_json:
        print_json(set_facts(data, out) | ({} if expected is None else {"expected": expected._asdict()}))
        return
    echo(f"{out}: {plural(len(data), 'patch')} of {classes_there(data)}, {human_bytes(out.stat().st_size)}.")
    if coarser := fineness(data):
        note([f"Patches are stored in fewer bits, not exactly: {coarser}. With --lossless they keep their bits."])
    if curve is not None:
        note([f"Expected accuracy by {curve.protocol}, {curve.net}: {expected}."])
    suggest_evaluate(data, out)
