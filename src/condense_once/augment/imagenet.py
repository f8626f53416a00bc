"""The training transforms of ImageNet, for whole batches in pixel scale: random resized crop, flip, colour jitter, lighting.

They replace the normalised-space augmentation for ImageNet-sized images; normalisation comes after. The crop is defined as
in torchvision; colour jitter and lighting as in fb.resnet.torch, which IDC follows. Parameters are sampled per image, for a
whole batch at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from condense_once.augment.ops import Flip, uniform
from condense_once.augment.resample import bilinear

GRAY = (0.299, 0.587, 0.114)  # weights of red, green and blue
# Principal components of ImageNet's pixel colours, one per column (fb.resnet.torch).
EIGENVALUES = (0.2175, 0.0188, 0.0045)
EIGENVECTORS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
TRIES = 10  # torchvision: crops to sample before falling back to a centre crop

BRIGHTNESS, CONTRAST, SATURATION = range(3)


class ImageNetParams(NamedTuple):
    """The parameters for n images."""

    crop: Tensor  # [n, 4] int64: top, left, height, width
    flip: Tensor  # [n] bool
    factors: Tensor  # [n, 3] of brightness, contrast, saturation
    order: Tensor  # [n, 3] int64: which of the three comes first, second, third
    shift: Tensor  # [n, 3] lighting, added to red, green, blue


@dataclass(frozen=True)
class ImageNetAugmentation:
    """Random resized crop, flip, colour jitter in random order, PCA lighting (of colours only), all per image.

    >>> augmentation = ImageNetAugmentation(size=(16, 16))
    >>> params = augmentation.sample(2, (20, 24), torch.Generator().manual_seed(0))
    >>> augmentation.apply(torch.rand(2, 3, 20, 24), params).shape
    torch.Size([2, 3, 16, 16])
    """

    size: tuple[int, int] = (224, 224)  # of the output: height, width
    area: tuple[float, float] = (0.5, 1.0)  # IDC; torchvision's own default starts at 0.08
    aspect: tuple[float, float] = (3 / 4, 4 / 3)
    jitter: float = 0.4
    lighting: float = 0.1

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> ImageNetParams:
        """Sample parameters for `n` images of `size` (height, width)."""
        device = generator.device
        normal = torch.randn(n, 1, 3, generator=generator, device=device) * self.lighting
        components = torch.tensor(EIGENVECTORS, device=device) * torch.tensor(EIGENVALUES, device=device)
        return ImageNetParams(
            crop=self._sample_crop(n, size, generator),
            flip=Flip().sample(n, size, generator),
            factors=1 + self.jitter * (2 * torch.rand(n, 3, generator=generator, device=device) - 1),
            order=torch.rand(n, 3, generator=generator, device=device).argsort(dim=1),
            shift=(components * normal).sum(dim=2),
        )

    def apply(self, x: Tensor, params: ImageNetParams) -> Tensor:
        """Transform images `[n, ch, h, w]` in pixel scale; returns `[n, ch, *size]`, not clipped."""
        params = ImageNetParams(*(tensor.to(x.device) for tensor in params))
        x = resized_crop(x, params.crop, self.size)
        x = Flip.apply(x, params.flip)
        x = jittered(x, params.factors.to(x.dtype), params.order)
        return x + params.shift.to(x.dtype)[:, :, None, None] if x.shape[1] == 3 else x

    def _sample_crop(self, n: int, size: Sequence[int], generator: Generator) -> Tensor:
        """Sample boxes of random area and aspect: the first of several tries that fits, otherwise the centre crop."""
        h, w = size
        shape, device = (n, TRIES), generator.device
        share = torch.empty(shape, device=device).uniform_(*self.area, generator=generator)
        low, high = (math.log(aspect) for aspect in self.aspect)
        aspect = torch.empty(shape, device=device).uniform_(low, high, generator=generator).exp()
        heights = (h * w * share / aspect).sqrt().round().long()
        widths = (h * w * share * aspect).sqrt().round().long()
        fits = (heights > 0) & (heights <= h) & (widths > 0) & (widths <= w)
        first = fits.long().argmax(dim=1, keepdim=True)  # argmax returns the first of equals
        height, width = heights.gather(1, first).squeeze(1), widths.gather(1, first).squeeze(1)
        top = (uniform(n, generator) * (h - height + 1)).long()
        left = (uniform(n, generator) * (w - width + 1)).long()
        sampled = torch.stack([top, left, height, width], dim=1)
        centre = torch.tensor(self._centre_crop(h, w), device=device)
        return torch.where(fits.any(dim=1, keepdim=True), sampled, centre)

    def _centre_crop(self, h: int, w: int) -> tuple[int, int, int, int]:
        """The largest centred box with an allowed aspect."""
        least, most = self.aspect
        height = min(h, round(w / least))
        width = min(w, round(h * most))
        return (h - height) // 2, (w - width) // 2, height, width


def resized_crop(x: Tensor, crop: Tensor, size: Sequence[int]) -> Tensor:
    """Crop `(top, left, height, width)` from each image and resize it to `size`, bilinear, without antialiasing.

    (There is nothing to antialias unless crops are larger than the output.)
    """
    top, left, height, width = crop.to(torch.float32).view(-1, 4, 1, 1).unbind(1)  # each [n, 1, 1]
    down, across = ((torch.arange(side, device=x.device) + 0.5) / side for side in size)
    rows = (down[:, None] * height - 0.5).clamp(min=0).minimum(height - 1) + top  # [n, h, 1]
    columns = (across * width - 0.5).clamp(min=0).minimum(width - 1) + left  # [n, 1, w]
    return bilinear(x, rows, columns)


def jittered(x: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Adjust brightness, contrast and saturation, in a random order per image.

    All three are `f · x + (1 - f) · base` with another base: black, the mean gray of the image, or the gray of each pixel.
    So a per-image order is a per-image choice of base, not control flow. As in fb.resnet.torch, which IDC follows, nothing
    is clipped: condensed images may lie far outside 0…1.
    """
    weights = x.new_tensor(GRAY if x.shape[1] == 3 else (1.0,)).view(-1, 1, 1)
    for step in range(3):
        kind = order[:, step].view(-1, 1, 1, 1)
        factor = factors.gather(1, order[:, step : step + 1]).view(-1, 1, 1, 1)
        gray = (x * weights).sum(dim=1, keepdim=True)
        base = torch.where(kind == SATURATION, gray, gray.mean(dim=(2, 3), keepdim=True) * (kind == CONTRAST))
        x = factor * x + (1 - factor) * base
    return x
