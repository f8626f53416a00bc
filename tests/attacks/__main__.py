"""All attacks: `make torture`, or `python -m tests.attacks --minutes 8 --seed 3`. Ends with 1 if anything is lost."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from random import SystemRandom

from tests.attacks.cases import KINDS, PICKLES
from tests.attacks.forgeries import FORGERIES
from tests.attacks.tally import Tally, run_cases

KILLS = ("killed save", "killed export", "killed condense", "killed rank", "killed study")
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
    print(f"{'kind':18} {'tries':>7} {'survived':>8} {'lost':>5}  how", flush=True)
    tallies = []
    for number, kind in enumerate(kinds):
        left = end - time.monotonic()
        until = time.monotonic() + left / (len(kinds) - number)
        module = "kills" if kind in KILLS else "cases"
        tallies += run_cases({kind: COUNTS[kind]}, module=module, seed=given.seed, until=until, step=_progress)
        _print(tallies[-1])
    total, lost = (
        sum((tally.outcomes for tally in tallies), Counter()),
        [line for tally in tallies for line in tally.lost],
    )
    _print(Tally("all", total, lost))
    for line in lost:
        print(f"lost: {line}")
    return 1 if lost else 0


def _progress(tally: Tally) -> None:
    if sys.stderr.isatty() and tally.tries % 20 == 0:
        print(f"\r{tally.kind}: {tally.tries} of {COUNTS[tally.kind]}", end="\x1b[K\r", file=sys.stderr, flush=True)


def _print(tally: Tally) -> None:
    if tally.skipped:
        print(f"{tally.kind:18} not attempted: {tally.skipped}", flush=True)
        return
    lost = tally.outcomes["lost"]
    how = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.outcomes.items()) if outcome != "lost")
    print(f"{tally.kind:18} {tally.tries:7} {tally.tries - lost:8} {lost:5}  {how}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
