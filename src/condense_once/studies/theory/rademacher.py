"""Definition 2.3 and lemma 2.2: how well a network can follow random signs on the patches of a selection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from condense_once.condensed.set import CondensedSet
from condense_once.selection.select import select
from condense_once.studies.theory.gradients import BATCH
from condense_once.studies.theory.measurement import THEORY, Chart, Measurement, Record, TheoryConfig, scored
from condense_once.studies.theory.trajectory import train_and_measure
from condense_once.train.dynamics import recipe_for
from condense_once.train.images import Images, TrainingData, training_data
from condense_once.train.seeds import generator

PURPOSE = "rademacher"  # goes into the seeds


def rademacher(data: CondensedSet, config: TheoryConfig) -> Iterator[Record]:
    """For each size, rule and epoch: max over the epochs so far of 1/n · Σ σᵢ h(xᵢ), with h the network's output in −1…1.

    The supremum over all networks is replaced by training one on the signs, without augmentation, so it is a lower bound:
    what training reaches. Each seed samples its own signs; their mean over seeds is the expectation.
    """
    data = scored(data, config)
    for size in config.sizes or (len(data),):
        for rule in config.rules if size < len(data) else config.rules[:1]:
            subset = data if size == len(data) else select(data, rule, total=size)
            prepared = with_random_signs(training_data(subset), config.seed)
            reached = dict[int, float]()

            def measure(
                epoch: int, net: nn.Module, prepared: TrainingData = prepared, reached: dict[int, float] = reached
            ) -> None:
                reached[epoch] = agreement(net, prepared.images, prepared.labels)

            plain = replace(recipe_for(prepared.shape), augmentation="none", cutmix=0.0)
            train_and_measure(prepared, config, measure, purpose=PURPOSE, recipe=plain)
            for epoch in sorted(reached):
                yield {
                    "set": data.name,
                    "patches": size,
                    "selection": rule if size < len(data) else "all",
                    "epoch": epoch,
                    "complexity": max(value for at, value in reached.items() if at <= epoch),
                    "imbalance": imbalance_of(subset),
                }


def with_random_signs(data: TrainingData, seed: int) -> TrainingData:
    """The same images with random labels of two classes."""
    signs = torch.randint(2, (len(data),), generator=generator(seed, PURPOSE, "signs"))
    return replace(data, labels=signs, classes=2)


def agreement(net: nn.Module, images: Images, signs: Tensor) -> float:
    """1/n · Σ σᵢ h(xᵢ), with σ = ±1 for the labels 1 and 0, and h the difference of their probabilities."""
    with torch.no_grad():
        logits = torch.cat([net(images[at : at + BATCH]).double() for at in range(0, len(signs), BATCH)])
    outputs = torch.tanh((logits[:, 1] - logits[:, 0]) / 2)
    return float(((2 * signs - 1) * outputs).mean())


def imbalance_of(data: CondensedSet) -> float:
    """Half of Σ |r_k − 1/C| over the fractions r of the classes: 0 if they are balanced, 1 − 1/C if there is only one."""
    fractions = data.counts() / len(data)
    return float(abs(fractions - 1 / len(fractions)).sum() / 2)


RADEMACHER = THEORY.add(
    Measurement(
        "rademacher",
        "Lemma 2.2: Rademacher complexity of a network on balanced and unbalanced selections, by random labels",
        "The Rademacher complexity is smaller on the balanced selection than on the unbalanced one.",
        keys=("set", "patches", "selection", "epoch"),
        values=("complexity", "imbalance"),
        chart=Chart("epoch", "complexity", lines=("selection",)),
        measure=rademacher,
    )
)
