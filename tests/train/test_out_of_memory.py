from __future__ import annotations

import pytest
import torch

from condense_once.condensed.set import CondensedSet
from condense_once.condensing.matching.loop import MatchingCondenser
from condense_once.condensing.runner import condense
from condense_once.data.source import Source
from condense_once.errors import CondenseOnceError, OutOfMemory
from condense_once.metrics.score import score
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.memory import memory_for
from condense_once.train.trainer import Trainer

OFF = ComputeConfig(compilation="off")


def allocate_too_much(*_: object, **__: object) -> None:
    torch.empty(2**60)  # PyTorch itself refuses


def test_training_without_enough_memory_is_one_sentence_with_advice(
    pixel_set: CondensedSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "_step", allocate_too_much)
    with pytest.raises(OutOfMemory) as refused:
        score(pixel_set, ["el2n"], net="convnet-d1-w8", compute=OFF)
    assert str(refused.value) == (
        "There is not enough memory to train convnet-d1-w8 on 64 images of 3×8×8 at a time; choose a narrower `net` or smaller"
        " images, or train fewer networks in parallel."
    )
    assert isinstance(refused.value, CondenseOnceError | MemoryError)


def test_condensing_without_enough_memory_is_one_sentence_with_advice(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MatchingCondenser, "advance", allocate_too_much)
    with pytest.raises(
        OutOfMemory, match=r"to condense by dm with convnet-d1-w8; choose a narrower `net`, smaller images"
    ):
        condense(source, method="dm", ipc=1, net="convnet-d1-w8", compute=OFF)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"), memory_for("multiply", "do not"):
        torch.ones(2, 3) @ torch.ones(2, 3)
