from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from condense_once.cli.condense import Nested, Overrides, checkpoint_of, read_overrides, run_to_file
from condense_once.cli.options import CompileName, Device, File, Force, Json, Net, PrecisionName, Seed


def slim(
    file: File,
    ipc: Annotated[int, typer.Option("--ipc", min=1, help="Images per class of the smaller set.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The condensed-set file to write.")],
    method: Annotated[
        Literal["idc", "tgdd"],
        typer.Option("--method", help="What is matched: gradients, or mean features of experts."),
    ] = "tgdd",
    minutes: Annotated[float, typer.Option("--minutes", help="Time to refine the patches.")] = 3.0,
    nested: Nested = False,
    net: Net = None,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Resume from the checkpoint next to the output.")] = False,
    overrides: Overrides = None,
    precision: PrecisionName = "auto",
    compilation: CompileName = "auto",
    device: Device = "cpu",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Shrink a ranked set further than resizing can, by refining the patches that are kept; no real images are needed.

    The whole set takes the place of the real images, so this works for sets whose source is gone.

    Example: `condense-once slim cifar10-idc-ipc10 --ipc 1 -o one.safetensors`
    """
    began = time.perf_counter()  # importing torch takes seconds, which count towards --minutes
    from condense_once.condensed.bundled import load
    from condense_once.condensed.file import refuse_output
    from condense_once.condensing.distributed import is_primary
    from condense_once.condensing.slim import experts_beside
    from condense_once.condensing.slim import slim as run
    from condense_once.train.compute_config import ComputeConfig

    refuse_output(out, force, inputs=[Path(file)])
    run_to_file(
        partial(
            run,
            load(file),
            ipc=ipc,
            method=method,
            minutes=minutes,
            nested=nested,
            net=net,
            seed=seed,
            resume=resume,
            overrides=read_overrides(overrides),
            compute=ComputeConfig(precision, compilation, device),
            began=began,
        ),
        out,
        [],
        force=force,
        as_json=as_json,
    )
    if is_primary():
        shutil.rmtree(experts_beside(checkpoint_of(out)), ignore_errors=True)
