"""The sqlite file of a store: opened or created in one step, shared by processes, errors in one sentence."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from condense_once.errors import BadFile
from condense_once.studies.row_digests import digest_of, is_well_formed

VERSION = 2  # in 1, rows had no digests
APPLICATION_ID = 0x59F0C0  # sqlite's field for the kind of a file
BUSY = 60.0  # seconds to wait for another process that is writing
PAUSE = 0.05  # seconds between attempts where sqlite itself does not wait

ROWS = {  # tables whose rows have digests
    "studies": "key text primary key, spec text not null, updated text not null",
    "selections": "key text primary key, facts text not null, rows blob, evaluation text, error text",
    "evaluations": "key text primary key, facts text not null, result text, error text, work real not null,"
    " seconds real not null, made text not null",
    "evidence": "key text primary key, facts text not null, content blob, error text, work real not null,"
    " seconds real not null, made text not null",
}
CLAIMS = "key text primary key, owner text not null, beat real not null"


class Database:
    """With `readonly` nothing is created, upgraded or changed, so that the file and its folder may be read-only."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path, self.readonly = path, readonly
        if not path.parent.is_dir():
            raise BadFile(f"The folder {path.parent} for the store does not exist; create it first.")
        with self._sqlite_errors():
            self.connection = _connect_to_read(path) if readonly else sqlite3.connect(path, timeout=BUSY)
            # A damaged character must not keep us from reading the rest of a row.
            self.connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            try:
                if not readonly:
                    self._create_or_upgrade()
                    self._use_wal()
                self._check_kind()
            except BaseException:
                self.connection.close()
                raise

    def close(self) -> None:
        self.connection.close()

    @property
    def has_digests(self) -> bool:
        """False for a store of version 1 that cannot be upgraded because it is only read."""
        return int(self.first("pragma user_version")[0]) >= VERSION

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

    def _check_kind(self) -> None:
        application = self.connection.execute("pragma application_id").fetchone()[0]
        if application != APPLICATION_ID:
            raise BadFile(f"{self.path} is a database, but not a store of studies; choose another `store`.")
        if self.connection.execute("pragma user_version").fetchone()[0] not in range(1, VERSION + 1):
            raise BadFile(f"{self.path} was written by a newer condense-once; update, or choose another `store`.")

    def _create_or_upgrade(self) -> None:
        """In one transaction: another process may be doing the same, and this one may be killed."""
        with self.connection as db:
            db.execute("begin immediate")
            if not db.execute("select count(*) from sqlite_master").fetchone()[0]:
                for table, columns in ROWS.items():
                    db.execute(f"create table {table} ({columns}, digest text)")
                db.execute(f"create table claims ({CLAIMS})")
                db.execute(f"pragma application_id = {APPLICATION_ID}")
                db.execute(f"pragma user_version = {VERSION}")
            self._check_kind()
            if db.execute("pragma user_version").fetchone()[0] < VERSION:
                _add_digests(db)
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
        except (sqlite3.Error, UnicodeDecodeError) as error:  # names in a damaged schema may be no text
            damaged = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF == sqlite3.SQLITE_CORRUPT
            if damaged:
                raise BadFile(
                    f"The store {self.path} is damaged ({error}); restore a copy, rescue its rows with the command .recover"
                    " of sqlite3, or choose another `store`."
                ) from None
            raise BadFile(
                f"The store {self.path} cannot be used ({error}); choose another `store`, or repair this one."
            ) from None


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, not even the files for locks beside a store that cannot be written."""
    place = path.resolve().as_uri()
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        connection = sqlite3.connect(f"{place}?mode=rw", timeout=BUSY, uri=True)
        connection.execute("pragma query_only = 1")
        return connection
    written = path.with_name(f"{path.name}-wal").exists()  # by another process, perhaps at this moment
    return sqlite3.connect(f"{place}?{'mode=ro' if written else 'immutable=1'}", timeout=BUSY, uri=True)


def _add_digests(db: sqlite3.Connection) -> None:
    """Accept the rows of version 1 as they are; those that cannot be read stay without a digest."""
    for table in ROWS:
        db.execute(f"alter table {table} add column digest text")
        for (number,) in db.execute(f"select rowid from {table}").fetchall():  # noqa: S608
            row = db.execute(f"select * from {table} where rowid = ?", (number,)).fetchone()  # noqa: S608
            if row is not None and is_well_formed(table, row[:-1]):  # an index may name rows that are not there
                values = (digest_of(table, row[:-1]), number)
                db.execute(f"update {table} set digest = ? where rowid = ?", values)  # noqa: S608
