"""Value spaces: what the numbers in a condensed set mean.

Feeding a set that is already normalised through a normalisation once more is the classic bug of this field. So every set
says which space its values live in, and everything that needs pixels or network inputs asks here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadOption

SpaceKind = Literal["pixels", "normalised", "zca"]


@dataclass(frozen=True)
class Space:
    """A value space.

    * `pixels`: 0…255 stored, 0…1 once decoded; networks want `(x − mean) / std`.
    * `normalised`: the stored values are `(x − mean) / std` already and may lie far outside what a pixel can reach.
    * `zca`: whitened after normalisation; `zca` describes the transform (the data it was fitted on, its regularisation).

    >>> space = Space("normalised", mean=(0.5,), std=(0.25,))
    >>> space.to_pixels(np.float32([[[[2.0]]]])).item()
    1.0
    """

    kind: SpaceKind
    mean: tuple[float, ...]  # one a channel, of pixels in 0…1
    std: tuple[float, ...]
    zca: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in ("pixels", "normalised", "zca"):
            raise BadOption(f"A value space is pixels, normalised or zca, not {self.kind!r}.")
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
            raise BadOption(f"Give one mean and one std a channel (1 or 3), not {len(self.mean)} and {len(self.std)}.")
        if not all(np.isfinite(self.mean)) or not all(np.isfinite(s) and s > 0 for s in self.std):
            raise BadOption(f"Means must be finite and deviations above zero, not {self.mean} and {self.std}.")
        if self.zca and self.kind != "zca":
            raise BadOption(f"A set in {self.kind} space has no ZCA description.")

    def to_network(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """What a network is trained on, from decoded values `[n, ch, h, w]`."""
        return self._normalise(values) if self.kind == "pixels" else values

    def to_pixels(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Colours on the scale 0…1 (unclipped), from decoded values; a whitened set has none without its transform."""
        if self.kind == "zca":
            raise BadOption("A ZCA-whitened set has no pixel colours of its own; the whitening has to be undone first.")
        return values if self.kind == "pixels" else values * _per_channel(self.std) + _per_channel(self.mean)

    def from_pixels(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Pixels on the scale 0…1 as values of this space (for `zca`: as they are just before the whitening)."""
        return pixels if self.kind == "pixels" else self._normalise(pixels)

    def _normalise(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        return (pixels - _per_channel(self.mean)) / _per_channel(self.std)


def _per_channel(numbers: tuple[float, ...]) -> NDArray[np.float32]:
    return np.array(numbers, np.float32)[:, None, None]
