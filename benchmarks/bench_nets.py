"""A training step of several networks: plain, with native kernels, and with `torch.compile` on top of them.

It shows why float32 on a CPU does without `torch.compile`: with native kernels it gains little, and it takes half a minute
or more per network and number of threads. One thread, batches of 64×3×32×32, augmentation and CutMix.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from machine import best_in_turns, cpu_model

import condense_once
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import DataSpec
from condense_once.train.memory import keep_freed_memory
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator
from condense_once.train.trainer import Trainer

NETS = ("convnet-d3", "convnet-d3-w32", "convnet-d3-bn", "convnet-d3-gn", "resnet10", "resnet18")


def training_step(
    net: str, data: condense_once.CondensedSet, compute: ComputeConfig, *, compiled: bool
) -> Callable[[], None]:
    recipe = Recipe(epochs=1)
    trainer = Trainer(net, DataSpec.of(data), recipe, passes=0, compute=compute)
    trainer.compiled = trainer.compiled and compiled
    inputs, labels = torch.from_numpy(data.inputs(slice(64))), torch.from_numpy(data.labels[:64])
    return lambda: trainer.fit(inputs, labels, weights=generator(0, "weights"), batches=generator(0, "batches"))


def main() -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    data = condense_once.load("cifar10-real-ipc10", first=64)
    print(cpu_model())
    print("| network | plain, ms | native kernels | and compiled |")
    print("|---|---|---|---|")
    for net in sys.argv[1:] or NETS:
        ways = (
            training_step(net, data, ComputeConfig("float32", "off"), compiled=False),
            training_step(net, data, ComputeConfig("float32", "on"), compiled=False),
            training_step(net, data, ComputeConfig("float32", "on"), compiled=True),
        )
        plain, native, compiled = best_in_turns(5, *ways)
        print(f"| {net} | {1e3 * plain:.0f} | {plain / native:.2f} × | {plain / compiled:.2f} × |", flush=True)


if __name__ == "__main__":
    main()
