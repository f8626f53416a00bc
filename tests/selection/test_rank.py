from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from condense_once.condensed.budget import Budget
from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import resize
from condense_once.condensed.verify import verify
from condense_once.errors import BadOption, UnknownName
from condense_once.metrics import MetricConfig
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.score import score
from condense_once.metrics.scoring_run import record_scoring_run
from condense_once.selection.order import Prefer, order_rows
from condense_once.selection.rank import rank, rank_by_scores

NET = "convnet-d3-w32"
SHORT = MetricConfig(scoring_epochs=3, lbpe_epochs=Epochs.top(2, among=3), el2n_epochs=2)


def naive_order(scores: list[float], labels: list[int], low_first: bool, balanced: bool) -> list[int]:
    """Pick the best that is left, again and again; balanced, one of each class in turn."""
    left = list(range(len(scores)))
    picked: list[int] = []
    while left:
        pools = [[k for k in left if labels[k] == c] for c in sorted(set(labels))] if balanced else [left[:1] and left]
        for pool in pools:
            if pool:
                best = pool[0]
                for k in pool:
                    if scores[k] < scores[best] if low_first else scores[k] > scores[best]:
                        best = k
                picked.append(best)
                left = [k for k in left if k != best]
    return picked


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=25),
    easy=st.sampled_from(["low", "high"]),
    prefer=st.sampled_from(["easy", "hard"]),
    balanced=st.booleans(),
)
def test_an_order_equals_picking_the_best_again_and_again(
    rows: list[tuple[int, int]], easy: str, prefer: Prefer, balanced: bool
) -> None:
    scores, labels = (list(part) for part in zip(*rows, strict=True))
    got = order_rows(np.array(scores, float), np.array(labels), easy=easy, prefer=prefer, balanced=balanced)  # type: ignore[arg-type]
    assert got.tolist() == naive_order(scores, labels, (easy == "low") == (prefer == "easy"), balanced)


def test_a_ranked_set_is_the_same_patches_best_first(pixel_set: CondensedSet, tmp_path: Path) -> None:
    ranked = rank(pixel_set, net=NET, config=SHORT)
    np.testing.assert_array_equal(pixel_set.cells[ranked.origin], ranked.cells)
    assert ranked.labels[:6].tolist() == [0, 1, 2, 0, 1, 2]
    for label in range(3):
        assert (np.diff(ranked.scores["lbpe"][ranked.labels == label]) >= 0).all()
    save(ranked, tmp_path / "ranked.safetensors")
    assert verify(tmp_path / "ranked.safetensors") == []
    back = load(tmp_path / "ranked.safetensors")
    assert back.ranking is not None
    assert (back.ranking.metric, back.ranking.settings["lbpe"]) == ("lbpe", "top2/3")


def test_scores_are_those_of_the_metric_and_runs_are_averaged(pixel_set: CondensedSet) -> None:
    error = [record_scoring_run(pixel_set, ["el2n"], SHORT, net=NET, seed=seed).dynamics for seed in (0, 1)]
    expected = np.mean([run.error[:2].mean(0) for run in error if run is not None], axis=0)
    ranked = rank(pixel_set, "el2n", net=NET, config=SHORT, runs=2)
    np.testing.assert_allclose(ranked.scores["el2n"], expected[ranked.origin], rtol=1e-5)


@pytest.mark.parametrize(
    "metric", ["lbpe-clean", "aum", "forgetting", "entropy", "grand", "moderate", "herding", "random"]
)
def test_every_metric_that_one_run_serves_ranks(pixel_set: CondensedSet, metric: str) -> None:
    ranked = rank(pixel_set, metric, net=NET, config=SHORT, prefer="hard", balanced=False)
    assert sorted(ranked.origin.tolist()) == list(range(len(pixel_set)))
    assert metric in ranked.scores


def test_smaller_sets_are_prefixes_and_resizing_twice_is_resizing_once(pixel_set: CondensedSet) -> None:
    ranked = rank(pixel_set, net=NET, config=SHORT)
    one = resize(ranked, Budget(ipc=1))
    assert one.counts().tolist() == [4, 4, 4]
    np.testing.assert_array_equal(one.origin, ranked.origin[:12])
    np.testing.assert_array_equal(resize(resize(ranked, Budget(ipc=2)), Budget(ipc=1)).origin, one.origin)


def test_bad_requests_are_refused(pixel_set: CondensedSet) -> None:
    with pytest.raises(BadOption, match="`runs` must be at least 1"):
        rank(pixel_set, runs=0)
    with pytest.raises(UnknownName, match="'lbpe'"):
        rank(pixel_set, "lbpee")
    with pytest.raises(BadOption, match="not ranked"):
        resize(pixel_set, Budget(ipc=1))


def linear(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(math.prod(shape), classes))


def test_a_network_of_your_own_ranks_and_its_name_is_saved(pixel_set: CondensedSet, tmp_path: Path) -> None:
    ranked = rank(pixel_set, net=linear, config=SHORT)
    save(ranked, tmp_path / "ranked.safetensors")
    back = load(tmp_path / "ranked.safetensors")
    assert back.ranking is not None
    assert back.ranking.settings["net"] == "linear"
    assert back.provenance["scores"][0]["net"] == "linear"


def test_the_name_of_a_factory_does_not_identify_it_so_its_scores_are_not_reused(pixel_set: CondensedSet) -> None:
    ranked = rank(pixel_set, net=linear, config=SHORT)
    assert score(ranked, ["lbpe"], net=linear, config=SHORT) is not ranked
    assert score(rank(pixel_set, "random"), ["random"], net=linear).ranking is not None  # needs no network


def test_sets_are_ranked_by_name_and_by_stored_scores(pixel_set: CondensedSet) -> None:
    assert rank("cifar10-real-ipc10", "random", seed=3).origin.tolist() != list(range(400))
    again = rank_by_scores("cifar10-idc-ipc10", "lbpe")
    assert again.origin.tolist() == load("cifar10-idc-ipc10").origin.tolist()
    with pytest.raises(BadOption, match="has no scores by 'aum'; score it first"):
        rank_by_scores(pixel_set, "aum")
