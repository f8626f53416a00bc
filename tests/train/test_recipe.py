from __future__ import annotations

import pytest
import torch

from condense_once.errors import BadOption
from condense_once.train.recipe import Recipe


@pytest.mark.parametrize("epochs", [1000, 300, 7])
def test_the_rate_drops_as_pytorchs_multi_step_schedule_says(epochs: int) -> None:
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [2 * epochs // 3, 5 * epochs // 6], gamma=0.2)
    for epoch in range(epochs):
        rate = optimiser.param_groups[0]["lr"]
        assert Recipe(epochs=epochs).lr_at(epoch) == pytest.approx(rate)
        optimiser.step()
        schedule.step()


def test_a_schedule_by_iteration_may_drop_in_the_middle_of_an_epoch() -> None:
    recipe = Recipe(epochs=10, schedule="iteration")  # of 10 × 7 steps, drops at 46 and 58
    rates = [recipe.lr_at(epoch, step, 7) for epoch in range(10) for step in range(7)]
    assert [rates.index(rate) for rate in dict.fromkeys(rates)] == [0, 46, 58]


@pytest.mark.parametrize("bad", [{"epochs": 0}, {"batch": 0}, {"lr": 0.0}, {"lr": float("nan")}])
def test_recipes_that_cannot_train_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(BadOption):
        Recipe(**bad)  # type: ignore[arg-type]
