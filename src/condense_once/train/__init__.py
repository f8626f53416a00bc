"""Training networks on small sets, fast on a plain CPU, and recording what every patch did."""

from condense_once.train.dynamics import Dynamics, RecordedRun, record_run
from condense_once.train.engine import Trainer
from condense_once.train.recipe import Recipe
from condense_once.train.seeds import generator

__all__ = ["Dynamics", "Recipe", "RecordedRun", "Trainer", "generator", "record_run"]
