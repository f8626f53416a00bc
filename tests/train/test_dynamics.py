from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from condense_once.condensed.set import CondensedSet
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption
from condense_once.train.dynamics import RECIPE, Recorder, record_run

NET = "convnet-d3-w32"


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


@pytest.mark.parametrize("epochs", [0, -1, 1001])
def test_more_epochs_than_the_recipe_has_cannot_be_recorded(pixel_set: CondensedSet, epochs: int) -> None:
    with pytest.raises(BadOption, match="1000 epochs"):
        record_run(pixel_set, epochs=epochs, net=NET)


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


def test_a_run_is_recorded_up_to_the_epoch_asked_for(pixel_set: CondensedSet) -> None:
    seen: list[tuple[int, int]] = []
    made = record_run(pixel_set, epochs=3, net=NET, progress=lambda *now: seen.append(now)).training
    assert made.error.shape == (3, len(pixel_set))
    assert (made.error > 0).all()
    assert seen == [(1, 3), (2, 3), (3, 3)]
    np.testing.assert_array_equal(made.error, record_run(pixel_set, epochs=3, net=NET).training.error)


def test_clean_passes_see_the_network_after_each_epoch_and_do_not_disturb_it(pixel_set: CondensedSet) -> None:
    plain, both = (record_run(pixel_set, epochs=3, net="convnet-d3-bn", clean=clean) for clean in (False, True))
    assert plain.clean is None
    assert both.clean is not None
    np.testing.assert_array_equal(plain.training.error, both.training.error)
    p = both.trainer.logits(both.inputs).softmax(1).numpy()
    expected = p[np.arange(len(pixel_set)), pixel_set.labels]
    np.testing.assert_allclose(both.clean.probability[-1], expected, atol=1e-6)


def test_a_longer_run_begins_like_a_shorter_one(pixel_set: CondensedSet) -> None:
    """The rate is constant for two thirds of the recipe, so stopping early changes nothing that was seen."""
    short, long = (record_run(pixel_set, epochs=epochs, net=NET).training for epochs in (2, 4))
    np.testing.assert_array_equal(short.error, long.error[:2])


def linear(shape: tuple[int, int, int], classes: int) -> nn.Module:
    return nn.Sequential(
        nn.AvgPool2d(8), nn.Flatten(), nn.Linear(shape[0] * (shape[1] // 8) * (shape[2] // 8), classes)
    )


@pytest.mark.parametrize(("side", "augmentation"), [(64, RECIPE.augmentation), (72, "imagenet")])
def test_large_images_are_augmented_as_in_evaluation(rng: np.random.Generator, side: int, augmentation: str) -> None:
    images = ArraySplit(rng.integers(0, 256, (6, 3, side, side), dtype=np.uint8), np.arange(6) % 2)
    source = Source("photographs", ("cat", "dog"), (0.5,) * 3, (0.25,) * 3, {"train": images})
    made = record_run(source, epochs=1, net=linear).training
    assert made.settings["recipe"]["augmentation"] == augmentation
    expected = record_run(source, epochs=1, net=linear, recipe=replace(RECIPE, augmentation=augmentation)).training
    np.testing.assert_array_equal(made.error, expected.error)
