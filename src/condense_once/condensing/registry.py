"""Condensers and presets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from condense_once.errors import BadOption
from condense_once.nets import Shape, default_net, is_large, narrow_net
from condense_once.registry import Registry

if TYPE_CHECKING:
    from condense_once.condensing.condenser import Condenser, Task


def mosaic_factor(shape: Shape) -> int:
    """IDC's factor: 2 for images of up to 64 pixels, 3 for larger ones."""
    return 3 if is_large(shape) else 2


def single_factor(shape: Shape) -> int:
    """Plain images: every stored image is one patch."""
    return 1


def default_net_for(shape: Shape, *, quick: bool) -> str:
    """The default network; `quick`, under a time budget on a CPU, half as wide: more steps are worth more than width."""
    return narrow_net(shape) if quick else default_net(shape)


@dataclass(frozen=True)
class CondenserInfo:
    """A method. `build` makes its `Condenser`, from a checkpoint's recipe if there is one."""

    name: str
    summary: str
    build: Callable[[Task, Mapping[str, Any] | None], Condenser]
    factor: Callable[[Shape], int] = single_factor  # the default for images of a shape
    net: Callable[..., str] = default_net_for  # the default, from the shape and whether the run must be quick
    resume_with: frozenset[str] = frozenset()  # the overrides that a resumed run may change


@dataclass(frozen=True)
class Preset:
    """What a paper changes in its method for one dataset."""

    name: str
    summary: str
    method: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    shape: Shape = (3, 32, 32)  # of the dataset's images
    by_size: Callable[[Shape, int, int], Mapping[str, Any]] | None = None  # overrides by (shape, ipc, factor)
    like: str | None = None  # the known dataset whose mean and std normalise the images; by default their own

    def overrides_for(self, shape: Shape, ipc: int, factor: int) -> Mapping[str, Any]:
        if (shape[0], is_large(shape)) != (self.shape[0], is_large(self.shape)):
            expected, given = ("×".join(map(str, each)) for each in (self.shape, shape))
            raise BadOption(
                f"The preset {self.name} is for images of about {expected}, not {given}; pass `method` {self.method} instead,"
                " which adapts to the images."
            )
        return {**self.overrides, **(self.by_size(shape, ipc, factor) if self.by_size else {})}


CONDENSERS: Registry[CondenserInfo] = Registry("condensers")
PRESETS: Registry[Preset] = Registry("presets")
