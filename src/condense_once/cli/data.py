from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from condense_once.cli.printing import Json, aside, note, print_facts, print_json, print_rows, suggest

app = typer.Typer(no_args_is_help=True, help="Real images to condense and to test on.", rich_markup_mode="markdown")

Home = Annotated[
    Path | None,
    typer.Option("--home", help="Where sources are kept; by default $CONDENSE_ONCE_DATA or your cache folder."),
]


@app.command("list")
def list_(home: Home = None, as_json: Json = False) -> None:
    """List the known sources and whether they are on this machine.

    Example: `condense-once data list`
    """
    from condense_once.data.opening import is_here
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
    from condense_once.data.fetch import fetch

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=aside, transient=True) as bar:
        task = bar.add_task(name, total=None)

        def progress(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        folder = fetch(name, home=home, progress=progress, say=lambda sentence: note([sentence]))
    typer.echo(f"{name} is ready in {folder}.")
    suggest(f"condense-once data info {name}")


@app.command("info")
def info(
    source: Annotated[str, typer.Argument(help="A source's name, or a path: folder of images, archive, .npz …")],
    home: Home = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side to resize and crop a folder of images to.")] = None,
    as_json: Json = False,
) -> None:
    """Open a source and say what is in it.

    Example: `condense-once data info cifar10-sample`
    """
    from condense_once.data.opening import open_source

    with aside.status("reading"):
        opened = open_source(source, home=home, size=size)
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
            "classes": f"{len(opened.classes)}: {', '.join(opened.classes[:12])}{' …' if len(opened.classes) > 12 else ''}",
            **{
                name: f"{len(split.labels)} images of {'×'.join(map(str, split.shape))}, {_spread(counts[name])} a class"
                for name, split in opened.splits.items()
            },
            "mean / std": f"{_numbers(opened.mean)} / {_numbers(opened.std)}",
        },
    )


def _spread(counts: list[int]) -> str:
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.4f}" for value in values)
