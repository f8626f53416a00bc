"""DD-Ranking itself evaluates what we export; in an environment of its own, as it needs numpy below 2 and torchvision."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from condense_once import export_set, load, open_source, resize

pytest.importorskip("ddranking", reason="ddranking is not installed, or lacks torchvision", exc_type=ImportError)
pytestmark = pytest.mark.filterwarnings("default")  # DD-Ranking's own
SET = "cifar10-idc-ipc10"


def write_cifar10(folder: Path) -> None:
    """The layout that torchvision reads, with a few real images."""
    test = open_source("cifar10-sample").test
    rows = test.take(slice(300)).reshape(300, -1), test.labels[:300].tolist()
    folder.mkdir()
    parts = {f"data_batch_{n + 1}": slice(50 * n, 50 * n + 50) for n in range(5)} | {"test_batch": slice(250, 300)}
    contents = {name: {"data": rows[0][part], "labels": rows[1][part]} for name, part in parts.items()}
    contents["batches.meta"] = {"label_names": list("0123456789")}
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content))


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[torch.Tensor, torch.Tensor, dict[str, object]]:
    """Images and labels of a small set as exported, and what every score is called with."""
    from torchvision.datasets import cifar

    monkeypatch.setattr(cifar, "check_integrity", lambda *_: True)  # these are not all of CIFAR-10's images
    monkeypatch.chdir(tmp_path)  # where it writes its results
    write_cifar10(tmp_path / "cifar-10-batches-py")
    notes = export_set(resize(SET, total=20), tmp_path / "tensors", "ddranking")
    assert "ipc=2" in notes[0]
    images, labels = (torch.load(tmp_path / "tensors" / f"{name}.pt") for name in ("images", "labels"))
    settings = {"dataset": "CIFAR10", "real_data_path": str(tmp_path), "ipc": 2, "model_name": "ConvNet-3"}
    augmentation = {"aug_params": {"beta": 1.0}, "lr_scheduler": "cosine"}
    return images, labels, {**settings, **augmentation, "num_eval": 1, "num_workers": 0, "device": "cpu"}


def test_the_label_robust_score_of_an_exported_set(
    exported: tuple[torch.Tensor, torch.Tensor, dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ddranking.metrics import LabelRobustScoreHard, hard_label

    images, labels, settings = exported
    saved: list[dict[str, list[float]]] = []
    monkeypatch.setattr(hard_label, "save_results", lambda results, _: saved.append(results))  # where 0.2.0 fails
    metric = LabelRobustScoreHard(**settings, num_epochs=10, eval_full_data=True)  # it tests every ten epochs
    found = metric.compute_metrics(image_tensor=images, hard_labels=labels, syn_lr=0.01)
    assert math.isfinite(found["label_robust_score_mean"])
    assert saved[0]["lrs"][0] == found["label_robust_score_mean"]


def test_its_test_images_are_in_the_value_space_of_the_tensors(
    exported: tuple[torch.Tensor, torch.Tensor, dict[str, object]],
) -> None:
    from ddranking.utils import get_dataset

    tested = get_dataset("CIFAR10", exported[2]["real_data_path"], (32, 32), False, None, "cpu")[6]
    pixels = open_source("cifar10-sample").test.take(slice(250, 251)).astype(np.float32) / 255
    space = load(SET).space
    np.testing.assert_allclose(tested[0][0].numpy(), space.to_network(space.from_pixels(pixels))[0], atol=1e-5)
