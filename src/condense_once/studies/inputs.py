"""The inputs of a study, its sets and their test images, opened and checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from condense_once.condensed.bundled import load
from condense_once.condensed.subset import require_ranking
from condense_once.data.decoded_cache import announce_decoding
from condense_once.errors import BadOption
from condense_once.evaluation.inputs import check_test_source, resolve_test
from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.nets import make_net
from condense_once.studies.grid import Cell, StudyInput, ceiling_ipc, cells_of, scoring_cells
from condense_once.studies.study import Study
from condense_once.text import plural
from condense_once.train.dynamics import recipe_for
from condense_once.train.seeds import generator


def open_inputs(
    study: Study, data_dir: Path | None = None, notify: Callable[[str], None] | None = None
) -> tuple[dict[str, StudyInput], list[str]]:
    """The inputs by the names in `study.every_set`, and remarks on them; `notify` receives what takes long meanwhile.

    Refuses what would make every cell fail: test images that do not fit, sizes that are too large, unknown networks.
    """
    inputs, notes = {}, []
    notify = notify or (lambda _: None)
    decoding = announce_decoding(notify)
    whiten = not PROTOCOLS.get(study.protocol).double_normalise
    for name in study.every_set:
        data = load(name)
        test, sample = resolve_test(data, study.test, data_dir=data_dir, progress=decoding, notify=notify)
        check_test_source(data, test, whiten=whiten, data_dir=data_dir)
        inputs[name] = StudyInput(data, replace(test, splits={"test": test.test}), data_dir)
        if sample is not None:
            notes.append(sample)
    cells = list(cells_of(study, inputs))
    used = {id(cell.input) for cell in cells}
    if study.sizes and (small := [name for name in study.sets if id(inputs[name]) not in used]):
        raise BadOption(f"Every size of {study.name} keeps all of {small[0]}; choose a smaller one, such as 50%.")
    _check_ceiling(study, inputs)
    _check_cells((*cells, *scoring_cells(study, inputs)))
    if len(study.rules) > 1 and cells and all(cell.whole for cell in cells):
        notes.append("All patches are kept, so all rules are the same; choose a smaller size, such as 50%.")
    for cell in cells:
        _ = cell.key  # raises if a rule needs more epochs than the scoring run has
    return inputs, list(dict.fromkeys(notes))


def _check_ceiling(study: Study, inputs: Mapping[str, StudyInput]) -> None:
    sizes: dict[int, str] = {}
    for name in study.ceiling:
        ipc = ceiling_ipc(inputs[name].data)
        if ipc in sizes:
            raise BadOption(
                f"{sizes[ipc]} and {name} both have {plural(ipc, 'image')} per class; keep one as `ceiling`."
            )
        sizes[ipc] = name


def _check_cells(cells: Iterable[Cell]) -> None:
    nets = set()
    for cell in cells:
        data = cell.input.data
        if cell.rule.reads == "positions" and not cell.whole:
            require_ranking(data.ranking, data.name)
        if cell.slimmed % (data.factor**2 * len(data.classes)):
            raise BadOption(
                f"A set is slimmed to whole images per class, but {cell.at('size')} of {data.name} is"
                f" {plural(cell.slimmed, 'patch')}; choose images per class as sizes, or leave out the rule {cell.at('rule')}."
            )
        nets |= {(net, data.shape, len(data.classes)) for net in (cell.net, cell.scored_by)}
        limit = recipe_for(data.shape).epochs
        if cell.config.scoring_epochs > limit:
            raise BadOption(
                f"A scoring run has at most {plural(limit, 'epoch')}, not {cell.config.scoring_epochs}; train for fewer."
            )
    for net, shape, classes in nets:
        make_net(net, shape, classes, generator=generator(0, "check"))
