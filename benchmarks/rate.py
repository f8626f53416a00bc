"""Accuracy over bytes per class: condensed sets in several codecs, and real images as files of the same size.

    python benchmarks/rate.py LOG [--sets cifar10-idc-ipc10 …] [--bytes 1024 3072 6144 12288 30720]
        [--codecs layered refined raw] [--real sheet files] [--how random k-means]
        [--net convnet-d3] [--protocol quick] [--repeats 3] [--out FOLDER]

Bytes are those of the real file divided by the number of classes; every byte of it counts. Real images are stored as
`real_images.py` found best, with a byte each for the label. Results are appended to LOG, and a second call resumes there. With
`--out`, the table and the figure are written to a folder, beside what others published. Runs on the CPU, on the test split that
`evaluate` takes by default.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from log import Log
from real_images import CHOSEN, RealImages

import condense_once
from condense_once.condensed.codec.within import best_within
from condense_once.condensed.file import from_bytes, to_bytes
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption

PUBLISHED = Path(__file__).with_name("published_rates.toml")


class Line(NamedTuple):
    """One line of the figure."""

    set: str  # name or file; for real images, how they are selected
    codec: str

    @property
    def label(self) -> str:
        return f"{Path(self.set).stem}, {self.codec}"


CODECS = ("layered", "refined", "raw")
REAL = {"sheet": "AVIF sheet", "files": "WebP files"}


def stored(line: Line, per_class: int) -> tuple[CondensedSet, int]:
    """What this many bytes per class hold, as it is decoded, and the bytes that it takes."""
    if line.codec in REAL.values():
        how = "k-means" if line.set.startswith("k-means") else "random"
        storage = CHOSEN[per_class, line.codec == REAL["sheet"]]
        return real_images().stored(per_class, storage, how)  # type: ignore[arg-type]
    data = condense_once.load(line.set)
    limit = per_class * len(data.classes)
    if line.codec == "refined":
        data = condense_once.refine(data, limit)
    content = to_bytes(condense_once.resize(data, bytes=limit)) if line.codec == "raw" else best_within(data, limit)
    return from_bytes(content, line.set), len(content)


@cache
def real_images() -> RealImages:
    return RealImages(condense_once.open_source("cifar10"))


def lines_of(args: argparse.Namespace) -> Iterator[Line]:
    yield from (Line(name, codec) for name in args.sets for codec in args.codecs)
    yield from (Line(f"{how} real images", REAL[kind]) for kind in args.real for how in args.how)


def measure(args: argparse.Namespace, log: Log) -> None:
    for per_class in args.bytes:  # the smallest first, which are the quickest
        for line in lines_of(args):
            key = {**line._asdict(), "bytes": per_class, "net": args.net, "protocol": args.protocol}
            if log.find(**key, repeats=args.repeats):
                continue
            try:
                data, size = stored(line, per_class)
            except BadOption as error:  # not even one patch of every class fits
                print(f"{line.label}, {per_class} bytes per class: {error}", flush=True)
                continue
            result = condense_once.evaluate(data, protocol=args.protocol, net=args.net, repeats=args.repeats)
            log.add(
                **key,
                repeats=args.repeats,
                file=size,
                patches=len(data),
                stored=data.name,
                coded=data.provenance.get("coded"),
                mean=100 * result.mean,
                std=100 * result.std,
                accuracies=[100 * run.accuracy for run in result.runs],
            )


def published() -> list[dict[str, Any]]:
    """What others report: `method`, `year`, `bytes` per class as they count them, `accuracy`, `counts`, what the bytes are."""
    points: list[dict[str, Any]] = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["point"]
    return points


def table(entries: Sequence[dict[str, Any]]) -> str:
    """One row a line, one column a size, then what others report."""
    sizes = sorted({entry["bytes"] for entry in entries})
    rows: dict[str, dict[int, str]] = {}
    for entry in entries:
        cells = rows.setdefault(Line(entry["set"], entry["codec"]).label, {})
        cells[entry["bytes"]] = f"{entry['mean']:.1f} ± {entry['std']:.1f} ({entry['patches']})"
    head = [f"| bytes per class | {' | '.join(f'{size:,}' for size in sizes)} |", "|---" * (len(sizes) + 1) + "|"]
    body = [f"| {label} | {' | '.join(cells.get(size, '–') for size in sizes)} |" for label, cells in rows.items()]
    others = ["", "| published | bytes per class | accuracy | what the bytes count |", "|---|---|---|---|"]
    others += [
        f"| {p['method']} ({p['year']}) | {p['bytes']:,} | {p['accuracy']} | {p['counts']} |" for p in published()
    ]
    return "\n".join([*head, *body, *others]) + "\n"


def draw(entries: Sequence[dict[str, Any]], path: Path) -> None:
    """Accuracy over bytes per class, with what others report as crosses."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from condense_once.studies.figures.style import GREY, RC, colour, dash

    with plt.rc_context(RC):
        figure, area = plt.subplots(figsize=(8, 4.6), layout="constrained")
        groups: dict[Line, list[dict[str, Any]]] = {}
        for entry in entries:
            groups.setdefault(Line(entry["set"], entry["codec"]), []).append(entry)
        for number, (line, members) in enumerate(groups.items()):
            members.sort(key=lambda entry: int(entry["bytes"]))
            columns = ([entry[name] for entry in members] for name in ("bytes", "mean", "std"))
            places, means, stds = columns
            style = {"color": colour(number), "linestyle": dash(number), "marker": "o", "markersize": 4, "capsize": 2}
            area.errorbar(places, means, yerr=stds, label=line.label, **style)
        most = 2 * max(entry["bytes"] for entry in entries)
        for point in (point for point in published() if point["bytes"] <= most):
            area.plot(point["bytes"], point["accuracy"], marker="x", color=GREY, markersize=5)
            area.annotate(point["method"], (point["bytes"], point["accuracy"]), fontsize=6.5, color=GREY, xytext=(4, 2),
                          textcoords="offset points")  # fmt: skip
        area.set_xscale("log", base=2)
        sizes = sorted({entry["bytes"] for entry in entries})
        area.set_xticks(sizes, [f"{size:,}" for size in sizes])
        area.minorticks_off()
        area.set_xlabel("bytes per class; × as published, by their own count of bytes")
        area.set_ylabel("test accuracy, %")
        area.legend(loc="lower right")
        figure.savefig(path, dpi=150, metadata={"Software": None})
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("--sets", nargs="*", default=["cifar10-idc-ipc10"])
    parser.add_argument("--bytes", nargs="+", type=int, default=[1024, 3072, 6144, 12288, 30720])
    parser.add_argument("--codecs", nargs="+", choices=CODECS, default=list(CODECS))
    parser.add_argument("--real", nargs="*", choices=tuple(REAL), default=[])
    parser.add_argument("--how", nargs="+", choices=("random", "k-means"), default=["random", "k-means"])
    parser.add_argument("--net", default=None)
    parser.add_argument("--protocol", default="quick")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    log = Log(args.log)
    measure(args, log)
    print(table(log.entries))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "table.md").write_text(table(log.entries), encoding="utf-8")
        draw(log.entries, args.out / "rate.png")


if __name__ == "__main__":
    main()
