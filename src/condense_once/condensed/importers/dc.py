"""DC, DSA, DM and DataDAM: `res_*.pt` holds a dict whose `data` lists one pair of images and labels per experiment.

The images are normalised with the mean and std that these projects use for the dataset.
"""

from __future__ import annotations

from typing import Any

from condense_once.condensed.importers.format import Format, ImportOptions, ParsedFile, Question
from condense_once.condensed.importers.labels import read_labels
from condense_once.condensed.importers.sniff import OpenedFiles, to_numpy
from condense_once.errors import BadFile, BadOption


def _experiments(opened: OpenedFiles) -> list[Any]:
    value = opened.values[0]
    data = value.get("data") if isinstance(value, dict) else None
    return list(data) if isinstance(data, list | tuple) else []


def _recognises(opened: OpenedFiles) -> bool:
    return opened.kind == "torch" and len(opened.values) == 1 and bool(_experiments(opened))


def _read(opened: OpenedFiles, options: ImportOptions) -> ParsedFile:
    experiments = _experiments(opened)
    which = Question(f"`experiment` 0 to {len(experiments) - 1}", f"holds the sets of {len(experiments)} experiments")
    chosen = options.experiment or 0
    if not 0 <= chosen < len(experiments):
        raise BadOption(f"{opened.names[0]} holds experiments 0 to {len(experiments) - 1}; there is no {chosen}.")
    pair = experiments[chosen]
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise BadFile(f"Experiment {chosen} of {opened.names[0]} is not a pair of images and labels.")
    labels = read_labels(pair[1])
    return ParsedFile(
        to_numpy(pair[0], "images"),
        labels.hard,
        soft_labels=labels.soft,
        factor=1,
        space="normalised",
        questions=(which,) if options.experiment is None and len(experiments) > 1 else (),
        notes=labels.notes,
        details={"experiment": chosen, "experiments": len(experiments)},
    )


FORMAT = Format(
    "dc",
    "DC, DSA, DM or DataDAM: one .pt file with a dict of experiments, normalised",
    _recognises,
    _read,
    frozenset({"experiment"}),
)
