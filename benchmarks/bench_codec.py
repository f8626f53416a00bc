"""Size and decoding time of layered files, against raw cells, zlib, and PNG and WebP of the same cells by Pillow.

    python benchmarks/bench_codec.py [SET] [--repeats 5]

Times are the least CPU time of several, per patch, of decoding all patches to 8-bit cells.
"""

from __future__ import annotations

import argparse
import io
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from machine import cpu_model
from PIL import Image

import condense_once
from condense_once.condensed.file import SetFile, from_bytes, to_bytes
from condense_once.container import InMemory


def least_time(work: Callable[[], Any], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return min(times)


def encoded(cells: Any, kind: str, **options: Any) -> list[bytes]:
    """One image file per cell."""
    files = []
    for cell in cells:
        buffer = io.BytesIO()
        Image.fromarray(cell[0] if len(cell) == 1 else cell.transpose(1, 2, 0)).save(buffer, kind, **options)
        files.append(buffer.getvalue())
    return files


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("set", nargs="?", default="cifar10-idc-ipc10")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    data = condense_once.load(args.set)
    count, classes = len(data), len(data.classes)
    content = to_bytes(data, codec="layered")
    layered = SetFile(InMemory(content, "the set")).layered
    assert layered is not None
    print(f"{cpu_model()}; {data!r}")
    rows: list[tuple[str, int, float]] = []
    for layers, stop in layered.prefixes():
        cut = content[:stop]
        spent = least_time(lambda cut=cut: from_bytes(cut, "a cut"), args.repeats)  # type: ignore[misc]
        rows.append((f"layered, {layers} of {layered.code.layers}", stop, spent))
    raw = to_bytes(data)
    rows.append(("raw", len(raw), least_time(lambda: from_bytes(raw, "raw"), args.repeats)))
    packed = zlib.compress(np.ascontiguousarray(data.cells).tobytes(), 9)
    rows.append(("zlib of raw cells", len(packed), least_time(lambda: zlib.decompress(packed), args.repeats)))
    if data.cells.dtype == np.uint8:
        for name, kind, options in (("PNG", "PNG", {"optimize": True}), ("WebP lossless", "WEBP", {"lossless": True})):
            files = encoded(data.cells, kind, **options)
            decode = lambda files=files: [np.asarray(Image.open(io.BytesIO(file))) for file in files]  # noqa: E731
            rows.append((name, sum(map(len, files)), least_time(decode, args.repeats)))
    print("| stored as | bytes | per class | per patch | µs a patch |\n|---|---|---|---|---|")
    for name, size, seconds in rows:
        print(f"| {name} | {size:,} | {size / classes:,.0f} | {size / count:.0f} | {seconds / count * 1e6:.0f} |")


if __name__ == "__main__":
    main()
