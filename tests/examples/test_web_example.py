"""The reader in JavaScript, in a real browser: it shows what Python reads, and refuses what is damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.examples.conftest import EXAMPLES

import condense_once

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
if CHROMIUM is None:
    pytest.skip("Chromium is not installed, so the web example is not opened", allow_module_level=True)
playwright_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

PIXELS = """async (count) => {
  const { RemoteSet } = await import("./reader.js");
  const set = await RemoteSet.open("ranked.safetensors");
  return (await set.take(count)).map((patch) => [patch.label, [...patch.image.data]]);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def site(folder_site: tuple[str, Path, Any]) -> tuple[str, Path, Any]:
    """With the page and a ranked set."""
    shutil.copytree(EXAMPLES / "web", folder_site[1], dirs_exist_ok=True)
    condense_once.save(condense_once.load("cifar10-idc-ipc10"), folder_site[1] / "ranked.safetensors")
    return folder_site


@pytest.fixture
def page(browser: Any, site: tuple[str, Path, Any]) -> Iterator[Any]:
    opened = browser.new_page()
    yield opened
    opened.close()


def test_the_slider_shows_patches_and_fetches_only_what_it_shows(page: Any, site: tuple[str, Path, Any]) -> None:
    page.goto(f"{site[0]}/index.html")
    page.wait_for_selector("canvas")
    assert page.locator("canvas").count() == 10
    assert page.locator("h2").all_text_contents()[:2] == ["airplane", "automobile"]
    first = site[2].sent
    assert first < 100_000
    page.locator("#slider").fill("8")
    page.wait_for_function("document.querySelectorAll('canvas').length === 80")
    assert first < site[2].sent < 160_000  # of 313 kB
    page.locator("#slider").fill("2")
    page.wait_for_function("document.querySelectorAll('canvas').length === 20")
    assert "20 of 400 patches" in page.locator("#state").text_content()


def test_it_shows_what_python_reads(page: Any, site: tuple[str, Path, Any]) -> None:
    page.goto(f"{site[0]}/index.html")
    data = condense_once.load(site[1] / "ranked.safetensors", first=12)
    shown = page.evaluate(PIXELS, 12)
    assert [label for label, _ in shown] == data.labels.tolist()
    images = np.array([pixels for _, pixels in shown]).reshape(12, 32, 32, 4)[..., :3].transpose(0, 3, 1, 2)
    assert np.abs(images - 255 * data.patches()).max() <= 0.501


def test_a_damaged_byte_is_refused(page: Any, site: tuple[str, Path, Any]) -> None:
    path = site[1] / "ranked.safetensors"
    body = bytearray(path.read_bytes())
    length = int.from_bytes(body[:8], "little")
    begin = 8 + length + json.loads(body[8 : 8 + length])["cells"]["data_offsets"][0]
    body[begin + 5] ^= 1
    path.write_bytes(body)
    page.goto(f"{site[0]}/index.html")
    page.wait_for_selector(".error")
    assert page.locator("#state").text_content().endswith("block 0 of cells is damaged.")
    assert page.locator("canvas").count() == 0
