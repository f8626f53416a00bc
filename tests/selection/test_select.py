from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import condense_once
from condense_once.condensed.budget import Budget
from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import resize
from condense_once.condensed.verify import verify
from condense_once.errors import BadOption, UnknownName
from condense_once.metrics import METRICS, MetricConfig, MetricInfo, ScoringRun
from condense_once.metrics.checks import recorded
from condense_once.metrics.epochs import Epochs
from condense_once.metrics.score import score
from condense_once.metrics.score_records import stored_record
from condense_once.selection.rank import rank_by_scores
from condense_once.selection.rule import RULES, Rule
from condense_once.selection.select import Scoring, apply_rule, describe_scoring, select
from condense_once.selection.selectors import SELECTORS, SelectorInfo

NET = "convnet-d3-w32"
SHORT = MetricConfig(scoring_epochs=2, lbpe_epochs=Epochs.all(), el2n_epochs=2)
NAMES = [*RULES.names(), "ssp-balanced", "ccs-balanced", "lbpe-auto-balanced"]


@pytest.fixture
def scored() -> CondensedSet:
    rng = np.random.default_rng(7)
    data = load("cifar10-real-ipc10")
    return replace(data, scores={name: rng.random(400).astype(np.float32) for name in METRICS.names()})


def kept(data: CondensedSet, name: str, **budget: Any) -> CondensedSet:
    features = np.random.default_rng(1).normal(size=(len(data), 4)).astype(np.float32)
    return apply_rule(data, Rule.parse(name), Budget(**budget), features=features)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_keeps_what_every_budget_allows(name: str, scored: CondensedSet, tmp_path: Path) -> None:
    balanced = Rule.parse(name).balanced
    for budget, patches in (
        ({"ipc": 1}, 40),
        ({"total": 33}, 33),
        ({"fraction": "0.1"}, 40),
        ({"ipc": 2, "classes": ["cat", "dog"]}, 16),
        ({"classes": ["cat", "dog"], "renumber": True, "total": 5}, 5),
        ({}, 400),
    ):
        small = kept(scored, name, **budget)
        assert len(small) == len(set(small.origin.tolist())) == patches
        if balanced:
            counts = [count for count in small.counts().tolist() if count]
            assert max(counts) - min(counts) <= 1
        if "classes" in budget:
            assert {small.classes[label] for label in small.labels} <= {"cat", "dog"}
    few = kept(scored, name, per_class={"cat": 3, "ship": 1})
    assert few.counts().tolist() == [0, 0, 0, 3, 0, 0, 0, 0, 1, 0]
    save(kept(scored, name, bytes="64KiB"), tmp_path / "small.safetensors")
    size = (tmp_path / "small.safetensors").stat().st_size
    assert 65536 - 9000 < size <= 65536  # a whole turn of ten patches is 8.6 kB
    assert [finding for finding in verify(tmp_path / "small.safetensors") if finding.level == "error"] == []


def test_by_an_order_it_is_what_resizing_a_ranked_set_gives(scored: CondensedSet) -> None:
    for rule, budget in (
        (Rule("el2n", "hard", False), {"total": 50}),
        (Rule(), {"ipc": 2}),
        (Rule(), {"ipc": 1, "classes": ["cat", "dog"]}),
        (Rule("aum"), {"per_class": {"frog": 5, "ship": 2}}),
    ):
        ranked = rank_by_scores(scored, rule.metric, prefer=rule.prefer, balanced=rule.balanced)  # type: ignore[arg-type]
        expected = resize(ranked, Budget(**budget))
        small = kept(scored, rule.name, **budget)
        assert small.origin.tolist() == expected.origin.tolist()
        assert small.ranking == expected.ranking
        assert small.scores["lbpe"].tolist() == expected.scores["lbpe"].tolist()


def test_a_selection_without_order_is_not_ranked_and_records_its_rule(scored: CondensedSet) -> None:
    small = kept(scored, "ccs", ipc=1)
    assert small.ranking is None
    assert small.provenance["kept"] == {"rule": "ccs", "of": 400, "seed": 0}
    rows = [scored.origin.tolist().index(origin) for origin in small.origin.tolist()]
    assert rows == sorted(rows)
    with pytest.raises(BadOption, match="not ranked"):
        resize(small, Budget(total=3))


def test_the_authors_cutoff_of_the_dataset_holds(scored: CondensedSet) -> None:
    """CIFAR-10 from ten images per class to one: three tenths are dropped."""
    hardest = np.sort(scored.scores["el2n"])[-120:]
    assert not np.isin(kept(scored, "ccs", ipc=1).scores["el2n"], hardest).any()
    assert np.isin(kept(scored, "ccs", ipc=5).scores["el2n"], hardest).any()  # none are, from ten to five


def test_auto_prefers_by_the_size(scored: CondensedSet) -> None:
    few, many = kept(scored, "lbpe-auto", fraction="0.5"), kept(scored, "lbpe-auto", fraction="0.8")
    assert few.ranking is not None
    assert many.ranking is not None
    assert (few.ranking.prefer, many.ranking.prefer) == ("easy", "hard")
    np.testing.assert_array_equal(few.scores["lbpe"], np.sort(scored.scores["lbpe"])[:200])


def test_a_network_is_trained_for_what_a_rule_reads(pixel_set: CondensedSet) -> None:
    for name, seed in (("ccs", 2), ("ssp-balanced", 2), ("yoco", None), ("random", 2)):
        small = select(pixel_set, name, ipc=1, net=NET, config=SHORT, seed=2)
        assert len(small) == 12
        assert small.provenance["kept"].get("seed") == seed
    prototypes = select(pixel_set, "ssp", total=5, net=NET, config=SHORT)
    assert prototypes.provenance["features"]["net"] == NET
    again = select(pixel_set, "ssp", total=5, net=NET, config=SHORT)
    assert prototypes.origin.tolist() == again.origin.tolist()


def test_too_much_is_refused(scored: CondensedSet) -> None:
    for name in ("ccs", "ccs-balanced"):
        with pytest.raises(BadOption, match="fewer than"):
            kept(scored, name, ipc=11)
    assert len(kept(scored, "ccs", ipc=10)) == 400


def test_too_much_is_refused_before_any_training(pixel_set: CondensedSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condense_once.selection.select.record_scoring_run", None)
    monkeypatch.setattr("condense_once.metrics.score.record_scoring_run", None)
    for name in ("ssp", "ccs-balanced", "yoco"):
        with pytest.raises(BadOption, match="fewer than"):
            select(pixel_set, name, ipc=3)


@pytest.mark.parametrize("budget", [{"budget": Budget(ipc=1)}, {"budget": "1"}, {"ipc": 1}])
def test_a_set_can_be_given_by_name_and_a_budget_by_its_fields(budget: dict[str, Any]) -> None:
    assert condense_once.select is select
    small = select("cifar10-idc-ipc10", "yoco", **budget)
    assert small.origin.tolist() == resize("cifar10-idc-ipc10", ipc=1).origin.tolist()
    with pytest.raises(BadOption, match="either `budget` or `ipc`"):
        select("cifar10-idc-ipc10", "yoco", "1", ipc=1)


def test_features_of_several_runs_cannot_be_averaged(pixel_set: CondensedSet) -> None:
    with pytest.raises(BadOption, match="leave out `runs`"):
        select(pixel_set, "ssp", ipc=1, runs=2)


def test_stored_scores_are_used_unless_something_else_is_asked_for(scored: CondensedSet) -> None:
    def source(**changes: Any) -> str:
        return describe_scoring(scored, Rule.parse(changes.pop("rule", "ccs")), Scoring(**changes))

    assert "uses the stored scores by el2n" in source()
    for changes in ({"seed": 0}, {"runs": 2}, {"net": NET}, {"config": SHORT}):
        assert "other than those stored; a network is trained" in source(**changes)
    assert "reads features" in source(rule="ssp")
    assert "needs no training" in source(rule="random")


def test_no_training_is_announced_where_scores_made_in_the_same_way_are_stored(pixel_set: CondensedSet) -> None:
    notes: list[str] = []
    scored = score(pixel_set, "el2n", net=NET, config=SHORT)
    select(scored, "el2n-easy", total=4, net=NET, config=SHORT, notify=notes.append)
    assert notes[0] == "The rule el2n-easy uses the stored scores by el2n, which were made in the same way."


def test_a_selection_is_named_after_its_rule_and_size(scored: CondensedSet) -> None:
    name = scored.name
    small = kept(scored, "ccs", ipc=5)
    assert small.name == f"{name}-ccs-200of400"
    assert kept(small, "el2n-easy", total=10).name == f"{name}-el2n-easy-10of200"
    assert kept(scored, "ccs").name == name


@pytest.mark.parametrize("rule", ["yoco", "ccs", "el2n-hard"])
def test_a_limit_in_bytes_holds_for_the_name_that_a_selection_gets(
    scored: CondensedSet, rule: str, tmp_path: Path
) -> None:
    whole = replace(scored, scores={"lbpe": scored.scores["lbpe"], "el2n": scored.scores["el2n"]})
    for limit in range(24_000, 24_064, 7):
        save(kept(whole, rule, bytes=limit), tmp_path / "small.safetensors", force=True)
        assert (tmp_path / "small.safetensors").stat().st_size <= limit


# ---------------------------------------------------------------- plug-ins


def softened(run: ScoringRun, config: MetricConfig) -> NDArray[Any]:
    own = config.params["softened"]
    return recorded(run.dynamics).error[: int(own["epochs"])].mean(0) ** float(own["power"])


SOFTENED = MetricInfo(
    "softened",
    "mean error to a power",
    easy="low",
    needs=frozenset({"dynamics"}),
    stage="early",
    compute=softened,
    early=lambda config: int(config.params["softened"]["epochs"]),
    params={"epochs": 1, "power": 1.0},
)


def every_other(values: NDArray[Any], count: int, **_: Any) -> NDArray[np.int64]:
    return np.argsort(values, kind="stable")[::2][:count]


EVERY_OTHER = SelectorInfo("every-other", "every other patch by its error", metric="softened", pick=every_other)


@pytest.fixture
def plugins() -> Iterator[None]:
    """A metric with parameters and a selector that uses it, as another distribution registers them."""
    with METRICS.registered(SOFTENED), SELECTORS.registered(EVERY_OTHER):
        yield


@pytest.mark.usefixtures("plugins")
def test_a_metric_with_parameters_and_a_selector_come_from_another_distribution(
    pixel_set: CondensedSet, tmp_path: Path
) -> None:
    config = replace(SHORT, params={"softened": {"power": 2.0}})
    squared = select(pixel_set, "softened-hard", ipc=1, net=NET, config=config)
    plain = score(pixel_set, ["softened"], net=NET, config=SHORT).scores["softened"]
    np.testing.assert_allclose(squared.scores["softened"], np.sort(plain**2)[::-1][:12], rtol=1e-5)
    record = stored_record(squared, "softened")
    assert record is not None
    assert (record["params"], record["epochs"]) == ({"epochs": 1, "power": 2.0}, 1)
    rows = np.argsort(plain, kind="stable")[::2][:5]
    small = select(pixel_set, "every-other", total=5, net=NET, config=SHORT)
    assert sorted(small.origin.tolist()) == sorted(rows.tolist())
    assert small.ranking is None
    assert len(select(pixel_set, "every-other-balanced", ipc=1, net=NET, config=SHORT)) == 12
    save(squared, tmp_path / "squared.safetensors")
    again = load(tmp_path / "squared.safetensors")
    assert score(again, ["softened"], net=NET, config=config) is not again  # of a subset, and so of other patches


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"softened": {"pwer": 2.0}}, "'softened' has no parameter 'pwer'; did you mean 'power'"),
        ({"softened": {"power": "two"}}, "'power' of the metric 'softened' is of type float, not 'two'"),
        ({"softened": {"epochs": 9}}, "'softened' needs 9 epochs, but the scoring run has 2"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, Any], complaint: str, pixel_set: CondensedSet) -> None:
    with pytest.raises((BadOption, UnknownName), match=complaint):
        score(pixel_set, ["softened"], net=NET, config=replace(SHORT, params=params))
    with pytest.raises(UnknownName, match="'el2n' has no parameter 'x'; it has none"):
        score(pixel_set, ["el2n"], net=NET, config=replace(SHORT, params={"el2n": {"x": 1}}))


@pytest.mark.usefixtures("plugins")
def test_scores_with_the_same_parameters_are_reused(pixel_set: CondensedSet) -> None:
    config = replace(SHORT, params={"softened": {"power": 2.0}})
    scored = score(pixel_set, ["softened"], net=NET, config=config)
    assert score(scored, ["softened"], net=NET, config=config) is scored
    assert score(scored, ["softened"], net=NET, config=SHORT) is not scored
