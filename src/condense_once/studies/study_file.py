"""Studies by name, or from a TOML file of a user's own."""

from __future__ import annotations

import tomllib
from collections.abc import Container
from dataclasses import fields
from pathlib import Path
from typing import Any

from condense_once.condensed.bundled import SETS
from condense_once.data.catalogue import SOURCES
from condense_once.errors import BadFile
from condense_once.files import existing_file
from condense_once.registry import nearest
from condense_once.studies.study import STUDIES, Study
from condense_once.text import first_line

MAX_BYTES = 1 << 20  # of a study file
MAX_SHOWN = 80  # characters of a name in a message


def find_study(name: str) -> Study:
    """A registered study, or that of a TOML file.

    >>> find_study("table1").protocol
    'paper'
    """
    return read_study(Path(name)) if name.endswith(".toml") else STUDIES.get(name)


def read_study(path: Path) -> Study:
    """The study of a TOML file with the fields of `Study` as keys, named after the file.

    Paths in it are relative to its folder.
    """
    if existing_file(path).stat().st_size > MAX_BYTES:
        raise BadFile(f"{path} is too large for a study; it should be a few lines of TOML.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise BadFile(f"{path} is nested too deeply for a study; a study has lists, and one table of labels.") from None
    except ValueError as error:  # wrong syntax, no UTF-8, a number of thousands of digits
        raise BadFile(f"{path} is not TOML: {first_line(error).partition(';')[0]}.") from None
    known = {each.name: str(each.type) for each in fields(Study) if each.name != "name"}
    values: dict[str, Any] = {"summary": f"from {path.name}"}
    for key, value in content.items():
        if key not in known:
            raise BadFile(f"{path}: a study has no {key!r}; {nearest(key, known)}")
        values[key] = _checked(path, key, value, known[key])
    for name in {"sets", "ceiling"} & set(values):
        values[name] = tuple(_absolute(spec, path.parent, SETS) for spec in values[name])
    if "test" in values:
        values["test"] = _absolute(values["test"], path.parent, SOURCES)
    return Study(name=path.stem, **values)


def _absolute(spec: str, folder: Path, names: Container[str]) -> str:
    """A path of a study file as an absolute one; names stay names."""
    path = folder.resolve() / spec
    try:
        is_path = path.exists() or bool(path.suffix) or spec != path.name
    except OSError as error:
        raise BadFile(f"A study names the file {spec[:MAX_SHOWN]}…: {error.strerror}.") from None
    return spec if spec in names or not is_path else str(path)


def _checked(path: Path, key: str, value: Any, kind: str) -> Any:
    if key == "labels":
        if isinstance(value, dict) and all(isinstance(label, str) for label in value.values()):
            return tuple(value.items())
        raise BadFile(f"{path}: labels must be a table of names and their labels.")
    if kind.startswith("tuple"):
        values = value if isinstance(value, list) else [value]
        if all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in values):
            return tuple(map(str, values))
        raise BadFile(f"{path}: {key} must be a list of names or numbers, not {value!r}.")
    if kind == "bool":
        if isinstance(value, bool):
            return value
        raise BadFile(f"{path}: {key} must be true or false, not {value!r}.")
    wanted = int if "int" in kind else str
    if isinstance(value, wanted) and not isinstance(value, bool):
        return value
    raise BadFile(f"{path}: {key} must be {'a number' if wanted is int else 'text'}, not {value!r}.")
