from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.evaluation import cost as evaluation_cost
from condense_once.evaluation.cost import estimate_evaluation
from condense_once.evaluation.protocols import Protocol
from condense_once.nets import make_net
from condense_once.train import cost
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.recipe import Recipe

NET = "convnet-d1-w8"
RECIPE = Recipe(epochs=30, batch=8)
TINY = Protocol("tiny", "for tests", RECIPE, RECIPE)
OFF = ComputeConfig(compilation="off", workers=2)
STEP = cost.StepTime(0.1, compiled=False)


def patches(count: int) -> CondensedSet:
    return CondensedSet.from_mosaics(
        np.zeros((count, 3, 8, 8), np.uint8),
        np.arange(count) % 2,
        factor=1,
        space=Space("pixels", (0.5,) * 3, (0.25,) * 3),
        classes=("a", "b"),
    )


@pytest.mark.parametrize(
    ("count", "repeats", "num_evals", "batches", "steps"),
    [
        (16, 1, 1, 2.0, 2),
        (16, 3, 1, 2.0, 2),  # two in parallel, then one
        (16, 4, 4, 2.0, 2),
        (20, 2, 1, 2.5, 3),  # half a batch takes half the time
        (17, 2, 1, 17 / 8, 2),  # a single image joins the batch before it
    ],
)
def test_time_is_that_of_all_batches_in_all_rounds(
    count: int, repeats: int, num_evals: int, batches: float, steps: int
) -> None:
    protocol = replace(TINY, num_evals=num_evals)
    made = estimate_evaluation(patches(count), 240, protocol=protocol, net=NET, repeats=repeats, compute=OFF, step=STEP)
    rounds = (repeats + 1) // 2
    one_training = 30 * batches * 0.1
    one_test = 240 / 8 * 0.1 / 3
    assert made.seconds == pytest.approx(rounds * (one_training + num_evals * one_test))
    assert made.steps == repeats * 30 * steps
    assert made.step_seconds == STEP.seconds


def test_a_batch_that_never_fills_is_timed_as_it_is() -> None:
    made = estimate_evaluation(patches(4), 0, protocol=TINY, net=NET, repeats=1, compute=OFF, step=STEP)
    assert (made.steps, made.seconds) == (30, pytest.approx(30 * 0.1))


def test_compiled_steps_are_quicker_but_compiling_takes_its_time() -> None:
    plain, compiled = (
        estimate_evaluation(patches(16), 0, protocol=TINY, net=NET, repeats=1, compute=OFF, step=step)
        for step in (STEP, replace(STEP, compiled=True))
    )
    assert compiled.seconds == pytest.approx(cost.COMPILING + cost.COMPILED * plain.seconds)


def test_memory_is_that_of_images_weights_and_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def memory(count: int, test_images: int, workers: int) -> int:
        compute = replace(OFF, workers=workers)
        made = estimate_evaluation(
            patches(count), test_images, protocol=TINY, net=NET, repeats=2, compute=compute, step=STEP
        )
        return made.bytes

    image = 4 * 3 * 8 * 8
    weights = 4 * sum(w.numel() for w in make_net(NET, (3, 8, 8), 2, generator=torch.Generator()).parameters())
    activations = 4 * (
        3 * 8 * 8 * 8 + 8 * 4 * 4 + 2
    )  # by convolution, norm and ReLU, by the pooling, by the classifier
    one = 3 * weights + 2 * 8 * activations
    assert memory(16, 100, 1) == 116 * image + one
    assert memory(16, 100, 2) == 116 * image + 2 * one
    monkeypatch.setattr(evaluation_cost, "MEMORY_LIMIT", 20 * image)
    assert memory(16, 100, 1) == 16 * image + one  # so many test images are never in memory together


def test_real_steps_are_timed_with_the_settings_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "MEASURE", 0.0)
    made = estimate_evaluation(patches(16), 10, protocol=TINY, net=NET, compute=replace(OFF, precision="float32"))
    assert 0 < made.step_seconds < made.seconds
