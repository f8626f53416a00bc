"""The documentation: every link and anchor leads somewhere, every page is in the navigation, every public name has a place."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.build_docs import FENCE, LINK, ROOT, moved_links, outside_code, site_files

import condense_once

PAGES = sorted(page for page in site_files() if page.suffix == ".md")


class Loader(yaml.SafeLoader):
    """Of mkdocs.yml, which names functions in places that do not matter here."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def navigation() -> list[str]:
    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [page for inner in (entry.values() if isinstance(entry, dict) else entry) for page in pages(inner)]

    return pages(yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)["nav"])


def links(page: Path) -> list[str]:
    found: list[str] = []
    outside_code((ROOT / page).read_text(encoding="utf-8"), LINK, lambda link: found.append(link[2]) or "")
    return [link for link in found if not re.match("[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """As GitHub and the site make them of headings."""
    text = re.sub(r"(?ms)^( *)```.*?^\1```", "", (ROOT / page).read_text(encoding="utf-8"))
    titles = re.findall(r"(?m)^#+ (.*)$", text)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower().strip() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_and_anchor_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        wanted = Path(os.path.normpath(page.parent / target)) if target else page
        if not (ROOT / wanted).exists() or (anchor and anchor not in anchors(wanted)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_somewhere_on_the_site(page: Path) -> None:
    moved_links((ROOT / page).read_text(encoding="utf-8"), page, site_files())


def test_a_link_that_leaves_the_site_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"docs/a\.md links to \.\./Makefile"):
        moved_links("[x](../Makefile)", Path("docs/a.md"), site_files())


def test_links_of_pages_from_elsewhere_are_adapted() -> None:
    files = site_files()
    assert moved_links("[x](docs/format.md#a), `[x](y)`", Path("README.md"), files) == "[x](format.md#a), `[x](y)`"
    assert moved_links("[x](../docs/theory.md)", Path("results/README.md"), files) == "[x](../theory.md)"


def test_every_page_of_the_docs_is_in_the_navigation_once() -> None:
    files = {str(target): page for page, target in site_files().items()}
    shown = navigation()
    assert sorted(shown) == sorted(set(shown))
    assert [page for page in shown if page not in files] == []
    assert [str(page) for page in PAGES if page.parts[0] == "docs" and files_of(page) not in shown] == []


def files_of(page: Path) -> str:
    return site_files()[page].as_posix()


def test_every_public_name_is_in_the_api_reference_once() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "api").glob("*.md")))
    named = re.findall(r"(?m)^(?:::: |- `)condense_once\.(\w+)`?$", text)
    assert sorted(named) == sorted(condense_once.__all__)


def test_code_is_never_taken_for_links() -> None:
    assert FENCE.sub("", "a\n```python\n[x](y)\n```\nb") == "a\n\nb"


@pytest.mark.skipif(not importlib.util.find_spec("zensical"), reason="the extra `docs` is not installed")
def test_the_site_builds_without_warnings_and_asks_no_other_server() -> None:
    words = [sys.executable, "tools/build_docs.py"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "build" / "site").rglob("*.html")]
    assert len(pages) > len(PAGES)
    fetched = [
        url
        for page in pages
        for url in re.findall(r"<(?:script|link|img)\b[^>]*(?:src|href)=\"?(https?:[^\" >]+)", page)
    ]
    assert fetched == []
