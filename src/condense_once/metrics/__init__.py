"""Metrics: one score per patch, from a scoring run. One file each; `METRICS` has them all by name.

>>> METRICS.names("l*"), METRICS.get("aum").easy
(['lbpe', 'lbpe-clean', 'lbpe-mmr'], 'high')
"""

from condense_once.metrics.aum import AUM
from condense_once.metrics.config import MetricConfig, Window, defaults_for
from condense_once.metrics.el2n import EL2N
from condense_once.metrics.entropy import ENTROPY
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.forgetting import FORGETTING
from condense_once.metrics.grand import GRAND
from condense_once.metrics.herding import HERDING
from condense_once.metrics.k_center import K_CENTER
from condense_once.metrics.lbpe import LBPE, LBPE_CLEAN
from condense_once.metrics.lbpe_mmr import LBPE_MMR
from condense_once.metrics.memorization import MEMORIZATION
from condense_once.metrics.moderate import MODERATE
from condense_once.metrics.random import RANDOM
from condense_once.metrics.registry import METRICS, MetricInfo, Need
from condense_once.metrics.scoring_run import (
    ScoringRun,
    SubsetRuns,
    UntrainedNetworks,
    epochs_needed,
    record_scoring_run,
    total_epochs,
)
from condense_once.metrics.ssp import SSP
from condense_once.metrics.untrained import EL2N_INIT, GRAND_INIT

__all__ = [
    "AUM",
    "EL2N",
    "EL2N_INIT",
    "ENTROPY",
    "FORGETTING",
    "GRAND",
    "GRAND_INIT",
    "HERDING",
    "K_CENTER",
    "LBPE",
    "LBPE_CLEAN",
    "LBPE_MMR",
    "MEMORIZATION",
    "METRICS",
    "MODERATE",
    "RANDOM",
    "SSP",
    "Epochs",
    "MetricConfig",
    "MetricInfo",
    "Need",
    "ScoringRun",
    "SubsetRuns",
    "UntrainedNetworks",
    "Window",
    "defaults_for",
    "epochs_needed",
    "record_scoring_run",
    "total_epochs",
]
