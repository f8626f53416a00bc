"""The paper's tables and figures (He, Xiao and Zhou, "You Only Condense Once", NeurIPS 2023) as studies, and our own."""

from __future__ import annotations

from condense_once.studies.study import STUDIES, Study

PAPER_RULES = ("random", "ssp", "entropy", "aum", "forgetting", "el2n", "ccs", "yoco")
SIZES = ("1", "2", "5", "10")  # images per class; the paper has those below the size of the set

TABLE1 = STUDIES.add(
    Study("table1", "Table 1: pruning rules on a condensed set", rules=PAPER_RULES, sizes=SIZES, fitting=True)
)
STUDIES.add(TABLE1.replace(name="table7", summary="Table 7: table 1 with two decimals", exact=True))
STUDIES.add(
    Study(
        "table2",
        "Table 2: easy patches, balanced classes, and both",
        rules=("random", "random-balanced", "lbpe", "yoco"),
        sizes=("1",),
        rows=("rule",),
        columns=("set",),
    )
)
STUDIES.add(
    Study(
        "table3",
        "Table 3: patches scored by one network, evaluated with others",
        rules=("random", "ssp", "entropy", "aum", "forgetting", "el2n", "yoco"),
        sizes=("1",),
        nets=("convnet-d3", "resnet10", "densenet"),
        scored_by="convnet-d3",
        rows=("set", "rule"),
        columns=("net",),
    )
)
STUDIES.add(
    Study(
        "table4",
        "Table 4: easy or hard patches, by several metrics",
        rules=("aum", "aum-easy", "forgetting", "forgetting-easy", "el2n", "el2n-easy", "yoco"),
        sizes=("1",),
        rows=("rule",),
        columns=("set",),
    )
)
STUDIES.add(
    Study(
        "table5",
        "Table 5: each metric with and without class balance",
        rules=tuple(
            f"{metric}{balance}"
            for metric in ("random", "ssp", "entropy", "aum", "forgetting", "el2n", "lbpe")
            for balance in ("-unbalanced", "-balanced")
        ),
        sizes=SIZES,
        fitting=True,
        rows=("set", "size", "method"),
        columns=("balance",),
    )
)
STUDIES.add(Study("table6", "Table 6: what each metric requires", shown="requirements"))
STUDIES.add(
    Study(
        "fig-balance",
        "Figure 2: patches kept per class, with and without balance",
        rules=("lbpe", "yoco"),
        sizes=SIZES,
        fitting=True,
        shown="balance",
    )
)
STUDIES.add(
    Study(
        "fig-turning-point",
        "Figure 3: easy or hard patches, over the fraction kept",
        rules=("yoco", "lbpe-hard-balanced"),
        sizes=tuple(f"{percent}%" for percent in range(10, 100, 10)),
        rows=("set", "rule"),
        columns=("size",),
        shown="lines",
    )
)
STUDIES.add(
    Study(
        "fig-epochs",
        "Figure 5: scores of a single epoch, over the epoch",
        sizes=("1",),
        epochs=tuple(f"{epoch}-{epoch}" for epoch in range(100)),
        rows=("set", "rule"),
        columns=("epochs",),
        shown="lines",
    )
)
STUDIES.add(
    Study(
        "fig-distribution",
        "Figure 7: distribution of errors per class in several epochs",
        epochs=tuple(f"{epoch}-{epoch}" for epoch in (0, 89, 999)),  # those that the paper speaks of
        scoring_epochs=1000,
        shown="distribution",
    )
)
STUDIES.add(Study("fig-easy-hard", "Figure 6: the easiest and the hardest patches of each class", shown="patches"))
STUDIES.add(
    Study(
        "nested",
        "Accuracy at every size: ranked, nested, slimmed and random sets, and a set for each size",
        rules=("yoco", "slim", "random-balanced"),
        sizes=tuple(map(str, range(1, 51))),
        fitting=True,
        to_whole=True,
        own_order=True,
        rows=("set", "rule"),
        columns=("size",),
        shown="curves",
        labels=(("stored", "own order"),),
    )
)
