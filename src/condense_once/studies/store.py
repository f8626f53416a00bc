"""The store of results: one sqlite file that survives a kill at any moment and may be shared by processes.

The key of a result is the digest of everything that determines it; a result that is there is never measured again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condense_once.studies.database import Database
from condense_once.studies.job_claims import Claims

ROW_OVERHEAD = 1_000_000  # bytes of a row beside its largest column


@dataclass(frozen=True)
class StoredEvaluation:
    """The result of an evaluation, or the error that ended it."""

    result: Mapping[str, Any] | None
    error: str | None
    work: float
    seconds: float
    made: str  # when, in UTC


@dataclass(frozen=True)
class StoredSelection:
    rows: NDArray[np.int64]
    evaluation_key: str
    scoring_key: str | None  # the scoring run it is based on


@dataclass(frozen=True)
class StoredScoringRun:
    """A scoring run that succeeded."""

    key: str
    epochs: int
    seconds: float
    made: str  # when it ended, in UTC


class Store:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path)
        self.claims = Claims(self._database)

    def close(self) -> None:
        self._database.close()

    def knows(self, key: str) -> bool:
        """Whether a job is over, successfully or not."""
        both = "select 1 from evaluations where key = ?1 union all select 1 from evidence where key = ?1"
        return self._database.first(both, key) is not None

    def scoring_run(self, key: str) -> StoredScoringRun | str | None:
        """A scoring run that is over, or the error that ended it."""
        query = "select error, json_extract(facts, '$.training'), seconds, made from evidence where key = ?"
        row = self._database.first(query, key)
        if row is None or row[0] is not None:
            return None if row is None else str(row[0])
        return StoredScoringRun(key, *row[1:])

    def scoring_bytes(self, key: str) -> bytes | None:
        """What a scoring run recorded, serialised."""
        row = self._database.first("select content from evidence where key = ?", key)
        return None if row is None else row[0]

    def add_scoring_run(
        self, key: str, facts: Mapping[str, Any], found: bytes | str, *, work: float, seconds: float
    ) -> None:
        """Store what a scoring run recorded, or the error that ended it."""
        limit = self._database.connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - ROW_OVERHEAD
        if len(found) > limit:
            found = (
                f"The scoring run recorded {len(found) / 1e9:.1f} GB, but a store holds at most {limit / 1e9:.1f} GB per"
                " run; choose a shorter `scoring_epochs`."
            )
        content, error = (found, None) if isinstance(found, bytes) else (None, found)
        self._put("evidence", key, _json(facts), content, error, work, seconds, _now())

    def selection(self, key: str) -> StoredSelection | str | None:
        """The patches that a cell keeps, or the error that ended the selection."""
        query = "select error, rows, evaluation, json_extract(facts, '$.watch') from selections where key = ?"
        row = self._database.first(query, key)
        if row is None or row[0] is not None:
            return None if row is None else str(row[0])
        return StoredSelection(np.frombuffer(row[1], "<i8").astype(np.int64), *row[2:])

    def add_selection(self, key: str, facts: Mapping[str, Any], found: StoredSelection | str) -> None:
        if isinstance(found, str):
            self._put("selections", key, _json(facts), None, None, found)
        else:
            facts = {**facts, "watch": found.scoring_key}
            self._put("selections", key, _json(facts), found.rows.astype("<i8").tobytes(), found.evaluation_key, None)

    def evaluation(self, key: str) -> StoredEvaluation | None:
        row = self._database.first("select result, error, work, seconds, made from evaluations where key = ?", key)
        return None if row is None else StoredEvaluation(None if row[0] is None else json.loads(row[0]), *row[1:])

    def add_evaluation(
        self, key: str, facts: Mapping[str, Any], found: Mapping[str, Any] | str, *, work: float, seconds: float
    ) -> None:
        """Store the result of an evaluation, or the error that ended it."""
        result, error = (None, found) if isinstance(found, str) else (_json(found), None)
        self._put("evaluations", key, _json(facts), result, error, work, seconds, _now())

    def seconds_per_work(self, net: str) -> float | None:
        """Measured seconds per unit of work of a network, or of all networks if it was never evaluated."""
        measured = "select sum(seconds), sum(work) from evaluations where error is null"
        own = self._database.first(f"{measured} and json_extract(facts, '$.net') = ?", net)
        seconds, work = own if own[1] else self._database.first(measured)
        return seconds / work if work else None

    def forget_errors(self, keys: Iterable[str]) -> int:
        """Delete the errors of these keys, so that they run again; returns how many there were."""
        wanted = [(key,) for key in keys]
        with self._database.transaction() as db:
            return sum(
                db.executemany(f"delete from {table} where key = ? and error is not null", wanted).rowcount  # noqa: S608
                for table in ("selections", "evaluations", "evidence")
            )

    def add_study(self, key: str, spec: Mapping[str, Any]) -> None:
        self._put("studies", key, _json(spec), _now())

    def study_specs(self) -> list[dict[str, Any]]:
        """The specifications of all studies, in the order of their last runs."""
        return [json.loads(spec) for (spec,) in self._database.all("select spec from studies order by updated, rowid")]

    def _put(self, table: str, *values: Any) -> None:
        """Write a row, but never replace a result: a process whose claims expired may come back with an error."""
        places = ", ".join("?" * len(values))
        result = f"select 1 from {table} where key = ?1 and error is null"  # noqa: S608  # a constant of ours
        unless = "" if table == "studies" else f"where not exists ({result})"
        with self._database.transaction() as db:
            db.execute(f"insert or replace into {table} select {places} {unless}", values)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, default=list)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
