"""From a set to an accuracy: protocols, repeats, results."""

from condense_once.evaluation.protocols import PROTOCOLS, Protocol
from condense_once.evaluation.result import Result, Run
from condense_once.evaluation.running import evaluate

__all__ = ["PROTOCOLS", "Protocol", "Result", "Run", "evaluate"]
