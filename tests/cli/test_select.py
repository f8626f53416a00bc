from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.evaluation import cost
from condense_once.selection.selectors.ccs import ccs_rows
from condense_once.train.cost import StepTime

Run = Callable[..., tuple[int, str, str]]
BUNDLED = "cifar10-real-ipc10"
NET = ("--net", "convnet-d3-w32")


def test_a_rule_selects_for_the_size_asked(run: Run, rng: np.random.Generator) -> None:
    scores = rng.random(400, dtype=np.float32)
    save(replace(load(BUNDLED), scores={"el2n": scores}), "scored.safetensors")
    code, out, err = run("select", "scored.safetensors", "--rule", "ccs-fixed", "--ipc", 1, "-o", "ccs.safetensors")
    assert (code, "40 patches" in out) == (0, True)
    assert "The rule ccs-fixed uses the stored scores by el2n" in err
    small, whole = load("ccs.safetensors"), load("scored.safetensors")
    assert small.ranking is None
    assert small.provenance["kept"]["rule"] == "ccs-fixed"
    rows = ccs_rows(scores, 40, 0.3)  # the authors' cut-off for CIFAR-10 from ten to one
    assert sorted(small.origin.tolist()) == sorted(whole.origin[rows].tolist())


def test_a_network_is_trained_for_what_a_rule_lacks(run: Run, pixel_set: CondensedSet) -> None:
    save(pixel_set, "tiny.safetensors")
    for rule, lacking in (
        ("ccs", "uses scores by el2n; a network is trained"),
        ("ssp", "reads features, which are not stored"),
    ):
        words = ("select", "tiny.safetensors", "--rule", rule, *NET, "--total", 5, "-o", "small.safetensors", "--force")
        code, out, err = run(*words)
        assert (code, "5 patches" in out) == (0, True)
        assert lacking in err


def test_options_of_the_scoring_run_are_used(run: Run, pixel_set: CondensedSet) -> None:
    save(pixel_set, "tiny.safetensors")
    words = ("select", "tiny.safetensors", "--rule", "yoco", *NET, "--ipc", 1, "--seed", 3, "--runs", 2)
    code, _, err = run(*words, "--lbpe-epochs", "0-1", "--scoring-epochs", 2, "-o", "small.safetensors")
    assert code == 0, err
    small = load("small.safetensors")
    assert small.ranking is not None
    made = small.ranking.settings
    assert (made["lbpe"], made["seed"], made["runs"], made["net"]) == ("0-1", 3, 2, "convnet-d3-w32")


def test_seconds_are_turned_into_patches(run: Run, brief: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cost, "time_step", lambda data, recipe, *_, **__: StepTime(0.001 * min(len(data), recipe.batch), compiled=False)
    )
    words = ("select", BUNDLED, "--rule", "random", "--protocol", brief, *NET, "--seconds", 2)
    code, _, err = run(*words, "-o", "few.safetensors")
    assert code == 0, err
    assert 1 <= len(load("few.safetensors")) < 400


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--rule", "random", "--seconds", "0"), "must be above 0"),
        (("--rule", "ccss", "--ipc", "1"), "did you mean 'ccs'"),
        (("--rule", "random", "--ipc", "11"), "has 400 patches to choose from, fewer than 440"),
        (("--rule", "random", "--ipc", "1", "--total", "3"), "not both; leave one of them out"),
        (("--rule", "random"), "There is no budget"),
        (("--ipc", "1"), "Missing option '--rule'"),
        (("--rule", "random", "--ipc", "1", "--protocol", "quick"), "applies to --seconds only"),
        (("--rule", "ccs", "--ipc", "1", "--lbpe-epochs", "all"), "not to el2n; leave it out"),
        (("--rule", "ssp", "--ipc", "1", "--runs", "2"), "cannot be averaged"),
    ],
)
def test_mistakes_end_in_one_sentence(run: Run, words: tuple[str, ...], complaint: str) -> None:
    code, out, err = run("select", BUNDLED, *words, "-o", "x.safetensors")
    assert (code, out) == (2, "")
    line = [line for line in err.splitlines() if line][-1]
    assert line.startswith("error: ")
    assert complaint in line
    assert not Path("x.safetensors").exists()


def test_a_selection_is_valid_and_claims_nothing_that_is_true_of_the_whole_alone(run: Run) -> None:
    code, _, err = run("select", "cifar10-idc-ipc10", "--rule", "random", "--ipc", 1, "-o", "part.safetensors")
    assert code == 0, err
    assert run("verify", "part.safetensors")[0] == 0
    part, whole = load("part.safetensors"), load("cifar10-idc-ipc10")
    assert part.provenance["kept"] == {"of": 400, "rule": "random", "seed": 0}
    assert part.provenance["recipe"] == whole.provenance["recipe"]
    assert "accuracy" not in part.provenance


def test_rules_are_listed(run: Run) -> None:
    names = [entry["name"] for entry in json.loads(run("list", "rules", "--json")[1])["rules"]]
    assert {"yoco", "random", "random-balanced", "ssp", "ccs", "el2n"} <= set(names)


def test_selectors_are_listed(run: Run) -> None:
    names = [entry["name"] for entry in json.loads(run("list", "selectors", "--json")[1])["selectors"]]
    assert {"ccs", "ccs-fixed", "ssp"} <= set(names)
