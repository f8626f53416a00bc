"""CutMix: paste a box from another image of the batch and mix the labels in proportion.

Whether a batch is mixed, and the box, are data: an unmixed batch has an empty box. So sampled parameters never change the
shape of the computation, and a compiled step is compiled once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import cross_entropy, mse_loss

from condense_once.augment.boxes import inside
from condense_once.errors import BadOption


class Mix(NamedTuple):
    """The parameters for a batch of n images."""

    partner: Tensor  # [n] int64: the image whose pixels fill the box
    box: Tensor  # [1, 4] int64: top, bottom, left, right; all zeros if not mixed
    ratio: Tensor  # [] weight of the image's own label: 1 - box area / image area


@dataclass(frozen=True)
class CutMix:
    """Mix a batch with a given probability, with one box for all its images.

    With λ ~ Beta(1, 1), i.e. uniform, the box has sides `int(side · √(1 - λ))` and a uniform centre; it is clipped at the
    border, and the labels are mixed by the clipped area.

    >>> cutmix = CutMix(probability=1.0)
    >>> mix = cutmix.sample(4, (32, 32), torch.Generator().manual_seed(0))
    >>> x = torch.arange(4.0).view(4, 1, 1, 1).expand(4, 3, 32, 32)
    >>> mixed = cutmix.apply(x, mix)
    >>> own = (mixed == x).flatten(1).float().mean(1)
    >>> torch.equal(own[mix.partner != torch.arange(4)].unique(), mix.ratio.view(1))
    True
    """

    probability: float = 0.5  # IDC: 0.5 on CIFAR, 1 on ImageNet

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise BadOption(f"The `probability` of CutMix must be from 0 to 1, not {self.probability}.")

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Mix:
        """Sample parameters for `n` images of `size` (height, width)."""
        device = generator.device
        # All numbers are sampled even if unused, so that the stream does not depend on which batches are mixed.
        mixed = torch.rand((), generator=generator, device=device) < self.probability
        lam = torch.rand((), generator=generator, device=device, dtype=torch.float64)
        centre = [torch.randint(side, (), generator=generator, device=device) for side in size]
        partner = torch.randperm(n, generator=generator, device=device)
        box, ratio = cut(lam, centre, size)
        return Mix(partner, (box * mixed).unsqueeze(0), torch.where(mixed, ratio, torch.ones_like(ratio)))

    @staticmethod
    def apply(x: Tensor, mix: Mix) -> Tensor:
        """Fill the box of every image `[n, ch, h, w]` from its partner."""
        pasted = inside(mix.box.to(x.device), *x.shape[-2:])
        return torch.where(pasted, x.index_select(0, mix.partner.to(x.device)), x)


def cut(lam: Tensor, centre: Sequence[Tensor], size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The box `[4]` of about `1 - lam` of the image's area, clipped at the border, and the fraction outside it.

    The half side is the floor of half the side: an odd side loses a pixel, as in IDC.

    >>> half = torch.tensor(0.5, dtype=torch.float64)
    >>> cut(half, [torch.tensor(16), torch.tensor(30)], (32, 32))
    (tensor([ 5, 27, 19, 32]), tensor(0.7207))
    """
    edges = []
    for middle, side in zip(centre, size, strict=True):
        half = (side * (1 - lam).sqrt()).long() // 2  # .long() drops the fraction
        edges += [(middle - half).clamp(0, side), (middle + half).clamp(0, side)]
    top, bottom, left, right = edges
    area = (bottom - top) * (right - left)
    return torch.stack(edges), (1 - area / (size[0] * size[1])).float()


def mixed_cross_entropy(logits: Tensor, y: Tensor, y_partner: Tensor, ratio: Tensor | float) -> Tensor:
    """`ratio · CE(logits, y) + (1 - ratio) · CE(logits, y_partner)`, the mean over the batch.

    Labels are class indices `[n]` or soft `[n, C]`; `y_partner` is `y[mix.partner]`.
    """
    return ratio * cross_entropy(logits, y) + (1 - ratio) * cross_entropy(logits, y_partner)


def mixed_squared_error(outputs: Tensor, y: Tensor, y_partner: Tensor, ratio: Tensor | float) -> Tensor:
    """The same of the mean squared error, for label vectors `[n, C]` that are no probabilities."""
    return ratio * mse_loss(outputs, y) + (1 - ratio) * mse_loss(outputs, y_partner)
