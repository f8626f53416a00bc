"""What makes sets stronger per CPU minute? Variants of `tgdd` with a time budget, each in the same CPU minutes of one core.

    python benchmarks/tgdd_variants.py FOLDER [--variants base "cross-entropy 1" …] [--minutes 5] [--seeds 0] [--nested]
        [--expert-epochs 15] [--net convnet-d3-w64] [--repeats 2]

CIFAR-10, ten images per class, factor 2. All variants reuse one expert, whose training is not counted. Of each class 100 training
images are held out, and sets are tested on those. Results are appended to FOLDER/variants.jsonl, and a second call resumes there.
"""

from __future__ import annotations

import argparse
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from log import Log
from torch import Tensor

import condense_once
from condense_once.augment import Augmentation
from condense_once.condensing import CONDENSERS
from condense_once.condensing.condenser import Task
from condense_once.condensing.distribution.loop import DistributionCondenser, Iteration
from condense_once.condensing.distribution.loss import class_cross_entropy
from condense_once.condensing.distribution.tgdd import tgdd
from condense_once.condensing.init import recipe_of_task
from condense_once.data.split import hold_out
from condense_once.nets.native import gradients_of_images_only

IPC, SIZES = 10, (1, 2, 5, 10)


class Later(DistributionCondenser):
    """Only snapshots of the second half of the expert's training."""

    def load_snapshot(self, sampling: torch.Generator) -> None:
        run = self.experts.trajectories[0]
        place = int(torch.randint(run.snapshots // 2, run.snapshots, (), generator=sampling))
        run.load_into(self.net.module, place)


class Interpolated(DistributionCondenser):
    """Weights between those before and after training, as in DANCE and NCFM."""

    def load_snapshot(self, sampling: torch.Generator) -> None:
        run, share = self.experts.trajectories[0], float(torch.rand((), generator=sampling))
        run.load_into(self.net.module, 0)
        before = {name: tensor.clone() for name, tensor in self.net.module.state_dict().items()}
        run.load_into(self.net.module, run.snapshots - 1)
        for name, tensor in self.net.module.state_dict().items():
            if tensor.is_floating_point():
                tensor.lerp_(before[name], share)


class WithFeatures(DistributionCondenser):
    """Distances that need the features of the real images, not only their mean."""

    def _real_mean(self, label: int, iteration: int, params: Any) -> Tensor:
        pixels = self.real.pixels(self.real.class_batch(label, iteration))
        features = self.net(Augmentation.apply(self.real.normalise(pixels), params))[0]
        self.__dict__.setdefault("_real_features", {})[label] = features
        return features.mean(0)

    def _loss(self, images: Tensor, labels: Sequence[int], rows: Tensor, now: Iteration) -> Tensor:
        x = Augmentation.apply(self.real.normalise(self._patches(images)[:, rows].flatten(0, 1)), now.params)
        features, logits = self.net(x)
        entropy = class_cross_entropy(logits.view(len(labels), len(rows), -1), torch.tensor(labels))
        real = torch.stack([self.__dict__["_real_features"][label] for label in labels])
        return (
            self.distance(real, features.view(len(labels), len(rows), -1)) + self.recipe.cross_entropy * entropy
        ).sum()

    @abstractmethod
    def distance(self, real: Tensor, synthetic: Tensor) -> Tensor: ...  # [C, m, d], [C, n, d] -> [C]


class Moments(WithFeatures):
    """Means, and standard deviations."""

    def distance(self, real: Tensor, synthetic: Tensor) -> Tensor:
        means = (synthetic.mean(1) - real.mean(1)).square().sum(1)
        return means + (synthetic.std(1) - real.std(1)).square().sum(1)


class Kernel(WithFeatures):
    """Maximum mean discrepancy by a Gaussian kernel, as in M3D, on the scale of the distance of means."""

    def distance(self, real: Tensor, synthetic: Tensor) -> Tensor:
        width = torch.cdist(real, real).square().mean((1, 2), keepdim=True)

        def similarity(a: Tensor, b: Tensor) -> Tensor:
            return torch.exp(-torch.cdist(a, b).square() / width).mean((1, 2))

        return width.flatten() * (similarity(synthetic, synthetic) - 2 * similarity(synthetic, real))


class Characteristic(WithFeatures):
    """Characteristic functions of normed features at 512 random frequencies, as in NCFM."""

    def distance(self, real: Tensor, synthetic: Tensor) -> Tensor:
        frequencies = torch.randn(real.shape[2], 512, generator=self._sampling("frequencies", self.done))

        def function(features: Tensor) -> tuple[Tensor, Tensor]:
            phases = torch.nn.functional.normalize(features, dim=2) @ frequencies
            return phases.cos().mean(1), phases.sin().mean(1)

        parts = zip(function(real), function(synthetic), strict=True)
        return 300 * torch.stack([(a - b).square().mean(1) for a, b in parts]).sum(0).sqrt()


class Adam(DistributionCondenser):
    """Adam on the pixels; the recipe's image_lr is its learning rate."""

    def step(self, now: Iteration) -> float:
        rows, labels = self._sample_patches(), self._owned
        images = self.images[labels].requires_grad_()
        loss = self._loss(images, labels, rows, now)
        with gradients_of_images_only():
            (gradient,) = torch.autograd.grad(loss, images)
        state = self.__dict__.setdefault("_adam", {"steps": 0, "squares": torch.zeros_like(gradient)})
        state["steps"] += 1
        self.velocity.mul_(0.9).add_(gradient, alpha=0.1)
        state["squares"].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        mean = self.velocity / (1 - 0.9 ** state["steps"])
        scale = (state["squares"] / (1 - 0.999 ** state["steps"])).sqrt() + 1e-8
        self.images = (images.detach() - self._learning_rates() * mean / scale).clamp_(0, 1)
        return float(loss.detach()) / len(labels)


@dataclass(frozen=True)
class Variant:
    overrides: Mapping[str, Any]
    condenser: type[DistributionCondenser] = DistributionCondenser


VARIANTS = {
    "base": Variant({}),
    **{f"cross-entropy {weight:g}": Variant({"cross_entropy": weight}) for weight in (0.0, 0.5, 1.0, 5.0, 10.0)},
    **{f"image_lr {lr:g}": Variant({"image_lr": lr}) for lr in (0.1, 0.4, 0.8)},
    "constant image_lr": Variant({"final_lr": 1.0}),
    "momentum 0.9": Variant({"image_momentum": 0.9, "image_lr": 0.04}),
    **{f"{steps} steps per snapshot": Variant({"steps": steps}) for steps in (1, 10)},
    **{f"{count} real images": Variant({"real_batch": count}) for count in (128, 256)},
    "init representatives": Variant({"init": "representatives", "pool": 1024}),
    "20 patches a step": Variant({"max_patches": 20}),
    "all augmentations": Variant({"augmentation": "color_crop_cutout_flip_scale_rotate"}),
    "flips too": Variant({"augmentation": "color_crop_cutout_flip"}),
    "expert ahead": Variant({"ahead": 4}),
    "later snapshots": Variant({}, Later),
    "interpolated weights": Variant({}, Interpolated),
    "means and std": Variant({}, Moments),
    "kernel distance": Variant({}, Kernel),
    "characteristic function": Variant({}, Characteristic),
    **{f"Adam {lr:g}": Variant({"image_lr": lr}, Adam) for lr in (0.003, 0.01, 0.03)},
}


def build(kind: type[DistributionCondenser], task: Task, saved: Mapping[str, Any] | None) -> DistributionCondenser:
    config = task.config
    return kind(task, recipe_of_task(tgdd(task.source.train.shape, config.ipc, config.factor), task))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--nested", action="store_true", help="test nested sets at 1, 2, 5 and 10 images per class")
    parser.add_argument("--expert-epochs", type=int, default=15)
    parser.add_argument("--net", default="convnet-d3-w64", help="to test with")
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    time.perf_counter = time.process_time  # time budgets in CPU time
    torch.set_num_threads(1)
    args.folder.mkdir(exist_ok=True)
    log = Log(args.folder / "variants.jsonl")
    train, held_out = hold_out(condense_once.open_source("cifar10"))
    base = CONDENSERS.get("tgdd")
    for name in args.variants:
        variant = VARIANTS[name]
        method = base if variant.condenser is DistributionCondenser else replace(base, name=f"tgdd, {name}")
        if method is not base:
            CONDENSERS.add(replace(method, build=partial(build, variant.condenser)))
        for seed in args.seeds:
            key = {"variant": name, "minutes": args.minutes, "seed": seed, "nested": args.nested, "net": args.net}
            key |= {"expert_epochs": args.expert_epochs}
            if log.find(**key):
                continue
            data = condense_once.condense(
                train,
                method=method.name,
                ipc=IPC,
                minutes=args.minutes,
                nested=args.nested,
                seed=seed,
                overrides={"expert_epochs": args.expert_epochs, **variant.overrides},
                experts=args.folder / "experts",
            )
            found = {}
            for ipc in SIZES if args.nested else (IPC,):
                part = condense_once.resize(data, ipc=ipc) if ipc < IPC else data
                runs = condense_once.evaluate(part, held_out, net=args.net, repeats=args.repeats).runs
                found[ipc] = [round(100 * run.accuracy, 2) for run in runs]
            log.add(**key, iterations=data.provenance["recipe"]["iterations"], accuracies=found)


if __name__ == "__main__":
    main()
