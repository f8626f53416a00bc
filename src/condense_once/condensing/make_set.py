"""From optimised images to a condensed set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space, to_uint8
from condense_once.condensing.condenser import Task
from condense_once.condensing.nested import ranked_by_image
from condense_once.condensing.recipe_fields import ImageSpace


def make_set(images: Tensor, space: ImageSpace, task: Task, nested_sizes: Sequence[int] = ()) -> CondensedSet:
    """The set of the mosaics `[C, ipc, ch, h, w]`: pixels in 8 bits, normalised values as they are.

    It is ranked by image if smaller sizes of it, in images per class, were condensed for as well.
    """
    source, config = task.source, task.config
    values = (images.clamp(0, 1) if space == "pixels" else images).flatten(0, 1).cpu().numpy()
    made = CondensedSet.from_mosaics(
        to_uint8(values) if space == "pixels" else values,
        np.repeat(np.arange(len(source.classes)), config.ipc),
        factor=config.factor,
        space=Space(space, source.mean, source.std),
        classes=source.classes,
    )
    return ranked_by_image(made, config.ipc, nested_sizes) if nested_sizes else made
