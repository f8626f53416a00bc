"""One HTML file of the page's sources and its data: everything inline, nothing fetched, nothing evaluated but our script."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.inline_html import content_policy, filled, safe_json

FOLDER = Path(__file__).parent / "page"
IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function|const) (\w+)", re.MULTILINE)
# Names of dtypes in the page, see decode.js.
DTYPES = {"uint8": "u1", "uint16": "u2", "uint32": "u4", "float32": "f4", "float64": "f8"}


def page_html(title: str, contents: dict[str, Any], images: dict[str, str]) -> str:
    """The page. `contents` is plain JSON; `images` are data URLs by the id of their element."""
    style, script = (FOLDER / "page.css").read_text("utf-8"), script_of("main")
    pictures = "\n".join(f'<img id="{name}" src="{url}" alt="" hidden>' for name, url in images.items())
    places = {
        "title": escape(title),
        "policy": content_policy(style, script),
        "style": style,
        "pictures": pictures,
        "data": safe_json(contents),
        "script": script,
    }
    return filled((FOLDER / "index.html").read_text("utf-8"), places)


def packed(array: NDArray[Any]) -> dict[str, str]:
    """An array for the page: its type and its little-endian bytes."""
    kind = DTYPES[array.dtype.name]
    raw = np.ascontiguousarray(array).astype(f"<{kind[0]}{kind[1]}").tobytes()
    return {"type": kind, "base64": b64encode(raw).decode()}


def script_of(name: str) -> str:
    """A module and everything it imports as one script without imports: each is a function that returns its exports."""
    return "\n".join(_as_function(module) for module in _in_order(name, []))


def _as_function(name: str) -> str:
    source = _source(name)
    exported = ", ".join(found[2] for found in EXPORT.finditer(source))
    inside = EXPORT.sub(r"\1 \2", IMPORT.sub(r"const \1 = module_\2;", source))
    return f"const module_{name} = (() => {{\n{inside}return {{ {exported} }};\n}})();"


def _in_order(name: str, seen: list[str]) -> Iterator[str]:
    """A module after all that it imports."""
    seen.append(name)
    for found in IMPORT.finditer(_source(name)):
        if found[2] not in seen:
            yield from _in_order(found[2], seen)
    yield name


def _source(name: str) -> str:
    return (FOLDER / f"{name}.js").read_text("utf-8")
