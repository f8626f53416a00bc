from __future__ import annotations

import pytest

from condense_once.condensing import CONDENSERS, PRESETS
from condense_once.errors import BadOption, UnknownName
from condense_once.nets import Shape

CIFAR, GREY, LARGE = (3, 32, 32), (1, 28, 28), (3, 224, 224)


def test_the_rate_of_idc_is_scaled_as_the_paper_scales_it() -> None:
    idc = CONDENSERS.get("idc").recipe
    assert [round(idc(CIFAR, ipc, 2).rate, 9) for ipc in (1, 10, 20, 50)] == [0.0005, 0.005, 0.01, 0.025]
    assert [round(idc(LARGE, ipc, 3).rate, 9) for ipc in (10, 20)] == [0.003, 0.006]
    assert idc(GREY, 10, 2).rate == pytest.approx(1e-4)


def test_idc_bounds_its_patches_for_many_large_images_only() -> None:
    idc = CONDENSERS.get("idc").recipe
    assert [idc(LARGE, ipc, factor).decode for ipc, factor in [(20, 3), (10, 3), (20, 2)]] == [
        "bound",
        "single",
        "single",
    ]
    assert idc(CIFAR, 50, 3).decode == "single"


def test_dc_has_loops_for_any_number_of_images() -> None:
    loops = {ipc: CONDENSERS.get("dc").recipe(CIFAR, ipc, 1) for ipc in (1, 10, 50, 5, 200)}
    assert {ipc: (r.steps, r.lesson_epochs) for ipc, r in loops.items()} == {
        1: (1, 1),
        10: (10, 50),
        50: (50, 10),
        5: (1, 1),
        200: (50, 10),
    }


IDC_LOOP = {"steps": 100, "momentum": 0.5, "real_batch": 64, "patches": 128, "net_rate": 0.01, "net_momentum": 0.9}
DC_LOOP = {"iterations": 1000, "rate": 0.1, "momentum": 0.5, "real_batch": 256, "net_batch": 256, "net_momentum": 0.0}
SIX_CHANGES = "color_crop_cutout_flip_scale_rotate"


@pytest.mark.parametrize(
    ("name", "shape", "papers"),
    [
        ("idc-cifar10", CIFAR, {**IDC_LOOP, "iterations": 2000, "distance": "mse", "lesson_images": 2000, "early": 0}),
        ("idc-svhn", CIFAR, {**IDC_LOOP, "iterations": 2000, "distance": "mse", "lesson_images": 500}),
        ("idc-mnist", GREY, {**IDC_LOOP, "distance": "l1", "lesson_images": 500, "net_cutmix": 0.0}),
        ("idc-fashion-mnist", GREY, {**IDC_LOOP, "distance": "l1", "net_cutmix": 0.5}),
        ("idc-imagenet10", LARGE, {**IDC_LOOP, "iterations": 500, "distance": "l1", "lesson_images": 500, "early": 10}),
        ("dream-cifar10", CIFAR, {**IDC_LOOP, "real_batch": 128, "keep_batch": 10, "start": "representatives"}),
        ("dc-cifar10", CIFAR, {**DC_LOOP, "start": "noise", "augmentation": "none", "steps": 10, "lesson_epochs": 50}),
        ("dsa-cifar10", CIFAR, {**DC_LOOP, "start": "first", "augmentation": SIX_CHANGES, "one_change": True}),
        ("dm-cifar10", CIFAR, {"iterations": 20_000, "steps": 1, "rate": 1.0, "momentum": 0.5, "real_batch": 256}),
    ],
)
def test_presets_are_the_papers(name: str, shape: Shape, papers: dict[str, object]) -> None:
    recipe = PRESETS.get(name).recipe(shape, 10, 2)
    assert {field: getattr(recipe, field) for field in papers} == papers
    assert recipe.method == name.partition("-")[0]


@pytest.mark.parametrize(("name", "shape"), [("idc-imagenet10", CIFAR), ("idc-cifar10", LARGE), ("idc-mnist", CIFAR)])
def test_a_preset_is_refused_for_images_of_another_kind(name: str, shape: Shape) -> None:
    with pytest.raises(
        BadOption, match=rf"The preset {name} is for images of about .*; --method idc takes its settings"
    ):
        PRESETS.get(name).recipe(shape, 10, 2)


def test_mnist_is_cut_out_of_only_where_it_is_not_in_mosaics() -> None:
    single, mosaics = (PRESETS.get("idc-mnist").recipe(GREY, 10, factor) for factor in (1, 2))
    assert (single.net_cutmix, single.augmentation) == (0.5, "color_crop_cutout")
    assert (mosaics.net_cutmix, mosaics.augmentation) == (0.0, "color_crop")


def test_digits_are_never_mirrored() -> None:
    assert "flip" not in PRESETS.get("dsa-mnist").recipe(GREY, 10, 1).augmentation
    assert "flip" not in PRESETS.get("dsa-svhn").recipe(CIFAR, 10, 1).net_augmentation
    assert "flip" in PRESETS.get("dsa-cifar10").recipe(CIFAR, 10, 1).augmentation


def test_fields_can_be_set_as_text() -> None:
    recipe = CONDENSERS.get("idc").recipe(CIFAR, 10, 2)
    changed = recipe.changed({"rate": "0.25", "steps": "7", "glide": "false", "start": "noise"})
    assert (changed.rate, changed.steps, changed.glide, changed.start) == (0.25, 7, False, "noise")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"steps": "0"}, "steps must be at least 1"),
        ({"steps": "many"}, "steps is a whole number, not 'many'"),
        ({"rate": "-1"}, "above zero"),
        ({"rate": "nan"}, "above zero"),
        ({"distance": "far"}, "distance is mse, l1, cosine or features, not 'far'"),
        ({"momentum": "1"}, "below 1"),
        ({"glide": "perhaps"}, "true or false"),
        ({"augmentation": "crp"}, "did you mean 'crop'"),
        ({"net_cutmix": "2"}, "CutMix"),
        ({"lesson_images": "0"}, "lesson_images"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(changes: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadOption, match=complaint):
        CONDENSERS.get("idc").recipe(CIFAR, 10, 2).changed(changes)


def test_a_field_that_does_not_exist_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'rate'"):
        CONDENSERS.get("idc").recipe(CIFAR, 10, 2).changed({"rates": "1"})
