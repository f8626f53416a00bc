"""The paper's numbers: that they are found where they belong, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import numpy as np
import pytest

from condense_once.condensed.set import CondensedSet
from condense_once.condensed.space import Space
from condense_once.data.catalogue import CIFAR10, CIFAR100, IMAGENET10, SourceInfo
from condense_once.data.source import ArraySplit, Source
from condense_once.nets import NETS
from condense_once.selection.rule import Rule
from condense_once.studies.grid import StudyInput, cells_of
from condense_once.studies.published_numbers import ALL, ANY, CONDENSERS, Place, paper_tables, published
from condense_once.studies.study import Study


def an_input(method: str | None, source: SourceInfo = CIFAR10, ipc: int = 10, factor: int = 2) -> StudyInput:
    """A set of blank cells, one pixel each."""
    labels = np.repeat(np.arange(len(source.classes)), ipc * factor**2)
    data = CondensedSet(
        cells=np.zeros((len(labels), 3, 1, 1), np.uint8),
        labels=labels,
        classes=source.classes,
        size=(factor, factor),
        factor=factor,
        space=Space("pixels", source.mean, source.std),
        origin=np.arange(len(labels)),
        name=f"{source.name} by {method}",
        provenance={} if method is None else {"method": method},
    )
    test = ArraySplit(np.zeros((1, 3, factor, factor), np.uint8), np.zeros(1, np.int64))
    return StudyInput(data, Source("blank", source.classes, source.mean, source.std, {"test": test}))


def found(study: Study, *inputs: StudyInput) -> list[float | None]:
    """What the paper has for every cell, in the order of the grid."""
    named = dict(zip(study.sets, inputs, strict=True))
    find = published(study, named)
    numbers = [find(dict(cell.place)) for cell in cells_of(study, named)]
    return [None if number is None else number.accuracy for number in numbers]


def a_study(name: str, *rules: str, sizes: tuple[str, ...] = ("1",), sets: int = 1) -> Study:
    return Study(name, "", rules=rules, sizes=sizes, sets=tuple(map(str, range(sets))), repeats=1)


def test_the_main_table_has_every_rule_and_size() -> None:
    rules = ("random", "ssp", "entropy", "aum", "forgetting", "el2n", "ccs", "yoco")
    assert found(a_study("table1", *rules, sizes=("1", "5")), an_input("idc")) == [
        *(0.2823, 0.2783, 0.3030, 0.1330, 0.1668, 0.1695, 0.3354, 0.4228),
        *(0.5292, 0.4847, 0.5285, 0.4140, 0.4549, 0.4658, 0.5323, 0.5596),
    ]


def test_the_authors_variants_are_compared_with_the_same_columns() -> None:
    study = a_study("table1", "ssp-fixed", "ccs-fixed")
    assert found(study, an_input("idc")) == [0.2783, 0.3354]
    assert found(a_study("table5", "ssp-fixed-balanced"), an_input("idc")) == [0.3321]


def test_each_condenser_has_its_own_numbers() -> None:
    study = a_study("table2", "random", "random-balanced", "lbpe", "yoco", sets=4)
    inputs = [an_input(method, factor=factor) for method, factor in (("idc", 2), ("dream", 2), ("mtt", 1), ("kip", 1))]
    assert found(study, *inputs) == [
        *(0.2823, 0.3019, 0.3938, 0.4228),
        *(0.3087, 0.3283, 0.3730, 0.4229),
        *(0.1975, 0.1909, 0.2037, 0.2202),
        *(0.1406, 0.1627, 0.1578, 0.2224),
    ]
    assert found(a_study("table4", "aum", "aum-easy", "yoco"), an_input("DSA", factor=1)) == [0.1425, 0.1823, 0.2240]


def test_where_tables_disagree_each_study_gets_the_number_of_its_own() -> None:
    rules = ("lbpe", "random-balanced")
    in_each = {name: found(a_study(name, *rules), an_input("idc")) for name in ("table2", "table5", "mine")}
    assert in_each == {"table2": [0.3938, 0.3019], "table5": [0.3763, 0.3005], "mine": [0.3938, 0.3019]}


def test_a_table_of_the_paper_has_its_own_numbers_only() -> None:
    dsa = an_input("dsa", factor=1)  # which is in table 4 alone
    assert [found(a_study(name, "yoco"), dsa) for name in ("table4", "table2", "mine")] == [[0.2240], [None], [0.2240]]
    find = published(a_study("table7", "yoco"), {"0": an_input("idc")})
    assert find({"set": "cifar10 by idc", "rule": "yoco", "size": "1", "net": "convnet-d3", "epochs": "top10/100"}) == (
        0.4228,
        0.0015,
    )


def test_other_sets_are_compared_with_those_of_idc() -> None:
    for method in (None, "real images, not condensed", "dm"):
        assert found(a_study("table1", "yoco", "random"), an_input(method)) == [0.4228, 0.2823]


def test_dataset_and_size_of_the_set_count() -> None:
    study = a_study("table1", "yoco", sizes=("1", "5"))
    assert found(study, an_input("idc", CIFAR10, 50)) == [0.3877, 0.5304]
    assert found(study, an_input("idc", CIFAR100, 20)) == [0.2374, 0.3802]
    assert found(study, an_input("idc", CIFAR10, 11)) == [None, None]
    other = an_input("idc")
    renamed = replace(other.data, classes=tuple(f"kind {label}" for label in range(10)))
    assert found(study, replace(other, data=renamed)) == [None, None]


def test_the_network_counts() -> None:
    nets = ("convnet-d3", "resnet10", "densenet", "resnet18")
    study = a_study("table3", "yoco").replace(nets=nets, columns=("net",), rows=("set", "rule", "size"))
    assert found(study, an_input("idc")) == [0.4228, 0.3453, 0.3429, None]


def test_lbpe_by_other_epochs_is_not_in_the_paper_and_other_rules_do_not_mind() -> None:
    study = a_study("fig-epochs", "yoco", "lbpe", "el2n").replace(epochs=("4-4",))
    assert found(study, an_input("idc")) == [None, None, 0.1695]


def test_shares_and_whole_sets_are_sizes_too() -> None:
    study = a_study("mine", "yoco", "el2n", sizes=("10%", "30%", "100%"))
    assert found(study, an_input("idc")) == [0.4228, 0.1695, None, None, 0.6750, 0.6750]


def test_names_in_the_data_are_names_of_this_project() -> None:
    for places in paper_tables().values():
        for place in places:
            assert place.dataset in {info.name for info in (CIFAR10, CIFAR100, IMAGENET10)}
            assert place.condenser in CONDENSERS
            assert place.net in NETS
            assert (place.rule == ANY) if place.size == ALL else (Rule.parse(place.rule).name == place.rule)


def test_nothing_is_missing() -> None:
    # Seven sets with 23 sizes by 8 rules, 17 of them by DREAM, and their accuracies as a whole.
    counts = {name: len(places) for name, places in paper_tables().items()}
    assert counts == {"table1": 23 * 8 + 17 + 7, "table2": 16, "table3": 21, "table4": 28, "table5": 42}
    main = paper_tables()["table1"]
    assert all((number.std is None) == (place.size == ALL) for place, number in main.items())


@pytest.mark.parametrize(
    ("source", "ipc", "rule", "condenser", "average"),
    [
        ("cifar10", 10, "random", "idc", 39.42),
        ("cifar10", 10, "yoco", "idc", 48.30),
        ("cifar10", 50, "random", "dream", 42.78),
        ("cifar10", 50, "el2n", "idc", 16.20),
        ("cifar100", 10, "ccs", "idc", 26.75),
        ("cifar100", 20, "forgetting", "idc", 11.95),
        ("cifar100", 50, "ssp", "idc", 25.94),
        ("imagenet10", 10, "aum", "idc", 30.51),
        ("imagenet10", 20, "entropy", "idc", 46.49),
        ("imagenet10", 20, "yoco", "idc", 58.80),
    ],
)
def test_averages_are_those_that_the_paper_prints(
    source: str, ipc: int, rule: str, condenser: str, average: float
) -> None:
    row = [
        number.accuracy
        for place, number in paper_tables()["table1"].items()
        if place._replace(net="", size=1) == Place(source, ipc, condenser, "", 1, rule)
    ]
    assert 100 * mean(row) == pytest.approx(average, abs=0.0051)
