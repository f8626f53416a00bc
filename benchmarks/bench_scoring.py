"""What scoring costs: all metrics of dynamics from one run against LBPE alone, and the whole against the authors' way.

Their first program trains 1000 epochs in batches of 64, here with the plain step of `bench_step.py`; the learning rate drops
by iteration. It logs the indices and the half-precision log-softmax of every batch, tests on all test images every 10 epochs,
stores the best and the last weights, and pickles the log at the end. Their second program reads the log and passes over all
of it once per metric, and for LBPE once for each of the 10 best epochs. Unknowns are resolved in their favour: test batches
have the size that is fastest here, the log is pickled in memory, and data-loading processes cost nothing.

Ours is everything from the set to the scores: compiling, 100 epochs, all metrics. Takes about two hours; --epochs-measured
sets how many of their epochs are run, and the rest is scaled.
"""

from __future__ import annotations

import argparse
import io
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as fn
from bench_step import plain_augment, plain_mix, plain_network
from machine import cpu_model
from torch import Tensor, nn

import condense_once
from condense_once.condensed.set import CondensedSet
from condense_once.data.source import Source
from condense_once.metrics import METRICS, Epochs, MetricConfig
from condense_once.metrics.scoring_run import record_scoring_run
from condense_once.train.compute_config import ComputeConfig

EPOCHS, BATCH, EVERY, BEST, EARLY = 1000, 64, 10, 10, 100
TEST_BATCH = 100
DYNAMICS = ["lbpe", "el2n", "aum", "forgetting"]


@dataclass
class Authors:
    """Seconds and bytes of their way, scaled to all epochs."""

    training: float
    testing: float
    writing: float
    reading: float
    passes: float
    log: int
    weights: int

    @property
    def seconds(self) -> float:
        return self.training + self.testing + self.writing + self.reading + self.passes


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def authors_way(
    data: CondensedSet, test: tuple[Tensor, Tensor], measured: int, make: Callable[[], nn.Module]
) -> Authors:
    """Run `measured` epochs of their way and scale what grows with the epochs."""
    inputs, labels = torch.from_numpy(data.inputs()), torch.from_numpy(data.labels)
    net, log = make(), list[dict[str, Any]]()
    training, tests = 0.0, []
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    steps = EPOCHS * -(-len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [2 * steps // 3, 5 * steps // 6], gamma=0.2)
    for epoch in range(measured):
        took, records = timed(lambda epoch=epoch: train_epoch(net, optimiser, schedule, inputs, labels, epoch))
        training, log = training + took, log + records
        if (epoch + 1) % EVERY == 0 or epoch + 1 == measured:
            tests.append(timed(lambda: accuracy(net, *test))[0])
    weights = io.BytesIO()
    torch.save({"model_state_dict": net.state_dict(), "epoch": measured}, weights)
    writing, written = timed(lambda: pickle.dumps({"data-name": data.name, "training_dynamics": log}))
    reading, read = timed(lambda: pickle.loads(written)["training_dynamics"])
    passes, _ = timed(lambda: all_passes(read, labels, min(BEST, measured)))
    scale = EPOCHS / measured
    return Authors(
        training=training * scale,
        testing=sum(tests) / len(tests) * (EPOCHS // EVERY),
        writing=writing * scale,
        reading=reading * scale,
        passes=passes * scale,
        log=round(len(written) * scale),
        weights=2 * len(weights.getvalue()),
    )


def train_epoch(
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.MultiStepLR,
    inputs: Tensor,
    labels: Tensor,
    epoch: int,
) -> list[dict[str, Any]]:
    records = []
    for step, rows in enumerate(torch.split(torch.randperm(len(labels)), BATCH)):
        images, partner, ratio = plain_mix(plain_augment(inputs[rows]))
        logits, y = net(images), labels[rows]
        loss = ratio * fn.cross_entropy(logits, y) + (1 - ratio) * fn.cross_entropy(logits, y[partner])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        output = logits.detach().log_softmax(1).half()
        records.append({"epoch": epoch, "iteration": step, "idx": rows.clone(), "output": output})
    return records


def accuracy(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in zip(torch.split(images, TEST_BATCH), torch.split(labels, TEST_BATCH), strict=True):
            right += int((net(x).argmax(1) == y).sum())
    net.train()
    return right / len(labels)


def all_passes(log: list[dict[str, Any]], labels: Tensor, best: int) -> dict[str, Tensor]:
    """A pass for margins and forgetting, one for the accuracy of epochs, one for EL2N and one for each epoch of LBPE."""
    count = len(labels)
    margin, forgetting, right = torch.zeros(count), torch.zeros(count), torch.zeros(count, dtype=torch.bool)
    for record in log:
        rows, p = record["idx"], record["output"].float().exp()
        y = labels[rows]
        own = p.gather(1, y[:, None])[:, 0]
        margin[rows] += own - p.scatter(1, y[:, None], -1.0).amax(1)
        now = p.argmax(1) == y
        forgetting[rows] += (right[rows] & ~now).float()
        right[rows] = now
    hits = torch.zeros(EPOCHS)
    for record in log:
        hits[record["epoch"]] += (record["output"].float().argmax(1) == labels[record["idx"]]).sum()
    el2n = errors(log, labels, range(10))
    lbpe = torch.zeros(count)
    for epoch in hits[:EARLY].topk(best).indices.tolist():
        lbpe += errors(log, labels, range(epoch, epoch + 1))
    return {"aum": margin, "forgetting": forgetting, "el2n": el2n, "lbpe": lbpe}


def errors(log: list[dict[str, Any]], labels: Tensor, epochs: range) -> Tensor:
    total = torch.zeros(len(labels))
    for record in log:
        if record["epoch"] in epochs:
            rows, p = record["idx"], record["output"].float().exp()
            total[rows] += (p - fn.one_hot(labels[rows], p.shape[1])).norm(dim=1)
    return total


def score(data: CondensedSet, names: list[str], config: MetricConfig, net: str | None) -> dict[str, np.ndarray]:
    run = record_scoring_run(data, names, config, net=net)
    return {name: METRICS.get(name).score(run, config) for name in names}


def compare_metrics(data: CondensedSet, config: MetricConfig, net: str | None, turns: int) -> None:
    """Everything is compiled before; in turns, so that other load hits all candidates."""
    sets = {"lbpe alone": ["lbpe"], "all dynamics": DYNAMICS, "and lbpe-clean": [*DYNAMICS, "lbpe-clean"]}
    best = dict.fromkeys(sets, float("inf"))
    for _ in range(turns):
        for what, names in sets.items():
            best[what] = min(best[what], timed(lambda names=names: score(data, names, config, net))[0])
    run = record_scoring_run(data, DYNAMICS, config, net=net)
    print(f"\nscoring {len(data)} patches, {config.scoring_epochs} epochs, already compiled; best of {turns} in turns")
    for what, seconds in best.items():
        print(f"{what:20}{seconds:10.2f} s   {seconds / best['lbpe alone']:.3f} × lbpe alone")
    for name in DYNAMICS:
        seconds = min(timed(lambda name=name: METRICS.get(name).score(run, config))[0] for _ in range(5))
        print(f"{name + ', recorded':20}{seconds * 1e3:10.2f} ms")
    print("lbpe-clean adds a pass over all patches in evaluation mode after every epoch.")


def compare_ways(data: CondensedSet, source: Source, config: MetricConfig, net: str | None, measured: int) -> None:
    ours, scores = timed(lambda: score(data, DYNAMICS, config, net))
    pixels = torch.from_numpy(source.test.take(slice(None))).float() / 255
    mean, std = (torch.tensor(values)[:, None, None] for values in (data.space.mean, data.space.std))
    test = ((pixels - mean) / std, torch.tensor(source.test.labels))
    theirs = authors_way(data, test, measured, plain_network)
    kept = io.BytesIO()
    np.savez(kept, **scores)
    dynamics = 13 * config.scoring_epochs * len(data)  # three float32 and a bool
    scaled = "" if measured == EPOCHS else f", scaled from {measured}"
    print(
        f"\n{len(data)} patches, {len(test[1])} test images; theirs {EPOCHS} epochs{scaled}, ours {config.scoring_epochs}"
    )
    for what in ("training", "testing", "writing", "reading", "passes"):
        print(f"theirs, {what:10}{getattr(theirs, what):10.1f} s")
    print(f"theirs, total     {theirs.seconds:10.1f} s")
    print(f"ours, total       {ours:10.1f} s   {theirs.seconds / ours:.1f} × faster, compiling included")
    print(f"                                {(theirs.seconds - theirs.testing) / ours:.1f} × without their tests")
    print(f"their log         {theirs.log:12,} bytes, and {theirs.weights:,} of weights")
    print(f"our scores        {kept.tell():12,} bytes   {theirs.log / kept.tell():.0f} × less")
    print(f"our dynamics      {dynamics:12,} bytes   {theirs.log / dynamics:.0f} × less, if kept at all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--epochs-measured", type=int, default=EPOCHS, help="how many of the authors' 1000 epochs to run"
    )
    parser.add_argument("--epochs", type=int, default=EARLY, help="length of our scoring run")
    parser.add_argument("--patches", type=int, default=None, help="how many of the bundled set's 400")
    parser.add_argument("--net", default=None, help="network of our scoring run, to try this script")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--test", default="cifar10", help="source of the test images for the authors' way")
    args = parser.parse_args()
    data = condense_once.load("cifar10-real-ipc10", first=args.patches)
    best = min(BEST, args.epochs)
    config = MetricConfig(scoring_epochs=args.epochs, lbpe_epochs=Epochs.top(best, among=args.epochs), el2n_epochs=best)
    print(f"{cpu_model()}; {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder  # start with an empty cache
        compare_ways(data, condense_once.open_source(args.test), config, args.net, args.epochs_measured)
        # compile everything that is compared next, including the clean passes
        one = MetricConfig(scoring_epochs=1, lbpe_epochs=Epochs.all())
        record_scoring_run(data, ["lbpe-clean"], one, net=args.net, compute=ComputeConfig(compilation="on"))
        compare_metrics(data, config, args.net, args.turns)


if __name__ == "__main__":
    main()
