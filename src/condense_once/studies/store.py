"""The store of results: one sqlite file that survives being killed and may be shared by several processes.

Whatever is measured has a key, the digest of all that decides it; what is there is never measured again. Who works on
something claims it, and keeps the claim alive; the claims of the dead are taken over after a while.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadFile

VERSION = 1
BEAT, DEAD = 5.0, 30.0  # seconds between signs of life, and without one until somebody is taken for dead
BUSY = 60.0  # seconds to wait for another process that is writing

_TABLES = """
create table if not exists studies (name text primary key, spec text not null, updated text not null);
create table if not exists selections (key text primary key, facts text not null, rows blob not null,
    evaluation text not null);
create table if not exists evaluations (key text primary key, facts text not null, result text, error text,
    work real not null, seconds real not null, made text not null);
create table if not exists evidence (key text primary key, facts text not null, content blob, error text,
    work real not null, seconds real not null, made text not null);
create table if not exists claims (key text primary key, owner text not null, beat real not null);
"""


@dataclass(frozen=True)
class Measured:
    """What became of an evaluation: a result, or the error that ended it."""

    result: Mapping[str, Any] | None
    error: str | None
    work: float
    seconds: float
    made: str  # when, in UTC


@dataclass(frozen=True)
class Selected:
    rows: NDArray[np.int64]
    evaluation: str  # its key


class Store:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        if not path.parent.is_dir():
            raise BadFile(f"The folder {path.parent} for the store does not exist; make it first.")
        try:
            self._db = self._connect()
            version = self._db.execute("pragma user_version").fetchone()[0]
            if version not in (0, VERSION):
                raise BadFile(f"{path} was written by a newer condense-once; update, or choose another --store.")
            self._db.executescript(f"{_TABLES} pragma user_version = {VERSION};")
        except sqlite3.DatabaseError as error:
            raise BadFile(f"{path} is no store of studies ({error}); choose another --store.") from None

    def close(self) -> None:
        self._db.close()

    # What was measured

    def evidence(self, key: str) -> bytes | None:
        row = self._db.execute("select content from evidence where key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def knows(self, key: str) -> bool:
        """Whether a job is over, well or not."""
        both = "select 1 from evaluations where key = :key union all select 1 from evidence where key = :key"
        return self._db.execute(both, {"key": key}).fetchone() is not None

    def evidence_error(self, key: str) -> str | None:
        row = self._db.execute("select error from evidence where key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def add_evidence(
        self, key: str, facts: Mapping[str, Any], found: bytes | str, *, work: float, seconds: float
    ) -> None:
        """Keep what a training run showed, or the error that it ended with."""
        content, error = (found, None) if isinstance(found, bytes) else (None, found)
        self._put("evidence", key, _json(facts), content, error, work, seconds, _now())

    def selection(self, key: str) -> Selected | None:
        row = self._db.execute("select rows, evaluation from selections where key = ?", (key,)).fetchone()
        return None if row is None else Selected(np.frombuffer(row[0], "<i8").astype(np.int64), row[1])

    def add_selection(self, key: str, facts: Mapping[str, Any], selected: Selected) -> None:
        rows = selected.rows.astype("<i8").tobytes()
        self._put("selections", key, _json(facts), rows, selected.evaluation)

    def evaluation(self, key: str) -> Measured | None:
        row = self._db.execute(
            "select result, error, work, seconds, made from evaluations where key = ?", (key,)
        ).fetchone()
        return None if row is None else Measured(None if row[0] is None else json.loads(row[0]), *row[1:])

    def add_evaluation(
        self, key: str, facts: Mapping[str, Any], found: Mapping[str, Any] | str, *, work: float, seconds: float
    ) -> None:
        """Keep the result of an evaluation, or the error that it ended with."""
        result, error = (None, found) if isinstance(found, str) else (_json(found), None)
        self._put("evaluations", key, _json(facts), result, error, work, seconds, _now())

    def pace(self) -> float | None:
        """Seconds for a unit of work, of all that was measured so far."""
        seconds, work = self._db.execute(
            "select sum(seconds), sum(work) from evaluations where error is null"
        ).fetchone()
        return seconds / work if work else None

    def forget_errors(self) -> int:
        """Let what failed be tried again; returns how much that is."""
        with self._db:
            return sum(
                self._db.execute(f"delete from {table} where error is not null").rowcount  # noqa: S608  # two names of ours
                for table in ("evaluations", "evidence")
            )

    # Which studies it serves

    def remember(self, name: str, spec: Mapping[str, Any]) -> None:
        self._put("studies", name, _json(spec), _now())

    def studies(self) -> dict[str, dict[str, Any]]:
        return {
            name: json.loads(spec) for name, spec in self._db.execute("select name, spec from studies order by updated")
        }

    # Who works on what

    def claim(self, key: str) -> bool:
        """Whether this process may work on something: nobody who is alive does."""
        now = time.time()
        with self._db:
            self._db.execute("delete from claims where key = ? and beat < ?", (key, now - DEAD))
            self._db.execute("insert or ignore into claims values (?, ?, ?)", (key, self._owner, now))
            owner = self._db.execute("select owner from claims where key = ?", (key,)).fetchone()[0]
        return bool(owner == self._owner)

    def release(self, key: str) -> None:
        with self._db:
            self._db.execute("delete from claims where key = ? and owner = ?", (key, self._owner))

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Keep the claims of this process alive while the block runs, and give back what is left in the end."""
        over = threading.Event()

        def beat() -> None:
            with closing(self._connect()) as db:
                while not over.wait(BEAT):
                    with (
                        suppress(sqlite3.OperationalError),
                        db,
                    ):  # one that is missed, because others write, does no harm
                        db.execute("update claims set beat = ? where owner = ?", (time.time(), self._owner))

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            with self._db:
                self._db.execute("delete from claims where owner = ?", (self._owner,))

    def _put(self, table: str, *values: Any) -> None:
        places = ", ".join("?" * len(values))
        with self._db:
            self._db.execute(f"insert or replace into {table} values ({places})", values)  # noqa: S608  # a name of ours

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=BUSY)
        db.execute("pragma journal_mode = wal")
        return db


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, default=list)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
