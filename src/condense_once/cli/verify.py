from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer

from condense_once.cli.option_names import with_options
from condense_once.cli.options import DataDir, File, Json, Like, Values
from condense_once.cli.printing import echo, print_json


def verify(
    file: File,
    test: Annotated[
        str | None,
        typer.Option(
            "--test", help="Source whose classes the set must have; by default the known one it was made from."
        ),
    ] = None,
    like: Like = None,
    values: Values = None,
    data_dir: DataDir = None,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    as_json: Json = False,
) -> None:
    """Check a file: structure, checksums, values, labels, classes, balance, ranking.

    The exit code is 1 if the file is invalid.

    Example: `condense-once verify cifar10-idc-ipc10`
    """
    from condense_once.condensed.bundled import find_set
    from condense_once.condensed.verify import verify as check
    from condense_once.files import existing_file

    found = check(existing_file(find_set(file)), test, like=like, values=values, data_dir=data_dir)
    findings = [replace(finding, text=with_options(finding.text)) for finding in found]
    failed = any(strict or finding.level == "error" for finding in findings)
    if as_json:
        print_json({"file": file, "valid": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            echo(f"{finding.level}: {finding.text}")
        echo(f"{file}: {'invalid' if failed else 'valid'}.")
    if failed:
        raise typer.Exit(1)
