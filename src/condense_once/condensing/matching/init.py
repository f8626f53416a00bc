"""The images that condensing starts from."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from condense_once.condensed.mosaic import encode
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.problem import Problem
from condense_once.condensing.sampling import Rows, numpy_rng, representatives, some
from condense_once.errors import BadOption
from condense_once.nets import penultimate
from condense_once.train.seeds import generator

FEATURE_BATCH = 100  # real images that go through a network at once
Floats = NDArray[np.float32]


def starting_images(problem: Problem, recipe: MatchingRecipe, net: nn.Module, device: torch.device) -> Tensor:
    """Mosaics of all classes `[C, ipc, ch, h, w]` in the space of the recipe.

    `net` has random weights; by its features the most typical images are found.
    """
    space, normalised = problem.space(recipe), Space("normalised", problem.source.mean, problem.source.std)
    images = np.empty((problem.classes, problem.ipc, *problem.shape), np.float32)
    for label in range(problem.classes):
        if recipe.start == "noise":
            drawn = torch.randn(images.shape[1:], generator=generator(problem.seed, "start", label)).numpy()
            images[label] = drawn if recipe.space == "normalised" else normalised.to_pixels(drawn).clip(0, 1)
        else:
            rows = _starting_rows(problem, recipe, label, net, device)
            mosaics = encode(problem.source.train.take(rows), problem.factor).astype(np.float32) / np.float32(255)
            images[label] = space.from_pixels(mosaics)
    return torch.from_numpy(images).to(device)


def check_start(start: CondensedSet, problem: Problem) -> None:
    """Refuse to go on from a set of another kind."""
    if start.space.kind == "zca":
        raise BadOption(
            f"{start.name} is whitened, and what is whitened has no colours to go on from; take another set."
        )
    given = (start.shape, start.factor, start.classes, start.counts().tolist())
    each = [problem.patches_per_class] * problem.classes
    wanted = (problem.shape, problem.factor, problem.source.classes, each)
    if given != wanted:
        raise BadOption(
            f"{start.name} cannot be continued from: its images, factor, classes and patches per class must be those that are"
            f" asked for ({problem.ipc} images per class of {'×'.join(map(str, problem.shape))} with factor {problem.factor})."
        )


def images_of(start: CondensedSet, problem: Problem, recipe: MatchingRecipe) -> Tensor:
    """The mosaics of a set that exists, to go on from, in the space of the recipe."""
    mosaics = start.mosaics()[0].astype(np.float32)
    pixels = start.space.to_pixels(mosaics / np.float32(255) if start.space.kind == "pixels" else mosaics)
    values = problem.space(recipe).from_pixels(pixels)
    return torch.from_numpy(values.reshape(problem.classes, problem.ipc, *problem.shape))


def class_features(problem: Problem, rows: Rows, net: nn.Module, device: torch.device) -> Floats:
    """Penultimate features `[n, d]` of real images, which DREAM does not normalise for this."""
    net.eval()
    with torch.inference_mode():
        parts = [
            penultimate(net, problem.pixels(rows[at : at + FEATURE_BATCH], device)).float().cpu().numpy()
            for at in range(0, len(rows), FEATURE_BATCH)
        ]
    return np.concatenate(parts)


def typical_rows(
    problem: Problem, recipe: MatchingRecipe, label: int, count: int, net: nn.Module, device: torch.device, when: int
) -> Rows:
    """The `count` most typical images of a class, as the network sees them; `when` tells one choice from another."""
    rows = some(problem.rows[label], max(recipe.pool, count) if recipe.pool else 0, problem.seed, "pool", label, when)
    features = class_features(problem, rows, net, device)
    found = representatives(features, min(count, len(rows)), numpy_rng(problem.seed, "k-means", label, when))
    return rows[found]


def _starting_rows(problem: Problem, recipe: MatchingRecipe, label: int, net: nn.Module, device: torch.device) -> Rows:
    count = problem.patches_per_class
    if recipe.start == "representatives":
        return typical_rows(problem, recipe, label, count, net, device, when=-1)
    return problem.rows[label][:count]  # the first of the dataset, as IDC takes them
