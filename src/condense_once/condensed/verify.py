"""Verification of a condensed-set file: everything that can be checked, one sentence per finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from condense_once.condensed.bundled import find_set
from condense_once.condensed.class_matching import match_classes, open_test_source, recorded_source
from condense_once.condensed.file import SetFile
from condense_once.condensed.making import nested_sizes
from condense_once.condensed.set import CondensedSet
from condense_once.condensed.soft_labels import SUM_TOLERANCE
from condense_once.data.arrays import ValueRange
from condense_once.data.catalogue import SOURCES
from condense_once.data.source import Source, SourceInfo
from condense_once.errors import BadOption, CondenseOnceError
from condense_once.text import plural

ROUNDING = 1 / 255  # of a probability in 8 bits, at most


@dataclass(frozen=True)
class Finding:
    """An `error` makes the file invalid; a `warning` is unusual but intended, as recorded in the file."""

    level: Literal["error", "warning"]
    text: str


def verify(
    data: CondensedSet | str | Path,
    test: Source | str | Path | None = None,
    *,
    like: str | None = None,
    values: ValueRange | None = None,
    data_dir: Path | None = None,
) -> list[Finding]:
    """Check structure, checksums, values, labels, class balance and ranking of a file, or of a bundled set by its name.

    A set in memory has no structure and checksums; the rest is checked, and of nested and slimmed sets, whether they can be
    what they record. Its classes must be those of `test`, as `evaluate`
    opens it; without `test`, of the known source in its provenance.
    """
    findings: list[Finding] = []
    has_details = True  # the origins of patches, and what a ranking records
    if not isinstance(data, CondensedSet):
        try:
            file = SetFile.open(find_set(data))
            data = file.read()
        except CondenseOnceError as error:
            return [Finding("error", str(error))]
        if not file.matches_sha256():
            findings.append(Finding("error", "The SHA-256 of the tensors does not match the header."))
        findings += _cut(file)
        has_details = file.layered is None or file.layered.details is not None
    source: Source | SourceInfo | None
    if test is None:
        source = recorded_source(data)
    elif isinstance(test, str) and test in SOURCES:  # its classes are known without its images
        source = SOURCES.get(test)
    else:
        source = open_test_source(data, test, like=like, values=values, data_dir=data_dir)
    return [
        *findings,
        *_labels(data),
        *_classes(data, source),
        *_values(data),
        *_order(data),
        *(_nested(data) if has_details else ()),
        *_slimmed(data),
    ]


def _cut(file: SetFile) -> list[Finding]:
    """Say which part a file is that ends before its stream does."""
    layered = file.layered
    if layered is None or not layered.is_cut:
        return []
    there = f"{layered.header.patches} of {plural(layered.promised.patches, 'patch')}"
    layers = f"{min(layered.layers)} to {max(layered.layers)} of {plural(layered.code.layers, 'layer')}"
    size = f"{file.file.size:,} of {layered.whole_size:,} bytes"
    return [Finding("warning", f"This is the beginning of a file, {size}: {there}, each in {layers}.")]


def _labels(data: CondensedSet) -> list[Finding]:
    findings = []
    counts = data.counts()
    # Learned labels need not be balanced, nor does a selection across classes.
    unbalanced = (data.ranking is not None and not data.ranking.balanced) or "kept" in data.provenance
    intended = data.soft_labels is not None or unbalanced
    if counts.min() != counts.max():
        missing = [data.classes[label] for label in np.flatnonzero(counts == 0)]
        text = f"Classes are not balanced: {counts.min()} to {plural(int(counts.max()), 'patch')}"
        findings.append(
            Finding("warning" if intended else "error", text + (f", none of {', '.join(missing)}." if missing else "."))
        )
    if repeated := len(data) - len(np.unique(data.origin)):
        kept = data.provenance.get("kept")
        recorded = isinstance(kept, Mapping) and kept.get("repeated") == repeated
        findings.append(Finding("warning" if recorded else "error", "Some patches occur more than once (same origin)."))
    return findings + _soft_labels(data)


def _soft_labels(data: CondensedSet) -> list[Finding]:
    soft, findings = data.soft_labels, []
    if soft is None:
        return []
    if (soft[np.arange(len(data)), data.labels] < soft.max(1)).any():  # rounding may make others as large
        findings.append(Finding("error", "Labels are not the largest entries of the soft labels."))
    rounding = SUM_TOLERANCE if data.label_coding == "float32" else len(data.classes) * ROUNDING
    if data.label_kind == "probabilities" and (soft.min() < 0 or np.abs(soft.sum(1) - 1).max() > rounding):
        findings.append(Finding("error", "Soft labels should be probabilities, but their rows do not sum to one."))
    if blank := int((soft.max(1) == soft.min(1)).sum()) if soft.shape[1] > 1 else 0:
        findings.append(Finding("warning", f"The soft labels of {plural(blank, 'patch')} do not prefer any class."))
    return findings


def _classes(data: CondensedSet, source: Source | SourceInfo | None) -> list[Finding]:
    try:
        if source is not None:
            match_classes(data, source)
    except BadOption as error:
        return [Finding("error", str(error))]
    return []


def _values(data: CondensedSet) -> list[Finding]:
    findings = []
    flat = data.cells.reshape(len(data), -1)
    if blank := int((flat.min(axis=1) == flat.max(axis=1)).sum()):
        coarse = "coded" in data.provenance  # the first layers of a dark patch may have nothing but its mean
        findings.append(Finding("warning" if coarse else "error", f"{plural(blank, 'patch')} of a single colour."))
    scale = 255 if data.space.kind == "pixels" else 1
    if problem := data.space.contradiction(float(flat.min()) / scale, float(flat.max()) / scale):
        findings.append(Finding("error", f"The value space should be {data.space.kind}, but its {problem}."))
    return findings


def _order(data: CondensedSet) -> list[Finding]:
    """Check that the rows of a ranked set are in the order of its ranking."""
    if data.ranking is None:
        return []
    findings = []
    each = [np.flatnonzero(data.labels == label) for label in range(len(data.classes))]
    # Rank within the class; in a balanced order ranks never decrease and classes alternate
    ranks = np.zeros(len(data), np.int64)
    for members in each:
        ranks[members] = np.arange(len(members))
    if data.ranking.balanced and (np.diff(ranks * len(data.classes) + data.labels) <= 0).any():
        findings.append(Finding("error", "The ranking should be balanced, but classes do not alternate."))
    scores = data.scores.get(data.ranking.metric)
    if scores is not None:
        steps = [np.diff(scores[rows]) for rows in (each if data.ranking.balanced else [np.arange(len(data))])]
        # The metric decides which direction is better; the scores must be monotonic either way
        if any((step < 0).any() for step in steps) and any((step > 0).any() for step in steps):
            findings.append(
                Finding("error", f"The ranking should follow {data.ranking.metric}, but its scores are not monotonic.")
            )
    return findings


def _nested(data: CondensedSet) -> list[Finding]:
    """Check that the patches of a nested set are in the order of its images."""
    if data.ranking is None or not data.ranking.is_nested:
        return []
    sizes, per_image = nested_sizes(data.ranking), data.factor**2
    if not sizes:
        return [Finding("error", "The set should be nested, but does not record for how many images per class.")]
    ipc = sizes[-1]
    if data.counts().max() > ipc * per_image:
        return [Finding("error", f"The set should be nested up to {plural(ipc, 'image')} per class, but has more.")]
    cell, image = np.divmod(data.origin % (ipc * per_image), ipc)  # origins go class by class, cell by cell
    places = image * per_image + cell
    if any((np.diff(places[data.labels == label]) <= 0).any() for label in range(len(data.classes))):
        return [Finding("error", "The set should be nested, but its patches are not in the order of its images.")]
    return []


def _slimmed(data: CondensedSet) -> list[Finding]:
    """Check that a slimmed set can have been made from what it records."""
    slimmed = data.provenance.get("slimmed")
    if slimmed is None:
        return []
    whole = slimmed.get("patches") if isinstance(slimmed, Mapping) else None
    if not isinstance(whole, int):
        return [Finding("error", "The set should be slimmed, but does not record from how many patches.")]
    if whole < len(data):
        return [Finding("error", f"The set should be slimmed from {plural(whole, 'patch')}, but has {len(data)}.")]
    return []
