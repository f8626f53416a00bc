from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from condense_once.condensing.experts import ExpertConfig, Experts, make_experts, run, train_experts
from condense_once.condensing.experts.trajectory import load_trajectory
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import make_net
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import training_data
from condense_once.train.recipe import Recipe

NET = "convnet-d1-w8"


@pytest.fixture
def train(source: Source, tmp_path: Path) -> Callable[..., Experts]:
    def make(**others: Any) -> Experts:
        given = {"net": NET, "epochs": 4, "folder": tmp_path, "compute": ComputeConfig(compilation="off"), **others}
        return train_experts(source, **given)

    return make


def weights(experts: Experts, number: int = 0) -> dict[str, np.ndarray]:
    return dict(experts.runs[number].weights)


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_snapshots_go_from_random_weights_to_a_network_that_knows_the_classes(
    train: Callable[..., Experts], source: Source
) -> None:
    experts = train(epochs=30, every=10, recipe=Recipe(batch=16, augmentation="none", cutmix=0.0, lr=0.05))
    assert experts.snapshots == experts.runs[0].snapshots == 4
    net = make_net(NET, source.train.shape, 3, generator=torch.Generator().manual_seed(9)).eval()
    x = (torch.from_numpy(source.train.take(slice(None))).float() / 255 - 0.5) / 0.25
    accuracy = []
    for place in range(experts.snapshots):
        experts.load_into(net, 0, place)
        accuracy.append(float((net(x).argmax(1).numpy() == source.train.labels).mean()))
    assert accuracy[0] < 0.7
    assert accuracy[-1] > 0.95


def test_finished_runs_are_reused_and_only_missing_ones_trained(
    train: Callable[..., Experts], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = train(runs=1)
    trained: list[int] = []
    advance = run.ExpertRun.advance
    monkeypatch.setattr(run.ExpertRun, "advance", lambda self: (trained.append(self._run), advance(self))[1])
    both = train(runs=2)
    assert set(trained) == {1}
    assert same(weights(one), weights(both))
    assert not same(weights(both), weights(both, 1))


def test_snapshots_of_a_run_shorter_than_an_epoch_are_batches_apart(source: Source, tmp_path: Path) -> None:
    """Epochs of one batch are the first batches of a pass over the images."""
    recipe = Recipe(epochs=3, batch=8, cutmix=0.0)  # seven batches are one pass
    compute = ComputeConfig(compilation="off")
    short = make_experts(source, ExpertConfig(NET, recipe, batches=1), runs=1, root=tmp_path, compute=compute)
    assert short.runs[0].snapshots == 4
    assert short.folder.name.startswith(f"tiny-{NET}-3-epochs-of-1-batches-")
    trainer = run.ExpertRun(source, training_data(source), ExpertConfig(NET, recipe, every=3), 0, tmp_path, compute)
    trainer.start()
    for place in range(2):  # after two thirds of the epochs, the learning rate falls
        trainer.advance()
        for name, weight in trainer.net.state_dict().items():
            half = weight.numpy().astype(np.float16)
            assert np.array_equal(half, short.runs[0].weights[name][place + 1])


def test_experts_of_whole_epochs_keep_their_identity(source: Source) -> None:
    assert "batches" not in ExpertConfig(NET, Recipe(epochs=4)).identity(source)


@pytest.mark.parametrize("batches", [1, 5, 7])  # in the first epoch, later, in the middle of one
def test_a_killed_run_continues_to_the_same_bits(
    train: Callable[..., Experts], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    monkeypatch.setattr(run, "SAVE_EVERY", 0.0)
    recipe = Recipe(epochs=4, batch=24)  # two batches per epoch
    whole = train(recipe=recipe, epochs=None, folder=tmp_path / "whole")
    left = [batches]
    advance = run.ExpertRun.advance

    def advance_or_die(self: run.ExpertRun) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        advance(self)

    with monkeypatch.context() as dying:
        dying.setattr(run.ExpertRun, "advance", advance_or_die)
        with pytest.raises(KeyboardInterrupt):
            train(recipe=recipe, epochs=None)
    assert same(weights(train(recipe=recipe, epochs=None)), weights(whole))


def test_runs_in_parallel_are_those_in_sequence(train: Callable[..., Experts], tmp_path: Path) -> None:
    config = ComputeConfig(compilation="off", workers=2)
    parallel = train(runs=3, compute=config)
    sequence = train(runs=3, folder=tmp_path / "other")
    assert all(same(weights(parallel, number), weights(sequence, number)) for number in range(3))


def test_a_damaged_file_is_trained_again(train: Callable[..., Experts]) -> None:
    experts = train()
    path = experts.folder / "run-0.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    assert same(weights(train()), weights(experts))
    assert load_trajectory(path).epochs == 4


def test_experts_of_another_config_or_source_have_another_folder(source: Source, make_source: Any) -> None:
    config = ExpertConfig(NET, Recipe(epochs=4))
    others = [ExpertConfig(NET, Recipe(epochs=5)), ExpertConfig("convnet-d1-w9", Recipe(epochs=4))]
    folders = {each.folder(source, Path()) for each in (config, *others)} | {config.folder(make_source(each=9), Path())}
    assert len(folders) == 4


def test_progress_counts_the_epochs_of_all_runs(train: Callable[..., Experts]) -> None:
    calls: list[tuple[int, int]] = []
    train(runs=2, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (8, 8)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_a_finished_file_holds_half_precision_snapshots_and_no_optimiser(train: Callable[..., Experts]) -> None:
    found = load_trajectory(train().folder / "run-0.safetensors")
    assert not found.state
    assert {values.dtype for values in found.weights.values()} == {np.dtype(np.float16)}


def test_counters_of_batch_norm_are_kept(train: Callable[..., Experts], source: Source) -> None:
    experts = train(net="convnet-d1-w8-bn")
    net = make_net("convnet-d1-w8-bn", source.train.shape, 3, generator=torch.Generator().manual_seed(0))
    experts.load_into(net, 0, 4)
    assert [int(value) for name, value in net.state_dict().items() if name.endswith("tracked")] == [4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"runs": 0}, "`runs` must be at least 1"),
        ({"every": 3}, "do not fit 4 epochs"),
        ({"recipe": Recipe(lr=1e8, cutmix=0.0, batch=8)}, "diverged in epoch"),
    ],
)
def test_what_cannot_be_trained_is_refused(train: Callable[..., Experts], given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        train(**given)
