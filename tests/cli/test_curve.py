"""`curve`, and what `info` and `resize` say of a set that has one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.conftest import Run

import condense_once
from condense_once.condensed.accuracy_curve import AccuracyCurve, CurvePoint
from condense_once.condensed.set import Ranking


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """The bundled set with a curve."""
    points = [CurvePoint(n, None, a) for n, a in ((40, 0.36), (80, 0.42), (200, 0.51), (400, 0.6))]
    points += [CurvePoint(400, 1, 0.45), CurvePoint(400, 2, 0.57)]
    curve = AccuracyCurve("quick", "convnet-d3", "10000 images of cifar10", 10, 5, tuple(points))
    data = condense_once.load("cifar10-idc-ipc10")
    path = tmp_path / "measured.safetensors"
    condense_once.save(replace(data, provenance={**data.provenance, "curve": curve.to_json()}), path)
    return path


def test_a_curve_is_measured_and_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    data = condense_once.load("cifar10-real-ipc10", first=40)
    condense_once.save(replace(data, ranking=Ranking("lbpe")), tmp_path / "ranked.safetensors")
    options = ["--test", "cifar10-sample", "--net", "convnet-d1-w2", "--repeats", "1"]
    _, out, err = run("curve", tmp_path / "ranked.safetensors", *options, "-o", tmp_path / "m.safetensors")
    assert "as stored" in out
    assert "evaluations of 1 run" in err
    _, out, _ = run(
        "curve", tmp_path / "m.safetensors", *options, "-o", tmp_path / "m.safetensors", "--force", "--json"
    )
    points = json.loads(out)["provenance"]["curve"]["points"]
    assert points == condense_once.load(tmp_path / "m.safetensors").provenance["curve"]["points"]


def test_plan_tells_what_all_evaluations_take_together(run: Run) -> None:
    options = ["cifar10-idc-ipc10", "--test", "cifar10-sample", "--net", "convnet-d1-w2", "--repeats", "1"]
    code, out, err = run("plan", "curve", *options)
    assert (code, "12 evaluations of 1 run: " in out) == (0, True), err
    one = json.loads(run("plan", "evaluate", *options, "--json")[1])
    every = json.loads(run("plan", "curve", *options, "--json")[1])
    assert every["steps"] == round(one["steps"] * (40 + 60 + 100 + 160 * 3 + 250 + 400 * 5) / 400)


def test_info_predicts(run: Run, measured: Path) -> None:
    _, shown, _ = run("info", measured)
    assert "Expected accuracy" in shown
    assert "42.0 % (" in shown
    assert "provenance: curve" not in shown
    expected = json.loads(run("info", measured, "--json")[1])["expected"]
    assert [each["patches"] for each in expected if each["layers"] is None] == [40, 80, 200]
    assert any(each["layers"] is not None for each in expected)


def test_resize_to_an_accuracy(run: Run, measured: Path, tmp_path: Path) -> None:
    small, exact = tmp_path / "small.safetensors", tmp_path / "exact.safetensors"
    _, _, said = run("resize", measured, "--accuracy", "45%", "-o", small)
    assert "Expected accuracy by quick, convnet-d3: 4" in said
    found = json.loads(run("resize", measured, "--accuracy", "0.45", "--lossless", "-o", exact, "--json")[1])
    assert 0.45 <= found["expected"]["accuracy"] < 0.46
    assert small.stat().st_size < exact.stat().st_size
    assert "curve" not in condense_once.load(small).provenance


def test_what_an_accuracy_needs(run: Run, measured: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.safetensors"
    for words, message in (
        ([measured, "--accuracy", "99%"], "all of it reaches 60.0 %"),
        ([measured, "--accuracy", "45%", "--ipc", "1"], "leave out the others"),
        ([measured, "--accuracy", "much"], "such as 0.25 or 25%"),
        (["cifar10-idc-ipc10", "--accuracy", "45%"], "condense-once curve"),
    ):
        code, _, err = run("resize", *words, "-o", out)
        assert code != 0
        assert message in err
        assert not out.exists()
