from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from condense_once.condensed.budget import Budget
from condense_once.condensed.bundled import load
from condense_once.condensed.file import save
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import resize
from condense_once.condensed.verify import verify
from condense_once.errors import BadOption
from condense_once.metrics import METRICS, MetricConfig
from condense_once.metrics.epochs import Epochs
from condense_once.selection.basis import Basis
from condense_once.selection.rank import in_order
from condense_once.selection.rule import RULES, Rule
from condense_once.selection.select import keep, keep_by

NET = "convnet-d3-w32"
SHORT = MetricConfig(training=2, lbpe=Epochs.all(), el2n=2)
NAMES = [*RULES.names(), "ssp-balanced", "ccs-balanced", "lbpe-auto-balanced"]


@pytest.fixture
def scored() -> CondensedSet:
    rng = np.random.default_rng(7)
    data = load("cifar10-real-ipc10")
    return replace(data, scores={name: rng.random(400).astype(np.float32) for name in METRICS.names()})


def basis_of(data: CondensedSet) -> Basis:
    features = np.random.default_rng(1).normal(size=(len(data), 4)).astype(np.float32)
    return replace(Basis.of_scores(data), features=features)


def kept(data: CondensedSet, name: str, **budget: Any) -> CondensedSet:
    return keep_by(data, basis_of(data), Rule.parse(name), Budget(**budget)).data


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
        ranked = in_order(scored, rule.metric, prefer=rule.prefer, balanced=rule.balanced)  # type: ignore[arg-type]
        expected = resize(ranked, Budget(**budget))
        small = kept(scored, rule.name, **budget)
        assert small.origin.tolist() == expected.origin.tolist()
        assert small.ranking == expected.ranking
        assert small.scores["lbpe"].tolist() == expected.scores["lbpe"].tolist()


def test_what_has_no_order_is_not_ranked_and_tells_how_it_was_chosen(scored: CondensedSet) -> None:
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


def test_what_a_rule_goes_by_is_found_out(pixel_set: CondensedSet) -> None:
    for name, seed in (("ccs", 2), ("ssp-balanced", 2), ("yoco", None), ("random", 2)):
        small = keep(pixel_set, name, Budget(ipc=1), net=NET, settings=SHORT, seed=2)
        assert len(small) == 12
        assert small.provenance["kept"].get("seed") == seed
    prototypes = keep(pixel_set, "ssp", Budget(total=5), net=NET, settings=SHORT)
    assert prototypes.provenance["features"]["net"] == NET
    again = keep(pixel_set, "ssp", Budget(total=5), net=NET, settings=SHORT)
    assert prototypes.origin.tolist() == again.origin.tolist()


def test_too_much_is_refused(scored: CondensedSet) -> None:
    for name in ("ccs", "ccs-balanced"):
        with pytest.raises(BadOption, match="cannot be taken from it"):
            kept(scored, name, ipc=11)
    assert len(kept(scored, "ccs", ipc=10)) == 400


def test_too_much_is_refused_before_any_training(pixel_set: CondensedSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condense_once.selection.select.gather", None)
    monkeypatch.setattr("condense_once.metrics.score.gather", None)
    for name in ("ssp", "ccs-balanced", "yoco"):
        with pytest.raises(BadOption, match="cannot be taken from it"):
            keep(pixel_set, name, Budget(ipc=3))
