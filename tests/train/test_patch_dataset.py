"""A set as a PyTorch dataset: the patches of `inputs`, the targets of `evaluate`, in any DataLoader."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Subset

import condense_once
from condense_once.condensed.coreset import coreset
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.evaluation.protocols import Protocol
from condense_once.train.recipe import Recipe

LINEAR = "convnet-d1-w8"


def test_items_are_the_inputs_and_labels_of_the_set(pixel_set: CondensedSet) -> None:
    dataset = pixel_set.torch()
    images, labels = zip(*dataset, strict=True)
    np.testing.assert_allclose(torch.stack(images).numpy(), pixel_set.inputs(), rtol=0, atol=1e-6)
    assert torch.stack(labels).tolist() == pixel_set.labels.tolist()
    assert torch.equal(dataset[-1][0], dataset[len(dataset) - 1][0])
    with pytest.raises(IndexError, match="24 is not one of 24"):
        dataset[24]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataloader_yields_every_patch_once(pixel_set: CondensedSet, workers: int) -> None:
    batches = list(DataLoader(pixel_set.torch(), batch_size=7, num_workers=workers))
    x, y = torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])
    assert [len(x) for x, _ in batches] == [7, 7, 7, 3]
    assert torch.allclose(x, torch.from_numpy(pixel_set.inputs()), atol=1e-6)
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)
    assert y.tolist() == pixel_set.labels.tolist()


def test_workers_started_afresh_get_the_dataset_by_pickle(pixel_set: CondensedSet) -> None:
    dataset = pixel_set.torch(augmentation="color_crop_flip")
    stored = pickle.dumps(dataset)
    assert len(stored) < 4 * pixel_set.inputs().nbytes
    torch.manual_seed(3)
    first = dataset[5][0]
    torch.manual_seed(3)
    assert torch.equal(pickle.loads(stored)[5][0], first)


def test_augmentation_differs_by_call_and_repeats_by_seed(pixel_set: CondensedSet) -> None:
    dataset = pixel_set.torch(augmentation="color_crop_flip_scale_rotate")

    def epoch(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return torch.cat([x for x, _ in DataLoader(dataset, batch_size=8, shuffle=True)])

    assert torch.equal(epoch(0), epoch(0))
    assert not torch.equal(epoch(0), epoch(1))
    assert not torch.equal(dataset[0][0], dataset[0][0])
    with pytest.raises(condense_once.BadOption, match="no augmentation 'crp'"):
        pixel_set.torch(augmentation="crp")


def test_a_transform_comes_last(pixel_set: CondensedSet) -> None:
    doubled = pixel_set.torch(transform=lambda image: 2 * image)
    assert torch.equal(doubled[3][0], 2 * pixel_set.torch()[3][0])


def test_soft_labels_are_targets_where_evaluate_trains_on_them(soft_set: CondensedSet) -> None:
    logits = replace(soft_set, label_kind="logits")
    dataset = logits.torch()
    x, y = next(iter(DataLoader(dataset, batch_size=5)))
    assert y.shape == (5, 3)
    assert torch.allclose(y, torch.tensor(soft_set.soft_labels).softmax(1))
    assert torch.isfinite(cross_entropy(x.flatten(1)[:, :3], y))
    assert logits.torch(labels="hard")[0][1].shape == ()
    regressed = soft_set.torch(labels="soft")
    assert (regressed.loss, dataset.loss, soft_set.torch().labels) == ("mse", "cross_entropy", "hard")
    with pytest.raises(condense_once.BadOption, match="no soft labels"):
        replace(logits, soft_labels=None).torch(labels="soft")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_plain_training_loop_learns_a_set(source: Source, workers: int) -> None:
    train = coreset(source, np.arange(60)).torch(augmentation="flip")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 3))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.02)
    loader = DataLoader(train, batch_size=20, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    for _ in range(8):
        for images, labels in loader:
            optimiser.zero_grad()
            cross_entropy(net(images), labels).backward()
            optimiser.step()
    images, labels = next(iter(DataLoader(Subset(train, range(60)), batch_size=60)))
    assert float((net(images).argmax(1) == labels).float().mean()) > 0.9


def test_our_trainer_on_a_dataset_is_the_run_of_evaluate(source: Source) -> None:
    data = coreset(source, np.arange(60))
    recipe = Recipe(epochs=4, batch=20)
    protocol = Protocol("four epochs", "", recipe, recipe)
    tested = replace(source, splits={**source.splits, "test": source.train})
    result = condense_once.evaluate(data, tested, net=LINEAR, protocol=protocol, repeats=1)
    net = condense_once.train_network(data.torch(), LINEAR, recipe=recipe)
    x, y = torch.from_numpy(data.inputs()), torch.tensor(data.labels)
    with torch.inference_mode():
        assert float(cross_entropy(net(x), y)) == pytest.approx(result.train_loss, rel=1e-4)
    assert not net.training


@pytest.mark.filterwarnings("default")  # Lightning's own
def test_lightning_trains_on_it_with_workers(pixel_set: CondensedSet) -> None:
    lightning = pytest.importorskip("lightning")
    losses: list[float] = []

    class Linear(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 3))

        def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
            loss = cross_entropy(self.net(batch[0]), batch[1])
            losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    batches = DataLoader(pixel_set.torch(augmentation="color_crop_flip"), batch_size=8, shuffle=True, num_workers=2)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    lightning.Trainer(max_epochs=5, accelerator="cpu", **quiet).fit(Linear(), batches)
    assert len(losses) == 15
    assert sum(losses[-3:]) < sum(losses[:3])
