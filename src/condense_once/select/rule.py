"""Rules: which patches of a set to keep, by a name that can be written down.

A name is a metric and what is to be different from how it is usually used: `el2n`, `el2n-easy`, `lbpe-easy-balanced`; or one
of `RULES`, with such words behind it too: `yoco`, `yoco-unbalanced`, `ccs-balanced`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption, UnknownName
from condense_once.metrics import METRICS
from condense_once.registry import Registry, nearest
from condense_once.select.basis import Basis
from condense_once.select.ccs import ccs_rows, cutoff
from condense_once.select.easy_or_hard import better_end
from condense_once.select.order import Prefer, class_counts, order_rows, turns
from condense_once.select.ssp import ssp_rows
from condense_once.train.seeds import Stream

Kind = Literal["order", "ccs", "ccs-fixed", "ssp"]
Rows = NDArray[np.int64]

_METRIC_OF = {"ccs": "el2n", "ccs-fixed": "el2n", "ssp": "ssp"}  # what the kinds that are no order go by
_WORDS = {
    "easy": ("prefer", "easy"),
    "hard": ("prefer", "hard"),
    "auto": ("prefer", "auto"),
    "balanced": ("balanced", True),
    "unbalanced": ("balanced", False),
}


@dataclass(frozen=True)
class Rule:
    """A metric, the end of it that is kept, and whether classes take turns.

    Selections of the kind `order` are nested: a smaller one is a part of a larger one, unless it is left to the size which end
    to prefer (`auto`). Those of `ccs` (drawn within strata; `ccs-fixed`: the hardest of each) and `ssp` are made for one size.

    >>> Rule.parse("el2n-balanced")
    Rule(metric='el2n', prefer='hard', balanced=True, kind='order')
    >>> Rule.parse("lbpe-easy-balanced").name
    'yoco'
    """

    metric: str = "lbpe"
    prefer: Literal["easy", "hard", "auto"] = "easy"
    balanced: bool = True
    kind: Kind = "order"

    def __post_init__(self) -> None:
        METRICS.get(self.metric)
        if self.prefer not in ("easy", "hard", "auto"):
            raise BadOption(
                f"A rule prefers easy or hard patches, or leaves it to the size (auto), not {self.prefer!r}."
            )
        if self.kind != "order" and _METRIC_OF.get(self.kind) != self.metric:
            kinds = ", ".join(f"{kind} by {metric}" for kind, metric in _METRIC_OF.items())
            raise BadOption(f"There is no kind of rule {self.kind!r} by {self.metric!r}; there are orders and {kinds}.")

    @classmethod
    def parse(cls, name: str) -> Rule:
        stem, words = name.strip().lower(), list[str]()
        while stem not in RULES and (last := stem.rpartition("-")[2]) in _WORDS:
            stem, words = stem.rpartition("-")[0], [last, *words]
        if stem in RULES:
            rule = RULES.get(stem).rule
        elif stem in METRICS:
            rule = cls(stem, METRICS.get(stem).keeps, balanced=False)
        else:
            known = nearest(stem, dict.fromkeys([*RULES.names(), *METRICS.names()]))
            raise UnknownName(f"There is no rule {name!r}; {known}")
        changes = dict(_WORDS[word] for word in words)
        if len(changes) < len(words):
            raise BadOption(f"The rule {name!r} says two things of one; leave out one of {' and '.join(words)}.")
        if "prefer" in changes and rule.kind == "ssp":
            changes["kind"] = "order"  # by the distance to the centre of a cluster, which has an easy end
        elif "prefer" in changes and rule.kind != "order":
            raise BadOption(
                f"{stem} keeps patches of every hardness, so {name!r} makes no sense; leave out {changes['prefer']}."
            )
        return replace(rule, **changes)  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """What `parse` makes this rule of, in short."""
        if self == YOCO:
            return "yoco"
        stem = self.metric if self.kind == "order" else self.kind
        usual = METRICS.get(self.metric).keeps
        prefer = f"-{self.prefer}" if self.kind == "order" and (self.prefer != usual or stem in _METRIC_OF) else ""
        return f"{stem}{prefer}{'-balanced' if self.balanced else ''}"

    @property
    def draws(self) -> bool:
        """Whether a seed decides what it keeps, beside the scores."""
        return self.kind in ("ccs", "ssp") or self.metric == "random"

    def end(self, basis: Basis, count: int) -> Prefer:
        """Which patches are preferred when so many are kept."""
        return better_end(count, len(basis), basis.ipc(len(basis))) if self.prefer == "auto" else self.prefer

    def rows(self, basis: Basis, count: int) -> Rows:
        """The `count` patches to keep: of an order best first, else ascending.

        With balance the counts of the classes differ by one at most, unless a class has no more; those that do not divide go
        to the first classes.
        """
        if not 0 < count <= len(basis):
            raise BadOption(f"{count} of {len(basis)} patches cannot be kept; keep from 1 to all of them.")
        if self.kind == "order":
            return self._order(basis, count)[:count]
        if self.balanced:
            return self.rows_of_each(basis, class_counts(basis.labels, count, basis.classes))
        return np.sort(self._picker(basis, count)(basis.rows(), count))

    def rows_of_each(self, basis: Basis, counts: NDArray[np.int64]) -> Rows:
        """The patches to keep when so many of each class are, `[C]`: of an order best first, else ascending."""
        sizes = np.bincount(basis.labels, minlength=basis.classes)
        if counts.shape != sizes.shape or (counts > sizes).any() or (counts < 0).any() or not counts.any():
            raise BadOption(f"The classes have {sizes.tolist()} patches; {counts.tolist()} of them cannot be kept.")
        if self.kind == "order":
            order = self._order(basis, int(counts.sum()))
            labels = basis.labels[order]
            return order[turns(labels) < counts[labels]]
        rows = basis.rows()
        members = np.split(rows[np.argsort(basis.labels[rows], kind="stable")], np.cumsum(sizes)[:-1])
        pick = self._picker(basis, int(counts.sum()))
        return np.sort(np.concatenate([pick(rows, int(some)) for rows, some in zip(members, counts, strict=True)]))

    def _order(self, basis: Basis, count: int) -> Rows:
        return order_rows(
            basis.scores(self.metric),
            basis.labels,
            easy=METRICS.get(self.metric).easy,
            prefer=self.end(basis, count),
            balanced=self.balanced,
            index=basis.index,
        )

    def _picker(self, basis: Basis, count: int) -> Callable[[Rows, int], Rows]:
        """What picks some of these rows, in a selection of `count` in all."""
        if self.kind == "ssp":
            features, rng = basis.features, basis.settings.rng(Stream.SSP)
            if features is None:
                raise BadOption("The rule ssp goes by features of a trained network, which are not known; gather them.")
            return lambda rows, some: rows[ssp_rows(features[rows], some, rng)]
        scores = basis.scores(self.metric)
        drop = cutoff(basis.dataset, basis.ipc(len(basis)), basis.ipc(count))
        draw = basis.settings.rng(Stream.CCS) if self.kind == "ccs" else None
        return lambda rows, some: rows[ccs_rows(scores[rows], some, drop, draw)]


@dataclass(frozen=True)
class NamedRule:
    name: str
    summary: str
    rule: Rule


YOCO = Rule("lbpe", "easy", balanced=True)

# The rows of the paper's tables; any metric makes a rule, also without standing here.
RULES: Registry[NamedRule] = Registry("rules")
RULES.add(NamedRule("yoco", "the paper's: the easiest patches of each class by lbpe", YOCO))
RULES.add(NamedRule("random", "any patches", Rule("random", balanced=False)))
RULES.add(NamedRule("random-balanced", "any patches, as many of each class", Rule("random")))
RULES.add(NamedRule("ssp", "prototypes: one of each k-means cluster", Rule("ssp", balanced=False, kind="ssp")))
RULES.add(NamedRule("entropy", "those the network is least sure of", Rule("entropy", "hard", balanced=False)))
RULES.add(NamedRule("aum", "those with the smallest margins", Rule("aum", "hard", balanced=False)))
RULES.add(NamedRule("forgetting", "those forgotten most often", Rule("forgetting", "hard", balanced=False)))
RULES.add(NamedRule("el2n", "those with the largest early errors", Rule("el2n", "hard", balanced=False)))
RULES.add(NamedRule("ccs", "some of every hardness by el2n, but the hardest", Rule("el2n", "hard", False, "ccs")))
RULES.add(
    NamedRule(
        "ccs-fixed",
        "as ccs in the authors' program: not drawn, but the hardest of each stratum",
        Rule("el2n", "hard", False, "ccs-fixed"),
    )
)
