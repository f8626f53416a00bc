"""A whole evaluation of 40 patches (CIFAR-10, 10 → 1), everything included, against the ordinary way; and several repeats.

Included are compiling, the final test on all test images, and preparing them. The ordinary way is the plain step of
`bench_step.py` with the same schedule, and a test in batches of 32 as the authors do. Takes about half an hour;
pass a number of epochs to shorten it (1000 is the paper's), and a number of repeats (9 is the paper's).
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from tempfile import TemporaryDirectory

import torch
from bench_step import plain_augment, plain_mix, plain_network
from machine import cpu_model

import condense_once
from condense_once.evaluation.inputs import images_for_testing, training_images
from condense_once.evaluation.protocols import PAPER
from condense_once.evaluation.running import Settings
from condense_once.train.hardware import cores


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
    right = 0
    with torch.no_grad():
        for x, y in zip(torch.split(test[0], 32), torch.split(test[1], 32), strict=True):
            right += int((net(x).argmax(1) == y).sum())
    return right / len(test[1])


def main() -> None:
    epochs, repeats = (int(text) for text in (*sys.argv[1:], "1000", "9")[:2])
    data = condense_once.load("cifar10-real-ipc10", first=40)
    source = condense_once.open_source("cifar10")
    protocol = replace(PAPER, small=replace(PAPER.small, epochs=epochs))

    start = time.perf_counter()
    images, labels = images_for_testing(data, source)
    accuracy = plain_evaluation(training_images(data)[:], torch.from_numpy(data.labels), (images[:], labels), epochs)
    plain = time.perf_counter() - start
    with TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder  # nothing that was compiled before is used
        start = time.perf_counter()
        one = condense_once.evaluate(data, source, protocol=protocol, repeats=1, settings=Settings(threads=cores()))
        single = time.perf_counter() - start
        start = time.perf_counter()
        many = condense_once.evaluate(data, source, protocol=protocol, repeats=repeats)
        several = time.perf_counter() - start

    print(f"{cpu_model()}; 40 patches, {epochs} epochs, {len(source.test.labels)} test images")
    print(f"ordinary way  {plain:8.1f} s   accuracy {accuracy:.2%}")
    print(f"ours, once    {single:8.1f} s   accuracy {one.mean:.2%}; {plain / single:.2f} × faster, compiling included")
    print(
        f"ours, {repeats} times {several:8.1f} s   accuracy {many.mean:.2%} ± {many.std:.2%}; {several / single:.2f} times once"
    )
    print(f"a repeat      {several / repeats:8.1f} s   {plain * repeats / several:.2f} × faster than the ordinary way")


if __name__ == "__main__":
    main()
