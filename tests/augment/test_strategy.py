"""What a strategy string means: which ops, in which order, sampled how often."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from tests.conftest import seeded
from torch import Tensor

from condense_once.augment import Augmentation, Params, SingleAugmentation
from condense_once.augment.ops import Color, Cutout, Flip
from condense_once.augment.resample import resample
from condense_once.errors import BadOption

ALL = "color_crop_cutout_flip_scale_rotate"
SIZE = (32, 32)


def images(n: int, seed: int = 5) -> Tensor:
    return torch.randn(n, 3, 32, 32, generator=seeded(seed))


def move_of(matrix: Tensor) -> str:
    """Tell from a map which op drew it (shifts of 0 by 0 pixels count as a crop)."""
    a, b, _, _, d, _ = matrix[0].flatten().tolist()
    if b:
        return "rotate"
    return "crop" if a == d == 1 else "scale"


def tensors(params: Params) -> list[Tensor]:
    return [tensor for tensor in params if tensor is not None]


@pytest.mark.parametrize("text", ["", "none"])
@pytest.mark.parametrize("kind", [Augmentation, SingleAugmentation])
def test_nothing_named_is_the_identity(kind: type[Augmentation], text: str) -> None:
    augmentation, x = kind.parse(text), images(2)
    params = augmentation.sample(2, SIZE, seeded())
    assert tensors(params) == []
    assert augmentation.apply(x, params) is x


def test_the_order_of_names_does_not_matter() -> None:
    assert Augmentation.parse("rotate_flip_crop_color") == Augmentation.parse("color_crop_flip_rotate")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("color_rotat", "There is no augmentation 'rotat' (in 'color_rotat'); did you mean 'rotate'?"),
        ("colour", "did you mean 'color'?"),
        ("Crop", "did you mean 'crop'?"),
        ("xyz", "choose one of: flip, color, crop, scale, rotate, cutout."),
        ("crop__flip", "There is no augmentation ''"),
        ("crop_flip_crop", "names 'crop' more than once"),
    ],
)
def test_bad_strategies_are_explained(text: str, expected: str) -> None:
    with pytest.raises(BadOption) as caught:
        Augmentation.parse(text)
    assert expected in str(caught.value)


def test_only_named_ops_are_sampled() -> None:
    params = Augmentation.parse("color_crop").sample(4, SIZE, seeded())
    assert params.flip is None
    assert params.cutout is None
    assert params.color is not None
    assert params.matrix is not None


def test_flip_then_color_then_move_then_cutout() -> None:
    augmentation, x = Augmentation.parse(ALL), images(8)
    params = augmentation.sample(8, SIZE, seeded())
    assert params.flip is not None
    assert params.color is not None
    assert params.matrix is not None
    assert params.cutout is not None
    expected = resample(Color.apply(Flip.apply(x, params.flip), params.color), params.matrix)
    assert torch.equal(augmentation.apply(x, params), Cutout.apply(expected, params.cutout))


def test_pixels_moved_in_are_zero_whatever_the_color() -> None:
    augmentation = Augmentation.parse("color_crop")
    params = augmentation.sample(1, SIZE, seeded())._replace(matrix=torch.tensor([[[1.0, 0.0, 4.0], [0.0, 1.0, 0.0]]]))
    out = augmentation.apply(images(3), params)
    assert (out[..., -4:] == 0).all()
    assert (out[..., :-4] != 0).all()


def test_one_of_the_named_moves_is_drawn_per_call_evenly() -> None:
    augmentation, generator = Augmentation.parse("color_crop_flip_scale_rotate"), seeded()
    counts: Counter[str] = Counter()
    for _ in range(900):
        matrix = augmentation.sample(2, SIZE, generator).matrix
        assert matrix is not None
        assert move_of(matrix[:1]) == move_of(matrix[1:])
        counts[move_of(matrix)] += 1
    assert counts.keys() == {"crop", "scale", "rotate"}
    assert all(240 < count < 360 for count in counts.values())  # 300 ± 4 σ


def test_dsa_samples_one_op_of_all_per_call_evenly() -> None:
    augmentation, generator = SingleAugmentation.parse(ALL), seeded()
    counts: Counter[str] = Counter()
    idle = augmentation._identity(2, torch.device("cpu"))
    for _ in range(1200):
        params = augmentation.sample(2, SIZE, generator)
        changed = [
            field
            for field, drawn, nothing in zip(Params._fields, params, idle, strict=True)
            if drawn is not None and nothing is not None and not torch.equal(drawn, nothing)
        ]
        assert len(changed) <= 1
        if changed == ["matrix"] and params.matrix is not None:
            changed = [move_of(params.matrix)]
        counts.update(changed)
    assert counts.keys() == {"flip", "color", "crop", "scale", "rotate", "cutout"}
    assert 110 < counts.pop("flip") < 190  # of 200, a quarter are (no, no)
    assert all(140 < count < 260 for count in counts.values())


def test_replayed_dsa_parameters_of_cutout_only_cut() -> None:
    augmentation, x, generator = SingleAugmentation.parse(ALL), images(4), seeded()
    idle = augmentation._identity(4, torch.device("cpu"))
    cutout = Cutout().sample(4, SIZE, generator)
    out = augmentation.apply(x, idle._replace(cutout=cutout))
    torch.testing.assert_close(out, Cutout.apply(x, cutout), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [Augmentation, SingleAugmentation])
def test_a_shared_draw_treats_real_and_synthetic_batches_alike(kind: type[Augmentation]) -> None:
    augmentation, real, synthetic = kind.parse(ALL), images(6, seed=1), images(3, seed=2)
    for seed in range(6):
        params = augmentation.sample_shared(SIZE, seeded(seed))
        apart = torch.cat([augmentation.apply(real, params), augmentation.apply(synthetic, params)])
        together = augmentation.apply(torch.cat([real, synthetic]), params)
        torch.testing.assert_close(apart, together, rtol=0, atol=1e-6)


def test_draws_per_image_differ_and_match_their_image() -> None:
    augmentation, x = Augmentation.parse(ALL), images(1).expand(8, 3, 32, 32)
    params = augmentation.sample(8, SIZE, seeded())
    out = augmentation.apply(x, params)
    assert len(out.flatten(1).unique(dim=0)) == 8
    third = Params(*(None if tensor is None else tensor[3:4] for tensor in params))
    torch.testing.assert_close(augmentation.apply(x[3:4], third), out[3:4], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [Augmentation, SingleAugmentation])
def test_draws_come_from_the_generator_alone(kind: type[Augmentation]) -> None:
    augmentation, before = kind.parse(ALL), torch.get_rng_state()
    first, again = (augmentation.sample(4, SIZE, seeded(7)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(tensors(first), tensors(again), strict=True))
    augmentation.apply(images(4), first)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_whole_chain_has_second_derivatives() -> None:
    augmentation = Augmentation.parse(ALL)
    params = augmentation.sample(2, (4, 4), seeded())
    x = torch.randn(2, 3, 4, 4, generator=seeded(), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: augmentation.apply(x, params).pow(2), x, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda x: augmentation.apply(x, params).pow(2), x, fast_mode=True)
