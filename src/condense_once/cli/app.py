"""The verbs of the command line; the module of a verb is imported when the verb is run or its help is asked for."""

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
    "import": Verb("import_", "Import a condensed set of another project."),
    "export": Verb(
        "export", "Write a condensed set for other tools: PNG folders, npz, IDC's data.pt, Hugging Face parquet."
    ),
    "info": Verb("info", "Print everything a condensed-set file records about itself."),
    "show": Verb("show", "Draw a contact sheet: one class per row, true colours in every value space."),
    "verify": Verb("verify", "Check a file: structure, checksums, values, labels, class balance, ranking."),
    "list": Verb("list_", "List all entries of a kind, one line each."),
    "score": Verb("score", "Score every patch by one metric or all of them, from one training run."),
    "rank": Verb("rank", "Order the patches of a set, best first: after that, a smaller set is a prefix."),
    "resize": Verb("resize", "Take a smaller set from a ranked one, in milliseconds: no training, no condensing."),
    "select": Verb("select", "Keep part of any set by any rule; may train a network for scores."),
    "compare": Verb(
        "compare", "Compare two orders of the same patches: what they share at each size, and how many of which class."
    ),
    "evaluate": Verb(
        "evaluate", "Train fresh networks on a set, test them on real images, and report accuracy with its spread."
    ),
    "condense": Verb(
        "condense",
        "Condense real images to a few per class. The run is saved every few minutes and when it is stopped.",
    ),
    "study": Verb(
        "study", "Measure a table or figure of the paper, or of your own: only what is missing, and stop at any time."
    ),
    "data": Verb("data", "Real images to condense and to test on."),
    "plan": Verb("plan", "How long a job will take and how much memory, without running it."),
}

TRAINS = ("score", "rank", "resize", "select", "evaluate", "condense", "study", "plan")


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
