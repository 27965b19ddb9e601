"""SQLite: one writer connection behind a group commit, a few readers beside it, every commit on disk."""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, final

from heliograph.storage.batching import Batcher, Job
from heliograph.storage.database import DatabaseUnavailable, Params, Query, Row

P = ParamSpec("P")
T = TypeVar("T")

READERS: Final = 2
"""Reader connections: reads are short, and each holds a cache of its own."""

CHECKPOINT_PAGES: Final = 8_000
"""Pages of log before SQLite copies them back: 32 MB. Fewer, and the copying shows in the slowest commits."""

CACHE_KIB: Final = 32_768
STATEMENTS_KEPT: Final = 256
BUSY_MS: Final = 5_000

_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    f"PRAGMA busy_timeout = {BUSY_MS}",
    f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}",
    f"PRAGMA cache_size = -{CACHE_KIB}",
    "PRAGMA temp_store = MEMORY",
)


@final
class _Tx:
    """A transaction on one connection."""

    __slots__ = ("_callbacks", "_connection")

    def __init__(self, connection: sqlite3.Connection, callbacks: list[Callable[[], None]]) -> None:
        self._connection = connection
        self._callbacks = callbacks

    def all(self, query: Query, params: Params | None = None) -> list[Row]:
        return self._connection.execute(query.sqlite, params or {}).fetchall()

    def one(self, query: Query, params: Params | None = None) -> Row | None:
        row: Row | None = self._connection.execute(query.sqlite, params or {}).fetchone()
        return row

    def run(self, query: Query, params: Params | None = None) -> int:
        return self._connection.execute(query.sqlite, params or {}).rowcount

    def many(self, query: Query, rows: Iterable[Params]) -> int:
        return self._connection.executemany(query.sqlite, rows).rowcount

    def after_commit(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)


class AlreadyOpen(Exception):  # noqa: N818 - a state of the world
    """Another process writes to this database file. SQLite is for one process."""


@final
class SqliteDatabase:
    """A ``Database`` on one SQLite file. Build it with ``open``."""

    def __init__(
        self, path: Path, lock: int | None, timeout_s: float, observe: Callable[[int, float], None] | None
    ) -> None:
        self._path = path
        self._lock = lock
        self._timeout_s = timeout_s
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        self._batcher = Batcher(self._run_batch, "sqlite-writer", observe)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite-reader")
        self._idle_readers: list[sqlite3.Connection] = []

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        exclusive: bool = True,
        busy_s: float = BUSY_MS / 1000,
        observe: Callable[[int, float], None] | None = None,
    ) -> "SqliteDatabase":
        """Open a database file, making it if it is missing.

        Args:
            path: The file. Its folder must exist.
            exclusive: Refuse to share the file with another process that writes all the time; two would
                starve each other. A command that writes a row or two is a guest and passes False.
            busy_s: How long to wait for another process that holds the file.
            observe: Told how many transactions shared each commit and the seconds it took.

        Raises:
            AlreadyOpen: Another process writes to it.
            DatabaseUnavailable: It cannot be opened.
        """
        database = cls(path, _locked(path) if exclusive else None, busy_s, observe)
        await database.ping()
        return database

    def _connect(self, *, readonly: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=self._timeout_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS_KEPT,
        )
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        if readonly:
            connection.execute("PRAGMA query_only = ON")
        return connection

    def _run_batch(self, batch: list[Job]) -> None:
        """Run each job in its savepoint and commit once. In the writer thread."""
        try:
            connection = self._writer = self._writer or self._connect(readonly=False)
            connection.execute("BEGIN IMMEDIATE")
            for job in batch:
                self._run_one(connection, job)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(batch, error)

    def _run_one(self, connection: sqlite3.Connection, job: Job) -> None:
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(_Tx(connection, job.callbacks))
        except sqlite3.OperationalError:
            raise  # the disk, the file or the lock: not this job's fault and not its alone
        except BaseException as error:  # noqa: BLE001 - it belongs to the job's own caller
            job.error = error
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")

    def _give_up(self, batch: list[Job], error: sqlite3.Error) -> None:
        """Nothing of the batch was committed: tell everybody so, and begin anew with a new connection."""
        gone = DatabaseUnavailable(error.sqlite_errorname if hasattr(error, "sqlite_errorname") else "error")
        for job in batch:
            job.error = gone
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()  # rolls back

    async def transact(
        self, fn: "Callable[Concatenate[Any, P], T]", /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function that may write, and return once its commit is durable."""
        result: T = await self._batcher.put(partial(_called, fn, args, kwargs))
        return result

    claim = transact  # one writer: every transaction is alone

    async def read(self, fn: "Callable[Concatenate[Any, P], T]", /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, on a snapshot."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._readers, partial(self._read, partial(_called, fn, args, kwargs))
        )

    def _reader(self) -> sqlite3.Connection:
        if self._closed:
            raise DatabaseUnavailable("it is closed")
        return self._idle_readers.pop() if self._idle_readers else self._connect(readonly=True)

    def _read(self, work: Callable[[_Tx], T]) -> T:
        try:
            connection = self._reader()
        except sqlite3.Error as error:
            raise DatabaseUnavailable(type(error).__name__) from None
        try:
            connection.execute("BEGIN")
            result = work(_Tx(connection, []))
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            connection.close()
            raise DatabaseUnavailable(error.sqlite_errorname) from None
        except BaseException:
            connection.rollback()
            self._idle_readers.append(connection)
            raise
        self._idle_readers.append(connection)
        return result

    async def ping(self) -> None:
        """Prove that a write can be committed now."""
        await self._batcher.put(_touch)

    async def close(self) -> None:
        """Finish what was handed over, then let go of every connection."""
        if self._closed:
            return
        self._closed = True
        await self._batcher.close()
        self._readers.shutdown(wait=True)
        for connection in self._idle_readers:
            connection.close()
        if self._writer is not None:
            self._writer.close()
        if self._lock is not None:
            os.close(self._lock)


def _locked(path: Path) -> int:
    """Take the lock of the one process that serves a file; it ends with the process, however that ends."""
    lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise AlreadyOpen(f"{path.name} is in use by another process") from None
    return lock


def _called(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], tx: _Tx) -> T:
    return fn(tx, *args, **kwargs)


_TOUCH: Final = Query("sqlite.touch", "PRAGMA user_version = 1", "")


def _touch(tx: _Tx) -> None:
    tx.run(_TOUCH)
