"""A second look at a file: everything that can be checked, each finding as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from condense_once.condensed.file import SetFile
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadFile


@dataclass(frozen=True)
class Finding:
    """An `error` makes the file unfit for use; a `warning` is worth knowing and may be meant so."""

    level: Literal["error", "warning"]
    text: str


def verify(path: Path) -> list[Finding]:
    """What is off about a condensed-set file: structure, checksums, values, labels, class balance."""
    try:
        file = SetFile.open(path)
        data = file.read()
    except BadFile as error:
        return [Finding("error", str(error))]
    findings = (
        [] if file.matches_sha256() else [Finding("error", "The SHA-256 of the tensors is not the one in the header.")]
    )
    return findings + _labels(data) + _values(data)


def _labels(data: CondensedSet) -> list[Finding]:
    findings = []
    counts = data.counts()
    if missing := [data.classes[label] for label in np.flatnonzero(counts == 0)]:
        findings.append(Finding("warning", f"No patches at all of: {', '.join(missing)}."))
    if counts.min() != counts.max():
        findings.append(Finding("warning", f"Classes are not balanced: {counts.min()} to {counts.max()} patches."))
    if len(np.unique(data.origin)) != len(data):
        findings.append(Finding("warning", "Some patches are in the set more than once (same origin)."))
    if data.soft_labels is not None and not np.array_equal(data.soft_labels.argmax(1), data.labels):
        findings.append(Finding("error", "Labels are not the largest entries of the soft labels."))
    return findings


def _values(data: CondensedSet) -> list[Finding]:
    findings = []
    flat = data.cells.reshape(len(data), -1)
    if blank := int((flat.min(axis=1) == flat.max(axis=1)).sum()):
        findings.append(Finding("warning", f"{blank} patches are of one colour only."))
    if data.space.kind == "normalised" and flat.min() >= 0:
        findings.append(
            Finding("error", "The set claims to be normalised, but no value is below zero: these look like pixels.")
        )
    if data.space.kind == "pixels" and flat.max() <= 1:
        findings.append(
            Finding("error", "No pixel is above 1: these look like colours in 0…1 that were never scaled to 0…255.")
        )
    return findings
