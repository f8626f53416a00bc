"""For scikit-learn: an estimator that selects rows of an array by any rule that needs no network. Needs the extra `sklearn`.

>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> selector = CoresetSelector("herding-balanced", n_samples_to_select=15).fit(X, y)
>>> selector.transform(X).shape, y[selector.get_support()].tolist()
((15, 4), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2])
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.errors import BadOption, MissingExtra
from condense_once.metrics import METRICS, MetricConfig, ScoringRun
from condense_once.selection.rule import Rule, as_rule

try:
    from sklearn.base import BaseEstimator, clone
    from sklearn.utils import TransformerTags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("condense_once.sklearn", "sklearn") from None

FROM_ROWS = frozenset({"features"})  # what the rows of an array are …
FROM_CLASSIFIER = frozenset({"probabilities"})  # … and what a classifier adds


class CoresetSelector(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Select a coreset: the rows of `X` that a rule keeps.

    Args:
        rule: the name of a rule, as for `condense_once.select`, or a `Rule`. Its metric must need features only, which the
            columns of `X` are (`herding`, `k-center`, `moderate`, `ssp`), nothing (`random`), or the probabilities of
            `estimator` (`entropy`, `grand`). Metrics of training dynamics, such as YOCO's, need a network: use `select`.
        n_samples_to_select: how many rows to keep: a number, or a fraction of them, rounded down but at least one.
        estimator: a classifier with `predict_proba`, a clone of which is fitted for metrics that need probabilities.
        random_state: the seed of rules that sample.

    Attributes:
        support_: `[n]` whether a row is kept.
        ranking_: `[k]` the rows kept: best first if the rule is an order, so that a prefix is a smaller coreset; else ascending.
        scores_: `[n]` the metric's score of each row.
        n_features_in_, feature_names_in_: as always.

    Rows are selected, not columns, so `transform` keeps the rows of the array that `fit` has seen, and is for that array
    only; `fit_resample` returns rows and labels together, as samplers of imbalanced-learn do. Without `y` all rows are of one
    class.
    """

    def __init__(
        self,
        rule: str | Rule = "herding-balanced",
        *,
        n_samples_to_select: int | float = 0.5,
        estimator: Any = None,
        random_state: int = 0,
    ) -> None:
        self.rule = rule
        self.n_samples_to_select = n_samples_to_select
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide which rows to keep."""
        rule = self._rule()
        if y is None:
            X, labels = validate_data(self, X, dtype=np.float64), None
        else:
            X, labels = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(labels)
        rows, count = _stand_in(X, labels), self._count(len(X))
        run = ScoringRun(rows.labels, features=X, probabilities=self._probabilities(rule, X, labels))
        config = MetricConfig(seed=self._seed(), ssp_clusters=min(len(rows.classes), len(X)))
        self.scores_: NDArray[np.float32] = METRICS.get(rule.metric).score(run, config)
        scored = replace(rows, scores={rule.metric: self.scores_})
        self.ranking_: NDArray[np.int64] = rule.rows(scored, count, features=X, seed=config.seed)
        self.support_: NDArray[np.bool_] = np.zeros(len(X), bool)
        self.support_[self.ranking_] = True
        return self

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Whether each row is kept, `[n]`; or with `indices` which rows, ascending."""
        check_is_fitted(self)
        return np.flatnonzero(self.support_) if indices else self.support_

    def transform(self, X: Any) -> NDArray[Any]:
        """The kept rows of the array that `fit` has seen, in their order there."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=None)
        if len(X) != len(self.support_):
            raise BadOption(
                f"`X` has {len(X)} rows, but the selector was fitted to {len(self.support_)}; fit it to this array."
            )
        kept: NDArray[Any] = X[self.support_]
        return kept

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[Any]:
        """Fit, and return the kept rows."""
        return self.fit(X, y).transform(X)

    def fit_resample(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Fit, and return the kept rows and their labels."""
        return self.fit_transform(X, y), np.asarray(y)[self.support_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags()
        return tags

    def _rule(self) -> Rule:
        rule = as_rule(self.rule)
        needs = METRICS.get(rule.metric).needs - FROM_ROWS
        if rule.reads == "positions" or needs - FROM_CLASSIFIER:
            raise BadOption(
                f"The rule {rule.name!r} needs a network or a stored set, not an array; choose another `rule`, such as"
                " 'herding-balanced', or use condense_once.select."
            )
        if needs and self.estimator is None:
            raise BadOption(f"The rule {rule.name!r} needs probabilities; pass a classifier as `estimator`.")
        return rule

    def _count(self, rows: int) -> int:
        asked = self.n_samples_to_select
        if isinstance(asked, Integral) and not isinstance(asked, bool) and 0 < int(asked) <= rows:
            return int(asked)
        if isinstance(asked, Real) and not isinstance(asked, Integral) and 0 < float(asked) <= 1:
            return max(1, int(float(asked) * rows))
        raise BadOption(
            f"`n_samples_to_select` must be from 1 to {rows}, or a fraction above 0 up to 1.0, not {asked!r}."
        )

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral) and int(self.random_state) >= 0:
            return int(self.random_state)
        raise BadOption(f"`random_state` must be an integer from 0 on, not {self.random_state!r}.")

    def _probabilities(self, rule: Rule, X: Any, labels: Any) -> NDArray[np.float32] | None:
        if not METRICS.get(rule.metric).needs & FROM_CLASSIFIER:
            return None
        if labels is None:
            raise BadOption(f"The rule {rule.name!r} needs probabilities, and these need labels; pass `y`.")
        predicted: NDArray[np.float32] = clone(self.estimator).fit(X, labels).predict_proba(X).astype(np.float32)
        return predicted


def _stand_in(X: NDArray[Any], labels: NDArray[Any] | None) -> CondensedSet:
    """A set of one black pixel per row, with the labels: all that a rule reads of a set besides scores and features."""
    values = np.zeros(len(X), int) if labels is None else labels
    known, numbers = np.unique(values, return_inverse=True)
    return CondensedSet(
        cells=np.zeros((len(X), 1, 1, 1), np.uint8),
        labels=numbers.astype(np.int64),
        classes=tuple(f"class {number}" for number in range(len(known))),
        size=(1, 1),
        factor=1,
        space=Space("pixels", (0.5,), (0.5,)),
        origin=np.arange(len(X)),
        name="array",
    )
