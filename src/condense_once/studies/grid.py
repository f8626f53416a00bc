"""The cells of a study: every single number that is to be measured, as a frozen configuration with a key of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import count_patches
from condense_once.data.image_folder import ImageFolderSplit
from condense_once.data.source import ArraySplit, Source
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.metrics import METRICS, Epochs, MetricConfig, ScoringRun
from condense_once.metrics.records import scoring_record
from condense_once.metrics.scoring_run import DEFAULT_PARTS
from condense_once.nets import default_net
from condense_once.selection.rule import Rule
from condense_once.selection.select import rows_from_run
from condense_once.studies.study import Axis, Study
from condense_once.train.hardware import Precision, compute_dtype

SAMPLED = 64  # images of a folder that are looked at when test splits are told apart; of all others, names and sizes
USUAL: Precision = "float32"


@dataclass(frozen=True)
class Subject:
    """A set and the images it is tested on."""

    data: CondensedSet
    test: Source  # with a test split at least
    home: Path | None = None  # where the source of a whitened set is kept, if not in the usual place

    @cached_property
    def set_key(self) -> str:
        data = self.data
        facts = {"factor": data.factor, "size": data.size, "space": asdict(data.space), "classes": data.classes}
        return key_of(facts, data.cells, data.labels, data.origin)

    @cached_property
    def test_key(self) -> str:
        split = self.test.test
        count = len(split.labels) if isinstance(split, ArraySplit) else SAMPLED
        some = np.unique(np.linspace(0, len(split.labels) - 1, count).astype(np.int64))
        facts: dict[str, Any] = {"classes": self.test.classes, "shape": split.shape}
        facts["name"] = self.test.name  # of SVHN nothing is mirrored
        if isinstance(split, ImageFolderSplit):
            facts["files"] = split.listing
        return key_of(facts, split.labels, split.take(some))


@dataclass(frozen=True)
class Watch:
    """A training run that is watched for the scores of all rules."""

    set_key: str
    net: str
    settings: MetricConfig
    metrics: tuple[str, ...]  # beside those that any single run serves
    normalise_again: bool = False  # as the protocol has it
    precision: Precision = USUAL

    @property
    def facts(self) -> dict[str, Any]:
        plain = self.settings.stored()
        unusual = {**_twice(self.normalise_again), **_rounded(self.precision)}
        return {"set": self.set_key, "net": self.net, "metrics": list(self.metrics), **plain, **unusual}

    @property
    def key(self) -> str:
        return key_of(self.facts)


@dataclass(frozen=True)
class Cell:
    """One number of a study: a network trained on what a rule keeps of a set, and tested."""

    place: tuple[tuple[Axis, str], ...]  # where it belongs in the grid; not part of what it is
    subject: Subject
    rule: Rule
    patches: int
    settings: MetricConfig  # of the scores, with their seed
    scored_by: str
    net: str
    protocol: str
    repeat: int
    precision: Precision = USUAL

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All that decides the number."""
        scores = scoring_record(self.subject.data, self.rule.metric, 1, self.scored_by, self.settings)
        watch = self.watch
        return {
            "set": self.subject.set_key,
            "rule": self.rule.name,
            "patches": self.patches,
            "scores": {**scores, **_twice(watch is not None and watch.normalise_again)},
            **self.evaluated_by,
        }

    @property
    def evaluated_by(self) -> dict[str, Any]:
        protocol = PROTOCOLS.get(self.protocol).id
        facts = {"net": self.net, "protocol": protocol, "test": self.subject.test_key, "repeat": self.repeat}
        return {**facts, **_rounded(self.precision)}

    @cached_property
    def key(self) -> str:
        return key_of(self.facts)

    @property
    def watch(self) -> Watch | None:
        """The run that scores the patches; none is needed where nothing is learnt of them.

        It records all epochs of its training, so that rules by other epochs or metrics share it.
        """
        needs = METRICS.get(self.rule.metric).needs
        if not needs:
            return None
        plain = replace(self.settings, lbpe_epochs=Epochs.all(), el2n_epochs=1, params={})
        special = needs - DEFAULT_PARTS
        again = PROTOCOLS.get(self.protocol).double_normalise and self.subject.data.space.kind != "pixels"
        metrics = (self.rule.metric,) if special else ()
        return Watch(self.subject.set_key, self.scored_by, plain, metrics, again, self.precision)

    def rows(self, run: ScoringRun) -> NDArray[np.int64]:
        """The patches that are kept, ascending: two rules that keep the same are one evaluation."""
        return np.sort(rows_from_run(self.subject.data, self.rule, self.patches, run, self.settings))

    def evaluation_facts(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        kept = hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()[:16]
        return {"set": self.subject.set_key, "kept": kept, "patches": len(rows), **self.evaluated_by}

    @property
    def whole(self) -> bool:
        """Whether all patches are kept, whatever the rule."""
        return self.patches == len(self.subject.data)

    def at(self, axis: Axis) -> str:
        return dict(self.place)[axis]


def cells_of(study: Study, subjects: Mapping[str, Subject]) -> Iterator[Cell]:
    """Every cell of a study, set after set; `subjects` are its sets by the names it has for them."""
    labels, precision = set_labels(study, subjects), computed_in(study.precision)
    sizes, rules = map(Budget.parse, study.sizes), map(Rule.parse, study.rules)
    for name, size, rule, net, epochs in product(study.sets, sizes, rules, study.nets, study.epochs):
        subject = subjects[name]
        if study.fitting and not _leaves_out_some(size, subject.data):
            continue
        usual = default_net(subject.data.shape)
        counted = Epochs.parse(epochs) if epochs else None
        settings = MetricConfig.for_data(subject.data).with_epochs(counted, study.training)
        for repeat in range(study.repeats):
            place: dict[Axis, str] = {
                "set": labels[name],
                "rule": rule.name,
                "method": replace(rule, balanced=False).name,
                "balance": "balanced" if rule.balanced else "not balanced",
                "size": str(size),
                "net": net or usual,
                "epochs": str(settings.lbpe_epochs),
            }
            yield Cell(
                place=tuple(place.items()),
                subject=subject,
                rule=rule,
                patches=count_patches(subject.data, size),
                settings=replace(settings, seed=repeat % study.dynamics),
                scored_by=study.scored_by or usual,
                net=net or usual,
                protocol=study.protocol,
                repeat=repeat,
                precision=precision,
            )


def _leaves_out_some(size: Budget, data: CondensedSet) -> bool:
    return size.patches(len(data), classes=len(data.classes), factor=data.factor) < len(data)


def computed_in(precision: str, device: str = "cpu") -> Precision:
    """What a precision comes down to on a device, which need not be one of this machine."""
    chosen: Precision = cast(Precision, precision)
    return "float32" if compute_dtype(chosen, torch.device(device)) == torch.float32 else "bfloat16"


def set_labels(study: Study, subjects: Mapping[str, Subject]) -> dict[str, str]:
    """What the sets of a study are called in its tables: as they call themselves, or like their files if two agree."""
    own = {name: subjects[name].data.name for name in study.sets}
    labels = _unless_shared(own, {name: Path(name).stem for name in own})
    return _unless_shared(labels, {name: name for name in own})


def _unless_shared(labels: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """The same labels, and others instead of those that are there several times."""
    all_of_them = list(labels.values())
    return {name: label if all_of_them.count(label) == 1 else others[name] for name, label in labels.items()}


# What is as usual is no fact, so that keys outlive what can be unusual.
def _twice(normalised_again: bool) -> dict[str, str]:
    return {"normalised": "twice"} if normalised_again else {}


def _rounded(precision: Precision) -> dict[str, str]:
    return {} if precision == USUAL else {"precision": precision}


def key_of(facts: Mapping[str, Any], *arrays: NDArray[Any]) -> str:
    """The key of a configuration: the same facts, in whatever order, have the same."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=list).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]
