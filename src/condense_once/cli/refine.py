from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.byte_sizes import parse_bytes
from condense_once.cli.options import File, Force, Json, Seed
from condense_once.cli.printing import echo, print_json, set_facts, suggest_evaluate, track
from condense_once.text import human_bytes, plural


def refine(
    file: File,
    max_bytes: Annotated[str, typer.Option("--bytes", help="Maximum file size, such as 30KB.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The condensed-set file to write.")],
    steps: Annotated[int, typer.Option("--steps", min=1, help="Updates of the cells.")] = 400,
    net: Annotated[
        str | None,
        typer.Option(
            "--net", help="Network that must see the same; by default a narrow one. See: condense-once list nets."
        ),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Store a ranked set in few bytes, as `resize --bytes` does, and move its cells so that networks learn more from them.

    The networks are trained on the set itself, so no real images are needed. It takes a minute or two on one core.

    Example: `condense-once refine cifar10-nested-ipc10 --bytes 10KB -o small.safetensors`
    """
    from condense_once.condensed.bundled import load
    from condense_once.condensed.codec.within import best_within, fineness
    from condense_once.condensed.file import from_bytes, refuse_output
    from condense_once.condensing.refine import refine as run
    from condense_once.files import atomic_file

    refuse_output(out, force, inputs=[Path(file)])
    with track("refining") as progress:
        made = run(load(file), max_bytes, steps=steps, net=net, seed=seed, progress=progress)
    content = best_within(made, parse_bytes(max_bytes))
    with atomic_file(out, force=force) as target:
        target.write(content)
    data = from_bytes(content, str(out))
    if as_json:
        print_json(set_facts(data, out))
        return
    size = human_bytes(out.stat().st_size)
    echo(f"{out}: {plural(len(data), 'patch')} of {plural(len(data.classes), 'class')}, {size}{fineness(data)}.")
    suggest_evaluate(data, out)
