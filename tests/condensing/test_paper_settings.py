"""The settings of every matching method against those of its paper and its authors' program, written down independently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from condense_once.condensing import CONDENSERS, PRESETS
from condense_once.condensing.config import CondenseConfig, preset_source
from condense_once.condensing.matching.dc import dc
from condense_once.condensing.matching.dm import dm
from condense_once.condensing.matching.dream import dream
from condense_once.condensing.matching.dsa import dsa
from condense_once.condensing.matching.idc import idc
from condense_once.condensing.matching.mdc import mdc
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.matching.schedule import make_schedule
from condense_once.condensing.runner import condense
from condense_once.data.source import ArraySplit, Source
from condense_once.train.batches import ShuffledBatches

RECIPES = {"idc": idc, "dream": dream, "mdc": mdc, "dc": dc, "dsa": dsa, "dm": dm}

# dataset: (channels, side), training images, classes
DATASETS = {
    "cifar10": ((3, 32, 32), 50_000, 10),
    "cifar100": ((3, 32, 32), 50_000, 100),
    "svhn": ((3, 32, 32), 73_257, 10),
    "mnist": ((1, 28, 28), 60_000, 10),
    "fashion-mnist": ((1, 28, 28), 60_000, 10),
    "imagenet10": ((3, 224, 224), 12_000, 10),
}

IDC_ALWAYS: dict[str, Any] = {
    "space": "pixels",
    "init": "first",
    "steps": 100,
    "image_momentum": 0.5,
    "idle_momentum": True,
    "real_batch": 64,
    "max_patches": 128,
    "single_op": False,
    "reselect_every": 0,
    "net_data": "real",
    "net_lr": 0.01,
    "net_momentum": 0.9,
    "net_weight_decay": 0.0005,
    "net_batch": 64,
    "net_short_batch": True,
    "net_augmentation": "color_crop",
}
IDC_CIFAR: dict[str, Any] = IDC_ALWAYS | {
    "distance": "mse",
    "iterations": 2000,
    "net_images": 2000,
    "pretrain_epochs": 0,
    "augmentation": "color_crop_cutout",
    "net_cutmix": 0.5,
    "decode": "single",
}
IDC_GREY = IDC_CIFAR | {"distance": "l1", "net_images": 500}
DREAM_CIFAR = IDC_CIFAR | {"init": "representatives", "real_batch": 128, "net_batch": 128, "reselect_every": 10}
DC_ALWAYS: dict[str, Any] = {
    "space": "normalised",
    "distance": "cosine",
    "iterations": 1000,
    "image_lr": 0.1,
    "image_momentum": 0.5,
    "idle_momentum": False,
    "real_batch": 256,
    "net_data": "synthetic",
    "net_lr": 0.01,
    "net_momentum": 0.0,
    "net_weight_decay": 0.0,
    "net_batch": 256,
    "net_cutmix": 0.0,
}
SIX = "color_crop_cutout_flip_scale_rotate"
FIVE = "color_crop_cutout_scale_rotate"
DSA_ALWAYS = DC_ALWAYS | {"init": "random", "single_op": True}
DM_ALWAYS: dict[str, Any] = {
    "space": "normalised",
    "init": "random",
    "distance": "features",
    "iterations": 20_000,
    "steps": 1,
    "image_momentum": 0.5,
    "real_batch": 256,
    "net_data": "none",
    "single_op": True,
}

# dataset, method, preset, images per class, factor: settings
SETTINGS: list[tuple[str, str, str | None, int, int, dict[str, Any]]] = [
    ("cifar10", "idc", None, 1, 2, IDC_CIFAR | {"image_lr": 0.0005}),
    ("cifar10", "idc", None, 10, 2, IDC_CIFAR | {"image_lr": 0.005}),
    ("cifar10", "idc", None, 50, 2, IDC_CIFAR | {"image_lr": 0.025}),
    ("cifar100", "idc", "idc-cifar100", 10, 2, IDC_CIFAR | {"image_lr": 0.005}),
    ("svhn", "idc", "idc-svhn", 10, 2, IDC_CIFAR | {"image_lr": 0.005, "net_images": 500}),
    ("fashion-mnist", "idc", None, 10, 2, IDC_GREY | {"image_lr": 7.65625e-5}),
    ("fashion-mnist", "idc", None, 1, 2, IDC_GREY | {"image_lr": 7.65625e-6}),
    ("mnist", "idc", "idc-mnist", 10, 1, IDC_GREY | {"image_lr": 1e-4}),
    (
        *("mnist", "idc", "idc-mnist", 50, 2),
        IDC_GREY | {"image_lr": 5e-4, "augmentation": "color_crop", "net_cutmix": 0.0},
    ),
    (
        *("imagenet10", "idc", None, 10, 3),
        IDC_ALWAYS
        | {"distance": "l1", "iterations": 500, "net_images": 500, "pretrain_epochs": 10, "net_cutmix": 1.0}
        | {"image_lr": 0.003, "decode": "single"},
    ),
    ("imagenet10", "idc", None, 20, 3, IDC_ALWAYS | {"image_lr": 0.006, "decode": "bound"}),
    ("cifar10", "dream", None, 10, 2, DREAM_CIFAR | {"image_lr": 0.005}),
    ("cifar100", "dream", "dream-cifar100", 10, 2, DREAM_CIFAR | {"image_lr": 0.005}),
    ("cifar10", "mdc", None, 10, 2, IDC_CIFAR | {"image_lr": 0.005, "subset_period": 100}),
    ("imagenet10", "mdc", None, 20, 3, IDC_ALWAYS | {"image_lr": 0.006, "decode": "single"}),
    ("cifar10", "dc", None, 1, 1, DC_ALWAYS | {"steps": 1, "net_epochs": 1, "init": "noise", "augmentation": "none"}),
    ("cifar10", "dc", None, 10, 1, DC_ALWAYS | {"steps": 10, "net_epochs": 50, "init": "noise"}),
    ("cifar10", "dc", None, 20, 1, DC_ALWAYS | {"steps": 20, "net_epochs": 25}),
    ("cifar10", "dc", None, 30, 1, DC_ALWAYS | {"steps": 30, "net_epochs": 20}),
    ("cifar10", "dc", None, 40, 1, DC_ALWAYS | {"steps": 40, "net_epochs": 15}),
    ("cifar10", "dc", None, 50, 1, DC_ALWAYS | {"steps": 50, "net_epochs": 10}),
    ("cifar10", "dsa", None, 10, 1, DSA_ALWAYS | {"steps": 10, "augmentation": SIX, "net_augmentation": SIX}),
    ("svhn", "dsa", "dsa-svhn", 10, 1, DSA_ALWAYS | {"augmentation": FIVE, "net_augmentation": FIVE}),
    ("mnist", "dsa", "dsa-mnist", 10, 1, DSA_ALWAYS | {"augmentation": FIVE, "net_augmentation": FIVE}),
    ("cifar10", "dm", None, 1, 1, DM_ALWAYS | {"image_lr": 1.0, "augmentation": SIX}),
    ("cifar10", "dm", None, 50, 1, DM_ALWAYS | {"image_lr": 1.0}),
    ("cifar10", "dm", None, 100, 1, DM_ALWAYS | {"image_lr": 10.0}),
    ("cifar10", "dm", None, 500, 1, DM_ALWAYS | {"image_lr": 10.0}),
    ("cifar100", "dm", "dm-cifar100", 100, 1, DM_ALWAYS | {"image_lr": 1.0}),
    ("svhn", "dm", "dm-svhn", 10, 1, DM_ALWAYS | {"augmentation": FIVE}),
    ("mnist", "dm", "dm-mnist", 10, 1, DM_ALWAYS | {"augmentation": FIVE}),
]


def recipe_for(dataset: str, method: str, preset: str | None, ipc: int, factor: int) -> MatchingRecipe:
    shape = DATASETS[dataset][0]
    config = CondenseConfig(method, ipc, factor, "convnet-d3", preset=preset)
    return RECIPES[method](shape, ipc, factor).override(config.preset_overrides(shape))


@pytest.mark.parametrize(("dataset", "method", "preset", "ipc", "factor", "settings"), SETTINGS)
def test_the_settings_are_the_papers(
    dataset: str, method: str, preset: str | None, ipc: int, factor: int, settings: dict[str, Any]
) -> None:
    recipe = recipe_for(dataset, method, preset, ipc, factor)
    assert {name: getattr(recipe, name) for name in settings} == pytest.approx(settings)


def test_the_table_has_every_preset() -> None:
    assert {preset for _, _, preset, *_ in SETTINGS if preset} == {
        each.name for each in PRESETS if each.method in RECIPES
    }


# dataset, method: images per class, factor, network updates between two steps
UPDATES = [("cifar10", "idc", 10, 2, 32), ("cifar10", "dream", 10, 2, 16), ("fashion-mnist", "idc", 10, 2, 8)]


@pytest.mark.parametrize(("dataset", "method", "ipc", "factor", "updates"), UPDATES)
def test_the_network_is_trained_on_as_many_batches(
    dataset: str, method: str, ipc: int, factor: int, updates: int
) -> None:
    _, images, classes = DATASETS[dataset]
    recipe = recipe_for(dataset, method, None, ipc, factor)
    patches = classes * ipc * factor**2
    assert make_schedule(recipe, images=images, classes=classes, patches=patches).net_update == updates


def test_pretraining_counts_the_short_batch_of_an_epoch() -> None:
    """12,000 images are 187 batches of 64 and one of 32."""
    _, images, classes = DATASETS["imagenet10"]
    recipe = recipe_for("imagenet10", "idc", None, 10, 3)
    assert make_schedule(recipe, images=images, classes=classes, patches=900).pretrain == 10 * 188


def test_a_short_last_batch_is_kept_or_dropped_as_asked() -> None:
    sizes = {
        keep: [len(ShuffledBatches(np.arange(10), 4, 0, "test", keep_short=keep)[k]) for k in range(6)]
        for keep in (True, False)
    }
    assert sizes == {True: [4, 4, 2, 4, 4, 2], False: [4, 4, 4, 4, 4, 4]}


@pytest.mark.parametrize("preset", ["idc-cifar100", "dream-cifar100"])
def test_cifar100_is_normalised_like_cifar10(preset: str) -> None:
    split = ArraySplit(np.zeros((2, 3, 32, 32), np.uint8), np.array([0, 1]))
    source = Source("cifar100", ("apple", "bear"), (0.5071, 0.4866, 0.4409), (0.2673, 0.2564, 0.2762), {"train": split})
    normalised = preset_source(source, preset)
    assert normalised.mean == (0.4914, 0.4822, 0.4465)
    assert normalised.std == (0.2023, 0.1994, 0.2010)
    assert preset_source(source, None) == source


def test_methods_have_the_papers_factors() -> None:
    factors = {name: [CONDENSERS.get(name).factor(shape) for shape in ((3, 32, 32), (3, 224, 224))] for name in RECIPES}
    assert factors == {"idc": [2, 3], "dream": [2, 3], "mdc": [2, 3], "dc": [1, 1], "dsa": [1, 1], "dm": [1, 1]}


@pytest.mark.parametrize("method", ["dsa", "dm"])
def test_random_images_start_a_run(method: str) -> None:
    labels = np.repeat([0, 1], 50)
    images = np.arange(100, dtype=np.uint8)[:, None, None, None] * np.ones((3, 8, 8), np.uint8)
    source = Source("grey", ("dark", "bright"), (0.5,) * 3, (0.25,) * 3, {"train": ArraySplit(images, labels)})

    def start(seed: int) -> list[list[int]]:
        """The rows of the real images of either class."""
        made = condense(source, method=method, ipc=5, net="convnet-d1-w8", seed=seed, overrides={"iterations": 0})
        pixels = np.rint(255 * made.space.to_pixels(made.cells)[:, 0, 0, 0]).astype(int)
        return [sorted(pixels[made.labels == label].tolist()) for label in (0, 1)]

    dark, bright = start(0)
    assert set(dark) <= set(range(50))
    assert set(bright) <= set(range(50, 100))
    assert len(set(dark)) == len(set(bright)) == 5
    assert dark != [0, 1, 2, 3, 4]
    assert start(0) == [dark, bright] != start(1)
