"""Rules: which patches of a set to keep, by a name that can be written down.

A name is a metric with what differs from its usual use: `el2n`, `el2n-easy`, `lbpe-easy-balanced`; or one of `RULES` or
`SELECTORS`, with the same suffixes: `yoco`, `yoco-unbalanced`, `ccs-balanced`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import balanced_counts, rank_within_class
from condense_once.errors import BadOption, UnknownName
from condense_once.metrics import METRICS
from condense_once.registry import Registry, nearest
from condense_once.selection.order import Prefer, order_rows
from condense_once.selection.selectors import SELECTORS, Reads, images_per_class
from condense_once.selection.selectors.auto_preference import better_preference
from condense_once.text import plural
from condense_once.train.seeds import numpy_generator

Rows = NDArray[np.int64]
ORDER = "order"  # the selector of rules that just sort by score

_SUFFIXES = {
    "easy": ("prefer", "easy"),
    "hard": ("prefer", "hard"),
    "auto": ("prefer", "auto"),
    "balanced": ("balanced", True),
    "unbalanced": ("balanced", False),
}


@dataclass(frozen=True)
class Rule:
    """A metric, whether easy or hard patches are kept, and whether classes are balanced.

    Selections by an `order` are nested: a smaller one is a prefix of a larger one, unless the preference depends on the size
    (`auto`). Selections by one of `SELECTORS`, such as `ccs`, are made for one size.

    >>> Rule.parse("el2n-balanced")
    Rule(metric='el2n', prefer='hard', balanced=True, selector='order')
    >>> Rule.parse("lbpe-easy-balanced").name
    'yoco'
    """

    metric: str = "lbpe"
    prefer: Literal["easy", "hard", "auto"] = "easy"
    balanced: bool = True
    selector: str = ORDER

    def __post_init__(self) -> None:
        METRICS.get(self.metric)
        if self.prefer not in ("easy", "hard", "auto"):
            raise BadOption(f"`prefer` of a rule must be 'easy', 'hard' or 'auto' (by size), not {self.prefer!r}.")
        if not self.is_order and (needed := SELECTORS.get(self.selector).metric) != self.metric:
            raise BadOption(f"The selector {self.selector!r} uses the metric {needed!r}, not {self.metric!r}.")

    @classmethod
    def parse(cls, name: str) -> Rule:
        if not isinstance(name, str):
            raise UnknownName(f"A rule is a Rule or a name, such as 'yoco', not {type(name).__name__}.")
        stem, suffixes = name.strip().lower(), list[str]()
        while stem not in RULES and (last := stem.rpartition("-")[2]) in _SUFFIXES:
            stem, suffixes = stem.rpartition("-")[0], [last, *suffixes]
        rule = cls._named(stem)
        if rule is None:
            known = nearest(stem, dict.fromkeys([*RULES.names(), *SELECTORS.names(), *METRICS.names()]))
            raise UnknownName(f"There is no rule {name!r}; {known}")
        changes = dict(_SUFFIXES[suffix] for suffix in suffixes)
        if len(changes) < len(suffixes):
            raise BadOption(f"The rule {name!r} contradicts itself; leave out one of {' and '.join(suffixes)}.")
        if "prefer" in changes and rule.selector == rule.metric:
            changes["selector"] = ORDER  # by the metric of that name
        elif "prefer" in changes and not rule.is_order:
            raise BadOption(
                f"{stem} does not prefer easy or hard patches, so {name!r} is invalid; leave out {changes['prefer']}."
            )
        return replace(rule, **changes)  # type: ignore[arg-type]

    @classmethod
    def _named(cls, stem: str) -> Rule | None:
        """The rule of a name without suffixes."""
        if stem in RULES:
            return RULES.get(stem).rule
        if stem in SELECTORS:
            metric = SELECTORS.get(stem).metric
            return cls(metric, METRICS.get(metric).keeps, False, stem)
        return cls(stem, METRICS.get(stem).keeps, balanced=False) if stem in METRICS else None

    @property
    def name(self) -> str:
        """The shortest name that `parse` reads as this rule."""
        if self == YOCO:
            return "yoco"
        stem = self.metric if self.is_order else self.selector
        usual = METRICS.get(self.metric).keeps
        prefer = f"-{self.prefer}" if self.is_order and (self.prefer != usual or stem in SELECTORS) else ""
        return f"{stem}{prefer}{'-balanced' if self.balanced else ''}"

    @property
    def is_order(self) -> bool:
        return self.selector == ORDER

    @property
    def reads(self) -> Reads:
        """What it selects by: scores, features of the trained network, or positions in the stored order."""
        return "scores" if self.is_order else SELECTORS.get(self.selector).reads

    @property
    def samples(self) -> bool:
        """Whether a seed decides what it keeps, besides the scores."""
        return self.metric == "random" if self.is_order else SELECTORS.get(self.selector).stream is not None

    def preference(self, data: CondensedSet, count: int) -> Prefer:
        """Which patches it prefers when keeping `count` of a set."""
        if self.prefer != "auto":
            return self.prefer
        return better_preference(count, len(data), images_per_class(data, len(data)))

    def rows(
        self, data: CondensedSet, count: int, *, features: NDArray[Any] | None = None, seed: int = 0
    ) -> NDArray[np.int64]:
        """The `count` patches to keep, by the scores of a set or by `features` [N, d]: best first by an order, else ascending.

        Rows are different, unless the selector repeats some.

        With balance, the counts of the classes differ by at most one, unless a class has no more patches; the remainder goes to
        the first classes. `seed` is for rules that sample.
        """
        if not 0 < count <= len(data):
            raise BadOption(f"A rule keeps from 1 to {plural(len(data), 'patch')}, the size of the set, not {count}.")
        if self.is_order:
            return self._order(data, count)[:count]
        if self.balanced:
            counts = balanced_counts(data.labels, count, len(data.classes))
            return self.rows_per_class(data, counts, features=features, seed=seed)
        return np.sort(self._picker(data, count, features, seed)(_by_origin(data), count))

    def rows_per_class(
        self, data: CondensedSet, counts: NDArray[np.int64], *, features: NDArray[Any] | None = None, seed: int = 0
    ) -> NDArray[np.int64]:
        """The patches to keep, given how many of each class, `[C]`: best first by an order, else ascending."""
        sizes = data.counts()
        if counts.shape != sizes.shape or (counts > sizes).any() or (counts < 0).any() or not counts.any():
            raise BadOption(f"The classes have {sizes.tolist()} patches; {counts.tolist()} cannot be kept of them.")
        if self.is_order:
            order = self._order(data, int(counts.sum()))
            labels = data.labels[order]
            return order[rank_within_class(labels) < counts[labels]]
        rows = _by_origin(data)
        members = np.split(rows[np.argsort(data.labels[rows], kind="stable")], np.cumsum(sizes)[:-1])
        pick = self._picker(data, int(counts.sum()), features, seed)
        return np.sort(np.concatenate([pick(rows, int(some)) for rows, some in zip(members, counts, strict=True)]))

    def _order(self, data: CondensedSet, count: int) -> Rows:
        return order_rows(
            self._scores(data),
            data.labels,
            easy=METRICS.get(self.metric).easy,
            prefer=self.preference(data, count),
            balanced=self.balanced,
            index=data.origin,
            ties=METRICS.get(self.metric).ties,
        )

    def _picker(
        self, data: CondensedSet, total: int, features: NDArray[Any] | None, seed: int
    ) -> Callable[[Rows, int], Rows]:
        """A function that picks some of the given rows, in a selection of `total` patches."""
        info = SELECTORS.get(self.selector)
        if self.reads == "positions":
            values: NDArray[Any] | None = np.arange(len(data))
        else:
            values = features if self.reads == "features" else self._scores(data)
        if values is None:
            raise BadOption(f"The rule {self.name!r} selects by features of a trained network; pass `features`.")
        rng = None if info.stream is None else numpy_generator(seed, info.stream)
        return lambda rows, some: rows[info.pick_rows(values[rows], some, data=data, total=total, rng=rng)]

    def _scores(self, data: CondensedSet) -> NDArray[np.float32]:
        if self.metric not in data.scores:
            raise BadOption(f"{data.name} has no scores by {self.metric!r} to select by; score it first.")
        return data.scores[self.metric]


def _by_origin(data: CondensedSet) -> Rows:
    """All rows in the order of their origin, `[N]`, so that the stored order does not matter."""
    return np.argsort(data.origin, kind="stable")


@dataclass(frozen=True)
class RuleInfo:
    name: str
    summary: str
    rule: Rule


def as_rule(rule: str | Rule | RuleInfo) -> Rule:
    """A rule, given itself, by its entry in `RULES` or by its name."""
    if isinstance(rule, RuleInfo):
        return rule.rule
    return rule if isinstance(rule, Rule) else Rule.parse(rule)


YOCO = Rule("lbpe", "easy", balanced=True)

# The rows of the paper's tables; every other metric and selector is a rule, too.
RULES: Registry[RuleInfo] = Registry("rules")
RULES.add(RuleInfo("yoco", "the paper's rule: lowest LBPE, balanced classes", YOCO))
RULES.add(RuleInfo("random", "random", Rule("random", balanced=False)))
RULES.add(RuleInfo("random-balanced", "random, balanced classes", Rule("random")))
RULES.add(RuleInfo("ssp", SELECTORS.get("ssp").summary, Rule("ssp", balanced=False, selector="ssp")))
RULES.add(RuleInfo("entropy", "highest entropy", Rule("entropy", "hard", balanced=False)))
RULES.add(RuleInfo("aum", "lowest area under the margin", Rule("aum", "hard", balanced=False)))
RULES.add(RuleInfo("forgetting", "most forgetting events", Rule("forgetting", "hard", balanced=False)))
RULES.add(RuleInfo("el2n", "highest EL2N", Rule("el2n", "hard", balanced=False)))
RULES.add(RuleInfo("ccs", SELECTORS.get("ccs").summary, Rule("el2n", "hard", False, "ccs")))
RULES.add(RuleInfo("ccs-fixed", SELECTORS.get("ccs-fixed").summary, Rule("el2n", "hard", False, "ccs-fixed")))
RULES.add(RuleInfo("ssp-fixed", SELECTORS.get("ssp-fixed").summary, Rule("ssp", "easy", False, "ssp-fixed")))
