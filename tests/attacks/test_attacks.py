"""The short form of the attacks; `make torture` runs the whole."""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from tests.attacks import pickles
from tests.attacks.cases import KINDS, Attempts
from tests.attacks.mutations import mutate
from tests.attacks.tally import Tally, run_cases

from condense_once.condensed import file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs limits of memory and forks")
SEED = 0


def lost(tallies: list[Tally]) -> list[str]:
    return [line for tally in tallies for line in tally.lost]


def test_damaged_and_malicious_files_give_the_same_or_one_sentence() -> None:
    counts = dict.fromkeys(KINDS, 15) | {
        "malicious pickle": 100,
        "forged set": 60,
        "forged layered set": 60,
        "layered set": 60,
        "forged checkpoint": 3,
    }
    tallies = run_cases(counts, seed=SEED)
    assert lost(tallies) == []
    assert all(tally.tries == counts[tally.kind] for tally in tallies if tally.skipped is None)
    assert {tally.kind for tally in tallies if tally.skipped} <= {
        "export.parquet",
        "source.parquet",
    }  # without its package


def test_killed_work_goes_on_and_loses_nothing() -> None:
    kills = {"killed save": 3, "killed export": 3, "killed condense": 3, "killed study": 2}
    kills |= dict.fromkeys(("killed experts", "killed tgdd", "killed mdc", "killed slim"), 3)
    kills |= dict.fromkeys(("killed nested", "killed stages", "killed nested idc"), 2)
    tallies = run_cases(kills, module="kills", seed=SEED)
    assert lost(tallies) == []
    assert all(tally.outcomes["ended as without kills"] for tally in tallies)


def test_the_malicious_pickles_are_real(tmp_path: Path) -> None:
    """Python's own unpickler makes the canary in at least half of them; the rest try what it refuses."""
    canary, ran = tmp_path / "canary", 0
    rng = Random(SEED)
    for _ in range(40):
        data = pickles.malicious(str(canary), rng)
        with suppress(Exception):  # after the code ran, often
            pickle.loads(data)
        if canary.exists():
            canary.rmdir()
            ran += 1
    assert ran >= 20


def test_damage_is_reproducible_and_is_damage() -> None:
    raw = bytes(range(256)) * 4
    assert mutate(raw, Random(1)) == mutate(raw, Random(1))
    assert sum(mutate(raw, Random(seed)) != raw for seed in range(100)) > 90


def test_a_defect_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class EqualToAll(str):
        __slots__ = ()

        def __ne__(self, _: object) -> bool:
            return False

    real = file.block_sums  # a reader that does not look at checksums:
    monkeypatch.setattr(file, "block_sums", lambda data, block: EqualToAll(real(data, block)))
    attempts = Attempts("set", tmp_path / "1", SEED)
    found = [attempts.run(number) for number in range(60)]
    assert any(detail.startswith("damage that was not noticed: set") for _, detail in found)
    assert Attempts("set", tmp_path / "2", SEED).run(0) == found[0]  # by number, so that it can be repeated
