from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from condense_once.explorer import report
from condense_once.explorer.scoring import seen_as_pixels

Run = Callable[..., tuple[int, str, str]]
SET = "cifar10-idc-ipc10"


def test_a_page_is_written_and_told(run: Run) -> None:
    code, out, _ = run("report", SET, "--no-train", "-o", "page.html")
    assert code == 0
    assert out.startswith("page.html: 400 patches, ")
    assert Path("page.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_page_is_described_as_json(run: Run) -> None:
    _, out, _ = run("report", SET, "--no-train", "-o", "page.html", "--json")
    told = json.loads(out)
    assert told["bytes"] == Path("page.html").stat().st_size
    assert (told["patches"], told["rankings"], told["accuracies"], told["map"]) == (400, 4, 0, "pixels")


def test_training_is_told_with_the_option_that_avoids_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "seen_by_new_run", lambda data, _progress: seen_as_pixels(data))
    _, _, err = run("report", SET, "-o", "page.html")
    assert "note: A network is trained for the map" in err
    assert "pass a --store with the scoring run, or --no-train, to go without" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", SET, "-o", "page.pdf"), "ends in .html"),
        (("report", "cifar10-real-ipc10", "-o", "page.html"), "rank it first"),
        (("report", SET, "--store", "no.sqlite", "-o", "page.html"), "There is no store no.sqlite"),
        (("report", SET, "--compare", "cifar10-real-ipc10", "-o", "page.html"), "cifar10-real-ipc10 is not ranked"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(run: Run, words: tuple[str, ...], said: str) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert said in err
