"""The store of results: one sqlite file that survives a kill at any moment and may be shared by processes.

The key of a result is the digest of everything that determines it; a result that is there is never measured again. Every row
has a digest of its own content: one that changed on the disk is noticed when it is read, and counts as missing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from condense_once.studies.database import Database
from condense_once.studies.job_claims import Claims
from condense_once.studies.row_digests import digest_of, is_well_formed
from condense_once.text import readable

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


@dataclass(frozen=True)
class StoredSlimming:
    """A set that was slimmed successfully."""

    key: str
    seconds: float
    made: str  # when, in UTC


class Store:
    """With `readonly` the file stays as it is; else it is created or upgraded, and damaged rows are deleted when found."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        self._database = Database(path, readonly=readonly)
        self._has_digests = self._database.has_digests
        self._scoring_runs: dict[str, StoredScoringRun] = {}  # found intact, by key: their content is large
        self.claims = Claims(self._database)
        self.damaged: dict[str, str] = {}  # table by key, of the rows found damaged and not yet written again

    def close(self) -> None:
        self._database.close()

    def knows(self, key: str) -> bool:
        """Whether a job is over, successfully or not."""
        both = "select 1 from evaluations where key = ?1 union all select 1 from evidence where key = ?1"
        return self._database.first(both, key) is not None

    def scoring_run(self, key: str) -> StoredScoringRun | str | None:
        """A scoring run that is over, or the error that ended it."""
        if key not in self._scoring_runs:
            row = self._row("evidence", key)
            if row is None or row[2] is not None:
                return None if row is None else str(row[2])
            facts, _, _, _, seconds, made = row
            self._scoring_runs[key] = StoredScoringRun(key, json.loads(facts).get("training"), seconds, made)
        return self._scoring_runs[key]

    def scoring_bytes(self, key: str) -> bytes | None:
        """What a scoring run recorded, serialised."""
        row = self._row("evidence", key)
        if row is None:
            self._scoring_runs.pop(key, None)
        return None if row is None else row[1]

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

    def slimming(self, key: str) -> StoredSlimming | str | None:
        """A set that was slimmed, or the error that ended that."""
        row = self._row("evidence", key)
        if row is None or row[2] is not None:
            return None if row is None else str(row[2])
        return StoredSlimming(key, seconds=row[4], made=row[5])

    def slimmed_set(self, key: str) -> bytes | None:
        """The file of a slimmed set."""
        row = self._row("evidence", key)
        return None if row is None else row[1]

    def add_slimmed_set(
        self, key: str, facts: Mapping[str, Any], found: bytes | str, *, work: float, seconds: float
    ) -> None:
        """Store the file of a slimmed set, or the error that ended the slimming."""
        content, error = (found, None) if isinstance(found, bytes) else (None, found)
        self._put("evidence", key, _json(facts), content, error, work, seconds, _now())

    def selection(self, key: str) -> StoredSelection | str | None:
        """The patches that a cell keeps, or the error that ended the selection."""
        row = self._row("selections", key)
        if row is None or row[3] is not None:
            return None if row is None else str(row[3])
        facts, rows, evaluation, _ = row
        return StoredSelection(np.frombuffer(rows, "<i8").astype(np.int64), evaluation, json.loads(facts).get("watch"))

    def add_selection(self, key: str, facts: Mapping[str, Any], found: StoredSelection | str) -> None:
        if isinstance(found, str):
            self._put("selections", key, _json(facts), None, None, found)
        else:
            facts = {**facts, "watch": found.scoring_key}
            self._put("selections", key, _json(facts), found.rows.astype("<i8").tobytes(), found.evaluation_key, None)

    def evaluation(self, key: str) -> StoredEvaluation | None:
        row = self._row("evaluations", key)
        if row is None:
            return None
        _, result, *others = row
        return StoredEvaluation(None if result is None else json.loads(result), *others)

    def add_evaluation(
        self, key: str, facts: Mapping[str, Any], found: Mapping[str, Any] | str, *, work: float, seconds: float
    ) -> None:
        """Store the result of an evaluation, or the error that ended it."""
        result, error = (None, found) if isinstance(found, str) else (_json(found), None)
        self._put("evaluations", key, _json(facts), result, error, work, seconds, _now())

    def facts(self, table: Literal["selections", "evidence"]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The key of each row of a table and what determines it; whether the row is intact shows when it is read."""
        for key, facts in self._database.all(f"select key, facts from {table}"):  # noqa: S608  # a constant of ours
            with suppress(ValueError):
                yield key, json.loads(facts)

    def seconds_per_work(self, net: str) -> float | None:
        """Measured seconds per unit of work of a network, or of all networks if it was never evaluated."""
        measured = [
            (json.loads(facts).get("net"), seconds, work)
            for facts, _, error, work, seconds, _ in self._rows("evaluations")
            if error is None
        ]
        own = [times for times in measured if times[0] == net and times[2]]
        seconds, work = (sum(times[column] for times in own or measured) for column in (1, 2))
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
        return [json.loads(spec) for spec, _ in self._rows("studies", "order by updated, rowid")]

    def _row(self, table: str, key: str) -> tuple[Any, ...] | None:
        """The columns after the key; None if there is no such row or it is damaged."""
        row = self._database.first(f"select rowid, * from {table} where key = ?", key)  # noqa: S608  # a constant of ours
        # The key is the one asked for: a damaged index may lead to the row of another.
        return None if row is None else self._intact(table, row[0], (key, *row[2:]))

    def _rows(self, table: str, order: str = "") -> Iterator[tuple[Any, ...]]:
        """The columns after the key of every row that is not damaged."""
        for number, *row in self._database.all(f"select rowid, * from {table} {order}"):  # noqa: S608
            if (values := self._intact(table, number, tuple(row))) is not None:
                yield values

    def _intact(self, table: str, number: int, row: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The columns between key and digest, or None if they are not those that were written."""
        if not self._has_digests:
            content, intact = row, is_well_formed(table, row)
        else:
            content, intact = row[:-1], row[-1] == digest_of(table, row[:-1])
        if intact:
            return content[1:]
        self.damaged[readable(row[0])] = table
        if not self._database.readonly:
            with self._database.transaction() as db:
                db.execute(f"delete from {table} where rowid = ?", (number,))  # noqa: S608
        return None

    def _put(self, table: str, *values: Any) -> None:
        """Write a row, but never replace a result: a process whose claims expired may come back with an error."""
        places = ", ".join("?" * (len(values) + 1))
        result = f"select 1 from {table} where key = ?1 and error is null"  # noqa: S608  # a constant of ours
        unless = "" if table == "studies" else f"where not exists ({result})"
        with self._database.transaction() as db:
            db.execute(f"insert or replace into {table} select {places} {unless}", (*values, digest_of(table, values)))
        self.damaged.pop(values[0], None)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, default=list)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
