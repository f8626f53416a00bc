"""Build the documentation site: `python tools/build_docs.py`, or `make docs`. Any warning is an error.

The site has the pages of docs/ and, beside them, README, results, contributing and changelog, which lie elsewhere so that people
find them in a checkout. They are copied to build/docs with their links adapted, so every link works in both places.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGED = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
# Folders and files of the project, and where they are on the site.
PLACES = {
    "docs": ".",
    "results": "results",
    "README.md": "README.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "src/condense_once/bundled/README.md": "bundled.md",
}
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(?ms)^( *)```.*?^\1```|`[^`\n]+`")


def site_files(root: Path = ROOT) -> dict[Path, Path]:
    """Every file of the site, relative to the project, and its path on the site."""
    found: dict[Path, Path] = {}
    for place, target in PLACES.items():
        for path in [root / place] if (root / place).is_file() else sorted((root / place).rglob("*")):
            if path.is_file():
                inner = path.relative_to(root / place) if (root / place).is_dir() else Path()
                found[path.relative_to(root)] = Path(os.path.normpath(Path(target) / inner))
    return found


def outside_code(text: str, change: re.Pattern[str], by: object) -> str:
    """`re.sub` on what is no code."""
    parts, at = [], 0
    for code in FENCE.finditer(text):
        parts += [change.sub(by, text[at : code.start()]), code[0]]  # type: ignore[call-overload]
        at = code.end()
    return "".join([*parts, change.sub(by, text[at:])])  # type: ignore[call-overload]


def moved_links(text: str, page: Path, files: dict[Path, Path]) -> str:
    """The text of a page with links as they are on the site; a link to a file that is not on it is an error."""

    def moved(link: re.Match[str]) -> str:
        target, hash_, anchor = link[2].partition("#")
        if not target or re.match("[a-z]+:", target):
            return link[0]
        wanted = Path(os.path.normpath(page.parent / target))
        if wanted not in files:
            raise SystemExit(f"{page} links to {target}, which is not on the site; link to a page, or name the file.")
        return f"{link[1]}{Path(os.path.relpath(files[wanted], files[page].parent)).as_posix()}{hash_}{anchor}{link[3]}"

    return outside_code(text, LINK, moved)


def stage() -> None:
    """Copy every file of the site to build/docs."""
    shutil.rmtree(STAGED, ignore_errors=True)
    files = site_files()
    for page, target in files.items():
        (STAGED / target).parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            text = moved_links((ROOT / page).read_text(encoding="utf-8"), page, files)
            (STAGED / target).write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(ROOT / page, STAGED / target)


def build() -> int:
    """Stage and build the site; the exit code of the builder."""
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    words = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", "mkdocs.yml"]
    return subprocess.run(words, cwd=ROOT, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(build())
