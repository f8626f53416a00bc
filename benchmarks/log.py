"""Results of long measurements, one JSON object a line, so that a second call goes on where the first one was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Log:
    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # its writer was killed in the middle of a line
            path.write_text(whole)
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]

    def find(self, **facts: Any) -> dict[str, Any] | None:
        """The last entry with these facts."""
        fitting = (entry for entry in reversed(self.entries) if all(entry.get(key) == facts[key] for key in facts))
        return next(fitting, None)

    def add(self, **facts: Any) -> dict[str, Any]:
        with self._path.open("a") as out:
            out.write(json.dumps(facts) + "\n")
        self.entries.append(facts)
        print(facts, flush=True)
        return facts
