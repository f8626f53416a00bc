"""The augmentations of DSA, each as sampled parameters and a deterministic, differentiable function of image and parameters.

Every op has `sample(n, size, generator)`, which samples parameters as a tensor with one row per image, and a static
`apply(x, params)`. Rows broadcast: with `n = 1` one row serves a batch of any length (DSA's "siamese" mode), and the same
parameters can be applied to another batch. Randomness comes from the generator alone, and parameters are on its device;
`apply` moves them to the images' device.

Images are *normalised* tensors `[n, ch, h, w]`: filling with 0 is filling with the mean colour of the dataset.
Throughout, `u` is uniform in [0, 1), and `size` is `(height, width)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from condense_once.augment.boxes import inside
from condense_once.augment.resample import resample


@dataclass(frozen=True)
class Flip:
    """Horizontal flip, with probability 1/2."""

    probability: float = 0.5

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        return uniform(n, generator) < self.probability

    @staticmethod
    def apply(x: Tensor, params: Tensor) -> Tensor:
        return torch.where(params.to(x.device).view(-1, 1, 1, 1), x.flip(-1), x)

    @staticmethod
    def identity(n: int, device: torch.device) -> Tensor:
        return torch.zeros(n, dtype=torch.bool, device=device)


@dataclass(frozen=True)
class Brightness:
    """`x + (u - 0.5) · strength`."""

    strength: float = 1.0  # DSA

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        return (uniform(n, generator) - 0.5) * self.strength

    @staticmethod
    def apply(x: Tensor, params: Tensor) -> Tensor:
        return x + params.to(x).view(-1, 1, 1, 1)


@dataclass(frozen=True)
class Saturation:
    """`(x - m) · strength · u + m`, where `m` is the mean over the channels of each pixel."""

    strength: float = 2.0  # DSA

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        return uniform(n, generator) * self.strength

    @staticmethod
    def apply(x: Tensor, params: Tensor) -> Tensor:
        mean = x.mean(dim=1, keepdim=True)
        return (x - mean) * params.to(x).view(-1, 1, 1, 1) + mean


@dataclass(frozen=True)
class Contrast:
    """`(x - m) · (u + strength) + m`, where `m` is the mean of the whole image."""

    strength: float = 0.5  # DSA

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        return uniform(n, generator) + self.strength

    @staticmethod
    def apply(x: Tensor, params: Tensor) -> Tensor:
        mean = x.mean(dim=(1, 2, 3), keepdim=True)
        return (x - mean) * params.to(x).view(-1, 1, 1, 1) + mean


@dataclass(frozen=True)
class Color:
    """Brightness, then saturation, then contrast, always all three; parameters `[n, 3]` in that order."""

    brightness: Brightness = Brightness()
    saturation: Saturation = Saturation()
    contrast: Contrast = Contrast()

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        return torch.stack(
            [op.sample(n, size, generator) for op in (self.brightness, self.saturation, self.contrast)], dim=1
        )

    @staticmethod
    def apply(x: Tensor, params: Tensor) -> Tensor:
        brightness, saturation, contrast = params.unbind(1)
        return Contrast.apply(Saturation.apply(Brightness.apply(x, brightness), saturation), contrast)

    @staticmethod
    def identity(n: int, device: torch.device) -> Tensor:
        return torch.tensor([0.0, 1.0, 1.0], device=device).repeat(n, 1)


@dataclass(frozen=True)
class Crop:
    """Shift by whole pixels, uniform in ±r along each axis, where `r = int(ratio · side + 0.5)`; fill with 0."""

    ratio: float = 0.125  # DSA: 4 pixels at 32, 28 at 224

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        down, right = (
            torch.randint(-reach, reach + 1, (n,), generator=generator, device=generator.device).float()
            for reach in (rounded(self.ratio, side) for side in size)
        )
        one, zero = torch.ones_like(down), torch.zeros_like(down)
        return affine((one, zero, right), (zero, one, down))

    apply = staticmethod(resample)


@dataclass(frozen=True)
class Scale:
    """Zoom width and height independently by factors uniform in [1/ratio, ratio]; above 1 shrinks. Fill with 0."""

    ratio: float = 1.2  # DSA

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        least = 1 / self.ratio
        x, y = (least + (self.ratio - least) * uniform(n, generator) for _ in range(2))
        zero = torch.zeros_like(x)
        return affine((x, zero, zero), (zero, y, zero))

    apply = staticmethod(resample)


@dataclass(frozen=True)
class Rotate:
    """Rotate about the centre by an angle uniform in ±degrees; fill with 0.

    As in DSA, the rotation is in coordinates where the image is square: a non-square one is sheared slightly.
    """

    degrees: float = 15.0  # DSA

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        angle = (2 * uniform(n, generator) - 1) * math.radians(self.degrees)
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
        aspect = size[1] / size[0]
        return affine((cos, -sin * aspect, zero), (sin / aspect, cos, zero))

    apply = staticmethod(resample)


@dataclass(frozen=True)
class Cutout:
    """Set one square of side `int(ratio · side + 0.5)` to 0; up to half of it may be outside the image.

    Parameters are boxes `(top, bottom, left, right)`, whose centre is uniform over the pixels (one more position if the
    side is even).
    """

    ratio: float = 0.5  # DSA: a square of 16 at 32

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        edges = []
        for side in size:
            cut = rounded(self.ratio, side)
            centre = torch.randint(side + 1 - cut % 2, (n,), generator=generator, device=generator.device)
            edges += [centre - cut // 2, centre - cut // 2 + cut]
        return torch.stack(edges, dim=1)

    @staticmethod
    def apply(x: Tensor, params: Tensor) -> Tensor:
        return x.masked_fill(inside(params.to(x.device), *x.shape[-2:]), 0)

    @staticmethod
    def identity(n: int, device: torch.device) -> Tensor:
        return torch.zeros(n, 4, dtype=torch.long, device=device)


def uniform(n: int, generator: Generator) -> Tensor:
    return torch.rand(n, generator=generator, device=generator.device)


def rounded(ratio: float, side: int) -> int:
    """Round half up, as DSA does; Python's `round` goes to even."""
    return int(ratio * side + 0.5)


def affine(x: tuple[Tensor, Tensor, Tensor], y: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """The matrices `[n, 2, 3]` that `resample` takes, from two rows of three `[n]` entries."""
    return torch.stack([torch.stack(x, dim=1), torch.stack(y, dim=1)], dim=1)


def identity_matrix(n: int, device: torch.device) -> Tensor:
    """The matrices `[n, 2, 3]` that move nothing."""
    return torch.eye(2, 3, device=device).repeat(n, 1, 1)
