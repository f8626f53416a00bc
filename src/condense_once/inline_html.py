"""HTML files that need nothing else: data and scripts inside them, and a policy that allows no others."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

PLACE = re.compile(r"\{\{(\w+)\}\}")


def filled(template: str, places: Mapping[str, str]) -> str:
    """A template with its {{places}} filled in."""
    return PLACE.sub(lambda found: places[found[1]], template)


def content_policy(style: str, script: str) -> str:
    """A content security policy: this style, this script, pictures inside the file, and nothing else.

    >>> content_policy("", "").partition(";")[0]
    "default-src 'none'"
    """
    return "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def safe_json(value: Any) -> str:
    r"""JSON that may stand inside a script element: no character in it can end one.

    >>> print(safe_json({"class": "</script>"}))
    {"class":"\u003c/script>"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
