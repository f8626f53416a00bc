"""What the verbs say of nested and slimmed sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensing.nested import ranked_by_image

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def nested(run: Run, pixel_set: CondensedSet) -> str:
    """A set of two images per class that was slimmed from a larger one, nested."""
    provenance = {
        "method": "tgdd",
        "source": "whole, train split",
        "slimmed": {"from": "whole", "patches": 40, "rule": "lbpe, easy first"},
    }
    save(replace(ranked_by_image(pixel_set, 2, [1, 2]), provenance=provenance), "nested.safetensors")
    return "nested.safetensors"


def test_info_says_how_it_was_made_in_words(run: Run, nested: str) -> None:
    code, out, _ = run("info", nested)
    assert code == 0
    assert "nested: in the order of its images, condensed for 1 and 2 images per class" in out
    assert "from whole (40 patches, lbpe, easy first) by tgdd, without real images" in out
    assert "provenance: method" in out
    assert "train split" not in out  # there was none


def test_rank_keeps_the_order_of_a_nested_set_unless_told_otherwise(run: Run, nested: str) -> None:
    for verb in (("rank", nested, "-o", "ranked.safetensors"), ("plan", "rank", nested)):
        code, out, err = run(*verb, "--metric", "random")
        assert (code, out) == (2, "")
        assert "tiny is nested" in err
        assert "resize it as it is, or pass --anew to replace its order by one by random" in err
    assert not Path("ranked.safetensors").exists()
    assert run("rank", nested, "--metric", "random", "--anew", "-o", "ranked.safetensors")[0] == 0
    assert not load("ranked.safetensors").is_nested


def test_a_nested_set_is_resized_verified_and_shown(run: Run, nested: str) -> None:
    assert run("resize", nested, "--ipc", 1, "-o", "one.safetensors")[0] == 0
    assert run("verify", "one.safetensors")[1] == "one.safetensors: valid.\n"
    code, _, err = run("show", nested, "-o", "sheet.png")
    assert code == 0
    assert "The set was slimmed from whole" in err
    assert "The set is nested" in err
