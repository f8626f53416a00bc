from __future__ import annotations

import math

import pytest
import torch

from condense_once.condensing.matching.distances import absolute_distance, cosine_distance, squared_distance
from condense_once.condensing.matching.loop import momentum_step

SHAPES = [(4, 3, 3, 3), (2, 4, 1, 1), (5, 7)]


@pytest.fixture
def lists() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    draws = torch.Generator().manual_seed(0)
    return tuple([torch.randn(shape, generator=draws) for shape in SHAPES] for _ in range(2))  # type: ignore[return-value]


def test_squared_and_absolute_distance_are_sums_over_every_entry(lists: tuple[list[torch.Tensor], ...]) -> None:
    squared = absolute = 0.0
    for g, h in zip(*lists, strict=True):
        for a, b in zip(g.flatten().tolist(), h.flatten().tolist(), strict=True):
            squared += (a - b) ** 2
            absolute += abs(a - b)
    assert squared_distance(*lists).item() == pytest.approx(squared, rel=1e-5)
    assert absolute_distance(*lists).item() == pytest.approx(absolute, rel=1e-5)


def test_cosine_distance_counts_every_row_by_its_angle(lists: tuple[list[torch.Tensor], ...]) -> None:
    expected = 0.0
    for g, h in zip(*lists, strict=True):
        for a, b in zip(g.flatten(1).tolist(), h.flatten(1).tolist(), strict=True):
            product = sum(x * y for x, y in zip(a, b, strict=True))
            lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
            expected += 1 - product / (lengths + 1e-6)
    assert cosine_distance(*lists).item() == pytest.approx(expected, rel=1e-5)


def test_a_row_without_gradient_is_at_distance_one_not_nan() -> None:
    zero = torch.zeros(1, 3, requires_grad=True)
    assert cosine_distance([torch.ones(1, 3)], [zero]).item() == pytest.approx(1.0)


@pytest.mark.parametrize("classes", [1, 2, 7])
def test_gliding_is_what_one_optimiser_for_all_classes_does(classes: int) -> None:
    """The oracle is IDC's loop: SGD on one tensor of all classes, where all gradients but one class's are zero."""
    draws = torch.Generator().manual_seed(0)
    start = torch.randn(classes, 2, generator=draws)
    gradients = torch.randn(4, classes, 2, generator=draws)
    joint = start.clone().requires_grad_()
    optimiser = torch.optim.SGD([joint], lr=0.1, momentum=0.5)
    turns = [(step, label) for step in range(4) for label in range(classes)]
    history = []
    for turn in [*turns, *[None] * (classes - 1)]:
        joint.grad = torch.zeros_like(joint)
        if turn is not None:
            joint.grad[turn[1]] = gradients[turn]
        optimiser.step()
        history.append(joint.detach().clone())
    images, velocity = start.clone(), torch.zeros_like(start)
    for step, label in turns:
        momentum_step(images[label], velocity[label], gradients[step, label], lr=0.1, momentum=0.5, idle=classes - 1)
    for label in range(classes):
        last_turn = 3 * classes + label
        assert torch.allclose(images[label], history[last_turn + classes - 1][label], atol=1e-6)


def test_without_idle_steps_it_is_sgd_with_momentum() -> None:
    images, velocity = torch.tensor([1.0]), torch.zeros(1)
    weight = torch.tensor([1.0], requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=0.3, momentum=0.9)
    for gradient in (1.0, -2.0, 0.5):
        weight.grad = torch.tensor([gradient])
        optimiser.step()
        momentum_step(images, velocity, torch.tensor([gradient]), lr=0.3, momentum=0.9)
    assert images.item() == pytest.approx(weight.item())
