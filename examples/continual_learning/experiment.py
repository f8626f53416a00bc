"""One run: ten classes in five tasks, tested after each on all classes seen so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from condense_once import ArraySplit, CondensedSet, Source, load, open_source
from condense_once.data.source import Split
from examples.continual_learning.learner import Learner
from examples.continual_learning.memory import ReplayMemory
from examples.continual_learning.policies import POLICIES, Task

TASKS = 5
NO_MEMORY, ALL_IMAGES = "no memory", "all images"  # the limits: nothing is replayed, or everything ever seen


@dataclass(frozen=True)
class Setting:
    """What all policies share."""

    net: str = "convnet-d3-w24"
    steps: int = 200  # SGD steps per task
    images: int = 500  # training images per class
    test_images: int = 2000


@dataclass(frozen=True)
class Data:
    source: Source
    condensed: CondensedSet
    rows: dict[int, NDArray[np.int64]]  # label → training images to use
    test: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, train: Source, test: Source, setting: Setting, condensed: str = "cifar10-idc-ipc10") -> Data:
        """The first training images of every class, and the first test images."""
        labels = train.train.labels
        rows = {label: np.flatnonzero(labels == label)[: setting.images] for label in range(len(train.classes))}
        data = load(condensed)
        return cls(train, data, rows, _inputs(data, test.test, np.arange(len(test.test.labels))[: setting.test_images]))

    @classmethod
    def cifar10(cls, setting: Setting) -> Data:
        cifar = open_source("cifar10")
        return cls.of(cifar, cifar, setting)

    @classmethod
    def bundled(cls, setting: Setting) -> Data:
        """Without a download: half of the bundled sample of test images to train on, the other half to test on."""
        sample = open_source("cifar10-sample")
        labels = sample.test.labels
        classes = range(len(sample.classes))
        first = np.concatenate([np.flatnonzero(labels == label)[: setting.images] for label in classes])
        rest = np.setdiff1d(np.arange(len(labels)), first)
        train, test = (ArraySplit(sample.test.take(rows), labels[rows]) for rows in (first, rest))
        split = replace(sample, splits={"train": train, "test": test})
        return cls.of(split, split, setting)

    def inputs(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        return _inputs(self.condensed, self.source.train, rows)


@dataclass(frozen=True)
class Run:
    policy: str
    memory: int  # bytes
    seed: int
    accuracies: tuple[float, ...]  # in %, after each task, on all classes seen so far
    stored: tuple[int, ...]  # exemplars in memory after each task
    seconds: float  # of CPU time

    @property
    def average(self) -> float:
        """The average incremental accuracy: the mean over tasks."""
        return float(np.mean(self.accuracies))


def run(data: Data, policy: str, memory_bytes: int, seed: int, setting: Setting | None = None) -> Run:
    """Learn the tasks in an order of the seed's own, the same for every policy."""
    setting, start = setting or Setting(), time.process_time()
    rng = np.random.default_rng([seed, 5])
    order = rng.permutation(len(data.source.classes)).reshape(TASKS, -1).tolist()
    learner = Learner(setting.net, data.condensed.space, len(data.source.classes), steps=setting.steps, seed=seed)
    memory, everything = ReplayMemory(memory_bytes), torch.empty(0, dtype=torch.int64).numpy()
    accuracies, stored, seen = [], [], list[int]()
    for arriving in order:
        rows = np.concatenate([data.rows[label] for label in arriving])
        old = data.inputs(everything) if policy == ALL_IMAGES else _tensors(*memory.inputs())
        learner.learn(data.inputs(rows), old)
        seen += arriving
        accuracies.append(learner.accuracy(*data.test, seen=seen))
        everything = np.concatenate([everything, rows])
        if policy in POLICIES:
            task = Task(
                data.source, data.rows, data.condensed, lambda some: learner.features(data.inputs(some)[0]), rng
            )
            memory.store({label: POLICIES[policy](task, label) for label in arriving})
        stored.append(len(everything) if policy == ALL_IMAGES else sum(memory.counts().values()))
    return Run(policy, memory_bytes, seed, tuple(accuracies), tuple(stored), time.process_time() - start)


def _inputs(like: CondensedSet, split: Split, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    pixels = split.take(rows).astype(np.float32) / np.float32(255)
    return _tensors(like.space.to_network(pixels), split.labels[rows])


def _tensors(images: NDArray[np.float32], labels: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(images), torch.tensor(labels)
