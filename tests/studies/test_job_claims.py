"""One process at a time works on a job; the claims of dead processes expire."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from condense_once.studies import job_claims as claims
from condense_once.studies.store import Store


def test_one_process_at_a_time_works_on_a_job(store: Store) -> None:
    other = Store(store.path)
    assert store.claims.acquire("job")
    assert store.claims.acquire("job")  # still ours
    assert not other.claims.acquire("job")
    other.claims.release("job")  # not theirs to give back
    assert not other.claims.acquire("job")
    store.claims.release("job")
    assert other.claims.acquire("job")


def test_expired_claims_are_taken_over(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Store(store.path)
    assert store.claims.acquire("job")
    monkeypatch.setattr(claims, "EXPIRY", -1.0)
    assert other.claims.acquire("job")
    monkeypatch.undo()
    assert not store.claims.acquire("job")


def test_a_claim_from_the_future_is_void(store: Store) -> None:
    """Left by a process that died before the clock was set back."""
    other = Store(store.path)
    assert store.claims.acquire("job")
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("update claims set beat = beat + 1e9")
    assert other.claims.acquire("job")
    assert not store.claims.acquire("job")
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("update claims set beat = beat + 10")  # clocks may differ a little
    assert not store.claims.acquire("job")


def test_a_heartbeat_keeps_claims_alive_and_releases_them_at_the_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "HEARTBEAT", 0.001)
    other = Store(store.path)

    def beat() -> float:
        return float(db.execute("select beat from claims").fetchone()[0])

    with closing(sqlite3.connect(store.path)) as db, store.claims.heartbeat():
        store.claims.acquire("job")
        with db:
            db.execute("update claims set beat = 0")
        deadline = time.monotonic() + 60
        while beat() == 0:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert not other.claims.acquire("job")
    assert other.claims.acquire("job")
