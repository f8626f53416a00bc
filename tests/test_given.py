"""Public functions take what people have: names, paths and objects. What is none of these is refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import condense_once
from condense_once import (
    METRICS,
    PROTOCOLS,
    RULES,
    BadOption,
    CondensedSet,
    CondenseOnceError,
    MetricConfig,
    Protocol,
    Recipe,
    Rule,
    Space,
)

SHORT = MetricConfig(scoring_epochs=2, el2n_epochs=2, lbpe_epochs="0-1")  # type: ignore[arg-type]
ONCE = Protocol("once", "one epoch", Recipe(epochs=1), Recipe(epochs=1))
NET = "convnet-d1-w8"


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Photos in one folder per class."""
    for name in ("ant", "bee"):
        (tmp_path / "photos" / "train" / name).mkdir(parents=True)
        for number in range(6):
            photo = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
            photo.save(tmp_path / "photos" / "train" / name / f"{number}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize("given", ["name", "path", "text", "set"])
def test_a_set_is_given_by_name_path_or_itself(given: str, tmp_path: Path) -> None:
    path = tmp_path / "set.safetensors"
    condense_once.save(condense_once.load("cifar10-idc-ipc10"), path)
    data: Any = {"name": "cifar10-idc-ipc10", "path": path, "text": str(path)}.get(given) or condense_once.load(path)
    assert len(condense_once.resize(data, ipc=1)) == 40
    assert len(condense_once.select(data, "yoco", ipc=1)) == 40
    assert condense_once.compare(data, data).correlation == 1
    assert condense_once.compare_rules(data, "yoco", "yoco").correlation == 1
    assert condense_once.verify(data) == []
    assert condense_once.export_set(data, tmp_path / "set.npz")
    assert condense_once.contact_sheet(data, columns=1)[0].width > 64
    assert len(condense_once.rank(data, "random")) == 400
    assert "random" in condense_once.score(data, "random").scores


def test_a_set_is_evaluated_by_path_with_a_protocol_by_name_or_itself(tmp_path: Path) -> None:
    condense_once.save(condense_once.load("cifar10-real-ipc10", first=20), tmp_path / "set.safetensors")
    with PROTOCOLS.registered(ONCE):
        for protocol in (ONCE, "once"):
            given: Any = tmp_path / "set.safetensors"
            result = condense_once.evaluate(given, "cifar10-sample", protocol=protocol, net=NET, repeats=1)
            assert result.patches == 20


@pytest.mark.parametrize(
    "metrics", ["el2n", ["el2n"], ("el2n",), METRICS.get("el2n"), [METRICS.get("el2n"), "el2n"], {"el2n": None}]
)
def test_metrics_are_given_one_or_several_by_name_or_entry(metrics: Any, pixel_set: CondensedSet) -> None:
    assert list(condense_once.score(pixel_set, metrics, net=NET, config=SHORT).scores) == ["el2n"]


def test_one_metric_is_given_by_name_or_entry(pixel_set: CondensedSet, folder: Path) -> None:
    for number, metric in enumerate(("el2n", METRICS.get("el2n"))):
        assert condense_once.rank(pixel_set, metric, net=NET, config=SHORT).ranking is not None
        place = folder.with_name(f"dynamics {number}")
        place.mkdir()
        assert condense_once.score_source(folder, metric, net=NET, config=SHORT, folder=str(place)).shape == (12,)


def test_a_rule_is_given_by_name_entry_or_itself() -> None:
    kept = [condense_once.select("cifar10-idc-ipc10", rule, ipc=1) for rule in ("yoco", RULES.get("yoco"), Rule())]
    assert all(np.array_equal(each.origin, kept[0].origin) for each in kept)


def test_a_source_is_given_by_path_or_itself(folder: Path) -> None:
    for given in (folder, str(folder), condense_once.open_source(folder)):
        overrides = {"iterations": 1, "real_batch": 4}
        assert len(condense_once.condense(given, ipc=1, method="dm", net=NET, overrides=overrides)) == 2
        kept = condense_once.coreset(given, [3, 1], scores={"el2n": [0.0] * 12})
        assert kept.origin.tolist() == [3, 1]


@pytest.mark.parametrize("gradient", [False, True])
def test_tensors_become_a_set(gradient: bool) -> None:
    images = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)).requires_grad_(gradient)
    soft = torch.eye(2)[[0, 0, 1, 1]]
    space = Space("normalised", (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
    labels = torch.tensor([0, 0, 1, 1])
    data = CondensedSet.from_mosaics(
        images, labels, factor=1, space=space, classes=["ant", "bee"], soft_labels=soft.requires_grad_(gradient)
    )
    assert np.array_equal(data.cells, images.detach().numpy())
    assert data.classes == ("ant", "bee")
    assert data.counts().tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: condense_once.evaluate(np.zeros(3)), "not ndarray; make one of arrays or tensors by CondensedSet"),
        (lambda: condense_once.evaluate(torch.zeros(3)), "not Tensor"),
        (lambda: condense_once.evaluate("cifar10-real-ipc10", np.zeros(3)), "A source is a Source, a path or a name"),
        (lambda: condense_once.evaluate("cifar10-real-ipc10", protocol=None), "names, such as 'paper', not NoneType"),
        (lambda: condense_once.condense([1], ipc=1, method="dm"), "not list; make one of arrays by Source"),
        (lambda: condense_once.score("cifar10-real-ipc10", [["el2n"]]), "names, such as 'aum', not list"),
        (lambda: condense_once.select("cifar10-real-ipc10", 3, ipc=1), "A rule is a Rule or a name.*not int"),
        (lambda: condense_once.load(3), "not int"),
        (lambda: condense_once.coreset("cifar10-sample", [0]), "train"),
    ],
)
def test_what_is_none_of_these_is_refused_in_a_sentence(call: Callable[[], Any], complaint: str) -> None:
    with pytest.raises(CondenseOnceError, match=complaint) as caught:
        call()
    assert "--" not in str(caught.value)


def test_rows_beyond_a_source_are_refused(folder: Path) -> None:
    with pytest.raises(BadOption, match="from 0 to 11, the training images of photos, not 12"):
        condense_once.coreset(folder, [0, 12])
