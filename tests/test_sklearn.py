"""`CoresetSelector`: rules over plain arrays, as an estimator of scikit-learn."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from condense_once import BadOption
from condense_once.metrics import METRICS
from condense_once.metrics.herding import herding
from condense_once.selection.selectors.ssp import ssp_rows
from condense_once.sklearn import CoresetSelector
from condense_once.train.seeds import Stream, numpy_generator

# scikit-learn expects of `transform` a row for every row of any array. This one selects rows of the array it was fitted to.
SELECTS_ROWS = {
    "check_transformer_general": "`transform` returns fewer rows than it is given",
    "check_transformer_data_not_an_array": "`transform` returns fewer rows than it is given",
    "check_methods_sample_order_invariance": "it compares row by row, in another order, what `transform` returns",
    "check_methods_subset_invariance": "it transforms batches of the array, of which only the whole was fitted",
    "check_fit_idempotent": "it transforms other rows than those of the fit",
}


@pytest.fixture
def blobs(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Sixty points of three classes, of unequal size."""
    labels = np.repeat(["a", "b", "c"], [30, 20, 10])
    centres = {"a": (0, 0), "b": (6, 0), "c": (0, 6)}
    return np.array([centres[label] for label in labels]) + rng.normal(size=(60, 2)), labels


def test_it_is_an_estimator_but_for_the_checks_that_expect_as_many_rows() -> None:
    results = check_estimator(CoresetSelector(), expected_failed_checks=SELECTS_ROWS, on_skip=None)
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(SELECTS_ROWS)
    assert sum(result["status"] == "passed" for result in results) > 30


def test_herding_keeps_the_same_number_of_every_class(blobs: tuple[NDArray[np.float64], NDArray[np.str_]]) -> None:
    x, y = blobs
    selector = CoresetSelector("herding-balanced", n_samples_to_select=12).fit(x, y)
    numbers = np.unique(y, return_inverse=True)[1]
    expected = sorted(
        row for c in range(3) for row in sorted(np.flatnonzero(numbers == c), key=herding(x, numbers).item)[:4]
    )
    assert selector.get_support(indices=True).tolist() == expected
    assert (selector.transform(x) == x[expected]).all()
    rows, labels = selector.fit_resample(x, y)
    assert (rows == x[expected]).all()
    assert labels.tolist() == ["a"] * 4 + ["b"] * 4 + ["c"] * 4


def test_of_an_order_the_first_rows_are_the_smaller_coreset(
    blobs: tuple[NDArray[np.float64], NDArray[np.str_]],
) -> None:
    large, small = (CoresetSelector("k-center-balanced", n_samples_to_select=n).fit(*blobs).ranking_ for n in (30, 9))
    assert large[:9].tolist() == small.tolist()


@pytest.mark.parametrize(
    "rule", ["random", "moderate", "ssp-easy-balanced", "herding+k-center", "k-center-hard", "ssp"]
)
def test_rules_of_features_select_as_many_as_asked(
    rule: str, blobs: tuple[NDArray[np.float64], NDArray[np.str_]]
) -> None:
    selector = CoresetSelector(rule, n_samples_to_select=0.2, random_state=4)
    first = selector.fit(*blobs).get_support(indices=True)
    assert len(first) == 12
    assert (clone(selector).fit(*blobs).get_support(indices=True) == first).all()


def test_the_selector_ssp_reads_the_columns(blobs: tuple[NDArray[np.float64], NDArray[np.str_]]) -> None:
    x, y = blobs
    kept = CoresetSelector("ssp", n_samples_to_select=6, random_state=2).fit(x, y).get_support(indices=True)
    assert kept.tolist() == np.sort(ssp_rows(x, 6, numpy_generator(2, Stream.SSP))).tolist()


def test_a_classifier_gives_probabilities(blobs: tuple[NDArray[np.float64], NDArray[np.str_]]) -> None:
    x, y = blobs
    selector = CoresetSelector("entropy", n_samples_to_select=5, estimator=LogisticRegression()).fit(x, y)
    p = LogisticRegression().fit(x, y).predict_proba(x)
    hardest = np.argsort((p * np.log(p + 1e-10)).sum(1), kind="stable")[:5]
    assert set(selector.ranking_.tolist()) == set(hardest.tolist())
    with pytest.raises(BadOption, match="pass a classifier as `estimator`"):
        CoresetSelector("entropy").fit(x, y)


def test_rules_of_networks_are_refused(blobs: tuple[NDArray[np.float64], NDArray[np.str_]]) -> None:
    trained = {"dynamics", "clean_dynamics", "subset_runs"}
    refused = [metric.name for metric in METRICS if metric.needs & trained]
    assert {"lbpe", "aum", "memorization"} <= set(refused)
    for rule in [*refused, "yoco", "ccs", "stored"]:
        with pytest.raises(BadOption, match="not an array"):
            CoresetSelector(rule).fit(*blobs)


@pytest.mark.parametrize("count", [0, -1, 61, 0.0, 1.5, True, "all"])
def test_impossible_counts_are_refused(count: object, blobs: tuple[NDArray[np.float64], NDArray[np.str_]]) -> None:
    with pytest.raises(BadOption, match="`n_samples_to_select` must be from 1 to 60"):
        CoresetSelector(n_samples_to_select=count).fit(*blobs)  # type: ignore[arg-type]


def test_another_array_is_refused(blobs: tuple[NDArray[np.float64], NDArray[np.str_]]) -> None:
    with pytest.raises(BadOption, match="59 rows, but the selector was fitted to 60"):
        CoresetSelector().fit(*blobs).transform(blobs[0][1:])


def test_nothing_else_imports_scikit_learn() -> None:
    program = (
        "import sys, pkgutil, importlib, condense_once\n"
        "for name in condense_once.__all__: getattr(condense_once, name)\n"
        "for found in pkgutil.walk_packages(condense_once.__path__, 'condense_once.'):\n"
        "    if found.name not in ('condense_once.sklearn', 'condense_once.__main__'):\n"
        "        importlib.import_module(found.name)\n"
        "print('sklearn' in sys.modules, 'datasets' in sys.modules, 'huggingface_hub' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == ["False"] * 3
