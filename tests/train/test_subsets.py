from __future__ import annotations

import numpy as np
import pytest
import torch

from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption
from condense_once.train.dynamics import RECIPE
from condense_once.train.images import DataSpec, training_data
from condense_once.train.seeds import generator
from condense_once.train.subsets import sample_subsets, train_on_subsets
from condense_once.train.trainer import Trainer

NET = "convnet-d3-w32"


@pytest.mark.parametrize(("runs", "share", "inside"), [(10, 0.7, 7), (3, 0.99, 2), (3, 0.01, 1), (2, 0.5, 1)])
def test_every_patch_is_left_out_of_as_many_runs(runs: int, share: float, inside: int) -> None:
    drawn = sample_subsets(4000, runs, share, np.random.default_rng(0))
    assert drawn.shape == (runs, 4000)
    assert (drawn.sum(0) == inside).all()
    assert np.abs(drawn.mean(1) - inside / runs).max() < 0.05  # no run is preferred
    assert not (drawn[:, 0] == drawn.T).all()


def test_subset_runs_equal_trainings_one_by_one(pixel_set: CondensedSet) -> None:
    included = np.random.default_rng(1).random((3, len(pixel_set))) < 0.6
    seen: list[tuple[int, ...]] = []
    got, rounding = train_on_subsets(
        training_data(pixel_set), included, epochs=2, net=NET, seed=4, progress=lambda *ticks: seen.append(ticks)
    )
    inputs, labels = torch.from_numpy(pixel_set.inputs()), torch.from_numpy(pixel_set.labels)
    for run in range(3):
        rows = [row for row in range(len(pixel_set)) if included[run, row]]
        trainer = Trainer(NET, DataSpec.of(pixel_set), RECIPE, passes=0)
        weights, batches = generator(4, "subsets", run, "weights"), generator(4, "subsets", run, "batches")
        trainer.fit(inputs[rows], labels[rows], weights=weights, batches=batches, epochs=2)
        p = trainer.logits(inputs).softmax(1)
        for row in range(len(pixel_set)):
            assert got[run, row] == pytest.approx(float(p[row, labels[row]]), abs=1e-6)
    assert rounding == trainer.rounding
    assert seen == [(done, 6) for done in range(1, 7)]


def test_what_cannot_be_trained_is_refused(pixel_set: CondensedSet) -> None:
    data = training_data(pixel_set)
    with pytest.raises(BadOption, match="24 patches: too few for 2 runs"):
        train_on_subsets(data, np.array([[False] * 24, [True] * 24]), epochs=1, net=NET)
    with pytest.raises(BadOption, match="1000 epochs, so subset runs cannot have 1001"):
        train_on_subsets(data, np.ones((2, 24), bool), epochs=1001, net=NET)
