"""One training step (ConvNet-D3, 64×3×32×32, augmentation, CutMix, SGD) against a plain implementation.

The plain reference is eager float32: affine_grid and grid_sample, crops one by one, CutMix by slicing. Also printed: the
fraction of the step spent on augmentation, and the fraction of the peak matrix-product rate that the step reaches. bfloat16
is used where the CPU has it in hardware.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as fn
from machine import PlainProcess, best_in_turns, cpu_model, serve
from torch import Tensor, nn

from condense_once.augment import Augmentation, CutMix, Mix
from condense_once.condensed.space import Space
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import compute_dtype
from condense_once.train.images import DataSpec
from condense_once.train.memory import keep_freed_memory
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator
from condense_once.train.trainer import Trainer

BATCH, STEPS = 64, 12
FLOP = (
    2 * 3 * BATCH * (3 * 9 * 128 * 32**2 + 128 * 9 * 128 * 16**2 + 128 * 9 * 128 * 8**2 + 2048 * 10)
)  # forward and backward
FLOP -= 2 * BATCH * 3 * 9 * 128 * 32**2  # the gradient of the images is not needed


def plain_network() -> nn.Module:
    layers: list[nn.Module] = []
    for channels in (3, 128, 128):
        layers += [nn.Conv2d(channels, 128, 3, padding=1), nn.GroupNorm(128, 128), nn.ReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 10))


def plain_augment(x: Tensor) -> Tensor:
    n = len(x)
    x = torch.where(torch.rand(n, 1, 1, 1) < 0.5, x.flip(3), x)
    x = x + (torch.rand(n, 1, 1, 1) - 0.5)
    mean = x.mean(1, keepdim=True)
    x = (x - mean) * (torch.rand(n, 1, 1, 1) * 2) + mean
    mean = x.mean((1, 2, 3), keepdim=True)
    x = (x - mean) * (torch.rand(n, 1, 1, 1) + 0.5) + mean
    choice = int(torch.randint(3, ()))
    if choice == 0:
        padded = fn.pad(x, (4, 4, 4, 4))
        shifts = torch.randint(0, 9, (n, 2)).tolist()
        return torch.stack([image[:, a : a + 32, b : b + 32] for image, (a, b) in zip(padded, shifts, strict=True)])
    theta = torch.zeros(n, 2, 3)
    if choice == 1:
        theta[:, 0, 0], theta[:, 1, 1] = torch.rand(2, n) * (1.2 - 1 / 1.2) + 1 / 1.2
    else:
        angle = (torch.rand(n) * 2 - 1) * torch.pi / 12
        theta[:, 0, 0], theta[:, 0, 1], theta[:, 1, 0], theta[:, 1, 1] = (
            angle.cos(),
            -angle.sin(),
            angle.sin(),
            angle.cos(),
        )
    return fn.grid_sample(x, fn.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)


def plain_mix(images: Tensor) -> tuple[Tensor, Tensor, float]:
    """CutMix by slicing on half of the batches: images, their partners, and the weight of their own labels."""
    if torch.rand(()) >= 0.5:
        return images, torch.arange(len(images)), 1.0
    half = int(32 * (1 - torch.rand(())).sqrt()) // 2
    row, column = torch.randint(0, 32, (2,)).tolist()
    top, bottom, left, right = max(row - half, 0), min(row + half, 32), max(column - half, 0), min(column + half, 32)
    partner = torch.randperm(len(images))
    images[:, :, top:bottom, left:right] = images[partner, :, top:bottom, left:right]
    return images, partner, 1 - (bottom - top) * (right - left) / 32**2


def plain_step(x: Tensor, y: Tensor) -> Callable[[], None]:
    net = plain_network()
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)

    def step() -> None:
        images, partner, ratio = plain_mix(plain_augment(x))
        logits = net(images)
        loss = ratio * fn.cross_entropy(logits, y) + (1 - ratio) * fn.cross_entropy(logits, y[partner])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def examples() -> tuple[Tensor, Tensor]:
    return torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))


def our_trainer() -> Trainer:
    space = Space("pixels", (0.5,) * 3, (0.25,) * 3)
    spec, compute = DataSpec((3, 32, 32), 10, space), ComputeConfig(compilation="on")
    return Trainer("convnet-d3", spec, Recipe(), passes=0, compute=compute)


def our_step(trainer: Trainer, x: Tensor, y: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.SGD(trainer.net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    batches = generator(0, "batches")
    return lambda: (trainer._step(x, y, optimiser, batches), None)[1]


def our_augmentation(x: Tensor, compiled: bool) -> Callable[[], None]:
    augmentation, cutmix, batches = Augmentation.parse(Recipe().augmentation), CutMix(0.5), generator(0, "batches")

    def augment(x: Tensor, params: Any, mix: Mix) -> Tensor:
        return CutMix.apply(Augmentation.apply(x, params), mix)

    apply = torch.compile(augment) if compiled else augment

    def step() -> None:
        apply(x, augmentation.sample(BATCH, (32, 32), batches), cutmix.sample(BATCH, (32, 32), batches))

    return step


def main() -> None:
    keep_freed_memory()  # as the command line does; not in the process of the plain reference
    x, y = examples()
    dtype = compute_dtype("auto", torch.device("cpu"))
    a = torch.randn(2048, 2048).to(dtype)

    def product() -> None:
        a @ a

    reference, trainer = PlainProcess(__file__), our_trainer()
    augmentation = our_augmentation(x.clone(), trainer.compiled)
    plain, ours, augmenting, peak = best_in_turns(STEPS, reference, our_step(trainer, x, y), augmentation, product)
    reference.close()
    rate = 2 * 2048**3 / peak
    fraction, plain_fraction = FLOP / ours / rate, FLOP / plain / rate
    print(
        f"{cpu_model()}; {torch.get_num_threads()} threads; {str(dtype).removeprefix('torch.')}; best of {STEPS} in turns"
    )
    print(f"plain step     {plain * 1e3:8.1f} ms")
    print(f"our step       {ours * 1e3:8.1f} ms   {plain / ours:.2f} × faster")
    print(f"augmentation   {augmenting * 1e3:8.1f} ms   {augmenting / ours:.1%} of our step")
    print(
        f"peak product   {rate / 1e9:8.0f} GFLOP/s; our step reaches {fraction:.0%} of it, the plain one {plain_fraction:.0%},"
        " counted as direct convolutions"
    )


if __name__ == "__main__":
    serve(plain_step(*examples())) if sys.argv[1:] == ["plain"] else main()
