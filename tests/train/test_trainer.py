from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.exc import CppCompileError

from condense_once.augment import Augmentation, CutMix
from condense_once.condensed.space import Space
from condense_once.nets import initialise, make_net, multiply_adds
from condense_once.nets.native import WinogradConv2d, build, has_compiler
from condense_once.train import hardware
from condense_once.train.compute_config import Compilation, ComputeConfig, Precision
from condense_once.train.hardware import COMPILE_FROM, NATIVE_FROM, PASS, dtype_and_compiler, how_compiled
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator
from condense_once.train.trainer import Trainer

SPACE = Space("pixels", (0.5,) * 3, (0.25,) * 3)
SHAPE = (3, 8, 8)
PLAIN = Recipe(epochs=6, batch=8, augmentation="none", cutmix=0.0)


@pytest.fixture
def examples() -> tuple[Tensor, Tensor]:
    """Twenty images, two classes that differ in brightness."""
    labels = torch.arange(20) % 2
    return torch.randn(20, *SHAPE, generator=generator(0, "images")) + 2 * labels[:, None, None, None], labels


NATIVE, COMPILED = "convnet-d3-w32", "convnet-d3-w32-gn"  # all native kernels, and some layers left to the compiler


def make(
    recipe: Recipe = PLAIN, *, net: str = NATIVE, check: Callable[[], None] | None = None, **settings: object
) -> Trainer:
    compute = ComputeConfig(**{"precision": "float32", **settings})  # type: ignore[arg-type]  # by itself: by the machine
    return Trainer(net, DataSpec(SHAPE, 2, SPACE), recipe, passes=0, compute=compute, check=check)


def fit(trainer: Trainer, examples: tuple[Tensor, Tensor], seed: int = 0, **more: object) -> Tensor:
    trainer.fit(*examples, weights=generator(seed, "w"), batches=generator(seed, "b"), **more)  # type: ignore[arg-type]
    return trainer.logits(examples[0])


def test_training_equals_an_ordinary_loop(examples: tuple[Tensor, Tensor]) -> None:
    """Without augmentation: plain SGD, PyTorch's schedule, batches that are slices of a permutation."""
    inputs, labels = examples
    net = make_net("convnet-d3-w32", SHAPE, 2, generator=generator(0, "other"))
    initialise(net, generator(0, "w"))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [4, 5], gamma=0.2)
    orders: list[Tensor] = []
    got = fit(make(), examples, on_batch=lambda _epoch, rows, _logits: orders.append(rows))
    for epoch in range(6):
        for rows in orders[3 * epoch : 3 * epoch + 3]:
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(inputs[rows]), labels[rows]).backward()
            optimiser.step()
        schedule.step()
    torch.testing.assert_close(got, net.eval()(inputs), atol=1e-4, rtol=1e-3)


def test_training_with_augmentation_and_cutmix_equals_an_ordinary_loop(examples: tuple[Tensor, Tensor]) -> None:
    """The same draws replayed: permutation, augmentation, CutMix; rates that drop in the middle of an epoch."""
    inputs, labels = examples
    recipe = Recipe(epochs=5, batch=8, schedule="iteration")
    net = make_net("convnet-d3-w32", SHAPE, 2, generator=generator(0, "other"))
    initialise(net, generator(0, "w"))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [10, 12], gamma=0.2)
    draws, augmentation = generator(0, "b"), Augmentation.parse(recipe.augmentation)
    for _ in range(5):
        order = torch.randperm(20, generator=draws)
        for start in (0, 8, 16):
            rows = order[start : start + 8]
            changed = augmentation.apply(inputs[rows], augmentation.sample(len(rows), (8, 8), draws))
            mix = CutMix(0.5).sample(len(rows), (8, 8), draws)
            top, bottom, left, right = mix.box[0].tolist()
            mixed = changed.clone()
            mixed[:, :, top:bottom, left:right] = changed[mix.partner][:, :, top:bottom, left:right]
            share = 1 - (bottom - top) * (right - left) / 64
            logits, y = net(mixed), labels[rows]
            own, other = (nn.functional.cross_entropy(logits, target) for target in (y, y[mix.partner]))
            optimiser.zero_grad()
            (share * own + (1 - share) * other).backward()
            optimiser.step()
            schedule.step()
    torch.testing.assert_close(fit(make(recipe), examples), net.eval()(inputs), atol=1e-4, rtol=1e-3)


def test_every_patch_is_seen_once_an_epoch(examples: tuple[Tensor, Tensor]) -> None:
    seen: dict[int, list[int]] = {}
    fit(make(), examples, on_batch=lambda epoch, rows, _: seen.setdefault(epoch, []).extend(rows.tolist()))
    assert all(sorted(rows) == list(range(20)) for rows in seen.values())
    assert len(seen) == 6
    assert seen[0] != seen[1]


def test_watchers_see_what_the_network_said_before_it_learnt(examples: tuple[Tensor, Tensor]) -> None:
    first: list[tuple[Tensor, Tensor]] = []
    fit(make(), examples, on_batch=lambda _epoch, rows, logits: first.append((rows, logits)))
    net = make_net("convnet-d3-w32", SHAPE, 2, generator=generator(0, "w"))
    rows, logits = first[0]
    torch.testing.assert_close(logits, net(examples[0][rows]), atol=1e-5, rtol=1e-4)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(examples: tuple[Tensor, Tensor]) -> None:
    recipe = Recipe(epochs=3, batch=8)
    one = fit(make(recipe), examples)
    again = make(recipe)
    fit(again, examples, seed=5)
    assert torch.equal(one, fit(again, examples))  # also from a trainer that was used before
    assert not torch.equal(one, fit(again, examples, seed=1))


def test_it_learns(examples: tuple[Tensor, Tensor]) -> None:
    logits = fit(make(Recipe(epochs=30, batch=8)), examples)
    assert (logits.argmax(1) == examples[1]).float().mean() > 0.9


def test_it_may_stop_before_the_recipe_ends(examples: tuple[Tensor, Tensor]) -> None:
    seen: list[tuple[int, int]] = []
    fit(make(Recipe(epochs=1000, batch=8)), examples, epochs=2, progress=lambda *now: seen.append(now))
    assert seen == [(1, 2), (2, 2)]


def test_a_last_batch_of_one_joins_the_one_before(examples: tuple[Tensor, Tensor]) -> None:
    inputs, labels = examples
    sizes: list[int] = []
    trainer = Trainer("resnet10", DataSpec(SHAPE, 2, SPACE), PLAIN, passes=0)  # batch norm over maps of 1×1
    fit(trainer, (inputs[:17], labels[:17]), epochs=1, on_batch=lambda _epoch, rows, _logits: sizes.append(len(rows)))
    assert sizes == [8, 9]


def test_testing_during_training_changes_nothing(examples: tuple[Tensor, Tensor]) -> None:
    def test(_done: int, _total: int) -> None:
        trainer.logits(torch.randn(5, *SHAPE))

    trainer = Trainer("convnet-d3-bn", DataSpec(SHAPE, 2, SPACE), PLAIN, passes=0)
    plain = fit(trainer, examples)
    assert torch.equal(plain, fit(trainer, examples, progress=test))


def test_bfloat16_on_request_is_near_float32(examples: tuple[Tensor, Tensor]) -> None:
    exact, rough = fit(make(), examples, epochs=1), fit(make(precision="bfloat16"), examples, epochs=1)
    assert not torch.equal(exact, rough)
    torch.testing.assert_close(exact, rough, atol=0.1, rtol=0.1)


def test_imagenet_transforms_train_too(examples: tuple[Tensor, Tensor]) -> None:
    assert torch.isfinite(fit(make(Recipe(epochs=1, batch=8, augmentation="imagenet")), examples)).all()


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")
@pytest.mark.parametrize(
    ("precision", "compilation", "by_tiles"),
    [("float32", "on", True), ("float32", "off", False), ("bfloat16", "on", False)],
)
def test_compiled_float32_convolves_by_tiles(precision: str, compilation: str, by_tiles: bool) -> None:
    net = make(precision=precision, compilation=compilation).net
    assert any(isinstance(layer, WinogradConv2d) for layer in net.modules()) == by_tiles


def test_without_a_working_compiler_convolutions_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch, examples: tuple[Tensor, Tensor]
) -> None:
    monkeypatch.setattr(build, "_load", lambda: None)
    trainer = make(compilation="on")
    assert not any(isinstance(layer, WinogradConv2d) for layer in trainer.net.modules())
    assert torch.isfinite(fit(trainer, examples, epochs=1)).all()


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")
@pytest.mark.parametrize("net", [NATIVE, COMPILED])
def test_compiled_steps_compute_the_same_for_every_batch_size(net: str, examples: tuple[Tensor, Tensor]) -> None:
    """One program serves full batches, short ones and, run plainly, single images."""
    recipe = Recipe(epochs=2, batch=8)
    inputs, labels = examples
    compiled = make(recipe, net=net, compilation="on")
    for count in (20, 17, 11):
        some = (inputs[:count], labels[:count])
        torch.testing.assert_close(fit(compiled, some), fit(make(recipe, net=net), some), atol=1e-3, rtol=1e-3)
    assert compiled.compiled == (net == COMPILED)
    programs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    fit(make(recipe, net=net, compilation="on"), examples)  # a trainer of its own, with a network of its own
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == programs


def test_training_continues_without_a_compiler_that_fails(
    examples: tuple[Tensor, Tensor], caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise CppCompileError(["g++"], "no C++ today")

    trainer = make(net=COMPILED, compilation="on")
    trainer._compiled_loss = fails
    torch.testing.assert_close(fit(trainer, examples), fit(make(net=COMPILED), examples), atol=1e-4, rtol=1e-3)
    assert "torch.compile failed" in caplog.text


def test_a_mistake_of_the_network_is_not_taken_for_the_compilers(examples: tuple[Tensor, Tensor]) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("mine")

    trainer = make(net=COMPILED, compilation="on")
    trainer._compiled_loss = fails
    with pytest.raises(ZeroDivisionError, match="mine"):
        fit(trainer, examples)


@pytest.mark.parametrize(
    ("compilation", "passes", "expected"),
    [
        ("auto", 0.9 * NATIVE_FROM, (False, False)),
        ("auto", 1.1 * NATIVE_FROM, (True, False)),
        ("auto", 1e9, (True, False)),  # little would be gained by PyTorch's compiler
        ("on", 1.0, (True, True)),
        ("off", 1e9, (False, False)),
    ],
)
def test_compiling_is_decided_by_the_amount_of_work_not_by_a_clock(
    compilation: Compilation, passes: float, expected: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "has_compiler", lambda: True)
    cpu = torch.device("cpu")
    assert how_compiled(compilation, cpu, torch.float32, passes) == expected
    half = how_compiled("auto", cpu, torch.bfloat16, passes)
    assert half == (False, passes > COMPILE_FROM)
    assert how_compiled("auto", torch.device("cuda"), torch.float32, passes) == (False, passes > COMPILE_FROM)
    monkeypatch.setattr(hardware, "has_compiler", lambda: False)
    assert how_compiled("auto", cpu, torch.float32, passes) == (False, False)


@pytest.mark.parametrize(
    ("precision", "passes", "expected"),
    [
        ("auto", 2 * COMPILE_FROM, (torch.bfloat16, (False, True))),
        ("auto", 0.5 * COMPILE_FROM, (torch.float32, (True, False))),
        ("bfloat16", 0.5 * COMPILE_FROM, (torch.bfloat16, (False, False))),
        ("float32", 2 * COMPILE_FROM, (torch.float32, (True, False))),
    ],
)
def test_outside_of_the_trainer_bfloat16_is_used_only_compiled(
    precision: Precision, passes: float, expected: tuple[torch.dtype, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "has_compiler", lambda: True)
    monkeypatch.setattr(hardware, "has_bfloat16", lambda device: True)
    assert dtype_and_compiler(ComputeConfig(precision), torch.device("cpu"), passes) == expected


def test_passes_count_by_the_work_that_a_network_is() -> None:
    """ConvNet-D3 on 32×32 is the measure; a narrow one or small images repay compiling only later."""
    for name, side, share in (("convnet-d3", 32, 1.0), ("convnet-d3", 16, 0.25), ("convnet-d3-w32", 32, 0.075)):
        work = multiply_adds(make_net(name, (3, side, side), 10, generator=generator(0)), (3, side, side)) / PASS
        assert work == pytest.approx(share, rel=0.02)


@pytest.mark.skipif(not has_compiler(), reason="there is no compiler here")
def test_native_kernels_pay_off_long_before_torch_compile_does() -> None:
    def trainer(net: str, passes: float, *, precision: str = "float32", compilation: str = "auto") -> Trainer:
        compute = ComputeConfig(precision, compilation)  # type: ignore[arg-type]
        return Trainer(net, DataSpec((3, 32, 32), 10, SPACE), PLAIN, passes=round(passes), compute=compute)

    def native(made: Trainer) -> bool:
        return any(isinstance(layer, WinogradConv2d) for layer in made.net.modules())

    assert not native(trainer("convnet-d3", 0.9 * NATIVE_FROM))
    assert native(trainer("convnet-d3", 1.1 * NATIVE_FROM))
    assert not trainer("convnet-d3-bn", 1.1 * COMPILE_FROM).compiled  # little would be gained
    assert trainer("convnet-d3-bn", 0, compilation="on").compiled
    assert not trainer("convnet-d3", 0, compilation="on").compiled  # nothing is left to compile
    assert not trainer("convnet-d3", 0.9 * COMPILE_FROM, precision="bfloat16").compiled
    assert trainer("convnet-d3", 1.1 * COMPILE_FROM, precision="bfloat16").compiled


@pytest.mark.skipif(not has_compiler(), reason="there is no compiler here")
def test_compiled_runs_in_parallel_equal_those_in_sequence(examples: tuple[Tensor, Tensor]) -> None:
    recipe = Recipe(epochs=2, batch=8)

    def train(seed: int) -> Tensor:
        torch.set_num_threads(1)  # PyTorch keeps the number for each thread
        return fit(make(recipe, net=COMPILED, compilation="on"), examples, seed)

    with ThreadPoolExecutor(2) as pool:
        in_parallel = list(pool.map(train, range(4)))
    one_by_one = [train(seed) for seed in range(4)]
    for alone, together in zip(one_by_one, in_parallel, strict=True):
        assert torch.equal(alone, together)


PROCESS = """
import torch
from condense_once.condensed.space import Space
from condense_once.train.images import DataSpec
from condense_once.train.recipe import Recipe
from condense_once.train.trainer import Trainer
from condense_once.train.seeds import generator
from condense_once.train.compute_config import ComputeConfig

torch.set_num_threads(1)
inputs, labels = torch.randn(20, 3, 8, 8, generator=generator(0, "images")), torch.arange(20) % 2
space = Space("pixels", (0.5,) * 3, (0.25,) * 3)
spec, recipe, compute = DataSpec((3, 8, 8), 2, space), Recipe(epochs=3, batch=8), ComputeConfig("float32")
trainer = Trainer("convnet-d3-w32", spec, recipe, passes=0, compute=compute)
trainer.fit(inputs, labels, weights=generator(3, "w"), batches=generator(3, "b"))
print(trainer.logits(inputs).numpy().tobytes().hex())
"""


def test_another_process_gives_the_same_bits() -> None:
    run = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    inputs, labels = torch.randn(20, *SHAPE, generator=generator(0, "images")), torch.arange(20) % 2
    got = fit(make(Recipe(epochs=3, batch=8)), (inputs, labels), seed=3)
    assert got.numpy().tobytes().hex() == run.stdout.strip()


def with_dropout(shape: tuple[int, int, int], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(shape[0] * shape[1] * shape[2], classes))


def test_an_interrupt_in_the_middle_of_an_epoch_ends_a_training_at_once_and_cleanly(
    examples: tuple[Tensor, Tensor],
) -> None:
    trainer = Trainer(with_dropout, DataSpec(SHAPE, 2, SPACE), PLAIN, passes=0)
    undisturbed, state = fit(trainer, examples), torch.get_rng_state()
    steps: list[int] = []

    def interrupt(epoch: int, rows: Tensor, logits: Tensor) -> None:
        steps.append(epoch)
        if len(steps) == 5:  # of three an epoch
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(trainer, examples, on_batch=interrupt)
    assert steps == [0, 0, 0, 1, 1]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(fit(trainer, examples), undisturbed)


def stop_after(batches: int) -> Callable[[], None]:
    left = iter(range(batches))

    def check() -> None:
        if next(left, None) is None:
            raise InterruptedError

    return check


def test_whoever_wants_to_stop_is_asked_before_every_batch_of_training_and_testing(
    examples: tuple[Tensor, Tensor],
) -> None:
    seen: list[int] = []
    with pytest.raises(InterruptedError):
        fit(make(check=stop_after(5)), examples, on_batch=lambda epoch, _rows, _logits: seen.append(epoch))
    assert seen == [0, 0, 0, 1, 1]
    test = torch.randn(250, *SHAPE)  # in batches of 100
    make(check=stop_after(3)).logits(test)
    with pytest.raises(InterruptedError):
        make(check=stop_after(2)).logits(test)
