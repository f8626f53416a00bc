"""Results of long measurements, one JSON object per line, so that a second call resumes where the first one stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Log:
    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # the writer was killed in the middle of a line
            path.write_text(whole)
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]

    def find(self, **values: Any) -> dict[str, Any] | None:
        """The last entry with these values."""
        matches = (entry for entry in reversed(self.entries) if all(entry.get(key) == values[key] for key in values))
        return next(matches, None)

    def add(self, **values: Any) -> dict[str, Any]:
        with self._path.open("a") as out:
            out.write(json.dumps(values) + "\n")
        self.entries.append(values)
        print(values, flush=True)
        return values
