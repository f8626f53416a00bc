from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.estimates import cost_text, evaluation_cost
from condense_once.cli.options import (
    CompileName,
    DataDir,
    Device,
    File,
    Json,
    LabelUseName,
    Like,
    Net,
    PrecisionName,
    ProtocolName,
    Repeats,
    Seed,
    Test,
    Values,
)
from condense_once.cli.printing import echo, note, print_json, print_rows, suggest, track
from condense_once.cli.sources import decoding_shown
from condense_once.errors import BadOption
from condense_once.text import human_time, plural

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet
    from condense_once.condensed.soft_labels import LabelUse
    from condense_once.data.arrays import ValueRange
    from condense_once.data.source import Source
    from condense_once.evaluation.result import Result
    from condense_once.train.compute_config import ComputeConfig

Threads = Annotated[int, typer.Option(min=1, help="CPU threads per training run; runs execute in parallel.")]

Robust = Annotated[
    bool, typer.Option("--robust", help="Report DD-Ranking's label-robust and augmentation-robust scores instead.")
]
FullAccuracy = Annotated[
    float | None,
    typer.Option(
        min=0, max=1, help="Accuracy on all real images with hard labels, from 0 to 1, for the label-robust score."
    ),
]


def evaluate(
    file: File,
    test: Test = None,
    like: Like = None,
    values: Values = None,
    net: Net = None,
    protocol: ProtocolName = "quick",
    repeats: Repeats = 3,
    seed: Seed = 0,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    threads: Threads = 1,
    data_dir: DataDir = None,
    labels: LabelUseName = None,
    robust: Robust = False,
    full_accuracy: FullAccuracy = None,
    as_json: Json = False,
) -> None:
    """Train networks on a set, test them on real images, and report accuracy with its standard deviation.

    Example: `condense-once evaluate cifar10-idc-ipc10 --repeats 2`
    """
    from condense_once.condensed.bundled import load
    from condense_once.evaluation.evaluate import evaluate as run
    from condense_once.evaluation.evaluate import labels_for
    from condense_once.evaluation.protocols import PROTOCOLS
    from condense_once.train.compute_config import ComputeConfig

    chosen = PROTOCOLS.get(protocol)
    data = load(file)
    source, sample = open_test(data, test, like, values, data_dir)
    compute = ComputeConfig(precision, compilation, device, threads=threads)
    if missing := int((data.counts() == 0).sum()):
        some = f"{missing} of its {plural(len(data.classes), 'class')}"
        note([f"The set has no patches of {some}, which are tested too; drop them by resize --classes … --renumber."])
    if robust:
        _robust(data, source, full_accuracy, protocol, net, repeats, seed, compute, data_dir, as_json)
        return
    if full_accuracy is not None:
        raise BadOption("`full_accuracy` is for the scores of --robust; pass both.")
    use = labels_for(data, chosen, labels)
    if data.soft_labels is not None:
        note([_label_note(data, use)])
    if device == "cpu":
        note([cost_text(evaluation_cost(data, source, protocol, net, repeats, compute))])
    with track(f"{repeats} × {plural(chosen.recipe(data).epochs, 'epoch')}") as progress:
        result = run(
            data,
            source,
            protocol=chosen,
            net=net,
            repeats=repeats,
            seed=seed,
            compute=compute,
            data_dir=data_dir,
            labels=use,
            progress=progress,
        )
    if as_json:
        _print_json(replace(result, note=sample), data.classes)
    else:
        _print_result(result, data.classes)


def _robust(
    data: CondensedSet,
    source: Source,
    full_accuracy: float | None,
    protocol: str,
    net: str | None,
    repeats: int,
    seed: int,
    compute: ComputeConfig,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    from condense_once.evaluation.result import accuracy_text
    from condense_once.evaluation.robust import robust_scores

    cost = cost_text(evaluation_cost(data, source, protocol, net, repeats, compute))
    note([f"Four to five times: {cost}"] if compute.device == "cpu" else [])
    found = robust_scores(
        data,
        source,
        full_accuracy=full_accuracy,
        protocol=protocol,
        net=net,
        repeats=repeats,
        seed=seed,
        compute=compute,
        data_dir=data_dir,
    )
    if as_json:
        print_json({**asdict(found), "lrs": found.lrs, "ars": found.ars})
        return
    rows = {"LRS": found.lrs, "ARS": found.ars}
    print_rows(("set", *rows, "n", "protocol"), [
        (found.set_name, *(accuracy_text(*score) for score in rows.values()), repeats, found.protocol)
    ])  # fmt: skip
    if full_accuracy is None:
        note(["LRS needs the accuracy on all real images; pass it by --full-accuracy."])
    if found.labels == "soft":
        note(["Random images were trained on with hard labels, as there is no teacher; this favours the set."])


def plan(
    file: File,
    test: Test = None,
    like: Like = None,
    values: Values = None,
    net: Net = None,
    protocol: ProtocolName = "quick",
    repeats: Repeats = 3,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    threads: Threads = 1,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Estimate the time and memory of `evaluate` without running it.

    Example: `condense-once plan evaluate cifar10-idc-ipc10 --protocol paper`
    """
    from condense_once.condensed.bundled import load
    from condense_once.train.compute_config import ComputeConfig

    data = load(file)
    compute = ComputeConfig(precision, compilation, device, threads=threads)
    source, _ = open_test(data, test, like, values, data_dir)
    estimate = evaluation_cost(data, source, protocol, net, repeats, compute)
    if as_json:
        print_json(asdict(estimate))
    else:
        echo(cost_text(estimate))


def _label_note(data: CondensedSet, use: LabelUse) -> str:
    if use == "hard":
        return "Soft labels are not used: the label of each patch is the class of its largest entry; --labels soft uses them."
    loss = "mean squared error" if data.label_kind == "regression" else "cross-entropy"
    return (
        f"Networks are trained on the soft labels ({data.label_kind}), by {loss}; --labels hard takes classes instead."
    )


def open_test(
    data: CondensedSet, spec: str | None, like: str | None, values: ValueRange | None, data_dir: Path | None
) -> tuple[Source, str | None]:
    """The source to test a set on, and a note, also printed, if it is only the bundled sample."""
    from condense_once.evaluation.inputs import resolve_test

    with decoding_shown() as shown:
        source, sample = resolve_test(data, spec, like=like, values=values, data_dir=data_dir, **shown)
    if sample is not None:
        note([sample])
        suggest("data", "get", source.name.removesuffix("-sample"))
    return source, sample


def _print_json(result: Result, classes: tuple[str, ...]) -> None:
    figures: dict[str, object] = {"n": len(result.runs), "mean": result.mean, "std": result.std}
    if result.best is not None:
        best, std = result.best
        figures["best"] = {"mean": best, "std": std}
    print_json({**asdict(result), **figures, "classes": dict(zip(classes, result.per_class, strict=True))})


def _print_result(result: Result, classes: tuple[str, ...]) -> None:
    from condense_once.evaluation.result import accuracy_text

    figures = {"accuracy": (result.mean, result.std)}
    if result.best is not None:
        figures = {"best": result.best, "last": (result.mean, result.std)}
    print_rows(
        ("set", "patches", "net", "protocol", *figures, "n", "total time"),
        [
            (
                result.set_name,
                result.patches,
                result.net,
                result.protocol,
                *(accuracy_text(mean, std) for mean, std in figures.values()),
                len(result.runs),
                human_time(result.seconds),
            )
        ],
    )
    known = sorted(
        (accuracy, name) for accuracy, name in zip(result.per_class, classes, strict=True) if accuracy is not None
    )
    (worst, hardest), (best, easiest) = known[0], known[-1]
    note(
        [
            f"Tested on {result.tested_on} at the last epoch;"
            f" best class {easiest} {best:.1%}, worst {hardest} {worst:.1%}."
        ]
    )
    if result.best is not None:
        note(["Best is chosen on the test split itself, so it is optimistic; ± is the population standard deviation."])
