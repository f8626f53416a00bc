"""All randomness derives from one seed; every purpose has its own stream."""

from __future__ import annotations

import hashlib
import operator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


class Stream:
    """The purposes of random streams.

    The values go into the seeds, so they decide every result: names may change, values never.
    """

    EVALUATION = "evaluate"
    SCORING_RUN = "dynamics"
    SUBSET_RUNS = "subsets"
    RANDOM_IMAGES = "random images"
    UNTRAINED = "untrained"
    WEIGHTS = "weights"
    BATCHES = "batches"
    # metrics and selectors
    RANDOM_SCORES = "random"
    SSP = "ssp"
    CCS = "ccs"
    # matching
    INIT = "start"
    NETWORK = "network"
    PRETRAINING = "early"
    NET_UPDATE = "lesson"
    NET_BATCHES = "lessons"
    SYNTHETIC_ORDER = "order"
    REAL_BATCHES = "real"
    CLASS_STEP = "step"
    BATCH_NORM = "statistics"
    POOL = "pool"
    KMEANS = "k-means"
    # experts and their trajectories
    EXPERT = "expert"
    SNAPSHOT = "snapshot"


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """A generator for one purpose: sampling more for one purpose never shifts the samples of another.

    >>> import torch
    >>> one, other = generator(7, Stream.WEIGHTS, 0), generator(7, Stream.BATCHES, 0)
    >>> bool(torch.rand(1, generator=one) == torch.rand(1, generator=other))
    False
    """
    import torch

    digest = hashlib.sha256(repr((operator.index(seed), *purpose)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))


def numpy_generator(seed: int, purpose: str) -> np.random.Generator:
    """The same with numpy."""
    return np.random.default_rng([seed, *purpose.encode()])
