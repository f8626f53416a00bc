"""The sqlite file of a store: opened or created in one step, shared by processes, errors in one sentence."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from condense_once.errors import BadFile

VERSION = 1
APPLICATION_ID = 0x59F0C0  # sqlite's field for the kind of a file
BUSY = 60.0  # seconds to wait for another process that is writing
PAUSE = 0.05  # seconds between attempts where sqlite itself does not wait

TABLES = (
    "studies (key text primary key, spec text not null, updated text not null)",
    "selections (key text primary key, facts text not null, rows blob, evaluation text, error text)",
    "evaluations (key text primary key, facts text not null, result text, error text, work real not null,"
    " seconds real not null, made text not null)",
    "evidence (key text primary key, facts text not null, content blob, error text, work real not null,"
    " seconds real not null, made text not null)",
    "claims (key text primary key, owner text not null, beat real not null)",
)


class Database:
    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.parent.is_dir():
            raise BadFile(f"The folder {path.parent} for the store does not exist; create it first.")
        with self._sqlite_errors():
            self.connection = sqlite3.connect(path, timeout=BUSY)
            try:
                self._create()
                self._use_wal()
            except BaseException:
                self.connection.close()
                raise

    def close(self) -> None:
        self.connection.close()

    def first(self, query: str, *values: Any) -> Any:
        """The first row of a result, or None."""
        with self._sqlite_errors():
            return self.connection.execute(query, values).fetchone()

    def all(self, query: str, *values: Any) -> list[Any]:
        with self._sqlite_errors():
            return self.connection.execute(query, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with self._sqlite_errors(), self.connection:
            yield self.connection

    def _create(self) -> None:
        """Create all tables in one transaction: another process may be doing the same, and this one may be killed."""
        with self.connection as db:
            db.execute("begin immediate")
            application = db.execute("pragma application_id").fetchone()[0]
            if application != APPLICATION_ID and db.execute("select count(*) from sqlite_master").fetchone()[0]:
                raise BadFile(f"{self.path} is a database, but not a store of studies; choose another `store`.")
            if db.execute("pragma user_version").fetchone()[0] not in (0, VERSION):
                raise BadFile(f"{self.path} was written by a newer condense-once; update, or choose another `store`.")
            if application != APPLICATION_ID:
                for table in TABLES:
                    db.execute(f"create table {table}")
                db.execute(f"pragma application_id = {APPLICATION_ID}")
                db.execute(f"pragma user_version = {VERSION}")

    def _use_wal(self) -> None:
        """Allow reads during writes. sqlite does not wait when another process requests the same, so we do."""
        deadline = time.monotonic() + BUSY
        while True:
            try:
                self.connection.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE)

    @contextmanager
    def _sqlite_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise BadFile(
                f"The store {self.path} cannot be used ({error}); choose another `store`, or repair this one."
            ) from None
