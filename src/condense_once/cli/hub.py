from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from condense_once.cli.options import File, Force, Json
from condense_once.cli.printing import echo, print_json, set_facts, suggest

app = typer.Typer(
    no_args_is_help=True,
    help="Push a condensed set to the Hugging Face Hub, or pull one from it (extra: hf).",
    rich_markup_mode="markdown",
    add_completion=False,
)
Repository = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The dataset on the hub.")]
Revision = Annotated[str | None, typer.Option(help="Branch, tag or commit; by default the main branch.")]


@app.command("push")
def push(
    file: File,
    repository: Repository,
    private: Annotated[
        bool, typer.Option("--private", help="If the dataset is new, create it as a private one.")
    ] = False,
    revision: Revision = None,
    as_json: Json = False,
) -> None:
    """Upload a set as a dataset that `datasets.load_dataset` opens, with its card and the resizable file.

    Example: `condense-once hub push ranked.safetensors me/cifar10-condensed`

    Log in first, with `hf auth login` or the variable HF_TOKEN.
    """
    from condense_once.condensed.hub import push_to_hub

    address = push_to_hub(file, repository, private=private, revision=revision)
    if as_json:
        print_json({"repository": repository, "commit": address})
    else:
        echo(f"{repository} pushed: {address}")


@app.command("pull")
def pull(
    repository: Repository,
    out: Annotated[Path, typer.Option("--out", "-o", help="The condensed-set file to write.")],
    revision: Revision = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Download the set of such a dataset, exactly as it was pushed.

    Example: `condense-once hub pull me/cifar10-condensed -o ranked.safetensors`
    """
    from condense_once.condensed.file import refuse_output, save
    from condense_once.condensed.hub import pull_from_hub

    refuse_output(out, force)
    data = pull_from_hub(repository, revision=revision)
    save(data, out, force=force)
    if as_json:
        print_json(set_facts(data, out))
    else:
        echo(f"{out} written: {data!r}")
        suggest("show", out)
