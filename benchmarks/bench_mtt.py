"""Time and peak memory of one student of MTT, with recomputed steps and with the graph of all steps in memory.

Ten classes with ten images each, all of them in every step, ConvNet-D3 at half width, native kernels where there is a
compiler. Each measurement is a process of its own, whose memory before the student counts as nothing:

    python benchmarks/bench_mtt.py [--net convnet-d3-w64] [--images 100] [--steps 2 5 10] [--only-recomputed 30]

The gradients of both ways are compared for the smallest number of steps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import torch
from machine import cpu_model
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from condense_once.augment import Augmentation, SingleAugmentation
from condense_once.condensing.experts.config import MTT_EXPERTS
from condense_once.condensing.mtt.loop import AT_ONCE
from condense_once.condensing.mtt.student import (
    Matched,
    StudentBatch,
    Weights,
    match_with_recomputation,
    match_with_stored_graph,
)
from condense_once.condensing.peak_memory import peak_memory
from condense_once.nets import make_net, use_native_kernels

SHAPE, CLASSES = (3, 32, 32), 10
WAYS = ("recomputed", "stored")


def student(way: str, net_name: str, images: int, steps: int) -> Matched:
    """The loss and gradients of a student from random weights to others nearby."""
    rng = torch.Generator().manual_seed(0)
    net = make_net(net_name, SHAPE, CLASSES, generator=rng).eval()
    use_native_kernels(net)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    start = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    target = {name: weight + 0.01 * torch.randn(weight.shape, generator=rng) for name, weight in start.items()}
    labels = torch.arange(images) % CLASSES
    augmentation = SingleAugmentation.parse(MTT_EXPERTS.augmentation.removeprefix("dsa:"))
    batches = [
        StudentBatch(torch.arange(images), labels, augmentation.sample(images, SHAPE[1:], rng)) for _ in range(steps)
    ]

    def loss(weights: Weights, x: Tensor, batch: StudentBatch) -> Tensor:
        x = Augmentation.apply(x, batch.params).contiguous(memory_format=torch.channels_last)
        return cross_entropy(functional_call(net, dict(weights), (x,)), batch.labels)

    patches, lr = torch.randn(images, *SHAPE, generator=rng), torch.tensor(0.01)
    if way == "stored":
        return match_with_stored_graph(loss, start, target, patches, lr, batches)
    return match_with_recomputation(loss, start, target, patches, lr, batches, at_once=AT_ONCE)


def report(way: str, net: str, images: int, steps: int) -> None:
    """Print seconds and bytes of a student, in a process of its own."""
    student(way, net, 2, 1)  # kernels are compiled, libraries loaded
    before, start = peak_memory(), time.perf_counter()
    student(way, net, images, steps)
    peak = peak_memory()
    used = None if before is None or peak is None else peak - before
    print(json.dumps({"seconds": time.perf_counter() - start, "bytes": used}))


def measured(way: str, net: str, images: int, steps: int) -> str:
    command = [sys.executable, __file__, "--report", way, "--net", net, "--images", str(images), "--steps", str(steps)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    memory = "?" if found["bytes"] is None else f"{found['bytes'] / 2**30:.2f} GiB"
    return f"{memory}, {found['seconds']:.1f} s"


def agreement(net: str, images: int, steps: int) -> float:
    one, other = (student(way, net, images, steps).patches.flatten() for way in WAYS)
    return float(torch.nn.functional.cosine_similarity(one, other, dim=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", default="convnet-d3-w64")
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--steps", nargs="+", type=int, default=[2, 5, 10])
    parser.add_argument("--only-recomputed", nargs="*", type=int, default=[30], metavar="STEPS")
    parser.add_argument("--report", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.report:
        report(args.report, args.net, args.images, args.steps[0])
        return
    print(f"{cpu_model()}; {torch.get_num_threads()} threads; {args.net}, {args.images} images in every step")
    print("| student steps | recomputed | stored |")
    print("|---|---|---|")
    for steps in args.steps:
        found = [measured(way, args.net, args.images, steps) for way in WAYS]
        print(f"| {steps} | {' | '.join(found)} |", flush=True)
    for steps in args.only_recomputed:
        print(f"| {steps} | {measured('recomputed', args.net, args.images, steps)} | not measured |", flush=True)
    cosine = agreement(args.net, args.images, min(args.steps))
    print(f"cosine between the image gradients of both: {cosine:.6f}")
    if cosine < 0.9999:
        raise SystemExit("The image gradient of recomputed steps differs from that of the stored graph.")


if __name__ == "__main__":
    main()
