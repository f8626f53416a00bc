from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condense_once.cli.condense import SourceName, experts_root
from condense_once.cli.estimates import measuring
from condense_once.cli.options import CompileName, DataDir, Device, Json, Net, PrecisionName, Seed, Size, Values
from condense_once.cli.printing import echo, note, print_json, suggest, track
from condense_once.cli.sources import open_shown
from condense_once.text import human_bytes, human_time, plural

if TYPE_CHECKING:
    from condense_once.condensing.experts import ExpertConfig
    from condense_once.condensing.experts.cost import ExpertEstimate
    from condense_once.data.source import Source
    from condense_once.train.compute_config import ComputeConfig

Runs = Annotated[int, typer.Option("--runs", min=1, help="Networks to train, each from other random weights.")]
Epochs = Annotated[int, typer.Option("--epochs", min=1, help="Training epochs of each network.")]
Every = Annotated[int, typer.Option("--every", min=1, help="Epochs between two snapshots of the weights.")]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", help="Folder to keep experts in; by default `experts` in the folder of datasets."),
]


def experts(
    source: SourceName,
    net: Net = None,
    runs: Runs = 1,
    epochs: Epochs = 60,
    every: Every = 1,
    seed: Seed = 0,
    folder: Folder = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    size: Size = None,
    values: Values = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Train networks on real images and keep their weights along the way, for condensers that use trained networks.

    Runs that exist are reused and unfinished ones resumed, so stop at any time.

    Example: `condense-once experts cifar10 --net convnet-d3-w64 --runs 2 --epochs 20`
    """
    from condense_once.condensing.experts import make_experts
    from condense_once.train.compute_config import ComputeConfig

    images = open_shown(source, data_dir=data_dir, size=size, values=values)
    config, compute = _config(images, net, epochs, every, seed), ComputeConfig(precision, compilation, device)
    root = experts_root(folder, data_dir)
    with measuring():
        estimate = _estimate(images, config, runs, root, compute)
    if estimate.missing:
        note([_text(estimate, runs)])
    with track(f"{estimate.missing} × {plural(epochs, 'epoch')}") as progress:
        made = make_experts(images, config, runs=runs, root=root, compute=compute, progress=progress)
    files = sorted(made.folder.glob("run-*.safetensors"))
    if as_json:
        print_json({"folder": made.folder, "runs": runs, "snapshots": made.snapshots, "files": files})
        return
    echo(
        f"{made.folder}: {plural(runs, 'run')} of {plural(epochs, 'epoch')} with {plural(made.snapshots, 'snapshot')} each."
    )
    same = [*(["--size", size] if size else []), *(["--values", values] if values else [])]
    suggest("condense", source, *same, "--method", "tgdd", "--ipc", 10, "-o", f"{images.name}.safetensors")


def plan(
    source: SourceName,
    net: Net = None,
    runs: Runs = 1,
    epochs: Epochs = 60,
    every: Every = 1,
    seed: Seed = 0,
    folder: Folder = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    size: Size = None,
    values: Values = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Estimate the time and disk space of `experts` without training them.

    Example: `condense-once plan experts cifar10 --runs 2`
    """
    from condense_once.train.compute_config import ComputeConfig

    images = open_shown(source, data_dir=data_dir, size=size, values=values)
    config, compute = _config(images, net, epochs, every, seed), ComputeConfig(precision, compilation, device)
    with measuring():
        estimate = _estimate(images, config, runs, experts_root(folder, data_dir), compute)
    if as_json:
        print_json(asdict(estimate))
    else:
        echo(_text(estimate, runs))


def _config(images: Source, net: str | None, epochs: int, every: int, seed: int) -> ExpertConfig:
    from condense_once.condensing.experts import ExpertConfig
    from condense_once.condensing.experts.config import TGDD_EXPERTS
    from condense_once.nets import default_net

    return ExpertConfig(net or default_net(images.train.shape), replace(TGDD_EXPERTS, epochs=epochs), every, seed)


def _estimate(
    images: Source, config: ExpertConfig, runs: int, root: Path | None, compute: ComputeConfig
) -> ExpertEstimate:
    from condense_once.condensing.experts.cost import estimate_experts

    return estimate_experts(images, config, runs=runs, root=root, compute=compute)


def _text(estimate: ExpertEstimate, runs: int) -> str:
    size = f"{human_bytes(estimate.bytes)} in {estimate.folder}"
    if not estimate.missing:
        return f"{plural(runs, 'run')} found; nothing is left to train ({size})."
    return f"{estimate.missing} of {plural(runs, 'run')} to train: about {human_time(estimate.seconds)}, {size}."
