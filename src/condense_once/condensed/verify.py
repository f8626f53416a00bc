"""A second look at a file: everything that can be checked, each finding as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from condense_once.condensed.file import SetFile
from condense_once.condensed.set import CondensedSet
from condense_once.errors import CondenseOnceError


@dataclass(frozen=True)
class Finding:
    """An `error` makes the file unfit for use; a `warning` is worth knowing, and the file says that it is meant so."""

    level: Literal["error", "warning"]
    text: str


def verify(path: str | Path) -> list[Finding]:
    """What is off about a condensed-set file: structure, checksums, values, labels, class balance, order."""
    try:
        file = SetFile.open(Path(path))
        data = file.read()
    except CondenseOnceError as error:
        return [Finding("error", str(error))]
    findings = (
        [] if file.matches_sha256() else [Finding("error", "The SHA-256 of the tensors is not the one in the header.")]
    )
    return findings + _labels(data) + _values(data) + _order(data)


def _labels(data: CondensedSet) -> list[Finding]:
    findings = []
    counts = data.counts()
    # Learned labels fall as they may, and a ranking or another rule across classes takes what it takes.
    across = (data.ranking is not None and not data.ranking.balanced) or "kept" in data.provenance
    meant = data.soft_labels is not None or across
    if counts.min() != counts.max():
        missing = [data.classes[label] for label in np.flatnonzero(counts == 0)]
        text = f"Classes are not balanced: {counts.min()} to {counts.max()} patches"
        findings.append(
            Finding("warning" if meant else "error", text + (f", none of {', '.join(missing)}." if missing else "."))
        )
    if len(np.unique(data.origin)) != len(data):
        findings.append(Finding("error", "Some patches are in the set more than once (same origin)."))
    if data.soft_labels is not None and not np.array_equal(data.soft_labels.argmax(1), data.labels):
        findings.append(Finding("error", "Labels are not the largest entries of the soft labels."))
    return findings


def _values(data: CondensedSet) -> list[Finding]:
    findings = []
    flat = data.cells.reshape(len(data), -1)
    if blank := int((flat.min(axis=1) == flat.max(axis=1)).sum()):
        findings.append(Finding("error", f"{blank} patches are of one colour only."))
    scale = 255 if data.space.kind == "pixels" else 1
    if problem := data.space.contradiction(float(flat.min()) / scale, float(flat.max()) / scale):
        findings.append(Finding("error", f"The set claims to be {data.space.kind}, but its {problem}."))
    return findings


def _order(data: CondensedSet) -> list[Finding]:
    """Whether the rows of a ranked set are in the order that it claims."""
    if data.ranking is None:
        return []
    findings = []
    each = [np.flatnonzero(data.labels == label) for label in range(len(data.classes))]
    # How many of its class came before each patch; balanced, these ranks never fall and classes follow each other
    ranks = np.zeros(len(data), np.int64)
    for members in each:
        ranks[members] = np.arange(len(members))
    if data.ranking.balanced and (np.diff(ranks * len(data.classes) + data.labels) <= 0).any():
        findings.append(Finding("error", "The ranking claims to be balanced, but classes do not take turns."))
    scores = data.scores.get(data.ranking.metric)
    if scores is not None:
        steps = [np.diff(scores[rows]) for rows in (each if data.ranking.balanced else [np.arange(len(data))])]
        # Which end is the better one is the metric's affair; that all runs towards it is not
        if any((step < 0).any() for step in steps) and any((step > 0).any() for step in steps):
            findings.append(
                Finding("error", f"The ranking claims to go by {data.ranking.metric}, but its scores rise and fall.")
            )
    return findings
