"""Train expert networks on real images and keep their weights along the way, reusing and resuming what exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from condense_once.condensing.distributed import refuse_processes
from condense_once.condensing.experts.config import TGDD_EXPERTS, ExpertConfig
from condense_once.condensing.experts.run import ONE_PROCESS, ExpertRun, find_run
from condense_once.condensing.experts.trajectory import Trajectory
from condense_once.data.open import as_source
from condense_once.data.source import Source
from condense_once.errors import BadOption
from condense_once.nets import NetChoice, default_net
from condense_once.progress import Progress
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.images import training_data
from condense_once.train.parallel import Check, EpochCounter, run_in_parallel
from condense_once.train.recipe import Recipe


@dataclass(frozen=True)
class Experts:
    """Trained networks with their weights along the way."""

    config: ExpertConfig
    folder: Path
    runs: Sequence[Trajectory]

    @property
    def snapshots(self) -> int:
        """Snapshots of each run."""
        return self.config.snapshots

    def load_into(self, net: nn.Module, run: int, snapshot: int) -> None:
        """Set the weights of `net`, which must be of the experts' kind."""
        self.runs[run].load_into(net, snapshot)


def train_experts(
    source: Source | str | Path,
    *,
    net: NetChoice | None = None,
    runs: int = 1,
    epochs: int | None = None,
    recipe: Recipe | None = None,
    every: int = 1,
    seed: int = 0,
    folder: str | Path | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> Experts:
    """Train `runs` networks on the train split of `source`, with a snapshot of the weights after `every` epochs.

    Runs that exist in `folder` are reused, unfinished ones continue to the same bits. By default the folder is `experts` in the
    folder of downloaded datasets, and the recipe is TGDD's, with `epochs` instead of its 60. `progress` counts the epochs of
    all runs.
    """
    images, recipe = as_source(source), recipe or TGDD_EXPERTS
    config = ExpertConfig(
        net=net or default_net(images.train.shape),
        recipe=recipe if epochs is None else replace(recipe, epochs=epochs),
        every=every,
        seed=seed,
    )
    root = None if folder is None else Path(folder)
    return make_experts(images, config, runs=runs, root=root, compute=compute, progress=progress)


def make_experts(
    source: Source,
    config: ExpertConfig,
    *,
    runs: int,
    root: Path | None = None,
    compute: ComputeConfig | None = None,
    progress: Progress | None = None,
) -> Experts:
    """As `train_experts`, from a config."""
    refuse_processes(ONE_PROCESS)
    if runs < 1:
        raise BadOption(f"`runs` must be at least 1, not {runs}.")
    compute, folder = compute or ComputeConfig(), config.folder(source, root)
    existing = {run: find_run(source, config, folder, run) for run in range(runs)}
    missing = [run for run, found in existing.items() if found is None or found.epochs < config.recipe.epochs]
    if missing:
        data = training_data(source)
        epochs = EpochCounter(len(missing) * config.recipe.epochs, progress)

        def work(places: Sequence[int], check: Check) -> list[Trajectory]:
            experts = [ExpertRun(source, data, config, missing[place], folder, compute) for place in places]
            return [_finish(expert, check, epochs) for expert in experts]

        made = run_in_parallel(len(missing), compute, work)
        existing.update(zip(missing, made, strict=True))
    return Experts(config, folder, [found for found in existing.values() if found is not None])


def _finish(expert: ExpertRun, check: Check, epochs: EpochCounter) -> Trajectory:
    """Train a run to its end; one process at a time trains it, and the others take over what it has done."""
    with expert.lock:
        expert.restore()
        epochs.add(expert.trajectory.epochs)
        while not expert.is_finished:
            check()
            before = expert.trajectory.epochs
            expert.advance()
            epochs.add(expert.trajectory.epochs - before)
    return expert.trajectory
