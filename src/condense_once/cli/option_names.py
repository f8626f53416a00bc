"""Library messages name parameters (`ipc`); the command line shows the option of that name (--ipc)."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

PARAMETER = re.compile(r"`([a-z][a-z0-9_]*(?:=False)?)`")


def with_options(message: str) -> str:
    """Replace each `parameter` by the option of the command being run; a name that is no option loses its backticks."""
    if not PARAMETER.search(message):
        return message
    options = options_of(sys.argv[1:])
    return PARAMETER.sub(lambda found: options.get(found[1], found[1]), message)


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Parameter → long option of the command that these words run, also by the option's own name.

    >>> options_of(["import", "data.pt"])["format_name"], options_of(["study", "table1"])["compilation"]
    ('--format', '--compile')
    >>> options_of(["report", "ranked.safetensors"])["train=False"]
    '--no-train'
    """
    from condense_once.cli.app import find_command

    command = find_command(words)
    options: dict[str, str] = {}
    for parameter in () if command is None else command.params:
        if option := next((name for name in parameter.opts if name.startswith("--")), None):
            options[option.removeprefix("--").replace("-", "_")] = option
            options[str(parameter.name)] = option
        if parameter.secondary_opts:
            options[f"{parameter.name}=False"] = parameter.secondary_opts[0]
    return options
