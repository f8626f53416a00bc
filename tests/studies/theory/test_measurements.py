from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption
from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.metrics import MetricConfig, record_scoring_run
from condense_once.studies.theory import THEORY, Findings, Measurement, TheoryConfig
from condense_once.studies.theory.imbalance import long_tail
from condense_once.studies.theory.measurement import Record
from condense_once.studies.theory.rademacher import agreement, imbalance_of, with_random_signs
from condense_once.studies.theory.report import save_findings, table_rows
from condense_once.studies.theory.trajectory import train_and_measure
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import training_data
from condense_once.train.recipe import Recipe

CLASSES = ("ant", "bee", "cat")
SPACE = Space("pixels", (0.5,) * 3, (0.25,) * 3)
CONFIG = TheoryConfig(net="convnet-d1-w4", epochs=(0, 2), compute=ComputeConfig("float32", "off"))


def images_of(labels: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    bright = 60 * labels[:, None, None, None] + 40
    return (bright + rng.integers(0, 40, (len(labels), 3, 8, 8))).astype(np.uint8)


@pytest.fixture
def data() -> CondensedSet:
    labels = np.repeat(np.arange(3), 8)
    made = CondensedSet.from_mosaics(images_of(labels, 0), labels, factor=1, space=SPACE, classes=CLASSES, name="tiny")
    return replace(made, scores={"lbpe": np.random.default_rng(1).random(24).astype(np.float32)})


@pytest.fixture
def source() -> Source:
    labels = np.arange(30) % 3
    split = ArraySplit(images_of(labels, 2), labels)
    return Source("real", CLASSES, (0.5,) * 3, (0.25,) * 3, {"train": split, "test": split})


def measured(name: str, data: CondensedSet, config: TheoryConfig = CONFIG) -> tuple[Measurement, list[Record]]:
    measurement = THEORY.get(name)
    return measurement, list(measurement.measure(data, config))


def test_lemma_1_is_measured_for_every_size_epoch_and_loss(data: CondensedSet) -> None:
    measurement, records = measured("leave-one-out", data, replace(CONFIG, sizes=(6, 24)))
    places = [(record["patches"], record["epoch"], record["loss"]) for record in records]
    assert places == [(n, epoch, loss) for n in (6, 24) for epoch in (0, 2) for loss in ("cross-entropy", "mse")]
    for record in records:
        assert -1 <= float(record["correlation with LBPE at that epoch"]) <= 1
        assert set(record) == {*measurement.keys, *measurement.values}
    assert records == measured("leave-one-out", data, replace(CONFIG, sizes=(6, 24)))[1]


def test_a_measured_run_is_the_scoring_run_of_the_same_seed(data: CondensedSet) -> None:
    seen = list[int]()
    dynamics = train_and_measure(training_data(data), replace(CONFIG, epochs=(1, 3)), lambda at, _: seen.append(at))
    config = MetricConfig(scoring_epochs=3)
    run = record_scoring_run(data, ["aum"], config, net=CONFIG.net, compute=CONFIG.compute)
    assert seen == [1, 3]
    assert dynamics is not None
    assert run.dynamics is not None
    assert np.array_equal(dynamics.error, run.dynamics.error)


def test_an_untrained_network_is_measured_without_training(data: CondensedSet) -> None:
    _, records = measured("leave-one-out", data, replace(CONFIG, epochs=(0,)))
    assert all(math.isnan(float(record["correlation with the LBPE score"])) for record in records)


def test_alignment_is_measured_with_the_whole_and_with_real_images(data: CondensedSet, source: Source) -> None:
    _, records = measured("alignment", data, replace(CONFIG, real=source, share=0.25))
    assert [record["part"] for record in records] == ["easy", "hard", "random"] * 2
    for record in records:
        assert abs(float(record["cosine with the whole"])) <= 1
        assert abs(float(record["cosine with real images"])) <= 1
    errors = {(record["epoch"], record["part"]): float(record["mean error"]) for record in records}
    assert all(errors[epoch, "easy"] < errors[epoch, "hard"] for epoch in (0, 2))
    _, alone = measured("alignment", data)
    assert math.isnan(float(alone[0]["cosine with real images"]))


class Reader(nn.Module):
    """Outputs the sign that the brightness of a patch tells."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bright = x.mean((1, 2, 3))
        return torch.stack([-50 * bright, 50 * bright], 1)


def test_the_agreement_is_one_for_a_network_that_knows_all_signs() -> None:
    images = torch.cat([torch.ones(3, 1, 2, 2), -torch.ones(2, 1, 2, 2)])
    known = torch.tensor([1, 1, 1, 0, 0])
    assert agreement(Reader(), images, known) == pytest.approx(1)
    assert agreement(Reader(), images, 1 - known) == pytest.approx(-1)
    assert agreement(Reader(), images, torch.tensor([1, 1, 0, 1, 0])) == pytest.approx(1 / 5)


def test_signs_are_random_and_by_seed(data: CondensedSet) -> None:
    prepared = training_data(data)
    one, again, other = (with_random_signs(prepared, seed).labels for seed in (0, 0, 1))
    assert set(one.tolist()) == {0, 1}
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_complexity_never_falls_and_names_its_selection(data: CondensedSet) -> None:
    config = replace(CONFIG, sizes=(6,), rules=("yoco", "lbpe"), epochs=(0, 1, 5))
    _, records = measured("rademacher", data, config)
    assert [record["selection"] for record in records] == ["yoco"] * 3 + ["lbpe"] * 3
    values = [float(record["complexity"]) for record in records[:3]]
    assert values == sorted(values)
    assert records[0]["imbalance"] == 0
    _, whole = measured("rademacher", data, replace(config, sizes=()))
    assert {record["selection"] for record in whole} == {"all"}


def test_imbalance_is_half_the_distance_to_equal_classes(data: CondensedSet) -> None:
    assert imbalance_of(data) == 0
    assert imbalance_of(data.take(slice(8))) == pytest.approx(2 / 3)
    assert imbalance_of(data.take(slice(12))) == pytest.approx(1 / 3)


@pytest.mark.parametrize("ratio", [1, 2, 10, 100])
def test_a_long_tail_falls_and_has_as_many_patches_as_asked(ratio: float) -> None:
    counts = long_tail(100, np.full(10, 60), ratio)
    assert counts.sum() == 100
    assert (np.diff(counts) <= 0).all()
    if ratio <= 10:
        assert counts[0] / counts[-1] == pytest.approx(ratio, rel=0.25)


def test_a_long_tail_takes_no_more_than_there_is() -> None:
    assert long_tail(20, np.array([5, 9, 9]), 8).tolist() == [5, 9, 6]
    with pytest.raises(BadOption, match="A selection of 24 patches cannot be made of 23"):
        long_tail(24, np.array([5, 9, 9]), 8)


def test_imbalance_is_measured_at_equal_size_with_both_losses(data: CondensedSet, source: Source) -> None:
    short = Protocol("short", "for tests", Recipe(epochs=3, batch=8), Recipe(epochs=3, batch=8))
    with PROTOCOLS.registered(short):
        config = replace(CONFIG, sizes=(9,), ratios=(1, 4), protocol="short", test=source)
        _, records = measured("imbalance", data, config)
    assert [record["selection"] for record in records] == ["1 : 1", "4 : 1", "lbpe"]
    assert records[0]["imbalance"] == 0
    assert float(records[1]["imbalance"]) > 0.1
    for record in records:
        gap = float(record["test loss"]) - float(record["training loss"])
        assert float(record["generalisation gap"]) == pytest.approx(gap)
        assert float(record["training loss"]) > 0


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"epochs": ()}, "`epochs` must be at least one number"),
        ({"sizes": (1,)}, "`sizes` must be at least 2 patches"),
        ({"share": 0.6}, "`share` must be above 0 and at most 0.5"),
        ({"ratios": (0.5,)}, "`ratios` must be at least 1"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint):
        TheoryConfig(**changes)  # type: ignore[arg-type]


def test_a_subset_larger_than_the_set_is_refused(data: CondensedSet) -> None:
    with pytest.raises(BadOption, match="tiny has 24 patches, so a subset cannot have 25"):
        measured("leave-one-out", data, replace(CONFIG, sizes=(25,)))


@pytest.fixture
def findings() -> Findings:
    records = tuple(
        {
            "run": run,
            "set": "tiny",
            "patches": 24,
            "selection": rule,
            "epoch": epoch,
            "complexity": 0.1 * epoch + run,
            "imbalance": 0.0,
        }
        for run in (0, 1)
        for rule in ("yoco", "lbpe")
        for epoch in (0, 3)
    )
    return Findings(THEORY.get("rademacher"), records)


def test_a_table_has_means_over_runs(findings: Findings) -> None:
    columns, rows = table_rows(findings)
    assert columns == ("set", "patches", "selection", "epoch", "complexity", "imbalance", "n")
    assert rows[1] == ("tiny", "24", "yoco", "3", "0.800 ± 0.707", "0.000 ± 0.000", "2")
    assert len(rows) == 4


def test_findings_are_written_as_table_records_and_figure(findings: Findings, tmp_path: Path) -> None:
    for name in ("found.md", "found.csv", "found.svg"):
        save_findings(findings, tmp_path / name)
    text = (tmp_path / "found.md").read_text()
    assert "Claim: The Rademacher complexity is smaller on the balanced selection" in text
    assert "| tiny | 24 | yoco | 3 | 0.800 ± 0.707 |" in text
    with (tmp_path / "found.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(findings.records)
    drawn = (tmp_path / "found.svg").read_text()
    assert all(word in drawn for word in ("Lemma 2.2", "tiny, 24 patches", "yoco", "complexity"))
    with pytest.raises(BadOption, match="exists"):
        save_findings(findings, tmp_path / "found.md")
    with pytest.raises(BadOption, match=r"written as Markdown \(\.md\), CSV"):
        save_findings(findings, tmp_path / "found.txt")
