"""Metrics of a trained network. Oracles are plain loops over one patch at a time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.metrics.entropy import entropy
from condense_once.metrics.grand import grand
from condense_once.metrics.herding import herding
from condense_once.metrics.k_center import k_center
from condense_once.metrics.moderate import moderate
from condense_once.metrics.random import random_scores
from condense_once.metrics.scoring_run import final_outputs
from condense_once.metrics.ssp import ssp
from condense_once.nets import make_net

Matrix = Sequence[Sequence[float]]
Scored = Callable[[Any, Any], NDArray[np.float32]]


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


def centre(points: Matrix) -> list[float]:
    return [mean(column) for column in zip(*points, strict=True)]


def plain_entropy(probabilities: Matrix) -> list[float]:
    return [-math.fsum(p * math.log(p) for p in row if p > 0) for row in probabilities]


def plain_grand(probabilities: Matrix, features: Matrix, labels: Sequence[int]) -> list[float]:
    """The gradient is written out, entry by entry: classes for the bias, classes × dimensions for the weight."""
    scores = []
    for p, f, y in zip(probabilities, features, labels, strict=True):
        bias = [p[k] - (1 if k == y else 0) for k in range(len(p))]
        weight = [slope * value for slope in bias for value in f]
        scores.append(math.sqrt(math.fsum(entry**2 for entry in bias + weight)))
    return scores


def plain_moderate(features: Matrix, labels: Sequence[int]) -> list[float]:
    scores = []
    for f, y in zip(features, labels, strict=True):
        members = [g for g, label in zip(features, labels, strict=True) if label == y]
        middle = centre(members)
        scores.append(abs(distance(f, middle) - statistics.median(distance(g, middle) for g in members)))
    return scores


def plain_herding(features: Matrix, labels: Sequence[int]) -> list[float]:
    scores = [0.0] * len(labels)
    for y in set(labels):
        left = [x for x, label in enumerate(labels) if label == y]
        target = centre([features[x] for x in left])
        picked: list[int] = []
        while left:
            gaps = [distance(centre([features[p] for p in [*picked, x]]), target) for x in left]
            best = left[gaps.index(min(gaps))]
            scores[best] = len(picked) / len(labels)
            picked.append(best)
            left.remove(best)
    return scores


def plain_k_center(features: Matrix, labels: Sequence[int]) -> list[float]:
    scores = [0.0] * len(labels)
    for y in set(labels):
        left = [x for x, label in enumerate(labels) if label == y]
        middle = centre([features[x] for x in left])
        picked: list[int] = []
        while left:
            if picked:
                nearest = [min(distance(features[x], features[p]) for p in picked) for x in left]
                best = left[nearest.index(max(nearest))]
            else:
                gaps = [distance(features[x], middle) for x in left]
                best = left[gaps.index(min(gaps))]
            scores[best] = len(picked) / len(labels)
            picked.append(best)
            left.remove(best)
    return scores


def outputs_of(seed: int, patches: int) -> tuple[Any, Any, Any]:
    """Probabilities of 3 classes, some of them 0; features of 4 dimensions; labels in no order, maybe not of all classes."""
    rng = np.random.default_rng(seed)
    odds = rng.random((patches, 3)) * (rng.random((patches, 3)) < 0.8) + np.eye(3)[rng.integers(0, 3, patches)] * 0.1
    features = rng.normal(size=(patches, 4)).astype(np.float32)
    return (odds / odds.sum(1, keepdims=True)).astype(np.float32), features, rng.integers(0, 3, patches)


outputs = st.builds(outputs_of, st.integers(0, 2**32), st.integers(1, 14))


@settings(deadline=None)  # the machine may be busy
@given(outputs)
def test_each_equals_plain_loops(seen: tuple[Any, Any, Any]) -> None:
    probabilities, features, labels = seen
    p, f, y = (array.tolist() for array in seen)
    np.testing.assert_allclose(entropy(probabilities), plain_entropy(p), atol=1e-6)
    np.testing.assert_allclose(grand(probabilities, features, labels), plain_grand(p, f, y), rtol=1e-5)
    np.testing.assert_allclose(moderate(features, labels), plain_moderate(f, y), atol=1e-5)
    np.testing.assert_allclose(k_center(features, labels), plain_k_center(f, y), rtol=1e-6)
    np.testing.assert_allclose(herding(features, labels), plain_herding(f, y), rtol=1e-6)


@settings(deadline=None)  # the machine may be busy
@given(outputs, st.permutations(range(14)))
def test_permuting_the_patches_permutes_the_scores(seen: tuple[Any, Any, Any], numbers: list[int]) -> None:
    probabilities, features, labels = seen
    order = np.array([x for x in numbers if x < len(labels)])
    np.testing.assert_array_equal(entropy(probabilities[order]), entropy(probabilities)[order])
    grands = grand(probabilities, features, labels)
    np.testing.assert_allclose(grand(probabilities[order], features[order], labels[order]), grands[order], rtol=1e-6)
    np.testing.assert_allclose(moderate(features[order], labels[order]), moderate(features, labels)[order], atol=1e-6)
    k = (len(labels) + 2) // 3
    scores = ssp(features, k, np.random.default_rng(5))
    np.testing.assert_array_equal(ssp(features[order], k, np.random.default_rng(5)), scores[order])


def test_permuting_the_patches_permutes_the_picks(rng: np.random.Generator) -> None:
    """Features in general position: copies are picked in the order they come in."""
    features, labels = rng.normal(size=(60, 5)), rng.integers(0, 3, 60)
    order = rng.permutation(60)
    for picks in (k_center, herding):
        np.testing.assert_array_equal(picks(features[order], labels[order]), picks(features, labels)[order])


@pytest.mark.parametrize("picks", [herding, k_center])
def test_picks_are_places_within_the_class(picks: Scored, rng: np.random.Generator) -> None:
    labels = np.array([2, 0, 2, 2, 0, 7])
    scores = picks(rng.normal(size=(6, 3)), labels)
    for label, count in ((0, 2), (2, 3), (7, 1)):
        np.testing.assert_allclose(np.sort(scores[labels == label]), np.arange(count) / 6, rtol=1e-6)
    assert picks(np.ones((4, 2)), np.zeros(4, int)).tolist() == [0, 0.25, 0.5, 0.75]  # copies: by number


def test_the_first_herding_picks_have_the_mean_of_the_class(rng: np.random.Generator) -> None:
    features, labels = rng.normal(size=(200, 4)), np.zeros(200, int)
    first = features[herding(features, labels) < 20 / 200]
    random = features[random_scores(200, rng) < 20 / 200]
    off = [np.linalg.norm(part.mean(0) - features.mean(0)) for part in (first, random)]
    assert off[0] < off[1] / 3


def test_golden_values() -> None:
    assert entropy(np.full((1, 10), 0.1, np.float32))[0] == pytest.approx(2.302585, abs=1e-6)
    assert entropy(np.eye(3)).tolist() == [0, 0, 0]
    zero = np.zeros((3, 2))
    p = np.array([[0.7, 0.2, 0.1], [1, 0, 0], [0, 1, 0]])  # without features the gradient is that of the bias alone
    assert grand(p, zero, np.zeros(3, int)).tolist() == pytest.approx([math.sqrt(0.14), 0, math.sqrt(2)], abs=1e-6)


def test_grand_is_the_gradient_that_torch_finds(rng: np.random.Generator) -> None:
    layer = torch.nn.Linear(4, 3)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.from_numpy(rng.normal(size=weight.shape)))
    features = torch.from_numpy(rng.normal(size=(5, 4)).astype(np.float32))
    labels = torch.tensor([0, 2, 1, 1, 0])
    expected = []
    for x in range(5):
        layer.zero_grad()
        torch.nn.functional.cross_entropy(layer(features[x : x + 1]), labels[x : x + 1]).backward()
        expected.append(math.sqrt(sum(float(weight.grad.square().sum()) for weight in layer.parameters())))
    probabilities = layer(features).softmax(1).detach().numpy()
    np.testing.assert_allclose(grand(probabilities, features.numpy(), labels.numpy()), expected, rtol=1e-5)


def test_random_scores_are_an_order_and_follow_the_generator() -> None:
    scores = random_scores(100, np.random.default_rng(1))
    np.testing.assert_allclose(np.sort(scores), np.arange(100) / 100, rtol=1e-6)
    np.testing.assert_array_equal(scores, random_scores(100, np.random.default_rng(1)))
    assert (scores != random_scores(100, np.random.default_rng(2))).any()


@pytest.mark.parametrize("own", [False, True])
def test_final_outputs_are_in_evaluation_mode_and_matches_the_network(own: bool, rng: np.random.Generator) -> None:
    def factory(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
        body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(math.prod(shape), 6), torch.nn.Dropout(0.5))
        return torch.nn.Sequential(body, torch.nn.Linear(6, classes))

    net = make_net(factory if own else "convnet-d3-bn", (1, 8, 8), 3, generator=torch.Generator().manual_seed(0))
    inputs = rng.normal(size=(130, 1, 8, 8)).astype(np.float32)  # more than one batch
    last = final_outputs(net, inputs, frozenset({"probabilities", "features"}))
    probabilities, features = last["probabilities"], last["features"]
    assert final_outputs(net, inputs, frozenset({"features"})).keys() == {"features"}
    assert net.training
    net.eval()
    whole = net(torch.from_numpy(inputs)).softmax(1)
    np.testing.assert_allclose(probabilities, whole.detach().numpy(), atol=1e-5)
    last = net[1] if own else net.classifier
    read = last(torch.from_numpy(features)).softmax(1)
    np.testing.assert_allclose(read.detach().numpy(), probabilities, atol=1e-5)


def test_wrong_arrays_are_refused_in_one_sentence() -> None:
    features, labels, p = np.ones((4, 3)), np.array([0, 1, 1, 0]), np.full((4, 2), 0.5)
    for scored in (moderate, herding, k_center):
        with pytest.raises(
            BadOption, match=r"Features must be a non-empty array \[patches, dimensions\], not \[4\]\.$"
        ):
            scored(features[:, 0], labels)
        with pytest.raises(BadOption, match="features contain NaN or infinity"):
            scored(np.full((4, 3), np.inf), labels)
        with pytest.raises(BadOption, match=r"one for each of 4 patches, not int64 \[3\]"):
            scored(features, labels[:3])
        with pytest.raises(BadOption, match="not float64"):
            scored(features, labels / 2)
    for logits in (p * 4, p - 1, p * np.nan):
        with pytest.raises(BadOption, match="pass softmax outputs, not logits"):
            entropy(logits)
    with pytest.raises(BadOption, match=r"\[patches, classes\]"):
        entropy(p[0])
    with pytest.raises(BadOption, match=r"Labels run from 0 to 2, but there are 2 classes\."):
        grand(p, features, labels * 2)
    with pytest.raises(BadOption, match=r"4 patches but 2 features\."):
        grand(p, features[:2], labels)
    with pytest.raises(BadOption, match="must be at least 1, not 0"):
        random_scores(0, np.random.default_rng(0))
