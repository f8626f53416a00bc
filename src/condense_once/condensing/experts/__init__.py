"""Experts: networks trained on real images, with their weights kept along the way, for every method that wants them."""

from condense_once.condensing.experts.config import ExpertConfig
from condense_once.condensing.experts.training import Experts, make_experts, train_experts

__all__ = ["ExpertConfig", "Experts", "make_experts", "train_experts"]
