"""The grid of a study: each number to measure is a cell, a frozen configuration whose digest is its key in the store."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray

from condense_once.condensed.budget import Budget
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.subset import count_patches
from condense_once.data.encoded import EncodedSplit, class_folders
from condense_once.data.source import ArraySplit, Source
from condense_once.errors import BadOption
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.metrics import METRICS, Epochs, MetricConfig, ScoringRun
from condense_once.metrics.score_records import scoring_record
from condense_once.nets import default_net, narrow_net
from condense_once.selection.rule import Rule
from condense_once.selection.select import rows_from_run
from condense_once.selection.selectors import images_per_class
from condense_once.studies.study import Axis, Study
from condense_once.studies.study_rule import Slimming, StudyRule
from condense_once.train.compute_config import Precision
from condense_once.train.hardware import compute_dtype

DIGITS = 8  # of a set's key, where only that tells it from another
SAMPLED = 64  # images of a folder that go into its key, beside all names and sizes
DEFAULT_PRECISION: Precision = "float32"
OWN_ORDER = StudyRule.parse("stored")  # the rule of nested sets
CEILING, WHOLE = (
    "a set for each size",
    "whole",
)  # how tables call the sets of a ceiling, and the rule by which they are kept


@dataclass(frozen=True)
class StudyInput:
    """A condensed set and the source of its test images."""

    data: CondensedSet
    test: Source  # with a test split at least
    data_dir: Path | None = None  # folder of downloaded sources, for whitened sets

    @cached_property
    def set_key(self) -> str:
        return set_key(self.data)

    @cached_property
    def test_key(self) -> str:
        split = self.test.test
        count = len(split.labels) if isinstance(split, ArraySplit) else SAMPLED
        some = np.unique(np.linspace(0, len(split.labels) - 1, count).astype(np.int64))
        facts: dict[str, Any] = {"classes": self.test.classes, "shape": split.shape}
        facts["name"] = self.test.name  # protocols do not flip digits, which they know by name
        if isinstance(split, EncodedSplit):
            facts["files"] = split.listing
            facts["classes"] = class_folders(split) or self.test.classes  # ids of ImageNet, not the words for them
        return key_of(facts, split.labels, split.take(some))


@dataclass(frozen=True)
class Cell:
    """One number of a study: train a network on the patches that a rule keeps, then test it."""

    place: tuple[tuple[Axis, str], ...]  # its position in the grid; not part of its key
    input: StudyInput
    rule: Rule
    patches: int
    config: MetricConfig  # of the scores, with the seed of the scoring run
    scored_by: str
    net: str
    protocol: str
    repeat: int
    precision: Precision = DEFAULT_PRECISION
    slimming: Slimming | None = None  # how the kept patches are refined, if they are
    slimmed: int = 0  # patches that are refined together; more than `patches` if those are a prefix of a nested set

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Everything that determines the number. Names of facts are part of the key and never change."""
        slim = {} if self.slimming is None else {"slim": self.slimming.facts, "slimmed": self.slimmed}
        scores = scoring_record(self.input.data, self.rule.metric, 1, self.scored_by, self.config)
        twice = self.needs_scoring_run and self.double_normalise
        return {
            "set": self.input.set_key,
            "rule": self.rule.name,
            "patches": self.patches,
            "scores": {**scores, **double_normalise_fact(twice), **ties_fact(self.rule)},
            **self.evaluated_by,
            **slim,
        }

    @property
    def evaluated_by(self) -> dict[str, Any]:
        protocol = PROTOCOLS.get(self.protocol).id
        facts = {"net": self.net, "protocol": protocol, "test": self.input.test_key, "repeat": self.repeat}
        return {**facts, **precision_fact(self.precision)}

    @cached_property
    def key(self) -> str:
        return key_of(self.facts)

    @property
    def needs_scoring_run(self) -> bool:
        """False for rules such as `random`."""
        return bool(METRICS.get(self.rule.metric).needs)

    @property
    def double_normalise(self) -> bool:
        """Whether the protocol normalises the set a second time; sets of pixels are normalised once by any protocol."""
        return PROTOCOLS.get(self.protocol).double_normalise and self.input.data.space.kind != "pixels"

    def rows(self, run: ScoringRun) -> NDArray[np.int64]:
        """The patches to keep, ascending, so that two rules that keep the same patches share one evaluation.

        Those to slim are in the order of the rule, because the best fill the first image.
        """
        if self.slimming is not None:
            return rows_from_run(self.input.data, self.rule, self.slimmed, run, self.config)
        return np.sort(rows_from_run(self.input.data, self.rule, self.patches, run, self.config))

    def slimming_facts(self, rows: NDArray[np.int64]) -> dict[str, Any] | None:
        """Everything that determines the set that rows are refined to; None if they are kept as they are."""
        if self.slimming is None:
            return None
        facts = {"set": self.input.set_key, "kept": _digest(rows), "slim": self.slimming.facts, "net": self.slimmed_by}
        return {**facts, "seed": self.config.seed, **precision_fact(self.precision)}

    def evaluation_facts(self, rows: NDArray[np.int64]) -> dict[str, Any]:
        slimming = self.slimming_facts(rows)
        slimmed = {} if slimming is None else {"slimmed": key_of(slimming)}
        return {
            "set": self.input.set_key,
            "kept": _digest(rows),
            "patches": self.patches,
            **slimmed,
            **self.evaluated_by,
        }

    @property
    def slimmed_by(self) -> str:
        """The network in which features are matched to slim a set."""
        return narrow_net(self.input.data.shape)

    @property
    def whole(self) -> bool:
        """Whether all patches are kept, whatever the rule."""
        return self.patches == len(self.input.data)

    def at(self, axis: Axis) -> str:
        return dict(self.place)[axis]


def cells_of(study: Study, inputs: Mapping[str, StudyInput]) -> Iterator[Cell]:
    """Every cell of a study, set by set; `inputs` has one entry per name in `study.sets`."""
    precision = computed_in(study.precision)
    for (kept, size), net, epochs in product(_kept_of(study, inputs), study.nets, study.epochs):
        pair, rule = kept.input, kept.rule.rule
        usual = default_net(pair.data.shape)
        counted = Epochs.parse(epochs) if epochs else None
        config = MetricConfig.for_data(pair.data, paper=True).with_epochs(counted, study.scoring_epochs)
        config = replace(config, labels="hard")  # as in the paper; the label of a patch is its largest entry
        patches = count_patches(pair.data, size)
        slimming = None if patches == len(pair.data) else kept.rule.slimming
        place: dict[Axis, str] = {
            "set": kept.set_label,
            "rule": kept.rule_label,
            "method": kept.rule.method,
            "balance": "balanced" if rule.balanced else "not balanced",
            "size": str(size),
            "net": net or usual,
            "epochs": str(config.lbpe_epochs),
        }
        for repeat in range(study.repeats):
            yield Cell(
                place=tuple(place.items()),
                input=pair,
                rule=rule,
                patches=patches,
                config=replace(config, seed=repeat % study.scoring_runs),
                scored_by=study.scored_by or usual,
                net=net or usual,
                protocol=study.protocol,
                repeat=repeat,
                precision=precision,
                slimming=slimming,
                slimmed=0 if slimming is None else max(patches, kept.largest if slimming.nested else 0),
            )


class _Kept(NamedTuple):
    """What is kept of a set, at each of its sizes: one line of a figure."""

    input: StudyInput
    set_label: str
    rule: StudyRule
    rule_label: str
    largest: int = 0  # patches of the largest size below the whole set


def _kept_of(study: Study, inputs: Mapping[str, StudyInput]) -> Iterator[tuple[_Kept, Budget]]:
    """Everything that a study evaluates, set by set and size by size."""
    labels, rules = set_labels(study, inputs), tuple(map(StudyRule.parse, study.rules))
    sizes = tuple(map(Budget.parse, study.sizes))
    for name in study.sets:
        pair = inputs[name]
        fitting = [size for size in sizes if _is_measured(study, size, pair.data)]
        counts = [count_patches(pair.data, size) for size in fitting]
        largest = max((count for count in counts if count < len(pair.data)), default=0)
        applied = (OWN_ORDER,) if study.own_order and pair.data.is_nested else rules
        for size, rule in product(fitting, applied):
            yield _Kept(pair, labels[name], rule, rule.name, largest), size
    for name in study.ceiling:
        size = Budget(ipc=ceiling_ipc(inputs[name].data))
        if size in sizes:
            yield _Kept(inputs[name], CEILING, OWN_ORDER, WHOLE), size


def ceiling_ipc(data: CondensedSet) -> int:
    """Images per class of a set that was condensed for one size."""
    ipc = images_per_class(data, len(data))
    if not ipc.is_integer():
        raise BadOption(f"A set of the ceiling has as many images in every class; {data.name} has {ipc:g} on average.")
    return int(ipc)


def scoring_cells(study: Study, inputs: Mapping[str, StudyInput]) -> list[Cell]:
    """For a study that evaluates nothing: one cell per set and epochs, of which only the scoring run is used."""
    if study.sizes:
        return []
    axes: dict[str, tuple[Axis, ...]] = {"rows": ("set", "size"), "columns": ("rule", "net", "epochs")}
    return list(cells_of(study.replace(rules=study.rules[:1], sizes=("100%",), repeats=1, **axes), inputs))


def _is_measured(study: Study, size: Budget, data: CondensedSet) -> bool:
    """Whether a size fits a set; unless the study skips those that do not, all are to be measured or refused."""
    patches = size.patches(len(data), classes=len(data.classes), factor=data.factor)
    return not study.fitting or patches < len(data) or (study.to_whole and patches == len(data))


def computed_in(precision: str, device: str = "cpu") -> Precision:
    """Resolve `auto` for a device, which need not be on this machine."""
    chosen: Precision = cast(Precision, precision)
    return "float32" if compute_dtype(chosen, torch.device(device)) == torch.float32 else "bfloat16"


def set_labels(study: Study, inputs: Mapping[str, StudyInput]) -> dict[str, str]:
    """What tables call the sets of a study: by their names, and where two are the same, with what tells them apart.

    That is their images per class, the names of their files, their digests, or else their paths.
    """
    sets = {name: inputs[name] for name in study.sets}
    labels = {name: pair.data.name for name, pair in sets.items()}
    named = dict(labels)
    ipcs = {name: images_per_class(pair.data, len(pair.data)) for name, pair in sets.items()}
    labels = _unless_shared(labels, {name: f"{named[name]} (ipc {ipc:g})" for name, ipc in ipcs.items()})
    labels = _unless_shared(labels, {name: Path(name).stem for name in sets})
    labels = _unless_shared(labels, {name: f"{named[name]} ({pair.set_key[:DIGITS]})" for name, pair in sets.items()})
    return _unless_shared(labels, {name: name for name in sets})


def _unless_shared(labels: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Replace every label that occurs more than once."""
    counts = Counter(labels.values())
    return {name: label if counts[label] == 1 else others[name] for name, label in labels.items()}


def _digest(rows: NDArray[np.int64]) -> str:
    return hashlib.sha256(rows.astype("<i8").tobytes()).hexdigest()[:16]


# Defaults are left out of facts, so that keys from before an option existed stay valid.
def double_normalise_fact(double_normalise: bool) -> dict[str, str]:
    return {"normalised": "twice"} if double_normalise else {}


def ties_fact(rule: Rule) -> dict[str, str]:
    ties = METRICS.get(rule.metric).ties
    return {"ties": ties} if rule.is_order and ties != "first" else {}


def precision_fact(precision: Precision) -> dict[str, str]:
    return {} if precision == DEFAULT_PRECISION else {"precision": precision}


def set_key(data: CondensedSet) -> str:
    """The digest of the patches of a set, in their order, without names, scores and provenance."""
    space = data.space
    facts = {
        "factor": data.factor,
        "size": data.size,
        "space": {"kind": space.kind, "mean": space.mean, "std": space.std, "zca": dict(space.zca)},
        "classes": data.classes,
    }
    return key_of(facts, data.cells, data.labels, data.origin)


def key_of(facts: Mapping[str, Any], *arrays: NDArray[Any]) -> str:
    """The digest of facts, in any order, and of the bytes of arrays."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=list).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]
