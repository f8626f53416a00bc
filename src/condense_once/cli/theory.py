from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.options import CompileName, DataDir, Device, Force, Json, Net, PrecisionName, Seed, Test
from condense_once.cli.printing import note, print_json, print_rows, track
from condense_once.errors import BadOption

if TYPE_CHECKING:
    from condense_once.condensed.set import CondensedSet


def theory(
    name: Annotated[str, typer.Argument(help="What to measure: leave-one-out, alignment, rademacher or imbalance.")],
    sets: Annotated[
        list[str], typer.Argument(help="Condensed-set files, names of bundled sets or, with --images, sources.")
    ],
    images: Annotated[
        int | None,
        typer.Option("--images", min=2, help="Measure so many random training images of each source instead."),
    ] = None,
    sizes: Annotated[
        list[int] | None,
        typer.Option(
            "--patches", min=2, help="Patches of a selection; repeatable. By default the whole set, or a tenth."
        ),
    ] = None,
    epochs: Annotated[
        list[int] | None, typer.Option("--epoch", min=0, help="Measure after so many epochs; repeatable.")
    ] = None,
    share: Annotated[float, typer.Option("--share", help="Of the patches that count as easy, and as hard.")] = 0.1,
    real: Annotated[
        str | None, typer.Option("--real", help="A source whose gradient easy and hard patches are compared with.")
    ] = None,
    ratios: Annotated[
        list[float] | None,
        typer.Option("--ratio", min=1, help="Patches of the largest class for one of the smallest; repeatable."),
    ] = None,
    protocol: Annotated[
        str, typer.Option("--protocol", help="How networks are trained to measure imbalance.")
    ] = "quick",
    test: Test = None,
    net: Net = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs with different seeds.")] = 3,
    seed: Seed = 0,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out", "-o", help="Write means (.md), all records (.csv) or the figure (.png, .svg); repeatable."
        ),
    ] = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    data_dir: DataDir = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure on a set what the paper proves or claims: lemma 1, rule 1, Rademacher complexity, class imbalance.

    Example: `condense-once theory leave-one-out cifar10-idc-ipc10 --runs 1 --epoch 0 --epoch 10 -o lemma1.md`
    """
    from condense_once.data.open import open_source
    from condense_once.studies.theory import THEORY, Findings, TheoryConfig
    from condense_once.studies.theory.report import check_file, save_findings, table_rows
    from condense_once.train.compute_config import ComputeConfig

    measurement, outputs = THEORY.get(name), out or []
    if real is not None and name != "alignment":
        raise BadOption("--real is for alignment; leave it out.")
    for path in outputs:
        check_file(path, force=force)
    defaults = TheoryConfig()
    config = TheoryConfig(
        net=net,
        sizes=tuple(sizes or ()),
        epochs=tuple(sorted(set(epochs))) if epochs else defaults.epochs,
        share=share,
        real=None if real is None else open_source(real, data_dir=data_dir),
        ratios=tuple(ratios) if ratios else defaults.ratios,
        protocol=protocol,
        test=None if test is None else open_source(test, data_dir=data_dir),
        compute=ComputeConfig(precision, compilation, device),
    )
    findings = Findings(measurement)
    with track(measurement.name) as progress:
        for run in range(seed, seed + runs):
            for number, given in enumerate(sets):
                data = _subject(given, images, run, data_dir)
                made = measurement.measure(data, replace(config, seed=run))
                findings = replace(findings, records=(*findings.records, *({"run": run, **record} for record in made)))
                progress((run - seed) * len(sets) + number + 1, runs * len(sets))
                for path in outputs:  # after every run: nothing is lost if the next is stopped
                    save_findings(findings, path, force=True)
    if as_json:
        print_json({"measurement": measurement.name, "claim": measurement.claim, "records": findings.records})
    else:
        print_rows(*table_rows(findings))
        note([measurement.claim, *(f"Wrote {path}." for path in outputs)])


def _subject(given: str, images: int | None, seed: int, data_dir: Path | None) -> CondensedSet:
    """A condensed set or, if `images` are asked for, so many random training images of a source."""
    from condense_once.condensed.bundled import load
    from condense_once.condensed.coreset import coreset
    from condense_once.data.open import open_source
    from condense_once.train.batches import permutation

    if images is None:
        return load(given)
    source = open_source(given, data_dir=data_dir)
    if images > len(source.train.labels):
        raise BadOption(f"{source.name} has {len(source.train.labels)} training images, not {images}; lower --images.")
    rows = permutation(len(source.train.labels), seed, "theory")[:images]
    return coreset(source, sorted(rows.tolist()))
