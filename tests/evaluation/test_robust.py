"""DD-Ranking's scores against a naive oracle, and its tensors by the documented layout."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from condense_once import BadOption, evaluate, export_set, robust_scores
from condense_once.condensed.coreset import coreset
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.evaluation.protocols import Protocol
from condense_once.evaluation.robust import (
    augmentation_robust,
    label_robust,
    random_images,
    without_augmentation,
)
from condense_once.train.recipe import Recipe

RECIPE = Recipe(epochs=2, batch=20)
BRIEF = Protocol("two epochs", "", RECIPE, RECIPE)
NET = "convnet-d1-w8"


def oracle(difference: float) -> float:
    low, high = math.e**-1, math.e**1
    return (math.e**difference - low) / (high - low)


def test_scores_are_those_of_the_formula() -> None:
    assert label_robust(0.6, 0.4, 0.55, 0.85) == pytest.approx(oracle((0.6 - 0.4) / 2 - (0.85 - 0.55) / 2))
    assert label_robust(0.6, 0.4, 0.55, 0.85, weight=0.2) == pytest.approx(oracle(0.2 * 0.2 - 0.8 * 0.3))
    assert augmentation_robust(0.6, 0.4, 0.5, 0.45) == pytest.approx(oracle((0.2 + 0.05) / 2))
    assert (label_robust(1, 0, 1, 1, weight=1), label_robust(0, 1, 0, 1, weight=1)) == pytest.approx((1, 0))


@pytest.fixture
def tested(source: Source) -> Source:
    return replace(source, splits={**source.splits, "test": source.train})


def test_every_accuracy_is_that_of_an_evaluation(tested: Source) -> None:
    data = coreset(tested, np.arange(30))
    found = robust_scores(data, tested, full_accuracy=0.9, protocol=BRIEF, net=NET, repeats=2, seed=5)
    by_hand = evaluate(data, tested, protocol=BRIEF, net=NET, repeats=2, seed=5)
    assert found.syn_any == tuple(run.accuracy for run in by_hand.runs) == found.syn_hard
    plain = evaluate(data, tested, protocol=without_augmentation(BRIEF), net=NET, repeats=2, seed=5)
    assert found.syn_plain == tuple(run.accuracy for run in plain.runs)
    second = evaluate(random_images(data, tested, 6), tested, protocol=BRIEF, net=NET, repeats=1, seed=5)
    assert found.random_any[1] == second.runs[0].accuracy
    expected = [
        oracle((syn - random) / 2 - (0.9 - syn) / 2)
        for syn, random in zip(found.syn_any, found.random_any, strict=True)
    ]
    assert found.lrs[0] == pytest.approx(sum(expected) / 2)
    assert found.ars[1] >= 0


def test_without_the_full_accuracy_there_is_no_label_robust_score(tested: Source) -> None:
    found = robust_scores(coreset(tested, np.arange(9)), tested, protocol=BRIEF, net=NET, repeats=1)
    assert math.isnan(found.lrs[0])
    assert 0 <= found.ars[0] <= 1
    with pytest.raises(BadOption, match="divide percents by 100"):
        robust_scores(coreset(tested, np.arange(9)), tested, full_accuracy=85)


def test_random_images_are_as_many_as_the_set_stores(
    pixel_set: CondensedSet, make_source: Callable[..., Source]
) -> None:
    source = replace(make_source(), classes=("cat", "ant", "bee"))
    sampled = random_images(pixel_set, source, 0)
    assert sampled.counts().tolist() == [2, 2, 2]
    assert sampled.space == pixel_set.space
    names = np.array(source.classes)[source.train.labels[sampled.origin]]
    assert names.tolist() == [pixel_set.classes[label] for label in sampled.labels]
    assert sampled.origin.tolist() != random_images(pixel_set, source, 1).origin.tolist()
    with pytest.raises(BadOption, match="has 1 training image of 'ant', fewer than the 2"):
        random_images(pixel_set, replace(make_source(each=1), classes=("ant", "bee", "cat")), 0)


def test_tensors_for_ddranking_are_normalised_and_class_after_class(
    pixel_set: CondensedSet, soft_set: CondensedSet, tmp_path: Path
) -> None:
    notes = export_set(pixel_set, tmp_path / "a.ddranking")
    images, labels = (torch.load(tmp_path / "a.ddranking" / f"{name}.pt") for name in ("images", "labels"))
    assert (images.dtype, images.shape) == (torch.float32, (24, 3, 8, 8))
    assert labels.tolist() == [label for label in range(3) for _ in range(8)]  # as it numbers them itself, with ipc = 8
    order = np.argsort(pixel_set.labels, kind="stable")
    assert np.allclose(images.numpy(), pixel_set.inputs()[order], atol=1e-6)
    assert "ipc=8" in notes[0]
    bench, numbers = torch.load(tmp_path / "a.ddranking" / "dc.pt")["data"][-1]  # as DC-BENCH reads sets of DM
    assert torch.equal(bench, images)
    assert torch.equal(numbers, labels)
    with pytest.raises(BadOption, match="as many images of every class"):
        export_set(pixel_set[:5], tmp_path / "b.ddranking")
    soft = replace(soft_set[np.array([0])], label_kind="logits", classes=soft_set.classes)
    balanced = replace(soft, labels=np.array([0]), classes=("only",), soft_labels=np.float32([[2.0]]))
    export_set(balanced, tmp_path / "c.ddranking")
    assert torch.load(tmp_path / "c.ddranking" / "soft_labels.pt").tolist() == [[1.0]]
