"""How the numbers of a study were measured, in the notes under its table or figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.selection.selectors import SELECTORS
from condense_once.studies.state import CellState, grouped
from condense_once.studies.study import Study
from condense_once.studies.study_rule import METHOD
from condense_once.text import human_time, plural
from condense_once.train.dynamics import RECIPE

FULL_TRAINING = ("ssp", "entropy", "aum", "forgetting")  # metrics that the authors take from a full training run


def notes_on(study: Study, states: Sequence[CellState]) -> Iterator[str]:
    """Protocol, number of runs, test images, what is missing, scoring runs, machines and versions."""
    results = [
        state.evaluation.result
        for state in states
        if state.evaluation is not None and state.evaluation.result is not None
    ]
    protocol = PROTOCOLS.get(study.protocol)
    tested = join_names(f"{plural(result['test_images'], 'image')} of {result['test']}" for result in results)
    runs = _runs(states)
    how = runs if runs == "n = 1 run" else f"mean ± std over {runs}"
    yield f"Accuracy in %, {how}, protocol {protocol.id}{tested and f', tested on {tested}'}."
    if protocol.report != "last":
        yield "Accuracies are of the last epoch, not the best on the test split."
    missing = sum(not state.done and state.error is None for state in states)
    failed = sum(state.error is not None for state in states)
    if missing or failed:
        yield f"{missing} of {plural(len(states), 'run')} are missing, {failed} failed."
    yield from notes_on_scores(states)
    yield from _notes_on_selectors(states)
    yield from _notes_on_slimming(states)
    if results:
        made = _days(state.evaluation.made for state in states if state.evaluation is not None)
        versions = join_names(
            ", ".join(f"{name} {it}" for name, it in result["versions"].items()) for result in results
        )
        yield f"Measured {made} on {join_names(result['machine']['processor'] for result in results)} with {versions}."


def notes_on_scores(states: Sequence[CellState]) -> Iterator[str]:
    """Which scoring runs there were, when, and how long they took."""
    scored = [state for state in states if state.scoring_run is not None]
    runs = list({run.key: run for state in scored if (run := state.scoring_run) is not None}.values())
    if not runs:
        return
    epochs, nets = join_names(str(run.epochs) for run in runs), join_names(state.cell.scored_by for state in scored)
    note = f"Scored by {plural(len(runs), 'run')} of {epochs} epoch{'' if epochs == '1' else 's'} of {nets}"
    note += f" in {human_time(sum(run.seconds for run in runs))}, {_days(run.made for run in runs)}"
    shorter = [state.cell for state in states if state.cell.config.scoring_epochs < RECIPE.epochs]
    if full := join_names(cell.rule.metric for cell in shorter if cell.rule.metric in FULL_TRAINING):
        note += f"; the authors score {full} by {RECIPE.epochs} epochs"
    yield f"{note}."


def _notes_on_selectors(states: Sequence[CellState]) -> Iterator[str]:
    """Which variant of CCS and SSP is shown."""
    for name in dict.fromkeys(
        state.cell.rule.selector for state in states if not (state.cell.rule.is_order or state.cell.whole)
    ):
        yield f"{name}: {SELECTORS.get(name).summary}."


def _notes_on_slimming(states: Sequence[CellState]) -> Iterator[str]:
    """How many sets were slimmed for which rules, how, and how long that took."""
    slimmed = [state for state in states if state.slimming is not None]
    runs = list({run.key: run for state in slimmed if (run := state.slimming) is not None}.values())
    if not runs:
        return
    rules = join_names(state.cell.at("rule") for state in slimmed)
    steps = join_names(f"{state.cell.slimming.steps}" for state in slimmed if state.cell.slimming is not None)
    nets = join_names(state.cell.slimmed_by for state in slimmed)
    sets = f"{plural(len(runs), 'set')} {'was' if len(runs) == 1 else 'were'}"
    how = f"by {METHOD}, in {steps} steps with {nets} and without real images"
    took = f"{human_time(sum(run.seconds for run in runs))}, {_days(run.made for run in runs)}"
    yield f"For {rules}, {sets} slimmed {how}, in {took}."


def join_names(names: Iterable[str]) -> str:
    """Each name once, sorted.

    >>> join_names(["b", "a", "c", "a"])
    'a, b and c'
    """
    distinct = sorted(set(names))
    return " and ".join(filter(None, (", ".join(distinct[:-1]), *distinct[-1:])))


def _runs(states: Sequence[CellState]) -> str:
    """How many runs an accuracy is the mean of, such as `n = 1 to 3 runs`."""
    places = grouped(states, ("set", "rule", "size", "net", "epochs")).values()
    counts = sorted({sum(state.done for state in group) for group in places}) or [0]
    return f"n = {plural(counts[0], 'run')}" if len(counts) == 1 else f"n = {counts[0]} to {plural(counts[-1], 'run')}"


def _days(made: Iterable[str]) -> str:
    """The first and the last day of some ISO times."""
    days = sorted({moment[:10] for moment in made})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
