from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from condense_once.condensed.budget import Budget
from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import resize
from condense_once.data.catalogue import CIFAR100
from condense_once.errors import BadOption, UnknownName
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics import score as scoring_module
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.score import score, scoring_config, single_run_metrics
from condense_once.metrics.score_records import stored_record
from condense_once.metrics.scoring_run import ScoringRun, record_scoring_run
from condense_once.selection.rank import rank
from condense_once.train import hardware
from condense_once.train.compute_config import ComputeConfig
from condense_once.train.hardware import has_compiler, threads

NET = "convnet-d3-w32"
SHORT = MetricConfig(scoring_epochs=3, lbpe_epochs=Epochs.top(2, among=3), el2n_epochs=2)


@pytest.fixture
def scoring_runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The metrics that each training run was for."""
    seen: list[list[str]] = []

    def counted(data: Any, names: Any, *rest: Any, **options: Any) -> Any:
        seen.append(list(names))
        return record_scoring_run(data, names, *rest, **options)

    monkeypatch.setattr(scoring_module, "record_scoring_run", counted)
    return seen


def test_one_run_scores_by_every_metric_that_it_serves(pixel_set: CondensedSet, scoring_runs: list[list[str]]) -> None:
    scored = score(pixel_set, net=NET, config=SHORT)
    assert scoring_runs == [single_run_metrics()]
    assert set(scored.scores) == set(METRICS.names()) - {"memorization", "el2n-init", "grand-init"}
    np.testing.assert_array_equal(scored.cells, pixel_set.cells)
    assert scored.ranking is None
    alone = score(pixel_set, ["el2n"], net=NET, config=SHORT)
    np.testing.assert_allclose(alone.scores["el2n"], scored.scores["el2n"], rtol=1e-4)


def test_scores_that_are_there_are_not_made_again(
    pixel_set: CondensedSet, scoring_runs: list[list[str]], tmp_path: Path
) -> None:
    how: dict[str, Any] = {"net": NET, "config": SHORT}
    scored = score(pixel_set, ["el2n"], **how)
    save(scored, tmp_path / "scored.safetensors")
    scored = load(tmp_path / "scored.safetensors")
    assert score(scored, ["el2n"], **how) is scored
    both = score(scored, ["el2n", "aum"], **how)
    assert both.scores["el2n"] is scored.scores["el2n"]
    ranked = rank(both, "aum", **how)
    assert scoring_runs == [["el2n"], ["aum"]]
    assert stored_record(both, "aum") == (ranked.ranking and ranked.ranking.settings)
    three = score(both, ["entropy"], **how)  # of as many epochs as aum, so they share a record
    assert [record["metrics"] for record in three.provenance["scores"]] == [["el2n"], ["aum", "entropy"]]


def test_settings_of_one_metric_are_nothing_to_another(pixel_set: CondensedSet, scoring_runs: list[list[str]]) -> None:
    names = ["lbpe", "el2n", "aum"]
    scored = score(pixel_set, names, net=NET, config=SHORT)
    others = replace(SHORT, lbpe_epochs=Epochs.top(1, among=2))
    assert score(scored, ["el2n", "aum"], net=NET, config=others) is scored
    longer = replace(SHORT, scoring_epochs=4)
    assert score(scored, ["lbpe", "el2n"], net=NET, config=longer) is scored
    score(scored, names, net=NET, config=replace(longer, lbpe_epochs=Epochs.parse("all")))
    assert scoring_runs == [names, ["lbpe", "aum"]]


def test_precision_is_a_part_of_how_scores_were_made(pixel_set: CondensedSet, scoring_runs: list[list[str]]) -> None:
    plain, coarse = ComputeConfig("float32"), ComputeConfig("bfloat16")
    scored = score(pixel_set, ["el2n"], net=NET, config=SHORT, compute=plain)
    assert (stored_record(scored, "el2n") or {})["precision"] == "float32"
    score(scored, ["el2n"], net=NET, config=SHORT, compute=plain)
    score(scored, ["el2n"], net=NET, config=SHORT, compute=coarse)
    assert len(scoring_runs) == 2


def test_scores_in_any_precision_are_reused_unless_one_is_named(
    pixel_set: CondensedSet, scoring_runs: list[list[str]]
) -> None:
    coarse = score(pixel_set, ["el2n"], net=NET, config=SHORT, compute=ComputeConfig("bfloat16"))
    assert score(coarse, ["el2n"], net=NET, config=SHORT) is coarse
    plain = score(coarse, ["el2n"], net=NET, config=SHORT, compute=ComputeConfig("float32"))
    assert (stored_record(plain, "el2n") or {})["precision"] == "float32"
    assert len(scoring_runs) == 2


def test_threads_and_kernels_are_recorded_but_scores_of_others_are_reused(
    pixel_set: CondensedSet, scoring_runs: list[list[str]]
) -> None:
    plain = ComputeConfig("float32", "off")
    for count in (1, 2):
        with threads(count):
            scored = score(pixel_set, ["el2n", "random"], net=NET, config=SHORT, compute=plain)
            subsets = score(pixel_set, ["memorization"], net=NET, config=replace(SHORT, subset_epochs=1), compute=plain)
        for made in (stored_record(scored, "el2n"), stored_record(subsets, "memorization")):
            assert made is not None
            assert (made["threads"], made["native"]) == (count, False)
        assert "threads" not in (stored_record(scored, "random") or {})
    with threads(1):
        assert score(scored, ["el2n"], net=NET, config=SHORT, compute=replace(plain, compilation="auto")) is scored
    assert len(scoring_runs) == 4


@pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")
def test_native_kernels_are_recorded(pixel_set: CondensedSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "NATIVE_FROM", 0)
    scored = score(pixel_set, ["el2n"], net=NET, config=SHORT, compute=ComputeConfig("float32"))
    assert (stored_record(scored, "el2n") or {})["native"] is True


def test_an_order_ends_with_the_scores_it_was_made_by(pixel_set: CondensedSet) -> None:
    ranked = rank(pixel_set, "random", seed=0)
    assert score(ranked, ["random"], seed=0).ranking == ranked.ranking
    assert score(ranked, ["random"], seed=1).ranking is None
    assert score(ranked, ["el2n"], net=NET, config=SHORT).ranking == ranked.ranking


def test_equal_means_stay_equal(pixel_set: CondensedSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of three runs: 24 patches whose totals are the same two by two, from other parts."""
    parts = iter(np.array([[0, 5, 1, 4], [5, 0, 3, 2], [2, 2, 3, 1]], np.float32))
    monkeypatch.setattr(scoring_module, "record_scoring_run", lambda *_, **__: ScoringRun(pixel_set.labels))
    monkeypatch.setattr(type(METRICS.get("el2n")), "score", lambda *_: np.resize(next(parts), 24))
    found = score(pixel_set, ["el2n"], runs=3, net=NET, config=SHORT).scores["el2n"]
    assert len(np.unique(found)) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"runs": 2},
        {"net": "convnet-d3-w32-bn"},
        {"config": replace(SHORT, el2n_epochs=3)},
    ],
)
def test_other_settings_make_other_scores(
    pixel_set: CondensedSet, scoring_runs: list[list[str]], changed: dict[str, Any]
) -> None:
    how: dict[str, Any] = {"net": NET, "config": SHORT}
    scored = score(pixel_set, ["el2n"], **how)
    again = score(scored, ["el2n"], **(how | changed))
    assert len(scoring_runs) == 1 + changed.get("runs", 1)
    assert (again.scores["el2n"] != scored.scores["el2n"]).any()
    assert len(again.provenance["scores"]) == 1


def test_scores_of_a_larger_set_are_not_those_of_its_part(
    pixel_set: CondensedSet, scoring_runs: list[list[str]]
) -> None:
    part = resize(rank(pixel_set, "el2n", net=NET, config=SHORT), Budget(ipc=1))
    assert "el2n" in part.scores
    rank(part, "el2n", net=NET, config=SHORT)
    assert len(scoring_runs) == 2


def test_how_scores_were_made_is_told(pixel_set: CondensedSet) -> None:
    scored = score(pixel_set, ["random", "el2n"], net=NET, config=SHORT, seed=3, runs=2)
    made = stored_record(scored, "el2n")
    assert made is not None
    expected = {"patches": 24, "runs": 2, "seed": 3, "net": NET, "epochs": 2, "precision": made["precision"]}
    assert {key: value for key, value in made.items() if key not in ("by", "torch", "threads", "native")} == expected
    assert made["torch"] == torch.__version__
    assert made["by"].startswith("condense-once ")
    drawn = stored_record(scored, "random")
    assert drawn is not None
    assert set(drawn) == {"patches", "seed", "by"}
    assert stored_record(scored, "aum") is None


@pytest.mark.parametrize("said", [None, 3, "lbpe", {}, [1], [{"metrics": "el2n"}], [{"metrics": [["el2n"]]}]])
def test_a_strangers_file_may_say_anything_of_its_scores(said: Any, pixel_set: CondensedSet) -> None:
    strange = replace(pixel_set, scores={"el2n": np.zeros(24, np.float32)}, provenance={"scores": said})
    assert stored_record(strange, "el2n") is None
    scored = score(strange, ["el2n"], net=NET, config=SHORT)
    assert scored.scores["el2n"].any()
    assert stored_record(scored, "el2n") is not None


def test_sets_are_scored_as_the_authors_do_for_their_kind(pixel_set: CondensedSet) -> None:
    def epochs(**provenance: Any) -> str:
        return str(MetricConfig.for_data(replace(pixel_set, provenance=provenance), paper=True).lbpe_epochs)

    assert epochs() == "top10/100"
    assert epochs(method="dream") == "top10/200"
    assert epochs(imported={"format": "mtt"}) == "top3/10"
    assert epochs(method="KIP", imported={"format": "arrays"}) == "top3/50"
    assert epochs(method=["idc"], imported="mtt") == "top10/100"
    idc = replace(load("cifar10-real-ipc10"), provenance={"method": "idc"})
    assert str(MetricConfig.for_data(idc).lbpe_epochs) == "top10/100"
    assert str(MetricConfig.for_data(replace(idc, classes=CIFAR100.classes)).lbpe_epochs) == "top10/200"


@pytest.mark.parametrize(("method", "usual", "paper"), [("dsa", "all", "top3/100"), ("mtt", "top3/10", "top3/10")])
def test_where_all_epochs_serve_better_those_of_the_paper_have_a_name(
    pixel_set: CondensedSet, method: str, usual: str, paper: str
) -> None:
    data = replace(pixel_set, provenance={"method": method})
    assert str(scoring_config(data, ["lbpe"]).lbpe_epochs) == usual
    assert str(scoring_config(data, ["lbpe"], lbpe_epochs="paper").lbpe_epochs) == paper


def test_epochs_named_alone_lengthen_the_training() -> None:
    config = MetricConfig()
    assert config.with_epochs(Epochs.parse("0-149")).scoring_epochs == 150
    assert config.with_epochs(Epochs.parse("0-9")).scoring_epochs == 100
    assert config.with_epochs(None, 30).scoring_epochs == 30
    assert config.with_epochs(Epochs.all(), 30) == replace(config, lbpe_epochs=Epochs.all(), scoring_epochs=30)


def test_progress_counts_the_epochs_of_all_runs(pixel_set: CondensedSet) -> None:
    seen: list[tuple[int, int]] = []
    score(pixel_set, ["aum"], net=NET, config=SHORT, runs=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 6) for done in range(1, 7)]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda data: score(data, ["lbpee"]), "did you mean 'lbpe'"),
        (lambda data: score(data, ["lbpe"], runs=0), "`runs` must be at least 1, not 0"),
        (lambda data: rank(data, prefer="auto"), r"depends on the size; .* the rule lbpe-auto-balanced"),
    ],
)
def test_mistakes_are_answered(call: Callable[[CondensedSet], Any], complaint: str, pixel_set: CondensedSet) -> None:
    with pytest.raises((BadOption, UnknownName), match=complaint):
        call(pixel_set)
