"""The table and the figure of measured runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from examples.continual_learning.experiment import Run


def by_policy(runs: Sequence[Run], memory: int) -> dict[str, list[Run]]:
    """The runs with this memory, and those that depend on none, best policy first."""
    names = dict.fromkeys(run.policy for run in runs if run.memory in (0, memory))
    groups = {name: [run for run in runs if run.policy == name and run.memory in (0, memory)] for name in names}
    return dict(sorted(groups.items(), key=lambda item: -float(np.mean([run.average for run in item[1]]))))


def memories(runs: Sequence[Run]) -> list[int]:
    return sorted({run.memory for run in runs if run.memory}) or [0]


def mean_and_std(values: Sequence[float]) -> str:
    """Mean ± sample standard deviation.

    >>> mean_and_std([40.0, 42.0, 41.0]), mean_and_std([40.0])
    ('41.0 ± 1.0', '40.0')
    """
    return f"{np.mean(values):.1f}" + (f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else "")


def table(runs: Sequence[Run]) -> str:
    """Markdown: accuracy in % after each task on all classes seen so far, their average, exemplars per class at the end."""
    lines = []
    for memory in memories(runs):
        tasks = range(1, len(runs[0].accuracies) + 1)
        lines += [
            f"| {memory / 1024:.0f} KiB | stored at the end | "
            + " | ".join(f"task {t}" for t in tasks)
            + " | average | n |"
        ]
        lines += ["|---|---|" + "---|" * (len(tasks) + 2)]
        for policy, group in by_policy(runs, memory).items():
            cells = [mean_and_std([run.accuracies[t - 1] for run in group]) for t in tasks]
            average = mean_and_std([run.average for run in group])
            lines += [f"| {policy} | {group[0].stored[-1]} | {' | '.join(cells)} | {average} | {len(group)} |"]
        lines += [""]
    return "\n".join(lines)


def draw(runs: Sequence[Run], path: Path | None = None) -> None:
    """Accuracy after each task, a panel per memory; shown in a notebook or written to a file."""
    import matplotlib.pyplot as plt

    panels = memories(runs)
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 4), sharey=True, squeeze=False)
    colours = {name: f"C{place}" for place, name in enumerate(sorted({run.policy for run in runs if run.memory}))}
    for axis, memory in zip(axes[0], panels, strict=True):
        for policy, group in by_policy(runs, memory).items():
            accuracies = np.array([run.accuracies for run in group])
            limit = group[0].memory == 0
            axis.errorbar(
                range(1, accuracies.shape[1] + 1),
                accuracies.mean(0),
                accuracies.std(0, ddof=1) if len(group) > 1 else None,
                label=policy,
                color="0.6" if limit else colours[policy],
                linestyle="--" if limit else "-",
                marker="." if limit else "o",
                capsize=2,
            )
        axis.set(
            title=f"memory of {memory / 1024:.0f} KiB", xlabel="tasks learned", xticks=range(1, accuracies.shape[1] + 1)
        )
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("accuracy on all classes seen, %")
    axes[0][-1].legend(fontsize=8)
    figure.tight_layout()
    if path is not None:
        figure.savefig(path, dpi=120)
        plt.close(figure)
