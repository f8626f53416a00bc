"""Make the pictures of the page in docs/images, with the Chromium of the system.

    python tools/screenshots.py PAGE.html

The page of those in docs/images, on a plain CPU in a few minutes (a narrow network, 1,000 test images):

    net="--net convnet-d3-w24"
    condense-once score cifar10-idc-ipc10 $net -o scored.safetensors
    condense-once rank scored.safetensors $net -o ranked.safetensors
    study="--only yoco --only random --only el2n --protocol quick --repeats 2 --scoring-runs 1 --store studies.sqlite"
    condense-once study table1 --set ranked.safetensors $net --test cifar10-sample $study
    condense-once report ranked.safetensors --store studies.sqlite --source cifar10 -o page.html
"""

from __future__ import annotations

import argparse
import io
import shutil
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parents[1] / "docs" / "images"
DESKTOP = {"width": 1280, "height": 1000}
PHONE = {"width": 390, "height": 844}
COLOURS = 128  # of the animation
FRAME = 350  # milliseconds


def settle(page: Any) -> None:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def opened(browser: Any, path: Path, *, scale: float = 1, **options: Any) -> Any:
    page = browser.new_context(device_scale_factor=scale, **options).new_page()
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("html[data-ready]")
    settle(page)
    return page


def save(picture: bytes, name: str, colours: int = 256) -> None:
    """As a PNG of few colours, which is a fraction of the size."""
    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    image.save(FOLDER / name, optimize=True)
    print(f"{name}: {(FOLDER / name).stat().st_size // 1024} KiB")


def slide(browser: Any, path: Path) -> None:
    """The slider going down and up again."""
    page = opened(browser, path, viewport={"width": 1200, "height": 1100})
    rows = page.locator("#rows").bounding_box()
    area = {"x": 0, "y": 0, "width": 1200, "height": rows["y"] + rows["height"] + 16}
    last = int(page.get_attribute("#slider", "max") or 0)
    frames = []
    for stop in [*range(last, -1, -1), *range(1, last)]:
        page.locator("#slider").fill(str(stop))
        settle(page)
        frames.append(Image.open(io.BytesIO(page.screenshot(clip=area))).convert("RGB"))
    palette = frames[0].quantize(COLOURS)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    out = FOLDER / "report-slider.gif"
    small[0].save(out, save_all=True, append_images=small[1:], duration=FRAME, loop=0, optimize=True)
    print(f"{out.name}: {out.stat().st_size // 1024} KiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    path = parser.parse_args().page
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        save(opened(browser, path, viewport=DESKTOP).screenshot(), "report-desktop.png")
        save(opened(browser, path, viewport=PHONE, scale=1.5).screenshot(), "report-phone.png")
        dark = opened(browser, path, viewport=DESKTOP, color_scheme="dark")
        dark.evaluate("document.getElementById('map-title').scrollIntoView()")
        settle(dark)
        dark.wait_for_timeout(300)
        save(dark.screenshot(), "report-dark.png")
        slide(browser, path)
        browser.close()


if __name__ == "__main__":
    main()
