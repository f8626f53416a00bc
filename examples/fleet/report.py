"""The table and the figure of a fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from examples.fleet.devices import LEVELS, Device
from examples.fleet.training import Trained

STORAGE_TICKS = (16, 32, 64, 128, 256, 512)  # KiB


def accuracies(trained: Sequence[Trained]) -> dict[int, list[float]]:
    """By level, smallest first."""
    return {
        level: [each.accuracy for each in trained if each.level == level]
        for level in LEVELS
        if any(each.level == level for each in trained)
    }


def table(levels: Mapping[Device, int], trained: Sequence[Trained], patch_bytes: int, classes: int) -> str:
    """Markdown: a row per level, then the mean over all devices that take part, by level and with one size for all."""
    found, devices = accuracies(trained), Counter(levels.values())
    lines = [
        "| patches per class | pixels | devices | accuracy, % | n | training, CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for level, values in found.items():
        seconds = np.mean([each.seconds for each in trained if each.level == level])
        size = f"{level * classes * patch_bytes / 1024:.1f} KiB"
        spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
        row = f"| {level} | {size} | {devices[level]} | {np.mean(values):.1f}{spread} | {len(values)} | {seconds:.1f} |"
        lines.append(row)
    own, one_size = fleet_means(levels, found)
    lines += ["", f"Mean over the {sum(level > 0 for level in levels.values())} devices that have room for a level:"]
    lines += [f"{own:.1f} % if each takes its own, {one_size:.1f} % with one size that fits all of them."]
    return "\n".join([*lines, ""])


def fleet_means(levels: Mapping[Device, int], found: Mapping[int, Sequence[float]]) -> tuple[float, float]:
    """The mean accuracy over devices if each takes its own level, and if all take the smallest that one of them takes.

    >>> small, large = Device("a", 1, 1, 1), Device("b", 2, 2, 2)
    >>> fleet_means({small: 1, large: 40}, {1: [30.0], 40: [49.0, 51.0]})
    (40.0, 30.0)
    """
    taken = [level for level in levels.values() if level]
    means = {level: float(np.mean(found[level])) for level in set(taken)}
    return float(np.mean([means[level] for level in taken])), means[min(taken)]


def draw(levels: Mapping[Device, int], trained: Sequence[Trained], path: Path | None = None) -> None:
    """Every device by its two budgets, coloured by what its level reaches; shown in a notebook or written to a file."""
    import matplotlib.pyplot as plt

    found = accuracies(trained)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    taking = [device for device, level in levels.items() if level]
    idle = [device for device, level in levels.items() if not level]
    dots = left.scatter(
        [device.room / 1024 for device in taking],
        [device.trainable for device in taking],
        c=[float(np.mean(found[levels[device]])) for device in taking],
        s=40,
    )
    left.scatter([d.room / 1024 for d in idle], [d.trainable for d in idle], marker="x", color="0.5", label="too small")
    left.set(xscale="log", yscale="log", xlabel="storage, KiB", ylabel="patches it can train on in its time")
    left.set_xticks(STORAGE_TICKS, labels=[str(tick) for tick in STORAGE_TICKS], minor=False)
    left.set_xticks([], minor=True)
    if idle:
        left.legend()
    figure.colorbar(dots, ax=left, label="accuracy, %")
    means = [float(np.mean(values)) for values in found.values()]
    stds = [float(np.std(values, ddof=1)) if len(values) > 1 else 0.0 for values in found.values()]
    right.errorbar(list(found), means, stds, marker="o", capsize=3)
    counts = Counter(levels.values())
    for level, mean in zip(found, means, strict=True):
        devices = f"{counts[level]} device{'' if counts[level] == 1 else 's'}"
        right.annotate(devices, (level, mean), xytext=(4, -12), textcoords="offset points", fontsize=8)
    right.set(
        xscale="log", xlabel="patches per class", ylabel="accuracy, %", xticks=list(found), xticklabels=list(found)
    )
    right.minorticks_off()
    right.grid(alpha=0.3)
    figure.tight_layout()
    if path is not None:
        figure.savefig(path, dpi=120)
        plt.close(figure)
