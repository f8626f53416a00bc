"""Claims: which process works on which job of a store.

A process keeps its claims alive by a heartbeat; once that stops, others take them over.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from condense_once.studies.database import BUSY, Database

HEARTBEAT = 5.0  # seconds between updates of our claims
EXPIRY = 30.0  # seconds without a heartbeat after which a claim is void


class Claims:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"

    def acquire(self, key: str) -> bool:
        """Claim a job, unless another live process has it.

        A claim from the future is void, too: a live process would have corrected it by its next heartbeat.
        """
        now = time.time()
        with self._database.transaction() as db:
            db.execute("delete from claims where key = ? and abs(beat - ?) > ?", (key, now, EXPIRY))
            db.execute("insert or ignore into claims values (?, ?, ?)", (key, self._owner, now))
            return (
                db.execute("select 1 from claims where key = ? and owner = ?", (key, self._owner)).fetchone()
                is not None
            )

    def release(self, key: str) -> None:
        with self._database.transaction() as db:
            db.execute("delete from claims where key = ? and owner = ?", (key, self._owner))

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Keep the claims of this process alive while the block runs, then release those that are left."""
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            with self._database.transaction() as db:
                db.execute("delete from claims where owner = ?", (self._owner,))

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(HEARTBEAT):
            # A connection of this thread's own. A beat that fails because others write does no harm.
            with suppress(sqlite3.Error), closing(sqlite3.connect(self._database.path, timeout=BUSY)) as db, db:
                db.execute("update claims set beat = ? where owner = ?", (time.time(), self._owner))
