from __future__ import annotations

import pytest

from condense_once.condensing import PRESETS
from condense_once.condensing.kernel.method import kip
from condense_once.condensing.kernel.recipe import KernelRecipe
from condense_once.condensing.matching.dc import dc
from condense_once.condensing.matching.dm import dm
from condense_once.condensing.matching.dream import dream
from condense_once.condensing.matching.dsa import dsa
from condense_once.condensing.matching.idc import idc
from condense_once.condensing.matching.recipe import MatchingRecipe
from condense_once.condensing.mtt.method import mtt
from condense_once.condensing.mtt.recipe import MttRecipe
from condense_once.errors import BadOption, UnknownName
from condense_once.nets import Shape

CIFAR, GREY, LARGE = (3, 32, 32), (1, 28, 28), (3, 224, 224)


def test_idc_bounds_its_patches_for_many_large_images_only() -> None:
    assert [idc(LARGE, ipc, factor).decode for ipc, factor in [(20, 3), (10, 3), (20, 2)]] == [
        "bound",
        "single",
        "single",
    ]
    assert idc(CIFAR, 50, 3).decode == "single"


def test_dc_has_loops_for_any_number_of_images() -> None:
    loops = {ipc: dc(CIFAR, ipc, 1) for ipc in (1, 10, 50, 5, 200)}
    assert {ipc: (r.steps, r.net_epochs) for ipc, r in loops.items()} == {
        1: (1, 1),
        10: (10, 50),
        50: (50, 10),
        5: (1, 1),
        200: (50, 10),
    }


RECIPES = {"idc": idc, "dream": dream, "dc": dc, "dsa": dsa, "dm": dm, "mtt": mtt, "kip": kip}


def preset(name: str, shape: Shape, factor: int) -> MatchingRecipe | MttRecipe | KernelRecipe:
    chosen = PRESETS.get(name)
    return RECIPES[chosen.method](shape, 10, factor).override(chosen.overrides_for(shape, 10, factor))


def test_every_preset_changes_something() -> None:
    for each in PRESETS:
        plain = [RECIPES[each.method](each.shape, ipc, 2) for ipc in (10, 100)]
        changed = [
            recipe.override(each.overrides_for(each.shape, ipc, 2))
            for recipe, ipc in zip(plain, (10, 100), strict=True)
        ]
        assert changed != plain or each.like is not None


@pytest.mark.parametrize(("name", "shape"), [("idc-svhn", LARGE), ("idc-svhn", GREY), ("idc-mnist", CIFAR)])
def test_a_preset_is_refused_for_images_of_another_kind(name: str, shape: Shape) -> None:
    with pytest.raises(BadOption, match=rf"The preset {name} is for images of about .*; pass `method` idc instead"):
        preset(name, shape, 2)


def test_mnist_is_cut_out_of_only_where_it_is_not_in_mosaics() -> None:
    single, mosaics = (preset("idc-mnist", GREY, factor) for factor in (1, 2))
    assert (single.net_cutmix, single.augmentation) == (0.5, "color_crop_cutout")
    assert (mosaics.net_cutmix, mosaics.augmentation) == (0.0, "color_crop")


def test_digits_are_never_mirrored() -> None:
    assert "flip" not in preset("dsa-mnist", GREY, 1).augmentation
    assert "flip" not in preset("dsa-svhn", CIFAR, 1).net_augmentation
    assert "flip" not in preset("dm-mnist", GREY, 1).augmentation
    assert "flip" in dsa(CIFAR, 10, 1).augmentation


def test_fields_can_be_set_as_text() -> None:
    recipe = idc(CIFAR, 10, 2)
    changed = recipe.override({"image_lr": "0.25", "steps": "7", "idle_momentum": "false", "init": "noise"})
    assert (changed.image_lr, changed.steps, changed.idle_momentum, changed.init) == (0.25, 7, False, "noise")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"steps": "0"}, "steps must be at least 1"),
        ({"steps": "many"}, "steps is an integer, not 'many'"),
        ({"image_lr": "-1"}, "above zero"),
        ({"image_lr": "nan"}, "above zero"),
        ({"distance": "far"}, "distance is mse, l1, cosine or features, not 'far'"),
        ({"image_momentum": "1"}, r"in \[0, 1\)"),
        ({"idle_momentum": "perhaps"}, "true or false"),
        ({"augmentation": "crp"}, "did you mean 'crop'"),
        ({"net_cutmix": "2"}, "net_cutmix must be from 0 to 1"),
        ({"net_images": "0"}, "net_images"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(changes: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint):
        idc(CIFAR, 10, 2).override(changes)


def test_a_field_that_does_not_exist_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'image_lr'"):
        idc(CIFAR, 10, 2).override({"image_rl": "1"})
