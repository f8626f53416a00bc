"""A Griffe extension for the site: examples in docstrings are shown as code, though they stand there without fences."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?m)^>>> .*(?:\n(?!\s*$).*)*")  # up to the next empty line


class DoctestFences(Extension):
    """Put each block that begins with `>>>` between fences."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", obj.docstring.value)
