from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from condense_once.augment import Augmentation, Params
from condense_once.condensed.bundled import load
from condense_once.condensed.set import CondensedSet
from condense_once.condensing import CONDENSERS, PRESETS
from condense_once.condensing.callbacks import Callback, RunProgress
from condense_once.condensing.condenser import Task
from condense_once.condensing.config import CondenseConfig
from condense_once.condensing.distributed import World
from condense_once.condensing.experts import run as expert_run
from condense_once.condensing.experts.config import MTT_EXPERTS
from condense_once.condensing.mtt import loop, time_budget
from condense_once.condensing.mtt.loop import MttCondenser
from condense_once.condensing.mtt.method import mtt
from condense_once.condensing.mtt.recipe import MttRecipe
from condense_once.condensing.mtt.student import (
    BatchLoss,
    Matched,
    StudentBatch,
    Weights,
    match_with_recomputation,
    match_with_stored_graph,
)
from condense_once.condensing.runner import condense
from condense_once.data.source import Source
from condense_once.data.zca import fit_zca
from condense_once.data.zca_store import zca_path
from condense_once.errors import BadFile, BadOption
from condense_once.nets import Shape, make_net, use_native_kernels
from condense_once.nets.native import is_available
from condense_once.train.compute_config import ComputeConfig

NET = "convnet-d1-w8"
SHORT: dict[str, Any] = {
    "iterations": 4,
    "student_steps": 3,
    "student_batch": 4,
    "image_lr": 10.0,
    "lr_lr": 1e-6,
    "ahead": 1,
    "max_start": 2,
    "experts": 1,
    "expert_epochs": 2,
    "expert_batch": 20,
}


def run(source: Source, overrides: dict[str, Any] | None = None, **others: Any) -> CondensedSet:
    given = {"ipc": 2, "net": NET, "compute": ComputeConfig(compilation="off"), **others}
    return condense(source, method="mtt", overrides={**SHORT, **(overrides or {})}, **given)


@pytest.fixture
def build(source: Source) -> Callable[..., MttCondenser]:
    def make(*, factor: int = 1, net: Any = NET, nested: bool = False, ipc: int = 2, **overrides: Any) -> MttCondenser:
        config = CondenseConfig.for_source(
            source, method="mtt", ipc=ipc, factor=factor, net=net, nested=nested, overrides={**SHORT, **overrides}
        )
        made = CONDENSERS.get("mtt").build(Task(source, config, ComputeConfig(compilation="off"), World()), None)
        assert isinstance(made, MttCondenser)
        return made

    return make


def trained(condenser: MttCondenser) -> MttCondenser:
    """The condenser with its experts trained."""
    condenser.initialise()
    while condenser.done < condenser.expert_items:
        condenser.advance()
    return condenser


# A student's gradient


class Example:
    """A student of a small network on a few images, in the given precision."""

    def __init__(self, *, steps: int = 4, dtype: torch.dtype = torch.float64, net: str = "convnet-d2-w4") -> None:
        rng = torch.Generator().manual_seed(0)
        self.net = make_net(net, (3, 8, 8), 3, generator=rng).to(dtype).eval()
        self.start = {name: weight.detach().clone() for name, weight in self.net.named_parameters()}
        self.target = {
            name: weight + 0.1 * torch.randn(weight.shape, generator=rng).to(dtype)
            for name, weight in self.start.items()
        }
        self.patches, self.lr = torch.randn(6, 3, 8, 8, generator=rng).to(dtype), torch.tensor(0.1, dtype=dtype)
        labels = torch.arange(3).repeat_interleave(2)
        chosen = [torch.randperm(6, generator=rng)[:5] for _ in range(steps)]
        self.batches = [StudentBatch(rows, labels[rows], Params()) for rows in chosen]

    def loss(self, weights: Weights, x: Tensor, batch: StudentBatch) -> Tensor:
        return cross_entropy(
            functional_call(self.net, dict(weights), (Augmentation.apply(x, batch.params),)), batch.labels
        )

    @property
    def given(self) -> tuple[BatchLoss, Weights, Weights, Tensor, Tensor, list[StudentBatch]]:
        return self.loss, self.start, self.target, self.patches, self.lr, self.batches

    def value(self, patches: Tensor, lr: Tensor) -> float:
        """The loss of the student, step by step, as the definition has it."""
        weights = {name: weight.clone() for name, weight in self.start.items()}
        for batch in self.batches:
            leaves = {name: weight.requires_grad_() for name, weight in weights.items()}
            value = cross_entropy(functional_call(self.net, leaves, (patches[batch.rows],)), batch.labels)
            gradient = torch.autograd.grad(value, list(leaves.values()))
            weights = {name: (w - lr * g).detach() for (name, w), g in zip(leaves.items(), gradient, strict=True)}
        far = sum(float((weights[name] - self.target[name]).square().sum()) for name in weights)
        return far / sum(float((self.start[name] - self.target[name]).square().sum()) for name in weights)


METHODS: dict[str, Callable[[Example], Matched]] = {
    "stored": lambda example: match_with_stored_graph(*example.given),
    "recomputed": lambda example: match_with_recomputation(*example.given, at_once=100),
    "recomputed in parts": lambda example: match_with_recomputation(*example.given, at_once=2),
}


@pytest.mark.parametrize("method", METHODS)
def test_the_gradient_through_the_student_is_that_of_finite_differences(method: str) -> None:
    example, width = Example(), 1e-6
    found = METHODS[method](example)
    assert float(found.loss) == pytest.approx(example.value(example.patches, example.lr), rel=1e-12)
    by_lr = [example.value(example.patches, example.lr + sign * width) for sign in (1, -1)]
    assert float(found.lr) == pytest.approx((by_lr[0] - by_lr[1]) / (2 * width), rel=1e-6)
    gradient = found.patches.flatten()
    for place in torch.randperm(len(gradient), generator=torch.Generator().manual_seed(1))[:24].tolist():
        by_pixel = []
        for sign in (1, -1):
            moved = example.patches.flatten().clone()
            moved[place] += sign * width
            by_pixel.append(example.value(moved.view_as(example.patches), example.lr))
        difference = (by_pixel[0] - by_pixel[1]) / (2 * width)
        assert float(gradient[place]) == pytest.approx(difference, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_recomputed_steps_give_the_gradients_of_the_stored_graph(at_once: int) -> None:
    example = Example(steps=6)
    stored, recomputed = (
        match_with_stored_graph(*example.given),
        match_with_recomputation(*example.given, at_once=at_once),
    )
    for one, other in zip(stored, recomputed, strict=True):
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-14)


@pytest.mark.skipif(not is_available(), reason="needs a C++ compiler")
def test_native_kernels_give_the_gradients_of_plain_layers() -> None:
    plain, native = (Example(dtype=torch.float32, net="convnet-d2-w32") for _ in range(2))
    use_native_kernels(native.net)
    expected = match_with_stored_graph(*plain.given)
    for found in (match_with_stored_graph(*native.given), match_with_recomputation(*native.given, at_once=3)):
        assert float(found.loss) == pytest.approx(float(expected.loss), rel=1e-5)
        assert float(found.lr) == pytest.approx(float(expected.lr), rel=1e-3)
        error = (found.patches - expected.patches).norm() / expected.patches.norm()
        assert float(error) < 1e-3


def peak_saved_bytes(work: Callable[[], object]) -> int:
    """The most that autograd graphs keep in memory at any moment."""
    live = {"now": 0, "peak": 0}

    class Kept:
        def __init__(self, tensor: Tensor) -> None:
            self.tensor, size = tensor, tensor.numel() * tensor.element_size()
            live["now"] += size
            live["peak"] = max(live.values())
            weakref.finalize(self, lambda: live.update(now=live["now"] - size))

    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        work()
    return live["peak"]


def test_memory_grows_with_the_steps_only_if_all_of_them_are_stored() -> None:
    few, many = Example(steps=2), Example(steps=8)
    stored = [peak_saved_bytes(lambda e=e: METHODS["stored"](e)) for e in (few, many)]
    recomputed = [peak_saved_bytes(lambda e=e: METHODS["recomputed"](e)) for e in (few, many)]
    assert stored[1] > 3 * stored[0]
    assert recomputed[1] < 1.1 * recomputed[0]
    assert recomputed[1] < stored[1] / 5
    assert peak_saved_bytes(lambda: METHODS["recomputed in parts"](many)) < recomputed[1]


# The whole loss


def softmax_regression(shape: Shape, classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes))


def naive_loss(student: loop.Student, patches: list[list[float]], lr: float) -> float:
    """The loss of a student that is a softmax regression: plain loops over steps, patches, classes and pixels."""
    classes, pixels = len(student.start["1.bias"]), len(patches[0])
    weight, bias = student.start["1.weight"].tolist(), student.start["1.bias"].tolist()
    for batch in student.batches:
        of_weight, of_bias = [[0.0] * pixels for _ in range(classes)], [0.0] * classes
        for row, label in zip(batch.rows.tolist(), batch.labels.tolist(), strict=True):
            logits = [bias[k] + sum(weight[k][d] * patches[row][d] for d in range(pixels)) for k in range(classes)]
            total = sum(math.exp(value) for value in logits)
            for k in range(classes):
                error = (math.exp(logits[k]) / total - (k == label)) / len(batch.rows)
                of_bias[k] += error
                for d in range(pixels):
                    of_weight[k][d] += error * patches[row][d]
        for k in range(classes):
            bias[k] -= lr * of_bias[k]
            for d in range(pixels):
                weight[k][d] -= lr * of_weight[k][d]
    far, way = 0.0, 0.0
    for k in range(classes):
        far += (bias[k] - float(student.target["1.bias"][k])) ** 2
        way += (float(student.start["1.bias"][k]) - float(student.target["1.bias"][k])) ** 2
        for d in range(pixels):
            far += (weight[k][d] - float(student.target["1.weight"][k, d])) ** 2
            way += (float(student.start["1.weight"][k, d]) - float(student.target["1.weight"][k, d])) ** 2
    return far / way


def test_the_loss_is_that_of_plain_loops(build: Callable[..., MttCondenser]) -> None:
    condenser = trained(build(net=softmax_regression, augmentation="none", student_lr=0.05))
    for iteration in range(2):
        student = condenser.sample(iteration)
        expected = naive_loss(student, condenser.images.reshape(6, -1).tolist(), 0.05)
        assert float(condenser.gradients(student)[0]) == pytest.approx(expected, rel=1e-4)
    first = run_file(condenser)
    for name, snapshots in first.weights.items():  # the student's ends are snapshots of the expert
        matches = [
            np.array_equal(condenser.sample(0).start[name].numpy(), each.astype(np.float32)) for each in snapshots
        ]
        assert sum(matches) == 1


def run_file(condenser: MttCondenser) -> Any:
    return condenser.experts.trajectories[0]


@pytest.mark.parametrize("space", ["pixels", "normalised"])
def test_gradients_reach_the_stored_pixels_of_mosaics(build: Callable[..., MttCondenser], space: str) -> None:
    # A network without ReLU: with it, gradients jump, and with them the student's end.
    condenser = trained(build(net=softmax_regression, factor=2, augmentation="none", space=space))
    student = condenser.sample(0)
    loss, gradient, _ = condenser.gradients(student)
    place, width = int(gradient.abs().argmax()), 0.02
    values = []
    for sign in (1, -1):
        before = condenser.images.clone()
        condenser.images.view(-1)[place] += sign * width
        values.append(float(condenser.gradients(student)[0]))
        condenser.images.copy_(before)
    assert float(gradient.view(-1)[place]) == pytest.approx((values[0] - values[1]) / (2 * width), rel=0.02)
    assert values[1] < float(loss) < values[0] or values[0] < float(loss) < values[1]


def test_students_start_early_and_end_ahead_on_all_classes(build: Callable[..., MttCondenser]) -> None:
    condenser = trained(build(expert_epochs=5, max_start=3, ahead=2, experts=2, student_steps=3, student_batch=3))
    used = set()
    for iteration in range(60):
        student = condenser.sample(iteration)
        for place, run_ in enumerate(condenser.experts.trajectories):
            bias = run_.weights["classifier.bias"].astype(np.float32)
            for at in range(4):
                if np.array_equal(bias[at], student.start["classifier.bias"]):
                    assert np.array_equal(bias[at + 2], student.target["classifier.bias"])
                    used.add((place, at))
        assert [len(batch.rows) for batch in student.batches] == [3, 3, 3]
        assert sorted(torch.cat([batch.rows for batch in student.batches[:2]]).tolist()) == list(range(6))
        assert all((batch.rows // 2).equal(batch.labels) for batch in student.batches)
    assert used == {(place, at) for place in range(2) for at in range(3)}


def test_a_nested_set_trains_students_on_prefixes_and_comes_out_ranked(
    build: Callable[..., MttCondenser], source: Source
) -> None:
    condenser = trained(build(nested=True, ipc=5, factor=2, student_batch=0))
    sizes = {len(condenser.sample(iteration).batches[0].rows) for iteration in range(30)}
    assert sizes == {3 * 4 * images for images in (1, 2, 5)}
    ranking = run(source, nested=True).ranking
    assert ranking is not None
    assert ranking.metric == "nested"


# Runs


def test_the_loss_falls_and_the_step_size_is_learned_and_recorded(source: Source) -> None:
    alike = {"max_start": 1, "expert_epochs": 1, "augmentation": "none", "student_batch": 0}  # students, to be compared
    made = run(source, {"iterations": 12, **alike})
    losses = [loss for _, loss in made.provenance["loss"]]
    assert losses[-1] < 0.5 * losses[0]
    assert made.provenance["student_lr"] != made.provenance["recipe"]["student_lr"]
    assert made.space.kind == "normalised"


def test_a_step_size_with_a_learning_rate_of_zero_stays(source: Source) -> None:
    assert run(source, {"lr_lr": 0}).provenance["student_lr"] == pytest.approx(0.01)


def test_images_and_step_size_move_by_sgd_with_momentum(build: Callable[..., MttCondenser]) -> None:
    condenser = trained(build())
    images, lr = condenser.images.clone().requires_grad_(), condenser.lr.clone().requires_grad_()
    optimisers = torch.optim.SGD([images], 10.0, momentum=0.5), torch.optim.SGD([lr], 1e-6, momentum=0.5)
    while condenser.done < condenser.total:
        _, images.grad, lr.grad = condenser.gradients(condenser.sample(condenser.iteration))
        for optimiser in optimisers:
            optimiser.step()
        condenser.advance()
        assert torch.allclose(condenser.images, images, atol=1e-6)
        assert float(condenser.lr) == pytest.approx(float(lr.detach()), rel=1e-5)


def test_stored_and_recomputed_runs_agree(source: Source) -> None:
    one, other = (run(source, {"recompute": recompute}).cells for recompute in (True, False))
    assert np.allclose(one, other, atol=1e-4)


def test_experts_train_as_mtt_does_and_serve_any_number_of_images_per_class(
    source: Source, experts_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [MTT_EXPERTS.lr_at(epoch) for epoch in range(50)] == [0.01] * 50
    assert (MTT_EXPERTS.batch, MTT_EXPERTS.momentum, MTT_EXPERTS.weight_decay, MTT_EXPERTS.cutmix) == (256, 0, 0, 0)
    run(source)
    assert len(list(experts_folder.glob("*/run-*.safetensors"))) == 1
    monkeypatch.setattr(expert_run.ExpertRun, "advance", lambda self: pytest.fail("trained again"))
    assert len(run(source, ipc=1)) == 3


def test_whitened_runs_are_in_the_space_of_their_experts(source: Source, experts_folder: Path) -> None:
    run(source)
    untouched = run(source, {"space": "zca", "iterations": 0, "init": "first"})
    description = {"recipe": "kornia", "regularisation": 0.1, "source": "tiny"}
    fit = zca_path(source.train, source.mean, source.std, description).stem
    assert (untouched.space.kind, dict(untouched.space.zca)) == ("zca", {**description, "fit": fit})
    zca = fit_zca(source.train, source.mean, source.std, description)
    rows = np.concatenate([np.flatnonzero(source.train.labels == label)[:2] for label in range(3)])
    expected = zca.apply(source.train.take(rows).astype(np.float32) / np.float32(255))
    assert np.abs(untouched.patches(np.arange(6)) - expected).max() < 1e-4
    made = run(source, {"space": "zca"})
    assert made.space == untouched.space
    assert len(list(experts_folder.glob("*/run-*.safetensors"))) == 2  # other images make other experts
    with pytest.raises(BadOption, match="in ZCA space starts from real images or noise; leave out `init`"):
        run(source, {"space": "zca"}, init=run(source, {"iterations": 0}))


def test_images_too_large_for_zca_are_refused(make_source: Callable[..., Source]) -> None:
    with pytest.raises(BadOption, match=r"Images of 3×80×80 are too large for ZCA.*`size` 64"):
        run(make_source(side=80), {"space": "zca"})


# Interrupted, killed, in several processes


class _SwitchOff(Callback):
    """Ends a run, like a machine that is switched off, once a checkpoint after so many work items is written."""

    def __init__(self, after: int) -> None:
        self._after = after

    def on_checkpoint(self, progress: RunProgress) -> None:
        if progress.done >= self._after:
            raise RuntimeError("off")


@pytest.mark.parametrize("after", [2, 4, 7, 9])  # while the expert is trained, and between two students
@pytest.mark.parametrize("space", ["normalised", "zca"])
def test_a_run_that_was_interrupted_ends_with_the_same_bits(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, space: str
) -> None:
    monkeypatch.setattr(expert_run, "SAVE_EVERY", 0.0)
    whole = run(source, {"space": space})
    monkeypatch.setenv("CONDENSE_ONCE_DATA", str(tmp_path))  # without the experts
    path = tmp_path / "run.checkpoint"
    with pytest.raises(RuntimeError, match="off"):
        run(source, {"space": space}, checkpoint=path, save_every=0.0, callbacks=[_SwitchOff(after)])
    resumed = run(source, {"space": space}, checkpoint=path, resume=True)
    assert np.array_equal(resumed.cells, whole.cells)
    for name in ("loss", "student_lr"):
        assert resumed.provenance[name] == whole.provenance[name]


PROGRAM = """
import os, signal, sys
import torch
from condense_once.condensed.file import save
from condense_once.condensing.mtt.loop import MttCondenser
from condense_once.condensing.runner import condense
from condense_once.train.compute_config import ComputeConfig

torch.set_num_threads(1)
item, overrides, *resume = sys.argv[1:]
advance = MttCondenser.advance

def advance_or_die(condenser):
    if condenser.done == int(item):
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(condenser)

MttCondenser.advance = advance_or_die
made = condense("tiny.npz", method="mtt", ipc=2, net="convnet-d1-w8", overrides=eval(overrides), experts="experts",
                checkpoint="run.checkpoint", save_every=0.0, resume=bool(resume),
                compute=ComputeConfig(compilation="off"))
save(made, "made.safetensors")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("item", [4, 8])  # a batch of an expert, a student
def test_a_run_killed_for_good_resumes_to_the_same_bits(source: Source, tmp_path: Path, item: int) -> None:
    def start(*arguments: str) -> int:
        return subprocess.run([sys.executable, "-c", PROGRAM, *arguments], cwd=tmp_path, timeout=300).returncode

    arrays = {"x_train": source.train.take(slice(None)).transpose(0, 2, 3, 1), "y_train": source.train.labels}
    np.savez(tmp_path / "tiny.npz", **arrays)
    assert start(str(item), repr(SHORT)) == -signal.SIGKILL
    assert start("-1", repr(SHORT), "resume") == 0
    whole = run(tmp_path / "tiny.npz", experts=tmp_path / "others")
    resumed = load(str(tmp_path / "made.safetensors"))
    assert np.array_equal(resumed.cells, whole.cells)
    assert resumed.provenance["student_lr"] == whole.provenance["student_lr"]


def test_several_processes_are_refused_in_one_sentence(source: Source) -> None:
    config = CondenseConfig.for_source(source, method="mtt", ipc=1, net=NET)
    with pytest.raises(BadOption, match=r"mtt runs in one process, .* start it without torchrun"):
        CONDENSERS.get("mtt").build(Task(source, config, ComputeConfig(), World(1, 2)), None)


# Time budgets, recipes and presets


def test_a_time_budget_is_kept_and_counts_the_expert(source: Source) -> None:
    notes: list[str] = []
    given = {name: SHORT[name] for name in ("student_steps", "expert_batch", "expert_epochs")}

    def quick(notes: list[str]) -> CondensedSet:
        return condense(source, method="mtt", ipc=2, net=NET, overrides=given, minutes=0.05, notify=notes.append)

    made = quick(notes)
    assert made.provenance["seconds"] < 0.05 * 60 * 1.5
    assert "1 expert of 2 epochs (trained first" in notes[0]
    again: list[str] = []
    quick(again)
    assert "found on disk" in again[0]


def test_without_overrides_a_time_budget_chooses_an_expert_that_students_can_follow(source: Source) -> None:
    made = condense(source, method="mtt", ipc=2, net=NET, minutes=0.05)
    recipe = MttRecipe(**made.provenance["recipe"])
    assert recipe.experts == 1
    assert recipe.starts >= 1


def test_an_expert_of_less_than_an_epoch_has_a_larger_learning_rate(build: Callable[..., MttCondenser]) -> None:
    recipes = time_budget._options(build(expert_batch=2))
    assert [(each.expert_epochs, each.expert_lr) for each in recipes] == [(2, 0.01)]  # the user's own length
    config = CondenseConfig.for_source(build().task.source, method="mtt", ipc=2, net=NET, overrides={"expert_batch": 2})
    task = Task(build().task.source, config, ComputeConfig(compilation="off"), World())
    options = time_budget._options(CONDENSERS.get("mtt").build(task, None))  # 30 batches in an epoch
    lengths = [(each.expert_epochs, each.expert_batches, each.expert_lr) for each in options]
    assert lengths[-3:] == [(1, 0, 0.01), (8, 3, 0.05), (8, 1, 0.05)]


def test_a_budget_too_short_for_an_expert_is_refused(source: Source) -> None:
    with pytest.raises(
        BadOption, match=r"Training an expert, with a first student, takes about .* allow `minutes` 1 or more"
    ):
        run(source, minutes=1e-9)


def test_the_cost_of_a_run_is_estimated(build: Callable[..., MttCondenser], experts_folder: Path) -> None:
    found = build(iterations=5).estimate()
    assert found.seconds > 5 * 3 * found.step_seconds
    assert found.iterations == 5
    assert not experts_folder.exists()  # nothing is written


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"ahead": 3}, "Experts of 2 epochs with a snapshot every 1 have none that is 3 ahead of their start"),
        ({"student_steps": 0}, "student_steps must be at least 1"),
        ({"student_lr": 0}, "student_lr must be above zero"),
        ({"lr_lr": -1}, "lr_lr must be at least zero"),
        ({"space": "whitened"}, "space is pixels, normalised or zca"),
        ({"augmentation": "dsa:crp"}, "no augmentation 'crp'"),
    ],
)
def test_invalid_recipes_are_refused(source: Source, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        run(source, overrides)


def test_a_loss_that_is_not_finite_ends_the_run(source: Source) -> None:
    with pytest.raises(BadOption, match=r"NaN or infinite in iteration .* smaller image_lr .* or lr_lr"):
        run(source, {"student_lr": 1e30, "student_steps": 8})


def test_a_checkpoint_with_another_recipe_is_damaged(source: Source, tmp_path: Path) -> None:
    config = CondenseConfig.for_source(source, method="mtt", ipc=2, net=NET)
    task = Task(source, config, ComputeConfig(), World())
    for recipe in ({"method": "mtt"}, {"of": 1}, {**vars(mtt((3, 8, 8), 2, 1)), "student_steps": "many"}):
        with pytest.raises(BadFile, match="its recipe is invalid"):
            CONDENSERS.get("mtt").build(task, recipe)


# dataset and space, images per class: steps, epochs ahead, first epochs, image lr, lr of the step size, step size, batch
PAPER = {
    (None, 1): (50, 2, 5, 1e3, 1e-7, 0.01, 0),
    (None, 10): (30, 2, 15, 1e3, 1e-5, 0.01, 0),
    (None, 50): (30, 2, 40, 1e3, 1e-5, 0.001, 0),
    ("mtt-cifar10-zca", 1): (50, 2, 2, 1e2, 1e-7, 0.01, 0),
    ("mtt-cifar10-zca", 10): (30, 2, 20, 1e5, 1e-4, 0.01, 0),
    ("mtt-cifar10-zca", 50): (30, 2, 20, 1e2, 1e-5, 0.001, 0),
    ("mtt-cifar100", 10): (20, 2, 20, 1e3, 1e-5, 0.01, 0),
    ("mtt-cifar100-zca", 1): (20, 3, 20, 1e3, 1e-5, 0.01, 0),
    ("mtt-cifar100-zca", 10): (20, 2, 20, 1e3, 1e-5, 0.01, 0),
    ("mtt-cifar100-zca", 50): (80, 2, 40, 1e3, 1e-5, 0.01, 125),
}


@pytest.mark.parametrize(("preset", "ipc"), PAPER)
def test_settings_are_the_papers(preset: str | None, ipc: int) -> None:
    recipe = mtt((3, 32, 32), ipc, 1)
    if preset is not None:
        recipe = recipe.override(PRESETS.get(preset).overrides_for((3, 32, 32), ipc, 1))
    found = (recipe.student_steps, recipe.ahead, recipe.max_start, recipe.image_lr, recipe.lr_lr, recipe.student_lr)
    assert (*found, recipe.student_batch) == PAPER[preset, ipc]
    assert (recipe.experts, recipe.expert_epochs, recipe.iterations, recipe.image_momentum) == (100, 50, 5000, 0.5)
    assert recipe.space == ("zca" if preset and "zca" in preset else "normalised")
