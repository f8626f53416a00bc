"""One class step of IDC (ConvNet-D3, 64 real images and 40 patches) against a plain implementation.

The plain reference is eager float32 in its own process: two backward passes, the second through the first, with
augmentation by slicing. Ours uses native kernels, or one compiled program in bfloat16 where the CPU has it in hardware.
Also printed: the cosine between the image gradients of the fast and the plain path of the package, at least 0.99.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as fn
from machine import PlainProcess, best_in_turns, cpu_model, serve
from torch import Tensor, nn

from condense_once.augment import Augmentation
from condense_once.condensed.space import Space
from condense_once.condensing.matching.class_step import ClassStep
from condense_once.condensing.matching.idc import idc
from condense_once.condensing.matching.loop import momentum_step
from condense_once.condensing.matching.network import MatchingNetwork
from condense_once.condensing.real_images import Normaliser
from condense_once.data.source import ArraySplit, Source
from condense_once.train.hardware import how_compiled
from condense_once.train.images import DataSpec
from condense_once.train.seeds import generator

REAL, IPC, FACTOR, STEPS = 64, 10, 2, 8
SHAPE = (3, 32, 32)


def plain_network() -> nn.Module:
    layers: list[nn.Module] = []
    for channels in (3, 128, 128):
        layers += [nn.Conv2d(channels, 128, 3, padding=1), nn.GroupNorm(128, 128), nn.ReLU(), nn.AvgPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 10))


def plain_augment(x: Tensor) -> Tensor:
    """Brightness, saturation, contrast, crop and cutout, each with one parameter for all images."""
    x = x + (torch.rand(()) - 0.5)
    mean = x.mean(1, keepdim=True)
    x = (x - mean) * (torch.rand(()) * 2) + mean
    mean = x.mean((1, 2, 3), keepdim=True)
    x = (x - mean) * (torch.rand(()) + 0.5) + mean
    down, right = torch.randint(0, 9, (2,)).tolist()
    x = fn.pad(x, (4, 4, 4, 4))[:, :, down : down + 32, right : right + 32]
    top, left = torch.randint(0, 17, (2,)).tolist()
    mask = torch.ones_like(x)
    mask[:, :, top : top + 16, left : left + 16] = 0
    return x * mask


def plain_step(images: Tensor, real: Tensor) -> Callable[[], None]:
    net = plain_network()
    weights = list(net.parameters())
    synthetic = images.clone().requires_grad_()
    optimiser = torch.optim.SGD([synthetic], lr=1e-3, momentum=0.5)

    def step() -> None:
        cells = [synthetic[:, :, a : a + 16, b : b + 16] for a in (0, 16) for b in (0, 16)]
        patches = fn.interpolate(torch.cat(cells), (32, 32), mode="bilinear", align_corners=False)
        both = plain_augment((torch.cat([real, patches]) - 0.5) / 0.25)
        real_inputs, inputs = both[:REAL], both[REAL:]
        label = torch.full((len(both),), 3)
        target = torch.autograd.grad(fn.cross_entropy(net(real_inputs.detach()), label[:REAL]), weights)
        gradient = torch.autograd.grad(fn.cross_entropy(net(inputs), label[REAL:]), weights, create_graph=True)
        loss = torch.stack([(g - t).square().sum() for g, t in zip(gradient, target, strict=True) if g.ndim == 4]).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def our_parts(real: Tensor) -> tuple[MatchingNetwork, Normaliser, ClassStep]:
    images = ArraySplit((real * 255).byte().numpy(), np.full(REAL, 3))
    classes = tuple(f"class {label}" for label in range(10))
    source = Source("noise", classes, (0.5,) * 3, (0.25,) * 3, {"train": images})
    recipe = idc(SHAPE, IPC, FACTOR)
    data = DataSpec(SHAPE, 10, Space(recipe.space, source.mean, source.std))
    network = MatchingNetwork("convnet-d3", data, recipe, passes=0)
    normalise = Normaliser(source, network.device)
    compiled = how_compiled("auto", network.device, network.dtype, 1e9)
    return network, normalise, ClassStep(network, recipe, normalise, SHAPE, FACTOR, compiled)


def our_step(class_step: ClassStep, images: Tensor, real: Tensor) -> Callable[[], None]:
    images, velocity, sampling = images.clone(), torch.zeros_like(images), generator(0, "augmentation")
    augmentation, rows, label = Augmentation.parse("color_crop_cutout"), torch.arange(IPC * FACTOR**2), torch.tensor(3)

    def step() -> None:
        _, gradient = class_step(images, real, label, rows, augmentation.sample_shared((32, 32), sampling))
        momentum_step(images, velocity, gradient, lr=1e-3, momentum=0.5)

    return step


def gradient_cosine(
    network: MatchingNetwork, normalise: Normaliser, fast: ClassStep, images: Tensor, real: Tensor
) -> float:
    params = Augmentation.parse("color_crop_cutout").sample_shared((32, 32), generator(0, "augmentation"))
    network.dtype = torch.float32
    plain = ClassStep(network, fast.recipe, normalise, SHAPE, FACTOR)
    inputs = (images, real, torch.tensor(3), torch.arange(IPC * FACTOR**2), params)
    return float(fn.cosine_similarity(fast(*inputs)[1].flatten(), plain(*inputs)[1].flatten(), dim=0))


def examples() -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.rand(IPC, *SHAPE, generator=rng), torch.rand(REAL, *SHAPE, generator=rng)


def main() -> None:
    images, real = examples()
    network, normalise, class_step = our_parts(real)
    start = time.perf_counter()
    step = our_step(class_step, images, real)
    step()
    compiling = time.perf_counter() - start
    reference = PlainProcess(__file__)
    plain, ours = best_in_turns(STEPS, reference, step)
    reference.close()
    dtype = str(network.dtype).removeprefix("torch.")
    cosine = gradient_cosine(network, normalise, class_step, images, real)
    print(f"{cpu_model()}; {torch.get_num_threads()} threads; {dtype}; best of {STEPS} in turns")
    print(f"plain class step {plain * 1e3:8.1f} ms")
    print(f"our class step   {ours * 1e3:8.1f} ms   {plain / ours:.2f} × faster; ready in {compiling:.0f} s")
    print(f"cosine between the image gradients of the fast and the plain path: {cosine:.4f}")
    if cosine < 0.99:
        raise SystemExit("The fast path's image gradient differs from the plain one's.")


if __name__ == "__main__":
    serve(plain_step(*examples())) if sys.argv[1:] == ["plain"] else main()
