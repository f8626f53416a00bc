"""One process that makes attempts under limits of memory and time, and says how each ended.

Run as `python -m tests.attacks.cases FOLDER SEED KIND:START:STOP …`; it prints one JSON line per attempt.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Literal

from tests.attacks import pickles
from tests.attacks.forgeries import FORGERIES, forged
from tests.attacks.mutations import mutate
from tests.attacks.targets import TARGETS, Content, Target

from condense_once.errors import CondenseOnceError

Outcome = Literal["same", "other", "refused", "lost"]  # read the same, read something else, one sentence, or a defect
MEMORY = (
    2**30
)  # bytes that one attempt may take: `data/limits.py` grants any file a quarter of that, held up to three times
SECONDS = 10.0
PICKLES = "malicious pickle"
KINDS = (*(target.name for target in TARGETS), *FORGERIES, PICKLES)


class TookTooLong(BaseException):
    pass


class Attempts:
    """All attempts of one kind, by their number."""

    def __init__(self, kind: str, folder: Path, seed: int) -> None:
        self.kind, self._seed, self._folder = kind, seed, folder
        self._folder.mkdir(parents=True)
        self._target = FORGERIES[kind][0] if kind in FORGERIES else next((t for t in TARGETS if t.name == kind), None)
        self._files: dict[str, bytes] = {}
        if self._target is not None:
            self._target.make(self._folder)
            self._intact: Content = self._target.read(self._folder)
            self._files = {
                str(path.relative_to(self._folder)): path.read_bytes()
                for path in sorted(self._folder.rglob("*"))
                if path.is_file()
            }

    def run(self, number: int) -> tuple[Outcome, str]:
        rng = Random(f"{self.kind} {self._seed} {number}")
        try:
            if self._target is None:
                pickles.attempt(self._folder, rng)
                return "other", ""
            self._prepare(rng)
            return self._judge(self._target, self._target.read(self._folder))
        except CondenseOnceError as error:
            sentence = str(error)
            fine = 15 < len(sentence) < 6000 and "\n" not in sentence
            return ("refused", "") if fine else ("lost", f"a message that is not one sentence: {sentence[:300]!r}")
        except TookTooLong:
            return "lost", f"took more than {SECONDS:g} seconds"
        except MemoryError:
            return "lost", f"took more than {MEMORY:,} bytes: {_where()}"
        except Exception as error:
            return "lost", f"{type(error).__name__}: {str(error)[:200]} {_where()}"

    def _prepare(self, rng: Random) -> None:
        """The valid files, one of them damaged."""
        shutil.rmtree(self._folder)
        chosen = rng.choice(list(self._files))
        for name, content in self._files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name == chosen and self.kind in FORGERIES:
                content = forged(content, FORGERIES[self.kind][1], rng)
            elif name == chosen:
                content = mutate(content, rng, self._files[rng.choice(list(self._files))])
            path.write_bytes(content)

    def _judge(self, target: Target, found: Content) -> tuple[Outcome, str]:
        if found == self._intact:
            return "same", ""
        if not target.checked:
            return "other", ""
        wrong = [name for name, value in found.items() if self._intact.get(name) != value]
        missing = set(self._intact) - set(found)
        if wrong or (missing and not target.partial):
            return "lost", f"damage that was not noticed: {', '.join(wrong or missing)}"
        return "refused", ""  # what is damaged is missing


def _where() -> str:
    """The innermost line of ours that an error passed through."""
    frames = [frame for frame in traceback.extract_tb(sys.exc_info()[2]) if "condense_once" in frame.filename]
    return f"({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def _limit_memory() -> None:
    """From now on, at most `MEMORY` more than there is."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) if sys.platform == "linux" else 0
    if pages:
        limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _limited(attempt: Callable[[int], tuple[Outcome, str]], number: int) -> tuple[Outcome, str]:
    def late(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return attempt(number)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main(folder: str, seed: str, *plan: str) -> None:
    warnings.simplefilter("ignore")
    import PIL.Image

    PIL.Image.init()  # before the limit of memory: it maps many libraries
    ready = []
    for number, each in enumerate(plan):
        kind, start, stop = each.split(":")
        try:
            ready.append((Attempts(kind, Path(folder, str(number)), int(seed)), range(int(start), int(stop))))
        except CondenseOnceError as error:  # its own example: an optional package is missing
            print(json.dumps({"kind": kind, "skipped": str(error)}), flush=True)
    _limit_memory()
    rounds = range(min((numbers.start for _, numbers in ready), default=0), max((n.stop for _, n in ready), default=0))
    for number in rounds:  # in turns, so that a run that is cut short has made as many of each kind
        for attempts in (attempts for attempts, numbers in ready if number in numbers):
            _say(attempts.kind, number, "begun")
            _say(attempts.kind, number, *_limited(attempts.run, number))


def _say(kind: str, number: int, outcome: str, detail: str = "") -> None:
    print(json.dumps({"kind": kind, "number": number, "outcome": outcome, "detail": detail}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
