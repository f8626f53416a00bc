"""Matching training trajectories: the loop.

The first work items train the experts that do not exist yet, a batch each. After that, an item is one student: it starts from
a snapshot of an expert, trains for a few steps on the synthetic images, and should end where the expert is a few epochs later.
The gradient of that goes through all steps of the student, to the images and to the step size. All samples are a function of
the seed and the position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from condense_once.augment import Augmentation, Params, make_augmenter
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.condensing.condenser import CondenseEstimate, Condenser, State, Task
from condense_once.condensing.decode import decode
from condense_once.condensing.experts.config import MTT_EXPERTS, ExpertConfig
from condense_once.condensing.experts.phase import ExpertPhase
from condense_once.condensing.experts.trajectory import Trajectory
from condense_once.condensing.init import initial_images
from condense_once.condensing.make_set import make_set
from condense_once.condensing.mtt import time_budget
from condense_once.condensing.mtt.recipe import MttRecipe
from condense_once.condensing.mtt.student import (
    Matched,
    StudentBatch,
    Weights,
    match_with_recomputation,
    match_with_stored_graph,
)
from condense_once.condensing.nested import nested_sizes
from condense_once.condensing.real_images import Normaliser, RealImages
from condense_once.condensing.recipe_fields import ImageSpace
from condense_once.condensing.whitening import whitened_source, with_fit, zca_space
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import is_large, make_net, multiply_adds, use_native_kernels
from condense_once.train.hardware import PASS, eager_dtype, find_device, how_compiled
from condense_once.train.images import TrainingData, training_data
from condense_once.train.seeds import Stream, generator
from condense_once.train.step_trainer import to_tensor

AT_ONCE = 256  # patches whose graph is in memory
LARGE_AT_ONCE = 16  # the graph of one takes some 200 MB at 224×224
LEAST_LR = 1e-6  # the learned step size stays positive
WHITENED_MEMORY = 1 << 30  # bytes of whitened images kept in memory: whitening them again costs as much as training


class Student(NamedTuple):
    """Everything that decides a student's loss beside the images and the step size."""

    start: Weights
    target: Weights
    batches: list[StudentBatch]


class MttCondenser(Condenser):
    """The images of all classes, the step size, and the experts whose trajectories students follow."""

    def __init__(
        self, task: Task, recipe: MttRecipe, *, max_iterations: int | None = None, whitened: Source | None = None
    ) -> None:
        """`whitened` is the source in the space of the run, if that is ZCA and it was fitted already."""
        self.task, self._max_iterations = task, max_iterations or recipe.iterations
        self.device = find_device(task.compute.device)
        self._dtype = eager_dtype(task.compute.precision, self.device)
        source = task.source
        self._zca = zca_space(source, recipe.zca_regularisation) if recipe.space == "zca" else None
        self.source = source if self._zca is None else whitened or whitened_source(source, self._zca)
        shape, classes = source.train.shape, len(source.classes)
        self.images = torch.zeros(classes, task.config.ipc, *shape, device=self.device)
        self.velocity = torch.zeros_like(self.images)
        self.lr, self.lr_velocity = (torch.zeros((), device=self.device) for _ in range(2))
        grey = torch.full((shape[0], 1, 1), 0.0 if self._zca else 0.5, device=self.device)  # IDC pads with mid-grey
        self._fill = (grey if recipe.space == "pixels" else Normaliser(self.source, self.device)(grey)).flatten()
        self.adopt(recipe)

    def adopt(self, recipe: MttRecipe) -> None:
        """Follow this recipe, which may be the one before, fitted to a time budget."""
        task, shape = self.task, self.source.train.shape
        self.recipe = recipe
        self.lr.fill_(recipe.student_lr)
        self.real = RealImages(self.source, task.config.seed, self.device, real_batch=1, pool=recipe.pool)
        space = Space("normalised", task.source.mean, task.source.std)
        self._augmenter = make_augmenter(recipe.augmentation, space, shape[1:])
        self.net = self._make_net(recipe)
        self.experts = self.make_experts(recipe)

    def _make_net(self, recipe: MttRecipe) -> nn.Module:
        source, compute = self.task.source, self.task.compute
        shape, classes = source.train.shape, len(source.classes)
        net = make_net(self.task.config.net, shape, classes, generator=torch.Generator().manual_seed(0)).eval()
        images = recipe.iterations * recipe.student_steps * self.patches_of_step(recipe)
        passes = images * multiply_adds(net, shape) / PASS
        if how_compiled(compute.compilation, self.device, self._dtype, passes).native:
            use_native_kernels(net)  # which can be differentiated twice
        return net.to(self.device, memory_format=torch.channels_last)  # type: ignore[no-any-return, call-overload]

    def make_experts(self, recipe: MttRecipe, *, writes: bool = True) -> ExpertPhase:
        """The experts of a recipe, not yet read from disk."""
        task = self.task
        training = replace(
            MTT_EXPERTS,
            epochs=recipe.expert_epochs,
            batch=recipe.expert_batch,
            lr=recipe.expert_lr,
            augmentation=recipe.augmentation,
        )
        zca = None if self._zca is None else self._zca.zca
        config = ExpertConfig(
            task.config.net, training, every=recipe.expert_every, batches=recipe.expert_batches, zca=zca
        )
        return ExpertPhase(
            task.source,
            self._training_data,
            config,
            recipe.experts,
            root=task.experts,
            compute=task.compute,
            writes=writes,
        )

    @cached_property
    def _training_data(self) -> TrainingData:
        return training_data(self.source, memory_limit=None if self._zca is None else WHITENED_MEMORY)

    # The loop

    def advance(self) -> float | None:
        if self.done < self.expert_items:
            self.experts.advance()
            self.done += 1
            return None
        loss = self.step(self.sample(self.iteration))
        self.done += 1
        return loss

    def sample(self, iteration: int) -> Student:
        """Where a student starts and should end, and the batches on its way: all samples of an iteration."""
        recipe, sampling = self.recipe, generator(self.task.config.seed, Stream.SNAPSHOT, iteration)
        runs = self.experts.trajectories
        run = runs[int(torch.randint(len(runs), (), generator=sampling))]
        place = int(torch.randint(recipe.starts, (), generator=sampling))
        target = self._weights_at(run, place + recipe.ahead)
        start = self._weights_at(run, place)  # last, so that the running statistics are those of the start
        return Student(start, target, self._sample_batches(sampling))

    def trial_student(self) -> Student:
        """A student from untrained weights, to time its steps."""
        start = {name: weight.detach().clone() for name, weight in self.net.named_parameters()}
        target = {name: torch.zeros_like(weight) for name, weight in start.items()}
        return Student(start, target, self._sample_batches(torch.Generator().manual_seed(0)))

    def _weights_at(self, run: Trajectory, snapshot: int) -> dict[str, Tensor]:
        run.load_into(self.net, snapshot)
        return {name: weight.detach().clone() for name, weight in self.net.named_parameters()}

    def _sample_batches(self, sampling: torch.Generator) -> list[StudentBatch]:
        """Shuffled patches of all classes, again and again; of a nested set, of a random prefix of the images."""
        config, sizes = self.task.config, self._prefixes or [self.task.config.ipc]
        prefix = sizes[int(torch.randint(len(sizes), (), generator=sampling))] * config.factor**2
        labels = torch.arange(len(self.images)).repeat_interleave(prefix)
        rows = labels * config.patches_per_class + torch.arange(prefix).repeat(len(self.images))
        size, found = self.recipe.student_batch or len(rows), list[StudentBatch]()
        while len(found) < self.recipe.student_steps:
            for chosen in torch.split(torch.randperm(len(rows), generator=sampling), size):
                params = self._augmenter.sample(len(chosen), self.real.shape[1:], sampling)
                found.append(self._to_device(StudentBatch(rows[chosen], labels[chosen], params)))
        return found[: self.recipe.student_steps]

    @property
    def _prefixes(self) -> list[int]:
        """Images per class of the prefixes that a nested set is condensed for."""
        return nested_sizes(self.task.config.ipc) if self.task.config.nested else []

    def _to_device(self, batch: StudentBatch) -> StudentBatch:
        params = Params(*(None if values is None else values.to(self.device) for values in batch.params))
        return StudentBatch(batch.rows.to(self.device), batch.labels.to(self.device), params)

    def step(self, student: Student) -> float:
        """Update the images and the step size by the loss of a student, which is returned."""
        recipe = self.recipe
        loss, gradient, of_lr = self.gradients(student)
        if not all(bool(torch.isfinite(each).all()) for each in (loss, gradient, of_lr)):
            raise BadOption(self._diverged())
        self.velocity.mul_(recipe.image_momentum).add_(gradient)
        self.lr_velocity.mul_(recipe.image_momentum).add_(of_lr)
        self.images.sub_(recipe.lr_at(self.steps / recipe.iterations) * self.velocity)
        if recipe.space == "pixels":
            self.images.clamp_(0, 1)
        self.lr.sub_(recipe.lr_lr * self.lr_velocity).clamp_(min=LEAST_LR)
        return float(loss)

    def gradients(self, student: Student) -> tuple[Tensor, Tensor, Tensor]:
        """The loss of a student, and its gradients for the images and for the step size."""
        images = self.images.detach().requires_grad_()
        inputs = self._inputs(images)
        matched = self._match(student, inputs.detach())
        (of_images,) = torch.autograd.grad(inputs, images, matched.patches)
        return matched.loss, of_images, matched.lr

    def _match(self, student: Student, inputs: Tensor) -> Matched:
        given = (self._batch_loss, student.start, student.target, inputs, self.lr, student.batches)
        if not self.recipe.recompute:
            return match_with_stored_graph(*given)
        return match_with_recomputation(*given, at_once=LARGE_AT_ONCE if is_large(self.real.shape) else AT_ONCE)

    def _inputs(self, images: Tensor) -> Tensor:
        """Network inputs `[n, ch, h, w]` of all patches, class by class and image by image, as a nested set ranks them."""
        classes, ipc, *shape = images.shape
        cells = decode(images.flatten(0, 1), self.task.config.factor, self._fill)  # all of the first cell first
        patches = cells.view(-1, classes, ipc, *shape).permute(1, 2, 0, 3, 4, 5).reshape(-1, *shape)
        return self.real.normalise(patches) if self.recipe.space == "pixels" else patches

    def _batch_loss(self, weights: Weights, x: Tensor, batch: StudentBatch) -> Tensor:
        x = Augmentation.apply(x, batch.params).contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._dtype == torch.bfloat16):
            logits = functional_call(self.net, dict(weights), (x,))
        return cross_entropy(logits.float(), batch.labels)

    def _diverged(self) -> str:
        return (
            f"The loss is NaN or infinite in iteration {self.iteration + 1}, at a step size of {float(self.lr):g}; resume from"
            f" the last checkpoint, or start again, with a smaller image_lr (now {self.recipe.image_lr:g}) or lr_lr (now"
            f" {self.recipe.lr_lr:g}) in `overrides`."
        )

    def patches_of_step(self, recipe: MttRecipe) -> int:
        """Patches that a step of a student trains on."""
        patches = len(self.images) * self.task.config.patches_per_class
        return min(recipe.student_batch or patches, patches)

    # What the runner asks for

    @property
    def recipe_json(self) -> dict[str, Any]:
        return asdict(self.recipe)

    @property
    def expert_items(self) -> int:
        """Work items that train experts, done or not."""
        return self.experts.items if self.recipe.iterations else 0

    @property
    def total(self) -> int:
        return self.expert_items + self.recipe.iterations

    @property
    def iteration(self) -> int:
        return self.steps

    @property
    def steps(self) -> int:
        return max(self.done - self.expert_items, 0)

    @property
    def images_per_item(self) -> float:
        return self.recipe.student_steps * self.patches_of_step(self.recipe)

    def initialise(self) -> None:
        self._find_experts()
        space: ImageSpace = (
            "pixels" if self.recipe.space == "pixels" else "normalised"
        )  # of the source, whitened or not
        self.images.copy_(initial_images(self.task.config, self.recipe.init, space, self.real, self.net))

    def _find_experts(self) -> None:
        """Continue with the experts as they are on disk."""
        self.experts.restore()
        self.done = self.experts.done if self.recipe.iterations else 0

    def state(self) -> State:
        numbers = torch.stack([self.lr, self.lr_velocity])
        arrays = {"images": self.images, "velocity": self.velocity, "student_lr": numbers}
        return {name: tensor.cpu().numpy() for name, tensor in arrays.items()}

    def restore(self, state: Mapping[str, NDArray[Any]], done: int) -> None:
        self.images.copy_(to_tensor(state["images"], self.images))
        self.velocity.copy_(to_tensor(state["velocity"], self.velocity))
        numbers = to_tensor(state["student_lr"], torch.zeros(2))
        self.lr.copy_(numbers[0])
        self.lr_velocity.copy_(numbers[1])
        self._find_experts()
        if done >= self.expert_items:
            if self.done < self.expert_items:
                raise BadOption("The experts of this run are gone")
            self.done = done

    def result(self) -> CondensedSet:
        space: ImageSpace = "pixels" if self.recipe.space == "pixels" else "normalised"
        made = make_set(self.images, space, self.task, self._prefixes)
        return replace(made, space=self._named_zca or made.space, provenance={"student_lr": float(self.lr)})

    @cached_property
    def _named_zca(self) -> Space | None:
        return None if self._zca is None else with_fit(self._zca, self.task.source)

    def fit_to_time(self, seconds: float) -> str:
        recipe, decision = time_budget.fit_recipe(self, seconds)
        self.adopt(recipe)
        return decision

    def replan(self, iterations: int) -> None:
        self.recipe = replace(self.recipe, iterations=min(iterations, self._max_iterations))

    def twin(self, recipe: MttRecipe) -> MttCondenser:
        """Another condenser for the same task, to time its work items."""
        return MttCondenser(self.task, recipe, whitened=None if self._zca is None else self.source)

    def estimate(self) -> CondenseEstimate:
        return time_budget.estimate(self)
