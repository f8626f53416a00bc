"""Value spaces: what the numbers in a condensed set mean.

Normalising a set that is normalised already is the classic bug of this field. So every set records its value space, and
every conversion to pixels or network inputs goes through this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption
from condense_once.normalisation import LIMIT, is_normalisation
from condense_once.registry import canonical

SpaceKind = Literal["pixels", "normalised", "zca"]
KINDS: tuple[SpaceKind, ...] = ("pixels", "normalised", "zca")
# Condensers clamp occasionally, not after each step, so pixels may exceed 0…1 a little.
PIXEL_RANGE = (-0.5, 1.5)
ZCA_RECIPES = ("kip", "kornia", "rfad")  # see docs/format.md


def space_kind(name: str) -> SpaceKind:
    """The kind of this name, in either spelling.

    >>> space_kind("normalized")
    'normalised'
    """
    kind = canonical(name, KINDS) if isinstance(name, str) else None
    if kind is None:
        raise BadOption(f"`space` must be pixels, normalised or zca, not {name!r}.")
    return cast(SpaceKind, kind)


@dataclass(frozen=True)
class Space:
    """A value space.

    * `pixels`: stored as 0…255, decoded to 0…1; network inputs are `(x − mean) / std`.
    * `normalised`: stored as `(x − mean) / std`; values may be far outside the pixel range.
    * `zca`: whitened, as described by `zca`: `{"recipe": "kip", "kornia" or "rfad", "regularisation": λ, "source": NAME}`.

    >>> space = Space("normalised", mean=(0.5,), std=(0.25,))
    >>> space.to_pixels(np.float32([[[[2.0]]]])).item()
    1.0
    """

    kind: SpaceKind
    mean: tuple[float, ...]  # one per channel, of pixels in 0…1
    std: tuple[float, ...]
    zca: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", space_kind(self.kind))
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
            raise BadOption(
                f"`mean` and `std` need one number per channel (1 or 3), not {len(self.mean)} and {len(self.std)}."
            )
        if not is_normalisation(self.mean, self.std):
            raise BadOption(
                f"`mean` and `std` are of pixels in 0…1 and `std` is positive, so they cannot be {self.mean} and {self.std}."
            )
        if self.kind == "zca":
            self._check_zca()
        elif self.zca:
            raise BadOption(f"A set in {self.kind} space has no ZCA description.")

    def to_network(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Network inputs from decoded values `[n, ch, h, w]`."""
        return self._normalise(values) if self.kind == "pixels" else values

    def to_pixels(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Pixels in 0…1 (unclipped) from decoded values; not possible for a ZCA-whitened set without its transform."""
        if self.kind == "zca":
            raise BadOption("A ZCA-whitened set has no pixels; undo the whitening first.")
        return values if self.kind == "pixels" else values * _per_channel(self.std) + _per_channel(self.mean)

    def from_pixels(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Values of this space from pixels in 0…1 (for `zca`: normalised, not whitened)."""
        return pixels if self.kind == "pixels" else self._normalise(pixels)

    def contradiction(self, low: float, high: float) -> str | None:
        """Why values from `low` to `high` cannot be in this space, or None; pixels are in 0…1."""
        span = f"values run from {low:.2f} to {high:.2f}"
        if self.kind == "pixels" and not PIXEL_RANGE[0] <= low <= high <= PIXEL_RANGE[1]:
            return f"{span}, so they are not pixels in 0…1"
        if self.kind == "pixels" and high <= 1 / 255:
            return f"{span}, so they were scaled down twice"
        if self.kind == "normalised" and low >= 0 and min(self.mean) > 0:
            return f"{span}, none below zero, so they are not normalised"
        return None

    def _normalise(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        return (pixels - _per_channel(self.mean)) / _per_channel(self.std)

    def _check_zca(self) -> None:
        strength, source = self.zca.get("regularisation"), self.zca.get("source")
        valid = isinstance(strength, int | float) and 0 < strength <= LIMIT and isinstance(source, str)
        if self.zca.get("recipe") not in ZCA_RECIPES or not valid:
            raise BadOption(
                f"`zca` needs a recipe ({', '.join(ZCA_RECIPES)}), a positive regularisation and a source,"
                f" not {dict(self.zca)}."
            )


def to_uint8(pixels: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Pixels in 0…1 as 8 bits, clipped."""
    rounded: NDArray[np.uint8] = np.rint(pixels.clip(0, 1) * 255).astype(np.uint8)
    return rounded


def _per_channel(numbers: tuple[float, ...]) -> NDArray[np.float32]:
    return np.array(numbers, np.float32)[:, None, None]
