"""CutMix: the box, its share, and the loss."""

from __future__ import annotations

import math

import pytest
import torch
from tests.conftest import seeded
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from condense_once.augment import CutMix, mixed_cross_entropy
from condense_once.augment.cutmix import cut
from condense_once.errors import BadOption


def naive_cut(lam: float, y: int, x: int, h: int, w: int) -> tuple[list[int], float]:
    high, wide = int(h * math.sqrt(1 - lam)), int(w * math.sqrt(1 - lam))
    box = [max(y - high // 2, 0), min(y + high // 2, h), max(x - wide // 2, 0), min(x + wide // 2, w)]
    return box, 1 - (box[1] - box[0]) * (box[3] - box[2]) / (h * w)


def test_half_of_a_32_pixel_image_is_a_box_of_22() -> None:
    box, ratio = cut(torch.tensor(0.5, dtype=torch.float64), [torch.tensor(16), torch.tensor(16)], (32, 32))
    assert box.tolist() == [5, 27, 5, 27]
    assert ratio.item() == pytest.approx(1 - 22 * 22 / 1024)


@pytest.mark.parametrize("size", [(32, 32), (7, 12), (224, 224)])
def test_boxes_equal_integer_arithmetic(size: tuple[int, int]) -> None:
    generator = seeded()
    for _ in range(200):
        lam = torch.rand((), generator=generator, dtype=torch.float64)
        centre = [torch.randint(side, (), generator=generator) for side in size]
        box, ratio = cut(lam, centre, size)
        expected_box, expected_ratio = naive_cut(lam.item(), int(centre[0]), int(centre[1]), *size)
        assert box.tolist() == expected_box
        assert ratio.item() == pytest.approx(expected_ratio, abs=1e-6)


def test_the_box_comes_from_the_partner_and_the_rest_stays() -> None:
    x = torch.randn(5, 3, 9, 13, generator=seeded())
    cutmix = CutMix(1.0)
    for seed in range(20):
        mix = cutmix.sample(5, (9, 13), seeded(seed))
        out = cutmix.apply(x, mix)
        top, bottom, left, right = mix.box[0].tolist()
        expected = x.clone()
        for i, partner in enumerate(mix.partner.tolist()):
            expected[i, :, top:bottom, left:right] = x[partner, :, top:bottom, left:right]
        assert torch.equal(out, expected)
        assert mix.ratio.item() == pytest.approx(1 - (bottom - top) * (right - left) / (9 * 13))


def test_partners_are_a_permutation() -> None:
    mix = CutMix(1.0).sample(64, (32, 32), seeded())
    assert mix.partner.sort().values.tolist() == list(range(64))
    assert mix.partner.tolist() != list(range(64))


def test_an_unmixed_batch_is_untouched_in_images_and_loss() -> None:
    mix = CutMix(0.0).sample(4, (8, 8), seeded())
    x, y = torch.randn(4, 3, 8, 8, generator=seeded()), torch.tensor([0, 1, 2, 3])
    assert torch.equal(CutMix.apply(x, mix), x)
    assert mix.ratio == 1
    logits = torch.randn(4, 10, generator=seeded())
    assert torch.equal(mixed_cross_entropy(logits, y, y[mix.partner], mix.ratio), cross_entropy(logits, y))


def test_the_given_share_of_batches_is_mixed() -> None:
    generator = seeded()
    boxes = torch.cat([CutMix(0.25).sample(2, (224, 224), generator).box for _ in range(1000)])
    assert 0.20 < (boxes.sum(1) > 0).float().mean() < 0.30


def test_the_stream_does_not_depend_on_what_was_mixed() -> None:
    never, always = seeded(), seeded()
    CutMix(0.0).sample(8, (32, 32), never)
    CutMix(1.0).sample(8, (32, 32), always)
    assert torch.equal(never.get_state(), always.get_state())


def test_draws_come_from_the_generator_alone() -> None:
    before = torch.get_rng_state()
    first, again = (CutMix().sample(8, (32, 32), seeded(3)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert torch.equal(torch.get_rng_state(), before)


def naive_loss(logits: Tensor, y: Tensor, partner: Tensor, ratio: float) -> float:
    total = 0.0
    for row, own, other in zip(logits.tolist(), y.tolist(), y[partner].tolist(), strict=True):
        log_total = math.log(sum(math.exp(z) for z in row))
        total += ratio * (log_total - row[own]) + (1 - ratio) * (log_total - row[other])
    return total / len(logits)


def test_the_loss_shares_the_labels() -> None:
    logits = torch.randn(6, 4, generator=seeded(), dtype=torch.float64)
    y, partner = torch.tensor([0, 1, 2, 3, 0, 1]), torch.tensor([5, 4, 3, 2, 1, 0])
    loss = mixed_cross_entropy(logits, y, y[partner], torch.tensor(0.7, dtype=torch.float64))
    assert loss.item() == pytest.approx(naive_loss(logits, y, partner, 0.7), abs=1e-12)


def test_soft_labels_agree_with_hard_ones_and_mix_linearly() -> None:
    logits = torch.randn(6, 4, generator=seeded(), dtype=torch.float64)
    y, partner = torch.tensor([0, 1, 2, 3, 0, 1]), torch.tensor([5, 4, 3, 2, 1, 0])
    soft = one_hot(y, 4).double()
    hard = mixed_cross_entropy(logits, y, y[partner], 0.7)
    torch.testing.assert_close(mixed_cross_entropy(logits, soft, soft[partner], 0.7), hard)
    torch.testing.assert_close(cross_entropy(logits, 0.7 * soft + 0.3 * soft[partner]), hard)


def test_has_first_and_second_derivatives() -> None:
    mix = CutMix(1.0).sample(3, (4, 5), seeded(1))
    x = torch.randn(3, 2, 4, 5, generator=seeded(), dtype=torch.float64, requires_grad=True)
    assert 0 < mix.ratio < 1
    assert torch.autograd.gradcheck(lambda x: CutMix.apply(x, mix).pow(2), x, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda x: CutMix.apply(x, mix).pow(2), x, fast_mode=True)


@pytest.mark.parametrize("probability", [-0.1, 1.5, float("nan")])
def test_a_probability_is_between_0_and_1(probability: float) -> None:
    with pytest.raises(BadOption, match="from 0 to 1"):
        CutMix(probability)
