"""Draw the picture at the top of the results from the measured cells: accuracy over images per class.

python tools/draw_results.py results/accuracy.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from record import DEFAULTS, find_cell, read_cells

from condense_once.studies.figures.style import GREY, RC, colour

SIZES = (1, 2, 5, 10)
LINES = {
    "nested set": {"set": "cifar10-nested-ipc10", "rule": ["own order", "whole"]},
    "YOCO on a set by IDC": {"set": "cifar10-idc-ipc10", "rule": ["yoco", "whole"]},
    "random patches of it": {"set": "cifar10-idc-ipc10", "rule": ["random", "whole"]},
    "EL2N, hard patches first": {"set": "cifar10-idc-ipc10", "rule": ["el2n", "whole"]},
}


def main(target: Path) -> None:
    cells = read_cells()
    with mpl.rc_context(RC):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for number, (label, fields) in enumerate(LINES.items()):
            found = [(ipc, cell) for ipc in SIZES if (cell := find_cell(cells, {**DEFAULTS, **fields, "ipc": ipc}))]
            sizes, means, stds = zip(*((ipc, cell["mean"], cell["std"] or 0) for ipc, cell in found), strict=True)
            axes.errorbar(sizes, means, stds, marker="o", capsize=2, color=colour(number), label=label)
            if fields["rule"][0] == "yoco":
                paper = [(ipc, cell["published"]) for ipc, cell in found if cell.get("published")]
                axes.plot(*zip(*paper, strict=True), "--", color=GREY, label="YOCO in the paper")
        axes.set_xscale("log")
        axes.set_xticks(SIZES, [str(size) for size in SIZES], minor=False)
        axes.minorticks_off()
        axes.set_xlabel("images per class kept, of ten")
        axes.set_ylabel("accuracy on CIFAR-10, %")
        axes.legend(loc="lower right")
        figure.savefig(target, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
