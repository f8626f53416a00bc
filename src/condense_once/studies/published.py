"""What the paper published, to be shown beside what was measured. The numbers and their source are in `published.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain, product
from typing import Any, NamedTuple

from condense_once.condensed.budget import Budget
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import count_patches
from condense_once.metrics.config import MetricConfig, dataset_of, method_of
from condense_once.studies.grid import Subject, set_labels
from condense_once.studies.study import Axis, Study
from condense_once.studies.table import AVERAGE, DIFFERENCE, Number, Published, Table

CONDENSERS = ("idc", "dream", "mtt", "dsa", "kip")  # whose sets the paper has
BY_LBPE = ("lbpe", "yoco")
WITH_SPREAD = {"table7": "table1"}  # the same numbers
ALL, ANY = "all", "any"  # of all patches, any rule keeps the same


class Place(NamedTuple):
    """What a number of the paper is of."""

    dataset: str | None
    ipc: float  # of the whole set
    condenser: str
    net: str
    size: float | str  # images per class that are kept, or all
    rule: str


def published(study: Study, subjects: Mapping[str, Subject]) -> Published:
    """What finds the paper's accuracy at a place of a study: for a table of the paper in that table alone.

    For any other study the first table counts that has the place. Sets by condensers that the paper does not have, or by
    none, are held against its IDC sets of the same size.
    """
    sets = {label: subjects[name].data for name, label in set_labels(study, subjects).items()}
    tables = paper_tables()
    own = WITH_SPREAD.get(study.name, study.name)
    sought_in = [tables[own]] if own in tables else list(tables.values())

    def find(place: Mapping[Axis, str]) -> Number | None:
        data = sets[place["set"]]
        sought = _place(place, data)
        if sought.rule in BY_LBPE and place["epochs"] != str(MetricConfig.for_data(data).lbpe_epochs):
            return None  # the paper has no others
        return next((table[sought] for table in sought_in if sought in table), None)

    return find


@cache
def paper_tables() -> Mapping[str, Mapping[Place, Number]]:
    """The paper's tables by name.

    >>> paper_tables()["table1"][Place("cifar10", 10, "idc", "convnet-d3", 1, "yoco")]
    Number(accuracy=0.4228, spread=0.0015)
    """
    tables = {name: blocks for name, blocks in _read().items() if name != "source"}
    return {name: dict(chain.from_iterable(map(_numbers, blocks))) for name, blocks in tables.items()}


def source_notes(study: Study, subjects: Mapping[str, Subject], table: Table) -> Iterator[str]:
    """What is to be said where published numbers are shown, or where they were asked for and there are none."""
    if not any(entry.published for row in table.rows for entry in row.entries):
        yield "The paper has no numbers of such sets, sizes, rules and networks."
        return
    means = f"; beside {AVERAGE} and {DIFFERENCE}, means of it at the same sizes" if study.columns == ("rule",) else ""
    yield f"(paper …) is from {_read()['source']}{means}; nothing of it was measured here."
    yield "Sets by the same method may be others than the paper's, and condensed for less long."
    for name, label in set_labels(study, subjects).items():
        if (method_of(subjects[name].data) or "").lower() not in CONDENSERS:
            yield f"{label} is held against the paper's IDC sets, though it is none."


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("published.toml").read_text(encoding="utf-8"))


def _numbers(block: Mapping[str, Any]) -> Iterator[tuple[Place, Number]]:
    axes = (block[name] for name in Place._fields if name != "rule")
    columns = list(product(*(axis if isinstance(axis, list) else [axis] for axis in axes)))
    for rule, accuracies in block["accuracy"].items():
        spreads = block["spread"][rule] if "spread" in block else [None] * len(columns)
        for column, accuracy, spread in zip(columns, accuracies, spreads, strict=True):
            yield Place._make((*column, rule)), Number(_share(accuracy), None if spread is None else _share(spread))


def _share(percent: float) -> float:
    return round(percent / 100, 4)


def _place(place: Mapping[Axis, str], data: CondensedSet) -> Place:
    method = (method_of(data) or "").lower()
    image = data.factor**2 * len(data.classes)  # patches of one image in each class
    kept = count_patches(data, Budget.parse(place["size"]))
    return Place(
        dataset=dataset_of(data),
        ipc=len(data) / image,
        condenser=method if method in CONDENSERS else "idc",
        net=place["net"],
        size=ALL if kept == len(data) else kept / image,
        rule=ANY if kept == len(data) else place["rule"],
    )
