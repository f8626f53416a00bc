"""The images that matching starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from condense_once.condensed.mosaic import encode
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.condensing.condenser import Task
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.real_images import RealImages
from condense_once.condensing.recipe_fields import ImageSpace, Init, override_fields
from condense_once.data.source import Source
from condense_once.data.wnids import class_words
from condense_once.errors import BadOption
from condense_once.text import plural
from condense_once.train.batches import Rows, permutation
from condense_once.train.seeds import Stream, generator

if TYPE_CHECKING:
    from condense_once.condensing.distribution.recipe import DistributionRecipe
    from condense_once.condensing.kernel.recipe import KernelRecipe
    from condense_once.condensing.matching.recipe import MatchingRecipe
    from condense_once.condensing.mtt.recipe import MttRecipe

    R = TypeVar("R", DistributionRecipe, KernelRecipe, MatchingRecipe, MttRecipe)


def recipe_of_task(recipe: R, task: Task) -> R:
    """A method's recipe with what the preset and the user override, and with the set to start from, if there is one."""
    config = task.config
    recipe = override_fields(recipe, config.preset_overrides(task.source.train.shape))
    recipe = override_fields(recipe, config.overrides)
    if config.init is not None:
        recipe = override_fields(recipe, {"init": "given"})
    elif recipe.init == "given":
        raise BadOption("The recipe's init is 'given', but there is no such set; pass one as `init`.")
    check_init(task.source, config, recipe.init)
    return recipe


def check_init(source: Source, config: CondenseConfig, init: Init) -> None:
    """Refuse a source with too few images, or a given set of another kind."""
    if config.init is not None:
        _check_given(config.init, source, config)
    needed = 1 if init in ("noise", "given") else config.patches_per_class
    counts = np.bincount(np.asarray(source.train.labels), minlength=len(source.classes))
    for name, count in zip(source.classes, counts, strict=True):
        if count < needed:
            raise BadOption(
                f"Class {name!r} of {source.name} has {plural(int(count), 'training image')}, but"
                f" {plural(config.ipc, 'image')} per class with factor {config.factor} would be"
                f" initialised from {needed}; lower `ipc` or `factor`, or override init with noise."
            )


def initial_images(
    config: CondenseConfig, init: Init, image_space: ImageSpace, real: RealImages, net: nn.Module
) -> Tensor:
    """Mosaics of all classes `[C, ipc, ch, h, w]` in `image_space`; the features of `net` find representatives."""
    source = real.source
    space, normalised = (Space(kind, source.mean, source.std) for kind in (image_space, "normalised"))
    if config.init is not None:
        return torch.from_numpy(_mosaics_of(config.init, space).reshape(_shape(config, real)))
    images = np.empty(_shape(config, real), np.float32)
    for label in range(len(source.classes)):
        if init == "noise":
            noise = torch.randn(images.shape[1:], generator=generator(config.seed, Stream.INIT, label)).numpy()
            images[label] = noise if image_space == "normalised" else normalised.to_pixels(noise).clip(0, 1)
        else:
            rows = rows_to_start_from(init, real, label, config.patches_per_class, net)
            mosaics = encode(source.train.take(rows), config.factor).astype(np.float32) / np.float32(255)
            images[label] = space.from_pixels(mosaics)
    return torch.from_numpy(images)


def rows_to_start_from(init: Init, real: RealImages, label: int, count: int, net: nn.Module) -> Rows:
    """The `count` real images of a class that a run starts from, in the order of its patches."""
    if init == "representatives":
        return real.representatives(label, count, net, number=-1)
    if init == "random":
        return real.rows[label][permutation(len(real.rows[label]), real.seed, Stream.INIT, label)[:count]]
    return real.rows[label][:count]  # the first of the dataset, as in IDC


def _check_given(init: CondensedSet, source: Source, config: CondenseConfig) -> None:
    if init.space.kind == "zca":
        raise BadOption(f"{init.name} is ZCA-whitened, so it has no pixels to start from; choose another set.")
    shape = source.train.shape
    given = (init.shape, init.factor, class_words(init.classes), init.counts().tolist())
    expected = (shape, config.factor, class_words(source.classes), [config.patches_per_class] * len(source.classes))
    if given != expected:
        raise BadOption(
            f"{init.name} cannot initialise this run: its images, factor, classes and patches per class must be those of the"
            f" run ({plural(config.ipc, 'image')} per class of {'×'.join(map(str, shape))} with factor {config.factor})."
        )


def _mosaics_of(init: CondensedSet, space: Space) -> np.ndarray:
    mosaics = init.mosaics()[0].astype(np.float32)
    pixels = init.space.to_pixels(mosaics / np.float32(255) if init.space.kind == "pixels" else mosaics)
    return space.from_pixels(pixels)


def _shape(config: CondenseConfig, real: RealImages) -> tuple[int, ...]:
    return (len(real.source.classes), config.ipc, *real.shape)
