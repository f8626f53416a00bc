from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import DownloadColumn, TransferSpeedColumn

from condense_once.cli.options import Home, Json
from condense_once.cli.printing import (
    aside,
    class_list,
    note,
    numbers,
    print_facts,
    print_json,
    print_rows,
    readable,
    spread,
    suggest,
    track,
)

app = typer.Typer(no_args_is_help=True, help="Real images to condense and to test on.", rich_markup_mode="markdown")


@app.command("list")
def list_(home: Home = None, as_json: Json = False) -> None:
    """List the known sources and whether they are on this machine.

    Example: `condense-once data list`
    """
    from condense_once.data.open import is_here
    from condense_once.data.source import SOURCES, data_home

    rows = [(source.name, is_here(source, home), source.summary) for source in SOURCES]
    if as_json:
        print_json([{"name": name, "here": here, "summary": summary} for name, here, summary in rows])
        return
    print_rows(("source", "here", "what it is"), ((name, "yes" if here else "", text) for name, here, text in rows))
    note([f"Sources are kept in {data_home(home)}; a path to your own images works wherever a name does."])


@app.command("get")
def get(name: Annotated[str, typer.Argument(help="See: condense-once data list.")], home: Home = None) -> None:
    """Download a source, check it, and keep it ready to use. A download that was cut goes on where it stopped.

    Example: `condense-once data get cifar10`
    """
    from condense_once.data.catalogue import SOURCES
    from condense_once.data.fetch import fetch

    if SOURCES.get(name).load is not None:
        typer.echo(f"{name} is ready: it comes with the package, there is nothing to download.")
        suggest("data", "info", name)
        return
    with track(name, DownloadColumn(), TransferSpeedColumn()) as progress:
        folder = fetch(name, home=home, progress=progress, say=lambda sentence: note([sentence]))
    typer.echo(readable(f"{name} is ready in {folder}."))
    suggest("data", "info", name, *([] if home is None else ["--home", home]))


@app.command("info")
def info(
    source: Annotated[str, typer.Argument(help="A source's name, or a path: folder of images, archive, .npz …")],
    home: Home = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side to resize and crop a folder of images to.")] = None,
    channels: Annotated[
        int | None, typer.Option(metavar="1|3", help="Read a folder of images as grey or as colour.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Known source to take mean, std and names that are missing from."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Open a source and say what is in it.

    Example: `condense-once data info cifar10-sample`
    """
    from condense_once.data.open import open_source

    with aside.status("reading"):
        opened = open_source(source, home=home, size=size, channels=channels, like=like)
    counts = {
        name: [int((split.labels == label).sum()) for label in range(len(opened.classes))]
        for name, split in opened.splits.items()
    }
    if as_json:
        splits = {name: {"shape": split.shape, "per class": counts[name]} for name, split in opened.splits.items()}
        facts = {
            "name": opened.name,
            "classes": opened.classes,
            "mean": opened.mean,
            "std": opened.std,
            "splits": splits,
        }
        print_json(facts)
        return
    print_facts(
        opened.name,
        {
            "classes": class_list(opened.classes),
            **{
                name: f"{len(split.labels)} images of {'×'.join(map(str, split.shape))}, {spread(counts[name])} per class"
                for name, split in opened.splits.items()
            },
            "mean / std": f"{numbers(opened.mean)} / {numbers(opened.std)}",
        },
    )
