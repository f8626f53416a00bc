"""A whole evaluation of 40 patches (CIFAR-10, 10 → 1) against a plain implementation, once and with repeats.

    python benchmarks/bench_evaluation.py [EPOCHS] [REPEATS]

Compiling, preparing the test images and the final test are included; each single evaluation has its own process. The plain
one is the step of `bench_step.py` with the same schedule, and tests in batches of 32 as the authors do. Takes about 20
minutes; pass fewer epochs and repeats than the paper's 1000 and 9 to shorten it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from tempfile import TemporaryDirectory

import torch
from bench_step import plain_augment, plain_mix, plain_network
from machine import cpu_model

import condense_once
from condense_once.evaluation.inputs import prepare_test_images, training_images
from condense_once.evaluation.protocols import PAPER, Protocol
from condense_once.train.compute_config import ComputeConfig, cores
from condense_once.train.memory import keep_freed_memory

SET = "cifar10-real-ipc10"
TURNS = 2


def plain_evaluation(
    inputs: torch.Tensor, labels: torch.Tensor, test: tuple[torch.Tensor, torch.Tensor], epochs: int
) -> float:
    net = plain_network()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [2 * epochs // 3, 5 * epochs // 6], gamma=0.2)
    for _ in range(epochs):
        order = torch.randperm(len(inputs))
        images, targets = plain_augment(inputs[order]), labels[order]
        images, partner, ratio = plain_mix(images)
        logits = net(images)
        loss = ratio * torch.nn.functional.cross_entropy(logits, targets)
        loss = loss + (1 - ratio) * torch.nn.functional.cross_entropy(logits, targets[partner])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    correct = 0
    with torch.no_grad():
        for x, y in zip(torch.split(test[0], 32), torch.split(test[1], 32), strict=True):
            correct += int((net(x).argmax(1) == y).sum())
    return correct / len(test[1])


def once(way: str, epochs: int) -> tuple[float, float]:
    """Seconds and accuracy of one evaluation, compilation included."""
    data, source = condense_once.load(SET, first=40), condense_once.open_source("cifar10")
    start = time.perf_counter()
    if way == "plain":
        images, labels = prepare_test_images(data, source)
        inputs = training_images(data)[:]
        accuracy = plain_evaluation(inputs, torch.from_numpy(data.labels), (images[:], labels), epochs)
    else:
        keep_freed_memory()
        compute = ComputeConfig(threads=cores())
        accuracy = condense_once.evaluate(data, source, protocol=protocol(epochs), repeats=1, compute=compute).mean
    return time.perf_counter() - start, accuracy


def protocol(epochs: int) -> Protocol:
    return replace(PAPER, small=replace(PAPER.small, epochs=epochs))


def in_subprocess(way: str, epochs: int) -> tuple[float, float]:
    """The same in its own process with empty caches, as our allocator settings would speed up the plain one, too."""
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, way, str(epochs)],
            env={**os.environ, "CONDENSE_ONCE_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": folder},
            stdout=subprocess.PIPE,
            check=True,
        )
    seconds, accuracy = json.loads(done.stdout)
    return seconds, accuracy


def main() -> None:
    epochs, repeats = (int(text) for text in (*sys.argv[1:], "1000", "9")[:2])
    print(f"{cpu_model()}; 40 patches, {epochs} epochs, best of {TURNS} in turns", flush=True)
    runs = [(in_subprocess("plain", epochs), in_subprocess("ours", epochs)) for _ in range(TURNS)]
    (plain, plain_accuracy), (single, ours) = (min(way) for way in zip(*runs, strict=True))
    print(f"plain, one run   {plain:8.1f} s   accuracy {plain_accuracy:.2%}")
    print(f"ours, one run    {single:8.1f} s   accuracy {ours:.2%}; {plain / single:.2f} × faster, compiling included")
    print(f"all, in turns    {', '.join(f'{a:.1f} / {b:.1f}' for (a, _), (b, _) in runs)}", flush=True)

    keep_freed_memory()
    data, source = condense_once.load(SET, first=40), condense_once.open_source("cifar10")
    start = time.perf_counter()
    many = condense_once.evaluate(data, source, protocol=protocol(epochs), repeats=repeats)
    several = time.perf_counter() - start
    spread = f"± {many.std:.2%}; {several / single:.2f} times one run"
    print(f"ours, {f'{repeats} runs':10} {several:8.1f} s   accuracy {many.mean:.2%} {spread}")
    print(f"ours, per run    {several / repeats:8.1f} s   {plain * repeats / several:.2f} × faster than plain")


if __name__ == "__main__":
    if sys.argv[1:2] in (["plain"], ["ours"]):
        print(json.dumps(once(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
