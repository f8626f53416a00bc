r"""Print the notes of a version from CHANGELOG.md: `python tools/release_notes.py 0.2.0`.

>>> notes("# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n- New.\n\n## 0.1.0\n\n- Old.\n", "0.2.0")
'- New.\n'
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes(changelog: str, version: str) -> str:
    """The section of a version, without its heading."""
    for section in re.split(r"(?m)^## ", changelog)[1:]:
        title, _, text = section.partition("\n")
        if title.split()[0] == version and text.strip():
            return text.strip() + "\n"
    raise SystemExit(f"CHANGELOG.md has no notes of {version}; name the section of Unreleased `## {version}` first.")


def packaged_version() -> str:
    """That of the package, read without importing it."""
    text = (ROOT / "src" / "condense_once" / "_version.py").read_text(encoding="utf-8")
    return re.findall(r'__version__ = "(.+)"', text)[0]


if __name__ == "__main__":
    if sys.argv[1:] != [packaged_version()]:
        raise SystemExit(
            f"The package is version {packaged_version()}, not {' '.join(sys.argv[1:])}; change one of them."
        )
    print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), sys.argv[1]), end="")
