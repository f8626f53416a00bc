from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.metrics import METRICS, MetricInfo
from condense_once.metrics.checks import recorded
from condense_once.metrics.score import single_run_metrics

Run = Callable[..., tuple[int, str, str]]
BRIEF = ("--net", "convnet-d3-w32", "--scoring-epochs", 2, "--lbpe-epochs", "all")


@pytest.fixture(autouse=True)
def tiny(run: Run, pixel_set: CondensedSet) -> None:
    """In the empty folder that `run` works in."""
    save(pixel_set, "tiny.safetensors")


def test_scores_are_shown_and_kept(run: Run) -> None:
    words = ("score", "tiny.safetensors", "--metric", "lbpe", "--metric", "aum", *BRIEF, "-o", "scored.safetensors")
    code, out, err = run(*words)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][:4] == ["metric", "min", "median", "max"]
    assert [(line[0], line[-1]) for line in lines[1:]] == [("lbpe", "low"), ("aum", "high")]
    next_command = next(line for line in err.splitlines() if line.startswith("next: condense-once rank")).split()[2:]
    assert next_command[:4] == ["rank", "scored.safetensors", "--metric", "lbpe"]
    code, _, err = run(*next_command)  # it uses the scores that are there
    assert (code, "nothing was trained" in err) == (0, True)
    _, _, err = run("rank", "scored.safetensors", *BRIEF, "--seed", 1, "-o", "other.safetensors")
    assert "The stored scores by lbpe were made with seed 0, not 1; they are recomputed." in err
    scored = load("scored.safetensors")
    assert sorted(scored.scores) == ["aum", "lbpe"]
    assert float(lines[1][1]) == pytest.approx(float(scored.scores["lbpe"].min()), rel=1e-3)


def test_a_ranking_until_it_is_stable_says_when_it_was(run: Run) -> None:
    words = ("tiny.safetensors", "--net", "convnet-d1-w8", "--scoring-epochs", 40, "--until-stable", "0.3")
    assert run("rank", *words, "-o", "ranked.safetensors")[0] == 0
    ranked = load("ranked.safetensors")
    assert ranked.ranking is not None
    assert ranked.ranking.settings["stopped_at"] == [20]
    assert ranked.ranking.settings["lbpe"] == "all"
    code, _, err = run("rank", *words, "--metric", "el2n", "-o", "other.safetensors")
    assert (code, "--until-stable ends a run" in err) == (2, True)
    code, _, err = run("score", *words, "--metric", "lbpe", "-o", "scored.safetensors")
    assert (code, "--until-stable 0.3" in err) == (0, True)  # in the command to rank by the same scores


def test_one_run_is_enough_for_all_and_for_a_ranking_afterwards(run: Run) -> None:
    # el2n looks at ten epochs
    brief = ("--net", "convnet-d3-w32", "--scoring-epochs", 10, "--lbpe-epochs", "0-1")
    code, out, _ = run("score", "tiny.safetensors", *brief, "-o", "scored.safetensors", "--json")
    printed = json.loads(out)
    assert (code, printed["patches"], printed["file"]) == (0, 24, "scored.safetensors")
    assert list(printed["metrics"]) == single_run_metrics()
    assert set(printed["metrics"]["aum"]) == {"easy", "min", "median", "max"}
    assert run("plan", "rank", "scored.safetensors", *brief)[1] == "No training is needed.\n"
    code, _, err = run("rank", "scored.safetensors", *brief, "-o", "ranked.safetensors")
    assert code == 0
    assert "already has scores by lbpe with the same settings; nothing was trained" in err
    ranked = load("ranked.safetensors")
    assert ranked.ranking is not None
    assert (ranked.ranking.settings["lbpe"], ranked.ranking.settings["net"]) == ("0-1", "convnet-d3-w32")
    code, _, err = run("rank", "scored.safetensors", *brief, "--seed", 1, "-o", "other.safetensors")
    assert (code, "nothing was trained" in err) == (0, False)
    code, _, err = run("score", "scored.safetensors", *brief, "--metric", "lbpe")
    assert "nothing was trained" in err
    assert "printed but not saved; pass -o FILE" in err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("score", "tiny.safetensors", "--metric", "lbpee"), "'lbpe'"),
        (("score", "tiny.safetensors", "--lbpe-epochs", "first ten"), "top10/100, 0-9 or all, not 'first ten'"),
        (
            ("score", "tiny.safetensors", "--metric", "lbpe", "--scoring-epochs", "5"),
            "needs 100 epochs, but the scoring run has 5",
        ),
        (("score", "tiny.safetensors", "-o", "tiny.safetensors"), "is also an input"),
        (("score", "tiny.safetensors", "--param", "lbpe=3"), "written as METRIC.NAME=VALUE"),
        (("score", "tiny.safetensors", "--param", "lbpe.x=3"), "has no parameter 'x'"),
        (("rank", "tiny.safetensors", "--param", "aum.x=3", "-o", "x.safetensors"), "but the scores are by lbpe"),
        (("rank", "tiny.safetensors", "--prefer", "auto", "-o", "x.safetensors"), "by the rule lbpe-auto-balanced"),
        (
            ("rank", "tiny.safetensors", "--metric", "aum", "--lbpe-epochs", "all", "-o", "x.safetensors"),
            "not to aum; leave",
        ),
    ],
)
def test_mistakes_end_in_one_sentence(run: Run, words: tuple[str, ...], complaint: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    (line,) = filter(None, err.splitlines())
    assert complaint in line
    assert not Path("x.safetensors").exists()


def test_the_verbs_have_examples_in_their_help(run: Run) -> None:
    for verb in ("score", "rank", "resize", "select", "compare"):
        _, out, _ = run(verb, "--help")
        assert f"condense-once {verb}" in out.replace("\n", " ")


def test_a_metric_takes_its_parameters_from_the_command_line(run: Run) -> None:
    power = MetricInfo(
        "power",
        "the first error to a power",
        easy="low",
        needs=frozenset({"dynamics"}),
        stage="early",
        early=lambda _: 1,
        compute=lambda run, config: recorded(run.dynamics).error[0] ** config.params["power"]["of"],
        params={"of": 1.0},
    )
    with METRICS.registered(power):
        words = ("score", "tiny.safetensors", "--metric", "power", "--net", "convnet-d3-w32")
        assert run(*words, "-o", "one.safetensors")[0] == 0
        code, _, err = run(*words, "--param", "power.of=2", "-o", "two.safetensors")
        assert (code, "--param power.of=2" in err) == (0, True)
        one, two = (load(f"{name}.safetensors").scores["power"] for name in ("one", "two"))
        np.testing.assert_allclose(two, one**2, rtol=1e-5)
