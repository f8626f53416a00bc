"""Train a network as a scoring run does, and measure it after some epochs."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from condense_once.nets import default_net, initialise
from condense_once.studies.theory.measurement import TheoryConfig
from condense_once.train.dynamics import Dynamics, Recorder, recipe_for
from condense_once.train.images import TrainingData
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import Stream, generator
from condense_once.train.trainer import Trainer


def train_and_measure(
    data: TrainingData,
    config: TheoryConfig,
    measure: Callable[[int, nn.Module], None],
    *,
    purpose: str = Stream.SCORING_RUN,
    recipe: Recipe | None = None,
) -> Dynamics | None:
    """Call `measure` after each of the config's epochs with the network in evaluation mode; returns the training dynamics.

    With the default `purpose` and `recipe` it is the scoring run of the same seed.
    """
    last = max(config.epochs)
    chosen = recipe or recipe_for(data.shape)
    passes = max(1, last) * len(data)
    trainer = Trainer(config.net or default_net(data.shape), data.spec, chosen, passes=passes, compute=config.compute)

    def measured(epoch: int) -> None:
        if epoch in config.epochs:
            trainer.net.eval()
            measure(epoch, trainer.net)
            trainer.net.train()

    initialise(trainer.net, generator(config.seed, purpose, Stream.WEIGHTS))  # as `fit` will do again
    measured(0)
    if not last:
        return None
    recorder = Recorder(data.labels, last)
    trainer.fit(
        data.images,
        data.labels,
        weights=generator(config.seed, purpose, Stream.WEIGHTS),
        batches=generator(config.seed, purpose, Stream.BATCHES),
        epochs=last,
        on_batch=recorder,
        progress=lambda done, _: measured(done),
    )
    return recorder.finish({"epochs": last, "seed": config.seed, "set": data.name})
