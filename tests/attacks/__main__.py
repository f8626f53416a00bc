"""All attacks: `make torture`, or `python -m tests.attacks --minutes 8 --seed 3`. Ends with 1 if anything is lost."""

from __future__ import annotations

import argparse
import math
import sys
import time
from random import SystemRandom

from tests.attacks.cases import KINDS, PICKLES
from tests.attacks.forgeries import FORGERIES
from tests.attacks.tally import Tally, run_cases

KILLS = (
    *(
        "killed save",
        "killed export",
        "killed condense",
        "killed experts",
        "killed tgdd",
        "killed mdc",
        "killed nested",
    ),
    *("killed stages", "killed nested idc", "killed slim", "killed rank", "killed study"),
)
COUNTS = {  # of a whole run
    **dict.fromkeys(KINDS, 3000),
    **dict.fromkeys(FORGERIES, 2000),
    PICKLES: 5000,
    **dict.fromkeys(KILLS, 60),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"by default all: {', '.join(COUNTS)}")
    parser.add_argument(
        "--seed", type=int, default=SystemRandom().randrange(10**6), help="by default another every time"
    )
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop after so long, with a share for each kind"
    )
    given = parser.parse_args()
    kinds, end = given.kinds or list(COUNTS), time.monotonic() + 60 * given.minutes
    if unknown := set(kinds) - set(COUNTS):
        parser.error(f"there is no kind {', '.join(sorted(unknown))}")
    print(f"seed {given.seed}", flush=True)
    files, killed = [kind for kind in kinds if kind not in KILLS], [kind for kind in kinds if kind in KILLS]
    share = len(files) / (len(files) + 3 * len(killed))  # kills take longer
    part, progress = time.monotonic() + share * (end - time.monotonic()), Progress()
    tallies = run_cases(_counts(files), seed=given.seed, until=part, step=progress)
    tallies += run_cases(_counts(killed), module="kills", seed=given.seed, until=end, step=progress)
    print(f"\n{'kind':18} {'tries':>7} {'survived':>8} {'lost':>5}  how")
    for tally in tallies:
        _print(tally)
    everything = Tally("all")
    for tally in tallies:
        everything.outcomes.update(tally.outcomes)
        everything.lost += tally.lost
    _print(everything)
    for line in everything.lost:
        print(f"lost: {line}")
    return 1 if everything.lost else 0


def _counts(kinds: list[str]) -> dict[str, int]:
    return {kind: COUNTS[kind] for kind in kinds}


class Progress:
    """A line that counts: in place on a terminal, elsewhere one every few thousand attempts."""

    def __init__(self) -> None:
        self._tries = self._lost = 0
        self._began = time.monotonic()

    def __call__(self, outcome: str) -> None:
        self._tries += 1
        self._lost += outcome == "lost"
        line = f"{self._tries} tries, {self._lost} lost, {time.monotonic() - self._began:.0f} s"
        if sys.stderr.isatty():
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
        elif self._tries % 5000 == 0:
            print(line, file=sys.stderr, flush=True)


def _print(tally: Tally) -> None:
    if tally.skipped:
        print(f"{tally.kind:18} not attempted: {tally.skipped}")
        return
    lost = tally.outcomes["lost"]
    how = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.outcomes.items()) if outcome != "lost")
    print(f"{tally.kind:18} {tally.tries:7} {tally.tries - lost:8} {lost:5}  {how}")


if __name__ == "__main__":
    sys.exit(main())
