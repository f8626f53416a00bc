"""A draw is data: compiled once, the same program serves every draw."""

from __future__ import annotations

import shutil

import pytest
import torch
from tests.conftest import seeded
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from condense_once.augment import Augmentation, CutMix, ImageNetAugmentation, Mix, Params, SingleAugmentation

ALL = "color_crop_cutout_flip_scale_rotate"
SIZE = (8, 8)

compiler = pytest.mark.skipif(not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="needs a C++ compiler")


def images(n: int) -> Tensor:
    return torch.rand(n, 3, *SIZE, generator=seeded(4))


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> None:
    torch.compiler.reset()


@pytest.mark.parametrize("kind", [Augmentation, SingleAugmentation])
def test_one_program_serves_every_draw(kind: type[Augmentation]) -> None:
    augmentation, cutmix, x, generator = kind.parse(ALL), CutMix(0.5), images(4), seeded()
    counter = CompileCounter()

    def augmented(x: Tensor, params: Params, mix: Mix) -> Tensor:
        return cutmix.apply(augmentation.apply(x, params), mix)

    compiled = torch.compile(augmented, backend=counter, fullgraph=True)
    for _ in range(20):
        params, mix = augmentation.sample(4, SIZE, generator), cutmix.sample(4, SIZE, generator)
        assert torch.equal(compiled(x, params, mix), augmented(x, params, mix))
    assert counter.frame_count == 1


def test_one_program_serves_every_imagenet_draw() -> None:
    augmentation, x, generator, counter = ImageNetAugmentation(size=(8, 8)), images(4), seeded(), CompileCounter()
    compiled = torch.compile(augmentation.apply, backend=counter, fullgraph=True)
    for _ in range(5):
        params = augmentation.sample(4, SIZE, generator)
        assert torch.equal(compiled(x, params), augmentation.apply(x, params))
    assert counter.frame_count == 1


@compiler
def test_compiled_to_machine_code_it_computes_the_same() -> None:
    augmentation, generator = Augmentation.parse(ALL), seeded()
    compiled = torch.compile(augmentation.apply, fullgraph=True)
    for _ in range(3):
        params = augmentation.sample(4, SIZE, generator)
        x, x_eager = images(4).requires_grad_(), images(4).requires_grad_()
        out, out_eager = compiled(x, params), augmentation.apply(x_eager, params)
        torch.testing.assert_close(out, out_eager, rtol=0, atol=1e-5)
        out.pow(2).sum().backward()
        out_eager.pow(2).sum().backward()
        torch.testing.assert_close(x.grad, x_eager.grad, rtol=0, atol=1e-4)
