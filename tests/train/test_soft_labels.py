from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.conftest import seeded
from torch.nn.functional import cross_entropy

from condense_once.augment import mixed_squared_error
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption
from condense_once.evaluation.evaluate import evaluate
from condense_once.evaluation.protocols import Protocol
from condense_once.metrics import MetricConfig
from condense_once.metrics.score import score
from condense_once.metrics.score_records import stored_record
from condense_once.train.dynamics import Recorder
from condense_once.train.images import training_data
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import Trainer

NET = "convnet-d3-w32"
PLAIN = Recipe(epochs=40, batch=16, lr=0.05, augmentation="", cutmix=0.0)


@pytest.fixture
def swapped(source: Source) -> CondensedSet:
    """Real images whose hard labels are wrong, but whose soft labels nearly prefer the right class."""
    split = source.train
    assert isinstance(split, ArraySplit)
    wrong = (split.labels + 1) % 3
    soft = np.full((len(wrong), 3), 0.1, np.float32)
    rows = np.arange(len(wrong))
    soft[rows, split.labels], soft[rows, wrong] = 0.447, 0.453
    return CondensedSet(
        split.images, wrong, source.classes, (8, 8), 1, Space("pixels", source.mean, source.std), rows, soft
    )


def test_the_loss_of_soft_labels_is_their_cross_entropy(swapped: CondensedSet) -> None:
    data = training_data(swapped, labels="soft")
    trainer = Trainer(NET, data.spec, PLAIN, passes=0)
    seen: list[torch.Tensor] = []
    trainer.fit(data.images, data.targets, weights=seeded(), batches=seeded(1),
                on_batch=lambda _epoch, rows, logits: seen.append(cross_entropy(logits, data.targets[rows])))  # fmt: skip
    probabilities = trainer.logits(data.images).softmax(1)
    assert float(seen[-1]) < float(seen[0])
    assert float((probabilities - data.targets).abs().mean()) < 0.1  # probabilities are learned; a guess is 0.16 away


def test_labels_to_regress_on_are_regressed_on(swapped: CondensedSet) -> None:
    assert swapped.soft_labels is not None
    centred = replace(swapped, soft_labels=50 * (swapped.soft_labels - 1 / 3), label_kind="regression")
    data = training_data(centred, labels="soft")
    trainer = Trainer(NET, data.spec, PLAIN, passes=0)
    trainer.fit(data.images, data.targets, weights=seeded(), batches=seeded(1))
    assert data.loss == "mse"
    assert float((trainer.logits(data.images) - data.targets).square().mean()) < 0.2  # of 1


def test_mixed_squared_errors_are_mixed_by_the_area() -> None:
    outputs, y, other = torch.zeros(2, 3), torch.ones(2, 3), 2 * torch.ones(2, 3)
    assert float(mixed_squared_error(outputs, y, other, 0.75)) == pytest.approx(0.75 * 1 + 0.25 * 4)


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_errors_are_distances_to_the_soft_target(loss: str) -> None:
    soft, logits = torch.tensor([[0.6, 0.4], [0.1, 0.9]]), torch.tensor([[0.3, -0.2], [2.0, 1.0]])
    recorder = Recorder(torch.tensor([0, 1]), 1, soft=soft, loss=loss)  # type: ignore[arg-type]
    recorder(0, torch.tensor([1, 0]), logits[[1, 0]])
    found = recorder.finish({})
    outputs = logits if loss == "mse" else logits.softmax(1)
    for row in range(2):
        distance = sum(float(outputs[row, k] - soft[row, k]) ** 2 for k in range(2)) ** 0.5
        assert found.error[0, row] == pytest.approx(distance, abs=1e-6)
    assert found.correct.tolist() == [[True, False]]


def test_an_evaluation_trains_on_soft_labels_or_on_hard_ones(swapped: CondensedSet, source: Source) -> None:
    test = replace(source, splits={"test": source.train})
    protocol = Protocol("short", "of a test", PLAIN, PLAIN)
    results = {
        labels: evaluate(swapped, test, protocol=protocol, net=NET, repeats=1, labels=labels)
        for labels in (None, "soft", "hard")
    }
    assert [result.labels for result in results.values()] == ["soft", "soft", "hard"]
    assert results[None].mean == results["soft"].mean
    assert results["hard"].mean < 0.1  # every hard label is wrong
    assert results["soft"].mean > results["hard"].mean
    assert "with soft labels" in repr(results["soft"])
    assert "soft" not in repr(results["hard"])
    plain = replace(swapped, soft_labels=None)
    assert evaluate(plain, test, protocol=protocol, net=NET, repeats=1).mean == results["hard"].mean
    with pytest.raises(BadOption, match="no soft labels"):
        evaluate(plain, test, protocol=protocol, labels="soft")
    with pytest.raises(BadOption, match="soft or hard"):
        evaluate(plain, test, protocol=protocol, labels="both")  # type: ignore[arg-type]


def test_protocols_of_the_authors_take_hard_labels(swapped: CondensedSet, source: Source) -> None:
    test = replace(source, splits={"test": source.train})
    protocol = Protocol("short", "of a test", replace(PLAIN, epochs=1), PLAIN, double_normalise=True)
    assert evaluate(swapped, test, protocol=protocol, net=NET, repeats=1).labels == "hard"


def test_scores_say_which_labels_they_are_of(swapped: CondensedSet) -> None:
    config = MetricConfig(scoring_epochs=2, el2n_epochs=2)
    soft = score(swapped, "el2n", net=NET, config=config)
    hard = score(swapped, "el2n", net=NET, config=replace(config, labels="hard"))
    plain = score(replace(swapped, soft_labels=None), "el2n", net=NET, config=config)
    assert (stored_record(soft, "el2n") or {})["labels"] == "soft"
    assert "labels" not in (stored_record(hard, "el2n") or {})
    np.testing.assert_array_equal(hard.scores["el2n"], plain.scores["el2n"])
    assert (soft.scores["el2n"] < hard.scores["el2n"]).mean() > 0.9  # the soft target is nearer to a guess
    assert score(soft, "el2n", net=NET, config=config) is soft  # reused
    assert score(soft, "el2n", net=NET, config=replace(config, labels="hard")) is not soft
