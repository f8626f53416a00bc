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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.errors import BadFile

VERSION = 1
OURS = 0x59F0C0  # sqlite keeps such a number to tell whose a file is
BEAT, DEAD = 5.0, 30.0  # seconds between signs of life, and without one until somebody is taken for dead
BUSY = 60.0  # seconds to wait for another process that is writing
PAUSE = 0.02  # seconds between two attempts where sqlite itself does not wait
ROOM = 1_000_000  # bytes of a row beside its largest part

_TABLES = (
    "studies (key text primary key, spec text not null, updated text not null)",
    "selections (key text primary key, facts text not null, rows blob, evaluation text, error text)",
    "evaluations (key text primary key, facts text not null, result text, error text, work real not null,"
    " seconds real not null, made text not null)",
    "evidence (key text primary key, facts text not null, content blob, error text, work real not null,"
    " seconds real not null, made text not null)",
    "claims (key text primary key, owner text not null, beat real not null)",
)


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
    watch: str | None  # the key of the scoring run that brought it about


@dataclass(frozen=True)
class Scoring:
    """A scoring run that went well."""

    key: str
    epochs: int
    seconds: float
    made: str  # when it ended, in UTC


class Store:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        if not path.parent.is_dir():
            raise BadFile(f"The folder {path.parent} for the store does not exist; make it first.")
        with self._refusing():
            self._db = sqlite3.connect(path, timeout=BUSY)
            try:
                self._make()
                self._let_others_read()
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        self._db.close()

    def _make(self) -> None:
        """Make the tables of a new store, all at once: others may be about to, and this process may be killed."""
        with self._db as db:
            db.execute("begin immediate")
            whose = db.execute("pragma application_id").fetchone()[0]
            if whose != OURS and db.execute("select count(*) from sqlite_master").fetchone()[0]:
                raise BadFile(f"{self.path} is a database, but no store of studies; choose another --store.")
            if db.execute("pragma user_version").fetchone()[0] not in (0, VERSION):
                raise BadFile(f"{self.path} was written by a newer condense-once; update, or choose another --store.")
            if whose != OURS:
                for table in _TABLES:
                    db.execute(f"create table {table}")
                db.execute(f"pragma application_id = {OURS}")
                db.execute(f"pragma user_version = {VERSION}")

    def _let_others_read(self) -> None:
        """Let others read while somebody writes; sqlite does not wait for those who are asking for the same."""
        deadline = time.monotonic() + BUSY
        while True:
            try:
                self._db.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)

    # What was measured

    def evidence(self, key: str) -> bytes | None:
        row = self._find("select content from evidence where key = ?", key)
        return None if row is None else row[0]

    def scoring(self, key: str) -> Scoring | str | None:
        """A scoring run that is over, or the error that it ended with."""
        row = self._find(
            "select error, json_extract(facts, '$.training'), seconds, made from evidence where key = ?", key
        )
        if row is None or row[0] is not None:
            return None if row is None else str(row[0])
        return Scoring(key, *row[1:])

    def knows(self, key: str) -> bool:
        """Whether a job is over, well or not."""
        both = "select 1 from evaluations where key = ?1 union all select 1 from evidence where key = ?1"
        return self._find(both, key) is not None

    def add_evidence(
        self, key: str, facts: Mapping[str, Any], found: bytes | str, *, work: float, seconds: float
    ) -> None:
        """Keep what a training run showed, or the error that it ended with."""
        if len(found) > (most := self._db.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - ROOM):
            found = (
                f"What it showed takes {len(found) / 1e9:.1f} GB, and a store holds {most / 1e9:.1f} in one piece; score by a"
                " shorter --training."
            )
        content, error = (found, None) if isinstance(found, bytes) else (None, found)
        self._put("evidence", key, _json(facts), content, error, work, seconds, _now())

    def selection(self, key: str) -> Selected | str | None:
        """What a cell keeps, or why that cannot be known."""
        asked = "select error, rows, evaluation, json_extract(facts, '$.watch') from selections where key = ?"
        row = self._find(asked, key)
        if row is None or row[0] is not None:
            return None if row is None else str(row[0])
        return Selected(np.frombuffer(row[1], "<i8").astype(np.int64), *row[2:])

    def add_selection(self, key: str, facts: Mapping[str, Any], found: Selected | str) -> None:
        if isinstance(found, str):
            self._put("selections", key, _json(facts), None, None, found)
        else:
            facts = {**facts, "watch": found.watch}
            self._put("selections", key, _json(facts), found.rows.astype("<i8").tobytes(), found.evaluation, None)

    def evaluation(self, key: str) -> Measured | None:
        row = self._find("select result, error, work, seconds, made from evaluations where key = ?", key)
        return None if row is None else Measured(None if row[0] is None else json.loads(row[0]), *row[1:])

    def add_evaluation(
        self, key: str, facts: Mapping[str, Any], found: Mapping[str, Any] | str, *, work: float, seconds: float
    ) -> None:
        """Keep the result of an evaluation, or the error that it ended with."""
        result, error = (None, found) if isinstance(found, str) else (_json(found), None)
        self._put("evaluations", key, _json(facts), result, error, work, seconds, _now())

    def pace(self, net: str) -> float | None:
        """Seconds for a unit of work of a network, by what was measured so far; if it was not, of all others."""
        measured = "select sum(seconds), sum(work) from evaluations where error is null"
        own = self._find(f"{measured} and json_extract(facts, '$.net') = ?", net)
        seconds, work = own if own[1] else self._find(measured)
        return seconds / work if work else None

    def forget_errors(self, keys: Iterable[str]) -> int:
        """Let what failed of this be tried again; returns how much that is."""
        wanted = [(key,) for key in keys]
        with self._writing() as db:
            return sum(
                db.executemany(f"delete from {table} where key = ? and error is not null", wanted).rowcount  # noqa: S608
                for table in ("selections", "evaluations", "evidence")
            )

    # Which studies it serves

    def remember(self, key: str, spec: Mapping[str, Any]) -> None:
        self._put("studies", key, _json(spec), _now())

    def studies(self) -> list[dict[str, Any]]:
        """Their specifications, in the order in which they were last asked for."""
        with self._refusing():
            return [
                json.loads(spec) for (spec,) in self._db.execute("select spec from studies order by updated, rowid")
            ]

    # Who works on what

    def claim(self, key: str) -> bool:
        """Whether this process may work on something: nobody who is alive does."""
        now = time.time()
        with self._writing() as db:
            db.execute("delete from claims where key = ? and beat < ?", (key, now - DEAD))
            db.execute("insert or ignore into claims values (?, ?, ?)", (key, self._owner, now))
            owner = db.execute("select owner from claims where key = ?", (key,)).fetchone()[0]
        return bool(owner == self._owner)

    def release(self, key: str) -> None:
        with self._writing() as db:
            db.execute("delete from claims where key = ? and owner = ?", (key, self._owner))

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Keep the claims of this process alive while the block runs, and give back what is left in the end."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT):
                # a beat that is missed because others write does no harm
                with suppress(sqlite3.Error), closing(sqlite3.connect(self.path, timeout=BUSY)) as db, db:
                    db.execute("update claims set beat = ? where owner = ?", (time.time(), self._owner))

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            with self._writing() as db:
                db.execute("delete from claims where owner = ?", (self._owner,))

    def _find(self, question: str, *values: Any) -> Any:
        with self._refusing():
            return self._db.execute(question, values).fetchone()

    def _put(self, table: str, *values: Any) -> None:
        """Write a row, unless a good one is there: somebody who was taken for dead may come back with an error."""
        places = ", ".join("?" * len(values))
        good = f"select 1 from {table} where key = ?1 and error is null"  # noqa: S608  # a name of ours
        unless = "" if table == "studies" else f"where not exists ({good})"
        with self._writing() as db:
            db.execute(f"insert or replace into {table} select {places} {unless}", values)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._refusing(), self._db:
            yield self._db

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What sqlite has to complain of, in a sentence."""
        try:
            yield
        except sqlite3.Error as error:
            raise BadFile(
                f"The store {self.path} cannot be used ({error}); choose another --store, or mend this one."
            ) from None


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, default=list)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
