"""The numbers of YOCO's paper, and of MDC's, from `published.toml`, to show beside ours."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain, product
from statistics import mean, stdev
from typing import Any, NamedTuple

from condense_once.condensed.budget import Budget
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import count_patches
from condense_once.metrics.config import MetricConfig, dataset_of, method_of
from condense_once.studies.grid import OWN_ORDER, StudyInput, set_labels
from condense_once.studies.make_table import AVERAGE, DIFFERENCE, Published
from condense_once.studies.study import Axis, Study
from condense_once.studies.table import PublishedNumber, Table

CONDENSERS = ("idc", "dream", "mtt", "dsa", "kip")  # of the sets in the paper
BY_LBPE = ("lbpe", "yoco")
SAME_NUMBERS = {"table7": "table1"}
ALL, ANY = "all", "any"  # a size and a rule: where all patches are kept, rules do not matter


class Place(NamedTuple):
    """What was measured: the key of a number of the paper."""

    dataset: str | None
    ipc: float  # of the full set
    condenser: str
    net: str
    size: float | str  # images per class that are kept, or all
    rule: str


def published(study: Study, inputs: Mapping[str, StudyInput]) -> Published:
    """A function that looks up the paper's accuracy for a position of a study.

    A table of the paper is looked up in that table only, any other study in the first table that has the number. Sets by
    condensers that are not in the paper are compared with its IDC sets of the same size.
    """
    sets = {label: inputs[name].data for name, label in set_labels(study, inputs).items()}
    tables = paper_tables()
    own = SAME_NUMBERS.get(study.name, study.name)
    searched = [tables[own]] if own in tables else list(tables.values())

    def find(place: Mapping[Axis, str]) -> PublishedNumber | None:
        data = sets.get(place["set"])
        if data is None:  # sets condensed for one size each
            return None
        if place["size"] == AVERAGE:
            is_mdc = (method_of(data) or "").lower() == "mdc" and place["rule"] == OWN_ORDER.name
            return mdc_mean(study, data) if is_mdc and place["net"] == mdc_numbers()["net"] else None
        wanted = _place(place, data)
        if wanted.rule in BY_LBPE and place["epochs"] != str(MetricConfig.for_data(data, paper=True).lbpe_epochs):
            return None  # the paper has no others
        return next((table[wanted] for table in searched if wanted in table), None)

    return find


@cache
def paper_tables() -> Mapping[str, Mapping[Place, PublishedNumber]]:
    """The paper's tables by name.

    >>> paper_tables()["table1"][Place("cifar10", 10, "idc", "convnet-d3", 1, "yoco")]
    PublishedNumber(accuracy=0.4228, std=0.0015)
    """
    tables = {name: blocks for name, blocks in _read().items() if isinstance(blocks, list)}
    return {name: dict(chain.from_iterable(map(_numbers, blocks))) for name, blocks in tables.items()}


def mdc_numbers() -> Mapping[str, Any]:
    """What MDC's authors report: the mean over sizes of each of their runs and of their baseline, in percent."""
    numbers: Mapping[str, Any] = _read()["mdc"]
    return numbers


def mdc_mean(study: Study, data: CondensedSet) -> PublishedNumber | None:
    """The mean of MDC's runs, for a study of a set like theirs at the same sizes."""
    numbers, image = mdc_numbers(), len(data.classes) * data.factor**2  # patches of one image in each class
    sizes = [ipc for size in study.sizes if (ipc := Budget.parse(size).ipc or 0) * image <= len(data)]
    if (dataset_of(data), len(data)) != (numbers["dataset"], numbers["ipc"] * image):
        return None
    if sizes != list(range(1, numbers["ipc"] + 1)):
        return None
    runs = numbers["accuracy"]
    return PublishedNumber(round(mean(runs) / 100, 6), stdev(runs) / 100)


def source_notes(study: Study, inputs: Mapping[str, StudyInput], table: Table) -> Iterator[str]:
    """Notes under a table that shows published numbers, or that should and has none."""
    if AVERAGE in table.columns and any(mdc_mean(study, inputs[name].data) for name in study.sets):
        numbers = mdc_numbers()
        runs = " and ".join(f"{each:.2f}" for each in numbers["accuracy"])
        yield (
            f"{AVERAGE} is {runs} in the two runs of MDC's authors, and {numbers['baseline']:.2f} for their baseline"
            f" ({numbers['dataset']}, {numbers['ipc']} images per class): {numbers['source']}."
        )
    if not any(entry.published for row in table.rows for entry in row.entries):
        yield "The paper has no numbers for these sets, sizes, rules and networks."
        return
    means = f"; {AVERAGE} and {DIFFERENCE} are over the same sizes" if study.columns == ("rule",) else ""
    yield f"(paper …) is quoted from {_read()['source']}{means}."
    yield "Sets by the same method may differ from the paper's, and may have been condensed for fewer iterations."
    for name, label in set_labels(study, inputs).items():
        if (method_of(inputs[name].data) or "").lower() not in CONDENSERS:
            yield f"{label} is compared with the paper's IDC sets, although it is not one of them."


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("published.toml").read_text(encoding="utf-8"))


def _numbers(block: Mapping[str, Any]) -> Iterator[tuple[Place, PublishedNumber]]:
    axes = (block[name] for name in Place._fields if name != "rule")
    columns = list(product(*(axis if isinstance(axis, list) else [axis] for axis in axes)))
    for rule, accuracies in block["accuracy"].items():
        stds = block["std"][rule] if "std" in block else [None] * len(columns)
        for column, accuracy, std in zip(columns, accuracies, stds, strict=True):
            number = PublishedNumber(_fraction(accuracy), None if std is None else _fraction(std))
            yield Place._make((*column, rule)), number


def _fraction(percent: float) -> float:
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
        rule=ANY if kept == len(data) else place["rule"].replace("-fixed", ""),  # the paper has one of either
    )
