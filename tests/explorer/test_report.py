from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.explorer.conftest import ranked_set, small_set
from tests.explorer.test_agreement import page_contents

import condense_once
from condense_once.explorer.assemble import packed, script_of
from condense_once.explorer.rankings import file_sizes

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


class Outline(HTMLParser):
    """Elements of a page, and what they refer to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.inline: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "srcset"):
                self.references.append(value or "")
            if name.startswith("on") or name == "style":
                self.inline.append(name)


def page_of(data: condense_once.CondensedSet, path: Path, **options: object) -> str:
    condense_once.report(data, path, train=False, **options)  # type: ignore[arg-type]
    return path.read_text("utf-8")


def test_a_class_named_like_a_script_stays_text(page_file: Path) -> None:
    evil = ranked_set(classes=(EVIL, '"&amp;', "]]>--><!--"))
    evil = replace(evil, name=EVIL, provenance={"method": EVIL, EVIL: EVIL, "source": EVIL})
    plain = Outline(page_of(ranked_set(), page_file.with_name("plain.html")))
    html = page_of(evil, page_file)
    assert Outline(html).tags == plain.tags
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert page_contents(page_file)["classes"] == [*evil.classes]


def test_the_page_refers_to_nothing_outside_itself(page_file: Path) -> None:
    outline = Outline(page_of(ranked_set(), page_file))
    assert outline.inline == []
    assert all(each.startswith(("data:", "#")) for each in outline.references)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page_file.read_text("utf-8"))
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


def test_the_scripts_are_one_without_imports() -> None:
    script = script_of("main")
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert "</script" not in script
    assert (
        script.index("const module_selection") < script.index("const module_view") < script.index("const module_main")
    )


def test_a_set_that_is_not_ranked_is_refused(page_file: Path) -> None:
    with pytest.raises(condense_once.BadOption, match=r"small\.safetensors is not ranked.*rank it first"):
        condense_once.report(small_set(), page_file, train=False)


def test_a_page_has_the_name_of_one(tmp_path: Path) -> None:
    with pytest.raises(condense_once.BadOption, match=r"ends in \.html"):
        condense_once.report(ranked_set(), tmp_path / "page.pdf", train=False)


def test_an_existing_page_stays(page_file: Path) -> None:
    page_file.write_text("mine")
    with pytest.raises(condense_once.BadOption, match="exists already"):
        condense_once.report(ranked_set(), page_file, train=False)
    assert page_file.read_text() == "mine"


def test_a_store_that_is_not_there_is_refused(page_file: Path, tmp_path: Path) -> None:
    with pytest.raises(condense_once.BadOption, match="There is no store"):
        condense_once.report(ranked_set(), page_file, store=tmp_path / "no.sqlite", train=False)


def test_rankings_of_other_patches_are_not_compared(page_file: Path) -> None:
    with pytest.raises(condense_once.BadOption, match="not rankings of the same patches"):
        condense_once.report(ranked_set(), page_file, compare=[ranked_set(seed=1)], train=False)


def test_the_page_of_the_bundled_set_is_small_and_says_what_it_is(page_file: Path) -> None:
    condense_once.report("cifar10-idc-ipc10", page_file, train=False)
    assert page_file.stat().st_size < 3_000_000
    contents = page_contents(page_file)
    assert contents["summary"].startswith(
        "400 small synthetic training pictures (patches) in 10 classes that stand in for cifar10, train split,"
    )
    assert contents["recorded"][0]["mean"] == pytest.approx(60.41)
    assert [entry.partition("{")[2].partition(",")[0] for entry in contents["cite"]] == ["kim2022idc", "he2023yoco"]


def test_the_same_set_makes_the_same_page(page_file: Path) -> None:
    assert page_of(ranked_set(), page_file) == page_of(ranked_set(), page_file, force=True)


def test_file_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    data = ranked_set(counts=(4, 4, 4))
    counts, sizes = file_sizes(data)
    assert counts.tolist() == [*range(1, 13)]
    for count, size in zip(counts[2::3], sizes[2::3], strict=True):
        condense_once.save(condense_once.resize(data, total=int(count)), tmp_path / "part.safetensors", force=True)
        assert (tmp_path / "part.safetensors").stat().st_size == size


def test_packed_arrays_are_little_endian() -> None:
    assert packed(np.array([1, 2], ">u2")) == {"type": "u2", "base64": "AQACAA=="}
