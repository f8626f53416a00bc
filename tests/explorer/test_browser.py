"""The page in a real browser, opened from disk: what a person does with it, and that it needs nothing else.

Chromium comes from the system's packages, Playwright from the extra `dev`; without them these tests are skipped. With
CONDENSE_ONCE_TIMES=1 they print how long the page takes to show its first picture and to follow the slider.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.explorer.conftest import ranked_set, small_set
from tests.explorer.test_accuracies import add
from typer.testing import CliRunner

import condense_once
from condense_once.selection.rank import rank_by_scores
from condense_once.studies.store import Store
from condense_once.text import human_bytes

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
if CHROMIUM is None:
    pytest.skip(
        "Chromium is not installed, so the page is not opened (apt-get install chromium)", allow_module_level=True
    )
playwright_api = pytest.importorskip(
    "playwright.sync_api", reason="Playwright is not installed, so the page is not opened"
)

EVIL = "<img src=x onerror=document.title='evil'>"
# Of every class row, how many pictures are drawn in full: at the centre of each tile the canvas is opaque or faded.
DRAWN = """() => [...document.querySelectorAll(".class-row")].map((row) => {
  const canvas = row.querySelector("canvas");
  const ratio = canvas.width / canvas.clientWidth;
  const side = Math.round(canvas.clientWidth / Math.min(COLUMNS, 999));
  const context = canvas.getContext("2d");
  let drawn = 0;
  for (let y = side / 2; y < canvas.clientHeight; y += side) {
    for (let x = side / 2; x < canvas.clientWidth; x += side) {
      if (context.getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data[3] === 255) drawn += 1;
    }
  }
  return drawn;
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open a page; at the end of the test there must have been no error and no request beyond the file."""
    problems: list[str] = []
    contexts = []

    def opened(path: Path, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:")) else problems.append(request.url),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture(scope="module")
def bundled_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    condense_once.report("cifar10-idc-ipc10", path, train=False)
    return path


def settle(page: Any) -> None:
    """Wait until everything that was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def kept(page: Any) -> list[int]:
    """How many patches of each class the page says it keeps."""
    settle(page)
    return [int(row.get_attribute("data-kept")) for row in page.query_selector_all(".class-row")]


def slide_to(page: Any, stop: int) -> None:
    page.locator("#slider").fill(str(stop))


def test_the_slider_shows_what_the_copied_command_makes(
    open_page: Open, bundled_page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from condense_once.cli.app import app

    monkeypatch.chdir(tmp_path)
    page = open_page(bundled_page, permissions=["clipboard-read", "clipboard-write"])
    for stop in (0, 2, 9):
        slide_to(page, stop)
        page.click("#copy")
        playwright_api.expect(page.locator("#copy")).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        _, *words = shlex.split(copied)
        assert CliRunner().invoke(app, words).exit_code == 0
        made = condense_once.load(words[words.index("-o") + 1])
        assert kept(page) == made.counts().tolist()
        assert page.evaluate(DRAWN.replace("COLUMNS", "40")) == made.counts().tolist()
        assert page.text_content("#patches") == str(len(made))
        assert page.text_content("#bytes") == human_bytes(Path(words[words.index("-o") + 1]).stat().st_size)
        playwright_api.expect(page.locator("#copy")).to_have_text("Copy")


def test_other_units_and_rankings_keep_about_as_many(open_page: Open, page_file: Path) -> None:
    condense_once.report(ranked_set(counts=(8, 8, 8)), page_file, train=False)
    page = open_page(page_file)
    slide_to(page, 3)
    assert kept(page) == [4, 4, 4]
    for unit in ("patches", "fraction", "bytes"):
        page.select_option("#unit", unit)
        assert kept(page) == [4, 4, 4]
    page.select_option("#unit", "ipc")
    page.select_option("#ranking", label="lbpe, hardest first, not balanced")
    assert sum(kept(page)) == 12
    assert "--rule lbpe-hard --ipc 4" in page.text_content("#command")
    page.fill("#value", "2")
    page.press("#value", "Enter")
    assert sum(kept(page)) == 6


def test_everything_is_done_by_keyboard(open_page: Open, bundled_page: Path) -> None:
    page = open_page(bundled_page)
    page.focus("#slider")
    page.keyboard.press("Home")
    assert kept(page) == [4] * 10
    page.keyboard.press("ArrowRight")
    assert kept(page) == [8] * 10
    page.locator(".strip").nth(3).focus()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    settle(page)
    assert page.text_content("#details-class") == "cat"
    assert "3rd of 40" in page.text_content("#details-facts")
    assert page.text_content("#option-3") == "cat, 3rd of 40, kept"
    page.locator(".class-name").nth(3).focus()
    page.keyboard.press("Enter")
    settle(page)
    assert page.text_content("#selected") == "class cat: 40 patches, 8 kept"
    page.focus("#map")
    page.keyboard.press("Escape")
    settle(page)
    assert page.text_content("#selected") == ""
    reached = set()
    for key in ("ArrowLeft", "ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
        settle(page)
        reached.add(page.get_attribute("#map", "aria-label"))
    assert len(reached) > 2
    page.locator("#histogram [data-bin='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settle(page)
    assert "lbpe from" in page.text_content("#selected")
    assert page.evaluate("document.activeElement.dataset.bin") == "1"


def test_the_page_says_in_words_what_is_best_and_where_a_patch_is_from(open_page: Open, bundled_page: Path) -> None:
    page = open_page(bundled_page)
    assert page.text_content("#best").startswith("Best: lowest lbpe, the mean prediction error over the epochs")
    page.keyboard.press("Tab")
    shown = page.text_content("#details")
    assert "kept in subsets of" in shown
    assert "stored in" in shown


def test_a_selection_on_the_map_shows_in_the_sheet(open_page: Open, bundled_page: Path) -> None:
    page = open_page(bundled_page)
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    before = page.evaluate("document.querySelector('.strip canvas').toDataURL()")
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 200, steps=4)
    page.mouse.up()
    settle(page)
    assert page.text_content("#selected").startswith("an area of the map: ")
    assert page.evaluate("document.querySelector('.strip canvas').toDataURL()") != before
    page.click("#clear")
    settle(page)
    assert page.text_content("#selected") == ""


def test_names_from_a_file_are_text_in_the_page(open_page: Open, page_file: Path) -> None:
    data = replace(ranked_set(classes=(EVIL, "b", "c")), name=EVIL, provenance={"method": EVIL, EVIL: EVIL})
    condense_once.report(data, page_file, train=False)
    page = open_page(page_file)
    assert page.text_content("#name") == EVIL
    assert page.text_content(".class-name") == EVIL
    assert "evil" not in page.title().replace(EVIL, "")
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 768])
def test_nothing_is_wider_than_a_narrow_screen(open_page: Open, bundled_page: Path, width: int, scheme: str) -> None:
    page = open_page(bundled_page, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    slide_to(page, 0)
    assert kept(page) == [4] * 10
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_moving_the_slider_moves_nothing_else(open_page: Open, bundled_page: Path) -> None:
    page = open_page(bundled_page)
    places = """[...document.querySelectorAll("section, figure, .class-row, #details, .stats > div")]
        .map((each) => each.getBoundingClientRect())
        .map((box) => [box.x, box.y, box.width, box.height].map(Math.round))"""
    slide_to(page, 9)
    kept(page)
    before = page.evaluate(places)
    for stop in (0, 4):
        slide_to(page, stop)
        kept(page)
        assert page.evaluate(places) == before


def test_numbers_behind_the_charts_are_tables(open_page: Open, bundled_page: Path) -> None:
    page = open_page(bundled_page)
    slide_to(page, 0)
    page.locator("summary").nth(2).click()
    page.wait_for_selector("#balance-table td")
    rows = page.locator("#balance-table tbody tr")
    assert rows.count() == 10
    assert rows.first.inner_text().split() == ["airplane", "4", "2"] or rows.first.inner_text().startswith(
        "airplane\t4"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"scores": {}},
        {"ranking": condense_once.Ranking("a metric of mine"), "scores": {}},
        {
            "space": condense_once.Space("normalised", (0.5,) * 3, (0.25,) * 3),
            "cells": np.zeros((16, 3, 4, 4), np.float32),
        },
        {"space": condense_once.Space("pixels", (0.5,), (0.25,)), "cells": np.zeros((16, 1, 4, 4), np.uint8)},
    ],
)
def test_sets_of_every_kind_have_a_page(open_page: Open, page_file: Path, change: dict[str, Any]) -> None:
    condense_once.report(replace(ranked_set(), **change), page_file, train=False)
    page = open_page(page_file)
    page.select_option("#unit", "patches")
    slide_to(page, 0)
    assert sum(kept(page)) == 1


def test_accuracies_of_a_store_follow_the_slider(open_page: Open, page_file: Path, tmp_path: Path) -> None:
    data, store = ranked_set(counts=(8, 8, 8)), Store(tmp_path / "store.sqlite")
    for repeat, accuracy in enumerate((0.3, 0.4)):
        add(store, data, "yoco", 3, repeat, accuracy)
        add(store, data, "yoco", 12, repeat, accuracy + 0.2)
        add(store, data, "random", 24, repeat, 0.9)
    store.close()
    condense_once.report(data, page_file, store=tmp_path / "store.sqlite", train=False)
    page = open_page(page_file)
    told = []
    for stop in (0, 1, 3, 7):
        slide_to(page, stop)
        settle(page)
        told.append((page.text_content("#accuracy"), page.text_content("#spread")))
    assert told == [
        ("35.0 %", "± 7.1 std, 2 runs"),
        ("≈ 45 %", "between measured sizes"),
        ("55.0 %", "± 7.1 std, 2 runs"),
        ("90.0 %", "± 0.0 std, 2 runs"),  # the whole set, whatever the rule
    ]
    page.locator("#accuracy-chart").scroll_into_view_if_needed()
    settle(page)
    assert "At 24 patches about 90.0 %" in page.get_attribute("#accuracy-chart", "aria-label")


def test_a_set_in_a_notebook_has_a_slider(open_page: Open, tmp_path: Path) -> None:
    path = tmp_path / "cell.html"
    shown = condense_once.load("cifar10-idc-ipc10")._repr_html_()
    path.write_text(f"<!doctype html><html data-ready><body>{shown}</body></html>", "utf-8")
    frame = open_page(path).frame_locator("iframe")
    playwright_api.expect(frame.locator("#kept")).to_have_text("400 of 400 patches")
    frame.locator("#slider").fill("4")
    playwright_api.expect(frame.locator("#kept")).to_have_text("40 of 400 patches")
    playwright_api.expect(frame.locator("canvas").first).to_have_attribute(
        "aria-label", "airplane: 4 of 20 shown patches kept"
    )


def test_twenty_thousand_patches_open_and_slide(open_page: Open, tmp_path: Path) -> None:
    data = many_patches()
    path = tmp_path / "many.html"
    condense_once.report(data, path, train=False)
    assert path.stat().st_size < 25_000_000
    page = open_page(path)
    slide_to(page, 10)
    assert kept(page) == [44] * 100
    times = page.evaluate(
        """async () => {
          const slider = document.getElementById("slider");
          const steps = [];
          for (let stop = 0; stop < 30; stop += 1) {
            const start = performance.now();
            slider.value = stop;
            slider.dispatchEvent(new Event("input"));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            steps.push(performance.now() - start);
          }
          steps.sort((a, b) => a - b);
          const ready = performance.getEntriesByName("ready")[0].startTime;
          return { ready, median: steps[15], slowest: steps.at(-1) };
        }"""
    )
    if os.environ.get("CONDENSE_ONCE_TIMES"):
        size = path.stat().st_size / 2**20
        print(f"\n20,000 patches: {size:.1f} MiB, ready after {times['ready']:.0f} ms, slider step {times['median']:.0f} ms"
              f" (median), {times['slowest']:.0f} ms (slowest)")  # fmt: skip


def many_patches() -> condense_once.CondensedSet:
    """100 classes × 50 images × factor 2, of the bundled patches with other colours."""
    base = condense_once.load("cifar10-idc-ipc10")
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(base), 20_000)
    cells = (base.cells[rows] * rng.uniform(0.6, 1.0, (20_000, 3, 1, 1))).astype(np.uint8)
    data = replace(
        small_set(),
        cells=cells,
        labels=np.tile(np.arange(100), 200),
        classes=tuple(f"class {label}" for label in range(100)),
        size=(32, 32),
        factor=2,
        origin=np.arange(20_000),
        scores={"lbpe": rng.random(20_000).astype(np.float32)},
    )
    return rank_by_scores(data, "lbpe")
