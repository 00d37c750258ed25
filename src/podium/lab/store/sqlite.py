"""The journal of a store in an SQLite database: acknowledged writes survive a crash.

A write changes the store in memory and is added to the journal. A thread commits all writes since
its last commit in one transaction, so that many writes share one wait for the disk. A response is
sent, and an event reaches watches, only after the writes before it are committed.

While the disk is full, or fails otherwise, writes are refused, which is logged once. What could not
be committed is tried again every second; then writes go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podium.errors import InputError
from podium.lab.api.encoding import decode
from podium.lab.api.status import StatusError
from podium.lab.store.selection import fields_of
from podium.lab.store.store import DELETED, Key, ObjectVersion, Store, WatchEvent

logger = logging.getLogger(__name__)

FILE = "lab.sqlite"
_REFUSED = "writes are refused until it can be written again"
_FORMAT = 1
_TABLES = """
    CREATE TABLE IF NOT EXISTS objects (
        resource TEXT, namespace TEXT, name TEXT, version INTEGER, data BLOB,
        PRIMARY KEY (resource, namespace, name)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER);
"""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_SET_VERSION = "INSERT OR REPLACE INTO counter VALUES (1, ?)"

_Place = tuple[str, str, str]  # resource, namespace, name


class SqliteJournal:
    """Writes events to a database that no other lab can open at the same time."""

    def __init__(self, folder: Path, *, retry_seconds: float = 1.0) -> None:
        """Open the database in *folder*, or create it."""
        self.durable_version = 0
        #: Why the last commit failed; empty while the disk works.
        self.failure = ""
        self._retry_seconds = retry_seconds
        self._path = folder / FILE
        self._database = self._open(folder)
        self._pending: dict[_Place, tuple[int, bytes] | None] = {}
        self._version = 0
        self._changed = threading.Condition()
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        #: Called in the loop when more has been committed.
        self.listeners: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._run, name="lab-journal", daemon=True)

    def _open(self, folder: Path) -> sqlite3.Connection:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # The objects include secrets. SQLite gives its other files the mode of this one.
            self._path.touch(mode=0o600)
            for path in (self._path, *folder.glob(f"{self._path.name}-*")):
                path.chmod(0o600)  # those of an earlier lab may be open to others
            database = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=0.2
            )
            # Exclusive: a second lab over the same folder is refused instead of mixed in.
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute("BEGIN EXCLUSIVE")
            _check_format(database)
            database.execute("COMMIT")
            database.executescript(_TABLES)
        except (sqlite3.Error, OSError) as error:
            in_use = "locked" in str(error)
            hint = "another lab uses it" if in_use else "give a folder that can be written"
            raise InputError(
                f"cannot keep a lab here: {error}", where=str(folder), hint=hint
            ) from None
        return database

    def start(self, store: Store) -> None:
        """Fill *store* from the database, and write every later event of it."""
        rows = self._database.execute(
            "SELECT resource, namespace, name, version, data FROM objects"
        )
        for resource, namespace, name, version, data in rows:
            item = decode(data)
            labels = item["metadata"].get("labels") or {}
            fields = fields_of(resource, item)
            key = Key(namespace, name)
            store.load(resource, ObjectVersion(key, version, data, labels, fields))
        counted = self._database.execute("SELECT version FROM counter").fetchone()
        if counted is not None:
            store.resume(counted[0])
        self.durable_version = self._version = store.version
        store.journal = self
        self._thread.start()

    # In the thread of the store
    def append(self, resource: str, event: WatchEvent) -> None:
        """Add an event; while the disk fails all writes are refused."""
        if self.failure:
            raise _unavailable(self.failure)
        record = event.record
        place = (resource, *record.key)
        with self._changed:
            self._pending[place] = None if event.type == DELETED else (record.version, record.data)
            self._version = record.version
            self._changed.notify()

    async def wait_durable(self) -> None:
        """Wait until all events that were added are on disk."""
        if self.durable_version >= self._version:
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((self._version, future))
        self._resolve()
        await future

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call the listeners in this loop."""
        self._loop = loop

    def _resolve(self) -> None:
        """Resolve the futures whose versions are on disk, and call the listeners."""
        waiting, self._waiting = self._waiting, []
        for version, future in waiting:
            if future.done():
                continue
            if self.failure:
                future.set_exception(_unavailable(self.failure))
            elif version <= self.durable_version:
                future.set_result(None)
            else:
                self._waiting.append((version, future))
        for listener in self.listeners:
            listener()

    def close(self) -> None:
        """Write all pending events and close the database."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()
        self._database.close()

    # In the thread of the journal
    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._pending and not self._closing:
                    self._changed.wait()
                if self.failure and not self._closing:
                    self._changed.wait(self._retry_seconds)
                if not self._pending:
                    return
                pending, self._pending = self._pending, {}
                version, is_last = self._version, self._closing
            try:
                self._commit(pending, version)
            except (sqlite3.Error, OSError) as error:
                self._failed(pending, error)
                if is_last:
                    return
                continue
            if self.failure:
                logger.warning("%s can be written again", self._path)
            self.durable_version, self.failure = version, ""
            self._notify_loop()

    def _failed(self, pending: dict[_Place, tuple[int, bytes] | None], error: Exception) -> None:
        """Keep what was not committed, below what was added since."""
        with contextlib.suppress(sqlite3.Error):
            self._database.execute("ROLLBACK")
        with self._changed:
            self._pending = {**pending, **self._pending}
        if not self.failure:
            logger.warning("%s: %s; %s", self._path, error, _REFUSED)
        self.failure = f"cannot write to {self._path.name}: {error}"
        self._notify_loop()

    def _commit(self, pending: dict[_Place, tuple[int, bytes] | None], version: int) -> None:
        stored: list[Any] = []
        deleted: list[Any] = []
        for place, what in pending.items():
            if what is None:
                deleted.append(place)
            else:
                stored.append((*place, *what))
        database = self._database
        database.execute("BEGIN")
        database.executemany(_DELETE, deleted)
        database.executemany(_PUT, stored)
        database.execute(_SET_VERSION, (version,))
        database.execute("COMMIT")

    def _notify_loop(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._resolve)


def _unavailable(failure: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", f"{failure}; {_REFUSED}")


def _check_format(database: sqlite3.Connection) -> None:
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found not in {0, _FORMAT}:
        raise sqlite3.DatabaseError(f"its format {found} is not {_FORMAT}, which is read here")
    database.execute(f"PRAGMA user_version = {_FORMAT}")


def open_store(folder: Path) -> tuple[Store, SqliteJournal]:
    """The store in *folder*, created if there is none, and its journal."""
    store, journal = Store(), SqliteJournal(folder)
    journal.start(store)
    return store, journal
