"""Objects on disk: what was acknowledged is there after a crash, whenever it comes.

Writes happen in memory first and are noted here; a thread of its own takes everything noted since
the last time and commits it as one transaction, so that many writers share one wait for the disk.
Answers go out, and watchers are told, only when what they rest on has been committed.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podium.errors import InputError
from podium.lab.api.encoding import decode
from podium.lab.api.status import internal
from podium.lab.store.selection import fields_of
from podium.lab.store.store import DELETED, Event, Key, Record, Store

FILE = "lab.sqlite"
_FORMAT = 1
_TABLES = """
    CREATE TABLE IF NOT EXISTS objects (
        resource TEXT, namespace TEXT, name TEXT, version INTEGER, data BLOB,
        PRIMARY KEY (resource, namespace, name)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER);
"""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"
_DROP = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_COUNT = "INSERT OR REPLACE INTO counter VALUES (1, ?)"

_Place = tuple[str, str, str]


class Journal:
    """Writes events to a database in *folder*, which is one lab's alone while it runs."""

    def __init__(self, folder: Path) -> None:
        """Open the database, or make it."""
        self.written = 0
        self.failure = ""
        self._path = folder / FILE
        self._database = self._opened(folder)
        self._noted: dict[_Place, tuple[int, bytes] | None] = {}
        self._version = 0
        self._bell = threading.Condition()
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        #: Called in the loop when more has been committed.
        self.listeners: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._work, name="lab-journal", daemon=True)

    def _opened(self, folder: Path) -> sqlite3.Connection:
        try:
            folder.mkdir(parents=True, exist_ok=True)
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
        """Fill *store* with what was kept, and write down what happens to it from now on."""
        rows = self._database.execute(
            "SELECT resource, namespace, name, version, data FROM objects"
        )
        for resource, namespace, name, version, data in rows:
            item = decode(data)
            labels = item["metadata"].get("labels") or {}
            fields = fields_of(resource, item)
            key = Key(namespace, name)
            store.load(resource, Record(key, version, data, labels, fields))
        counted = self._database.execute("SELECT version FROM counter").fetchone()
        if counted is not None:
            store.resume(counted[0])
        self.written = self._version = store.version
        store.journal = self
        self._thread.start()

    # In the thread of the store
    def note(self, resource: str, event: Event) -> None:
        """Take over an event; a disk that fails refuses all further writes."""
        if self.failure:
            raise internal(self.failure)
        record = event.record
        place = (resource, *record.key)
        with self._bell:
            self._noted[place] = None if event.type == DELETED else (record.version, record.data)
            self._version = record.version
            self._bell.notify()

    async def durable(self) -> None:
        """Wait until everything noted so far is on disk."""
        if self.written >= self._version:
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((self._version, future))
        self._settle()
        await future

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell listeners in this loop."""
        self._loop = loop

    def _settle(self) -> None:
        """Let those go on whose writes are on disk."""
        waiting, self._waiting = self._waiting, []
        for version, future in waiting:
            if future.done():
                continue
            if self.failure:
                future.set_exception(internal(self.failure))
            elif version <= self.written:
                future.set_result(None)
            else:
                self._waiting.append((version, future))
        for listener in self.listeners:
            listener()

    def close(self) -> None:
        """Write what is left, and end."""
        with self._bell:
            self._closing = True
            self._bell.notify()
        if self._thread.is_alive():
            self._thread.join()
        self._database.close()

    # In a thread of its own
    def _work(self) -> None:
        while True:
            with self._bell:
                while not self._noted and not self._closing:
                    self._bell.wait()
                if not self._noted:
                    return
                noted, self._noted = self._noted, {}
                version = self._version
            try:
                self._commit(noted, version)
            except (sqlite3.Error, OSError) as error:
                self.failure = f"cannot write to {self._path.name}: {error}"
                self._wake()
                return
            self.written = version
            self._wake()

    def _commit(self, noted: dict[_Place, tuple[int, bytes] | None], version: int) -> None:
        kept: list[Any] = []
        gone: list[Any] = []
        for place, what in noted.items():
            if what is None:
                gone.append(place)
            else:
                kept.append((*place, *what))
        database = self._database
        database.execute("BEGIN")
        database.executemany(_DROP, gone)
        database.executemany(_PUT, kept)
        database.execute(_COUNT, (version,))
        database.execute("COMMIT")

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._settle)


def _check_format(database: sqlite3.Connection) -> None:
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found not in {0, _FORMAT}:
        raise sqlite3.DatabaseError(f"its format {found} is not {_FORMAT}, which is read here")
    database.execute(f"PRAGMA user_version = {_FORMAT}")


def opened(folder: Path) -> tuple[Store, Journal]:
    """A store that is kept in *folder*."""
    store, journal = Store(), Journal(folder)
    journal.start(store)
    return store, journal
