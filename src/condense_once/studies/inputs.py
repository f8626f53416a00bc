"""What a study is about: its sets and the images that they are tested on, opened and checked before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from condense_once.condensed.bundled import load
from condense_once.errors import BadOption
from condense_once.evaluation.inputs import check_test_source, resolve_test
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.nets import make_net
from condense_once.studies.grid import Cell, Subject, cells_of
from condense_once.studies.run import scored_cells
from condense_once.studies.study import Study
from condense_once.train.dynamics import recipe_for
from condense_once.train.seeds import generator


def open_subjects(study: Study, home: Path | None = None) -> tuple[dict[str, Subject], list[str]]:
    """The sets of a study by the names it has for them, and what a user should know of their test images.

    What cannot be measured is refused: other test images than a set needs, sizes that are too large, unknown networks. In the
    middle of a study each of them would be the failure of every cell.
    """
    subjects, notes = {}, []
    whiten = not PROTOCOLS.get(study.protocol).double_normalise
    for name in study.sets:
        data = load(name)
        test, sample = resolve_test(data, study.test, home=home)
        check_test_source(data, test, whiten=whiten, home=home)
        subjects[name] = Subject(data, replace(test, splits={"test": test.test}), home)
        if sample is not None:
            notes.append(sample)
    cells = list(cells_of(study, subjects))
    known = {id(cell.subject) for cell in cells}
    if study.sizes and (small := [name for name, subject in subjects.items() if id(subject) not in known]):
        raise BadOption(
            f"No size of {study.name} leaves anything of {small[0]} out; name smaller ones with --size, such as 50%."
        )
    _check((*cells, *scored_cells(study, subjects)))
    if len(study.rules) > 1 and cells and all(cell.whole for cell in cells):
        notes.append("All patches are kept, so that rules cannot differ; name smaller sizes with --size, such as 50%.")
    for cell in cells:
        _ = cell.key  # which a rule has none of that needs more epochs than are trained
    return subjects, list(dict.fromkeys(notes))


def _check(cells: Iterable[Cell]) -> None:
    nets = set()
    for cell in cells:
        data = cell.subject.data
        nets |= {(net, data.shape, len(data.classes)) for net in (cell.net, cell.scored_by)}
        most = recipe_for(data.shape).epochs
        if cell.settings.scoring_epochs > most:
            raise BadOption(f"A scoring run has at most {most} epochs, not {cell.settings.scoring_epochs}; name fewer.")
    for net, shape, classes in nets:
        make_net(net, shape, classes, generator=generator(0, "check"))
