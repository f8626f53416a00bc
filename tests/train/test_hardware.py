from __future__ import annotations

import pytest
import torch

from condense_once.errors import BadOption
from condense_once.train.compute_config import ComputeConfig, Precision
from condense_once.train.hardware import find_device


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_data_type_is_named_plainly(precision: Precision) -> None:
    assert ComputeConfig(precision).computed_in == precision
    assert ComputeConfig().computed_in in ("float32", "bfloat16")


@pytest.mark.parametrize("device", ["mps", "abacus", "meta", "cuda:99"])
def test_a_device_that_cannot_be_used_is_refused_in_one_short_sentence(device: str) -> None:
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(BadOption) as refused:
        find_device(device)
    assert str(refused.value).startswith(f"There is no device '{device}' here that PyTorch can use; use cpu")
    assert len(str(refused.value)) < 100
