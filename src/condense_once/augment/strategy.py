"""Augmentation strategies: a string such as `color_crop_flip`, parsed to ops that are sampled and applied.

The names come from DSA and IDC, which read them differently: IDC applies most of them at every call (`Augmentation`), DSA
one of them (`SingleAugmentation`). Both sample the same `Params` and apply them in the same way: parameters are data, not
control flow, so `torch.compile` sees a single program per strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

import torch
from torch import Generator, Tensor

from condense_once.augment.names import parse_names
from condense_once.augment.ops import Color, Crop, Cutout, Flip, Rotate, Scale, identity_matrix
from condense_once.augment.resample import resample

T = TypeVar("T")
Moving = Crop | Scale | Rotate


class Params(NamedTuple):
    """The parameters of one call: a row per image, or one row for all; `None` for ops that the strategy lacks."""

    flip: Tensor | None = None  # [n] bool
    color: Tensor | None = None  # [n, 3] brightness, saturation, contrast
    matrix: Tensor | None = None  # [n, 2, 3] of the crop, scale or rotation
    cutout: Tensor | None = None  # [n, 4] box


@dataclass(frozen=True)
class Augmentation:
    """IDC's reading of a strategy: flip, color, one of the moves, cutout, in this order, if named.

    Flip, color and cutout are always applied. One of crop, scale and rotate is sampled for the whole call; its parameters,
    like all others, are sampled per image by `sample`, or once for all images by `sample_shared`.

    >>> augmentation = Augmentation.parse("color_crop_flip")
    >>> params = augmentation.sample(8, (32, 32), torch.Generator().manual_seed(0))
    >>> augmentation.apply(torch.zeros(8, 3, 32, 32), params).shape
    torch.Size([8, 3, 32, 32])
    >>> Augmentation.parse("color_crp")
    Traceback (most recent call last):
    condense_once.errors.BadOption: There is no augmentation 'crp' (in 'color_crp'); did you mean 'crop'?
    """

    flip: Flip | None = None
    color: Color | None = None
    moves: tuple[Moving, ...] = ()
    cutout: Cutout | None = None

    @classmethod
    def parse(cls, strategy: str) -> Self:
        """Parse names joined by `_`, in any order; an empty string or `none` is the identity."""
        names = parse_names(strategy)
        moves: dict[str, Moving] = {"crop": Crop(), "scale": Scale(), "rotate": Rotate()}
        return cls(
            flip=Flip() if "flip" in names else None,
            color=Color() if "color" in names else None,
            moves=tuple(move for name, move in moves.items() if name in names),
            cutout=Cutout() if "cutout" in names else None,
        )

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Params:
        """Sample parameters for each of `n` images of `size` (height, width)."""
        return Params(
            flip=self.flip.sample(n, size, generator) if self.flip else None,
            color=self.color.sample(n, size, generator) if self.color else None,
            matrix=_pick(self.moves, generator).sample(n, size, generator) if self.moves else None,
            cutout=self.cutout.sample(n, size, generator) if self.cutout else None,
        )

    def sample_shared(self, size: Sequence[int], generator: Generator) -> Params:
        """Sample once for whole batches, so that real and synthetic images get the same augmentation (DSA's siamese mode)."""
        return self.sample(1, size, generator)

    @staticmethod
    def apply(x: Tensor, params: Params) -> Tensor:
        """Augment normalised images `[n, ch, h, w]`."""
        if params.flip is not None:
            x = Flip.apply(x, params.flip)
        if params.color is not None:
            x = Color.apply(x, params.color)
        if params.matrix is not None:
            x = resample(x, params.matrix)
        if params.cutout is not None:
            x = Cutout.apply(x, params.cutout)
        return x


@dataclass(frozen=True)
class SingleAugmentation(Augmentation):
    """DSA's reading of a strategy: one of the named ops is sampled per call; the others do nothing.

    The others get identity parameters instead of being skipped, so that `apply` stays one program.
    """

    def sample(self, n: int, size: Sequence[int], generator: Generator) -> Params:
        named = (
            ("flip", self.flip),
            ("color", self.color),
            *(("matrix", m) for m in self.moves),
            ("cutout", self.cutout),
        )
        ops = [(field, op) for field, op in named if op is not None]
        if not ops:
            return Params()
        field, op = _pick(ops, generator)
        return self._identity(n, generator.device)._replace(**{field: op.sample(n, size, generator)})

    def _identity(self, n: int, device: torch.device) -> Params:
        return Params(
            flip=Flip.identity(n, device) if self.flip else None,
            color=Color.identity(n, device) if self.color else None,
            matrix=identity_matrix(n, device) if self.moves else None,
            cutout=Cutout.identity(n, device) if self.cutout else None,
        )


def _pick(options: Sequence[T], generator: Generator) -> T:
    return options[int(torch.randint(len(options), (), generator=generator, device=generator.device))]
