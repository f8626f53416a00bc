from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from condense_once.train.dynamics import RECIPE, RECIPE_LARGE, Recorder, recipe_for
from condense_once.train.recipe import Recipe


def record_one(probabilities: list[float], label: int) -> tuple[float, float, float, bool]:
    recorder = Recorder(torch.tensor([label]), epochs=1)
    recorder(0, torch.tensor([0]), torch.tensor([probabilities]).log())
    made = recorder.finish({})
    return made.error.item(), made.margin.item(), made.probability.item(), bool(made.correct.item())


@pytest.mark.parametrize(
    ("p", "label", "error", "margin", "correct"),
    [
        ([0.7, 0.2, 0.1], 0, math.sqrt(0.14), 0.5, True),
        ([1.0, 0.0, 0.0], 0, 0.0, 1.0, True),
        ([0.0, 1.0, 0.0], 0, math.sqrt(2), -1.0, False),
        ([0.2, 0.5, 0.3], 0, math.sqrt(0.64 + 0.25 + 0.09), -0.3, False),
    ],
)
def test_golden_values(p: list[float], label: int, error: float, margin: float, correct: bool) -> None:
    assert record_one(p, label) == (
        pytest.approx(error, abs=1e-4),
        pytest.approx(margin, abs=1e-6),
        pytest.approx(p[label], abs=1e-6),
        correct,
    )


def test_the_errors_of_easy_patches_keep_their_order() -> None:
    """They are the ones that are kept; a formula that cancels would make them all equal."""
    errors = [record_one([1 - small, small], 0)[0] for small in (1e-4, 2e-5, 1e-6)]
    assert errors == pytest.approx([math.sqrt(2) * small for small in (1e-4, 2e-5, 1e-6)], rel=0.05)


def test_what_is_recorded_equals_plain_loops(rng: np.random.Generator) -> None:
    logits = torch.from_numpy(3 * rng.normal(size=(4, 9, 5)))
    labels = torch.from_numpy(rng.integers(0, 5, 9))
    recorder = Recorder(labels, epochs=4)
    for epoch in range(4):
        for rows in torch.from_numpy(rng.permutation(9)).split(4):
            recorder(epoch, rows, logits[epoch, rows])
    made = recorder.finish({})
    for epoch in range(4):
        for patch in range(9):
            scale = sum(math.exp(v) for v in logits[epoch, patch].tolist())
            p = [math.exp(v) / scale for v in logits[epoch, patch].tolist()]
            y = int(labels[patch])
            others = [p[k] for k in range(5) if k != y]
            error = math.sqrt(sum((p[k] - (k == y)) ** 2 for k in range(5)))
            assert made.error[epoch, patch] == pytest.approx(error, abs=1e-5)
            assert made.margin[epoch, patch] == pytest.approx(p[y] - max(others), abs=1e-5)
            assert made.probability[epoch, patch] == pytest.approx(p[y], abs=1e-6)
            assert made.correct[epoch, patch] == (p[y] > max(others))


@pytest.mark.parametrize(("side", "recipe"), [(64, RECIPE), (65, RECIPE_LARGE)])
def test_large_images_are_augmented_as_in_evaluation(side: int, recipe: Recipe) -> None:
    assert recipe_for((3, side, side)) == recipe
