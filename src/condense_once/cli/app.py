"""The verbs of the command line; a verb's module is imported only to run it or to print its help."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from condense_once._version import __version__


class Verb(NamedTuple):
    module: str  # in condense_once.cli; holds a function of the same name, or a typer app
    summary: str  # the first line of that function's docstring


VERBS = {
    "import": Verb("import_", "Import a condensed set made by another project."),
    "export": Verb(
        "export", "Export a condensed set to other formats: PNG folders, npz, IDC's data.pt, Hugging Face datasets."
    ),
    "info": Verb("info", "Print everything a condensed-set file records about itself."),
    "show": Verb("show", "Draw a contact sheet: one class per row, true colours in every value space."),
    "verify": Verb("verify", "Check a file: structure, checksums, values, labels, classes, balance, ranking."),
    "list": Verb("list_", "List what is available, such as metrics, rules or networks, one line each."),
    "score": Verb("score", "Score every patch by one or more metrics, from one training run."),
    "rank": Verb("rank", "Rank the patches of a set, best first; after that, every smaller set is a prefix."),
    "resize": Verb("resize", "Resize a ranked set in milliseconds, without training or condensing."),
    "select": Verb("select", "Select a smaller set by any rule, from stored scores or a new scoring run."),
    "compare": Verb(
        "compare",
        "Compare two rankings, or two rules on one set: overlap and class balance at each size, and rank correlation.",
    ),
    "evaluate": Verb(
        "evaluate",
        "Train networks on a set, test them on real images, and report accuracy with its standard deviation.",
    ),
    "curve": Verb(
        "curve",
        "Measure accuracy over size once, so that the file can predict it: in `info`, and for `resize --accuracy`.",
    ),
    "condense": Verb(
        "condense", "Condense real images to a few per class, with checkpoints every few minutes and on Ctrl-C."
    ),
    "slim": Verb(
        "slim",
        "Shrink a ranked set further than resizing can, by refining the patches that are kept; no real images are needed.",
    ),
    "refine": Verb(
        "refine",
        "Store a ranked set in few bytes, as `resize --bytes` does, and move its cells so that networks learn more from them.",
    ),
    "experts": Verb(
        "experts",
        "Train networks on real images and keep their weights along the way, for condensers that use trained networks.",
    ),
    "study": Verb("study", "Run a study and print its table: only missing runs are executed, so stop at any time."),
    "theory": Verb(
        "theory",
        "Measure on a set what the paper proves or claims: lemma 1, rule 1, Rademacher complexity, class imbalance.",
    ),
    "report": Verb(
        "report", "Write a page that shows what every smaller set keeps: one HTML file, without a server or network."
    ),
    "data": Verb("data", "List, download, inspect and pack real images to condense and to test on."),
    "hub": Verb("hub", "Push a condensed set to the Hugging Face Hub, or pull one from it (extra: hf)."),
    "plan": Verb("plan", "Estimate the time and memory of a job without running it."),
}

TRAINS = (
    "score",
    "rank",
    "resize",
    "select",
    "evaluate",
    "curve",
    "condense",
    "slim",
    "refine",
    "experts",
    "study",
    "theory",
    "report",
    "plan",
)


class LazyGroup(TyperGroup):
    """Lists verbs by their summaries and imports only the one that is invoked."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, stub, rest = super().resolve_command(ctx, args)
        return name, stub if name is None else load_verb(name), rest


@cache
def load_verb(name: str) -> Any:
    """The command or group of commands of a verb."""
    if name in TRAINS:
        from condense_once.train.memory import keep_freed_memory

        keep_freed_memory()  # a choice for the whole process, so the library does not make it
    module = import_module(f"condense_once.cli.{VERBS[name].module}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(rich_markup_mode="markdown", add_completion=False, pretty_exceptions_enable=False)
        app.command(name)(getattr(module, VERBS[name].module))
    return typer.main.get_command(app)


def find_command(words: Sequence[str]) -> Any:
    """The command that a command line runs, or None."""
    names = iter([word for word in words if not word.startswith("-")])
    name = next(names, "")
    command = load_verb(name) if name in VERBS else None
    return command.commands.get(next(names, "")) if isinstance(command, TyperGroup) else command


app = typer.Typer(
    cls=LazyGroup,
    name="condense-once",
    help="One condensed dataset in, any smaller one out, without condensing again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"condense-once {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def _stub() -> None: ...


for _name, _verb in VERBS.items():
    app.command(_name, help=_verb.summary)(_stub)
