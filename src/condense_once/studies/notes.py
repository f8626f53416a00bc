"""What is to be said of the numbers of a study, under its table and under its figure alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from condense_once.evaluation.protocols import PROTOCOLS
from condense_once.studies.run import State, grouped
from condense_once.studies.study import Study
from condense_once.text import human_time
from condense_once.train.dynamics import RECIPE

WHOLE = ("ssp", "entropy", "aum", "forgetting")  # metrics that the authors take from a whole training


def notes_on(study: Study, states: Sequence[State]) -> Iterator[str]:
    """How accuracies were measured, how often, how the patches were scored, and what is missing."""
    results = [
        state.measured.result for state in states if state.measured is not None and state.measured.result is not None
    ]
    places = grouped(states, ("set", "rule", "size", "net", "epochs")).values()
    counts = sorted({sum(state.done for state in group) for group in places})
    n = "" if not counts else f"; n = {counts[0]}" + (f" to {counts[-1]}" if len(counts) > 1 else "")
    tested = listed(f"{result['test_images']} images of {result['test']}" for result in results)
    protocol = PROTOCOLS.get(study.protocol)
    yield f"Accuracy in %, mean ± sample deviation, protocol {protocol.id}{tested and f', tested on {tested}'}{n}."
    if protocol.report != "last":
        yield "The last look at the test split is shown, not the best, which would be no fair accuracy."
    missing = sum(not state.done and state.error is None for state in states)
    failed = sum(state.error is not None for state in states)
    if missing or failed:
        yield f"{missing} of {len(states)} trainings are still missing, and {failed} failed."
    yield from notes_on_scores(states)
    if results:
        made = _days(state.measured.made for state in states if state.measured is not None)
        versions = listed(", ".join(f"{name} {it}" for name, it in result["versions"].items()) for result in results)
        yield f"Measured {made} on {listed(result['machine']['processor'] for result in results)} by {versions}."


def notes_on_scores(states: Sequence[State]) -> Iterator[str]:
    """By which trainings patches were scored, when, and how long that took beside the evaluations."""
    scored = [state for state in states if state.scoring is not None]
    runs = list({state.scoring.key: state.scoring for state in scored if state.scoring is not None}.values())
    if not runs:
        return
    lengths = listed(str(run.epochs) for run in runs)
    trainings = f"{len(runs)} training{'s' if len(runs) > 1 else ''} of {lengths} epochs of"
    said = f"Scored by {trainings} {listed(state.cell.scored_by for state in scored)}"
    said += f" in {human_time(sum(run.seconds for run in runs))}, {_days(run.made for run in runs)}"
    shorter = [state.cell for state in states if state.cell.settings.scoring_epochs < RECIPE.epochs]
    if whole := listed(cell.rule.metric for cell in shorter if cell.rule.metric in WHOLE):
        said += f"; the authors take {whole} from {RECIPE.epochs} epochs"
    yield f"{said}."


def listed(words: Iterable[str]) -> str:
    """Each word once.

    >>> listed(["b", "a", "c", "a"])
    'a, b and c'
    """
    several = sorted(set(words))
    return " and ".join(filter(None, (", ".join(several[:-1]), *several[-1:])))


def _days(made: Iterable[str]) -> str:
    """From the first day to the last, of times in ISO's way of writing."""
    days = sorted({moment[:10] for moment in made})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
