"""A study of a user's own, written down as TOML."""

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
from condense_once.studies.study import Study

MOST_BYTES = 1 << 20  # of a study file


def read_study(path: Path) -> Study:
    """A study of a user's own, from a TOML file with the fields of `Study` as keys; its name is that of the file.

    Paths in it are relative to the folder that it lies in.
    """
    if existing_file(path).stat().st_size > MOST_BYTES:
        raise BadFile(f"{path} is too large for a study; it should be a few lines of TOML.")
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} is not TOML: {error}.") from None
    known = {each.name: str(each.type) for each in fields(Study) if each.name != "name"}
    values: dict[str, Any] = {"summary": f"from {path.name}"}
    for key, value in said.items():
        if key not in known:
            raise BadFile(f"{path}: a study has no {key!r}; {nearest(key, known)}")
        values[key] = _checked(path, key, value, known[key])
    if "sets" in values:
        values["sets"] = tuple(_placed(spec, path.parent, SETS) for spec in values["sets"])
    if "test" in values:
        values["test"] = _placed(values["test"], path.parent, SOURCES)
    return Study(name=path.stem, **values)


def _placed(spec: str, folder: Path, names: Container[str]) -> str:
    """What a study file says, as a path that is understood from any folder; what is a name stays one."""
    path = folder.resolve() / spec
    is_path = path.exists() or bool(path.suffix) or spec != path.name
    return spec if spec in names or not is_path else str(path)


def _checked(path: Path, key: str, value: Any, kind: str) -> Any:
    if key == "labels":
        if isinstance(value, dict) and all(isinstance(label, str) for label in value.values()):
            return tuple(value.items())
        raise BadFile(f"{path}: labels is a table of names and what they are called instead.")
    if kind.startswith("tuple"):
        several = value if isinstance(value, list) else [value]
        if all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in several):
            return tuple(map(str, several))
        raise BadFile(f"{path}: {key} must be a list of names or numbers, not {value!r}.")
    if kind == "bool":
        if isinstance(value, bool):
            return value
        raise BadFile(f"{path}: {key} must be true or false, not {value!r}.")
    wanted = int if "int" in kind else str
    if isinstance(value, wanted) and not isinstance(value, bool):
        return value
    raise BadFile(f"{path}: {key} must be {'a number' if wanted is int else 'text'}, not {value!r}.")
