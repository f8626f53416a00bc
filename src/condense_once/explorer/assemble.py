"""One HTML file of the page's sources and its data: everything inline, nothing fetched, nothing evaluated but our script."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent / "page"
IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function|const) (\w+)", re.MULTILINE)
# Names of dtypes in the page, see decode.js.
DTYPES = {"uint8": "u1", "uint16": "u2", "uint32": "u4", "float32": "f4", "float64": "f8"}


def page_html(title: str, contents: dict[str, Any], images: dict[str, str]) -> str:
    """The page. `contents` is plain JSON; `images` are data URLs by the id of their element."""
    style, script = (FOLDER / "page.css").read_text("utf-8"), script_of("main")
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    pictures = "\n".join(f'<img id="{name}" src="{url}" alt="" hidden>' for name, url in images.items())
    places = {
        "title": escape(title),
        "policy": policy,
        "style": style,
        "pictures": pictures,
        "data": safe_json(contents),
        "script": script,
    }
    page = (FOLDER / "index.html").read_text("utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: places[found[1]], page)


def safe_json(value: Any) -> str:
    r"""JSON that may stand inside a script element: no character in it can end one.

    >>> print(safe_json({"class": "</script>"}))
    {"class":"\u003c/script>"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


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


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
