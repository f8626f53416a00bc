from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import DownloadColumn, TransferSpeedColumn

from condense_once.cli.options import DataDir, Json, Size
from condense_once.cli.printing import echo, err_console, note, print_fields, print_json, print_rows, suggest, track
from condense_once.text import class_list, decimals, value_range

app = typer.Typer(
    no_args_is_help=True,
    help="List, download and inspect real images to condense and to test on.",
    rich_markup_mode="markdown",
    add_completion=False,
)


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
    as_json: Json = False,
) -> None:
    """Download a source and verify it. An interrupted download resumes where it stopped.

    Example: `condense-once data get cifar10`
    """
    from condense_once.data.catalogue import SOURCES
    from condense_once.data.fetch import fetch

    if SOURCES.get(name).load is not None:
        if as_json:
            print_json({"name": name, "folder": None})
            return
        echo(f"{name} is ready: it is bundled, there is nothing to download.")
        suggest("data", "info", name)
        return
    with track(name, DownloadColumn(), TransferSpeedColumn()) as progress:
        folder = fetch(name, data_dir=data_dir, progress=progress, notify=lambda sentence: note([sentence]))
    if as_json:
        print_json({"name": name, "folder": folder})
        return
    echo(f"{name} is ready in {folder}.")
    suggest("data", "info", name, *([] if data_dir is None else ["--data-dir", data_dir]))


@app.command("info")
def info(
    source: Annotated[str, typer.Argument(help="The name of a source, or a path: image folder, archive, .npz …")],
    data_dir: DataDir = None,
    size: Size = None,
    channels: Annotated[
        int | None, typer.Option(metavar="1|3", help="Read the images of a folder as grey (1) or RGB (3).")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Known source to take mean, std and missing class names from."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Open a source and print what it contains.

    Example: `condense-once data info cifar10-sample`
    """
    from condense_once.data.open import open_source

    with err_console.status("reading"):
        opened = open_source(source, data_dir=data_dir, size=size, channels=channels, like=like)
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
                name: f"{len(split.labels)} images of {'×'.join(map(str, split.shape))}, {value_range(counts[name])} per class"
                for name, split in opened.splits.items()
            },
            "mean / std": f"{decimals(opened.mean)} / {decimals(opened.std)}",
        },
    )
