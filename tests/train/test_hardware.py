from __future__ import annotations

import pytest

from condense_once.train.hardware import ComputeConfig, Precision


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_data_type_is_named_plainly(precision: Precision) -> None:
    assert ComputeConfig(precision).computed_in == precision
    assert ComputeConfig().computed_in in ("float32", "bfloat16")
