"""SQLite: one writer connection behind a group commit, a few readers beside it, every commit on disk."""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar, final

from heliograph.storage.batching import (
    BATCH_MS_MAX,
    WAITING_MAX,
    Batcher,
    Care,
    Job,
    Observer,
    Ran,
    Spoiled,
    Work,
    bound,
)
from heliograph.storage.database import CommitUnknown, DatabaseUnavailable, Tx
from heliograph.storage.queries import load_queries
from heliograph.storage.reading import Readers
from heliograph.storage.sqlite_tx import SqliteTx, words

P = ParamSpec("P")
T = TypeVar("T")

_SQL: Final = load_queries("heliograph.storage", "storage.sql")

MEMORY: Final = ":memory:"

READERS: Final = 2
"""Reader connections: reads are short, and each holds a cache of its own."""

CHECKPOINT_PAGES: Final = 8_000
"""Pages of log before SQLite copies them back: 32 MB. Fewer, and the copying shows in the slowest commits."""

LOG_KEPT_BYTES: Final = 67_108_864
"""What the log file keeps of its size after it was copied back: twice an ordinary one, not a flood's."""

CACHE_KIB: Final = 32_768
"""Pages that a connection keeps in memory: the hot ends of the tables and their indexes."""

STATEMENTS_KEPT: Final = 256
"""Prepared statements that a connection keeps: more than all our files hold."""

BUSY_MS: Final = 5_000
"""How long to wait for another process that holds the file for a moment: a command, a backup."""

VERSION_MIN: Final = (3, 38, 0)
"""The first SQLite with the JSON operators and RETURNING that our statements use."""

_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    f"PRAGMA journal_size_limit = {LOG_KEPT_BYTES}",
    f"PRAGMA cache_size = -{CACHE_KIB}",
    "PRAGMA temp_store = MEMORY",
)


class AlreadyOpen(Exception):  # noqa: N818 - a state of the world
    """Another process writes to this database file. SQLite is for one process."""


@final
class SqliteDatabase:
    """A ``Database`` on one SQLite file. Build it with ``open``."""

    def __init__(
        self,
        path: Path | None,
        lock: int | None,
        *,
        timeout_s: float,
        readers: int,
        waiting_max: int,
        observer: Observer,
    ) -> None:
        self._path = path
        self._lock = lock
        self._timeout_s = timeout_s
        self._writer: sqlite3.Connection | None = None
        self._care = Care()
        self._batcher = Batcher(self._run_batch, "sqlite-writer", observer.tell, waiting_max=waiting_max)
        # A database in memory belongs to its one connection: there reads take their turn among the writes.
        self._readers = (
            None
            if path is None
            else Readers(
                "sqlite-reader",
                readers,
                connect=self._connect_reader,
                read=_read,
                is_usable=lambda _: False,
            )
        )

    @classmethod
    async def open(
        cls,
        path: Path | Literal[":memory:"],
        *,
        exclusive: bool = True,
        busy_s: float = BUSY_MS / 1000,
        readers: int = READERS,
        waiting_max: int = WAITING_MAX,
        observe: Callable[[int, float], None] | None = None,
    ) -> "SqliteDatabase":
        """Open a database file, making it if it is missing.

        Args:
            path: The file, whose folder must exist; or ``":memory:"``, for tests: gone when it is closed.
            exclusive: Refuse to share the file with another process that writes all the time; two would
                starve each other. A command that writes a row or two is a guest and passes False.
            busy_s: How long to wait for another process that holds the file.
            readers: How many reads may run at once.
            waiting_max: How many transactions may wait; more are refused.
            observe: Told how many transactions shared each commit and the seconds it took.

        Raises:
            AlreadyOpen: Another process writes to it.
            DatabaseUnavailable: It cannot be opened.
        """
        if sqlite3.sqlite_version_info < VERSION_MIN:
            needed = ".".join(map(str, VERSION_MIN))
            raise DatabaseUnavailable(f"SQLite {sqlite3.sqlite_version} is too old: at least {needed}")
        file = None if path == MEMORY else _prepared(Path(path))
        lock = None if file is None or not exclusive else _locked(file)
        database = cls(
            file,
            lock,
            timeout_s=busy_s,
            readers=readers,
            waiting_max=waiting_max,
            observer=Observer(committed=observe),
        )
        try:
            await database.ping()
        except BaseException:
            await database.close()
            raise
        return database

    @property
    def waiting(self) -> int:
        """How many transactions wait for the next commit."""
        return self._batcher.waiting

    async def transact(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that may write, and return once its commit is durable."""
        result: T = await self._batcher.put(bound(fn, args, kwargs))
        return result

    claim = transact  # one writer: every transaction is alone

    async def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, on a snapshot."""
        work = bound(fn, args, kwargs)
        result: T
        if self._readers is None:
            result = await self._batcher.put(lambda tx: tx.only_read(work))
        else:
            result = await self._readers.run(work)
        return result

    async def ping(self) -> None:
        """Prove that a write can be committed now."""
        await self._batcher.put(lambda tx: tx.run(_SQL["touch"]))

    async def close(self) -> None:
        """Finish what was handed over, then let go of every connection and of the file."""
        await self._batcher.close()
        if self._readers is not None:
            await self._readers.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path or MEMORY,
            timeout=self._timeout_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS_KEPT,
        )
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        return connection

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect()
        # A guest leaves the log to the process that serves: only one ever copies it back.
        pages = CHECKPOINT_PAGES if self._lock is not None else 0
        connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal" and self._path is not None:
            connection.close()
            raise DatabaseUnavailable(f"no write-ahead log is possible here, only {mode}")
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        try:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise DatabaseUnavailable(words(error)) from None
        return connection

    def _run_batch(self, batch: list[Job]) -> Ran:
        """Run a batch and commit it, or tell every job why not. In the writer thread."""
        gone: DatabaseUnavailable
        try:
            connection = self._writer = self._writer or self._connect_writer()
            try:
                return Ran(_attempt(connection, batch, careful=self._care.begin()))
            except Spoiled:
                self._care.repeat()
                return Ran(_attempt(connection, batch, careful=True))
        except DatabaseUnavailable as error:
            gone = error
        except sqlite3.Error as error:
            gone = DatabaseUnavailable(words(error))
        for job in batch:
            job.error = gone
        self._begin_anew()
        return Ran(len(batch))

    def _begin_anew(self) -> None:
        """Nothing of the batch shall be committed: roll back, and let the next one have a new connection."""
        if self._writer is None:
            return
        if self._path is None:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            return
        self._writer.close()  # rolls back
        self._writer = None


def _attempt(connection: sqlite3.Connection, batch: list[Job], *, careful: bool) -> int:
    """Run the beginning of a batch, commit once, and return how many jobs that were.

    Args:
        connection: The writer's.
        batch: The jobs.
        careful: Give each a savepoint.

    Raises:
        Spoiled: Nothing was committed; run it again, carefully.
        DatabaseUnavailable: Nothing was committed.
        CommitUnknown: Nothing was, so far as anybody can see here.
    """
    deadline = perf_counter() + BATCH_MS_MAX / 1000
    connection.execute("BEGIN IMMEDIATE")
    others_wrote = False
    taken = 0
    for job in batch:
        if careful:
            connection.execute("SAVEPOINT job")
        wrote = _run_one(connection, job)
        if job.error is None:
            others_wrote |= wrote
        elif careful:
            connection.execute("ROLLBACK TO job")
        elif wrote:
            connection.execute("ROLLBACK")
            if others_wrote:
                raise Spoiled
            connection.execute("BEGIN IMMEDIATE")
        if careful:
            connection.execute("RELEASE job")
        taken += 1
        if perf_counter() >= deadline:
            break
    _commit(connection)
    return taken


def _run_one(connection: sqlite3.Connection, job: Job) -> bool:
    """Run one job and return whether it wrote.

    Raises:
        DatabaseUnavailable: The database failed under it; whatever it made of that, the batch is lost.
    """
    job.reset()
    tx = SqliteTx(connection, job.callbacks)
    try:
        job.result = job.work(tx)
    except BaseException as error:  # noqa: BLE001 - it belongs to the job's own caller
        job.error = error
    if isinstance(tx.failure, DatabaseUnavailable):
        raise tx.failure
    job.error = job.error or tx.failure
    tx.end()
    return tx.wrote


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR:
            # Here it is undone, but a crash before the log is written over may find it there and take it.
            raise CommitUnknown(words(error)) from None
        raise


def _read(connection: sqlite3.Connection, work: Work) -> Any:
    """Run a function on a snapshot of a reader connection."""
    tx = SqliteTx(connection, [], readonly=True)
    try:
        connection.execute("BEGIN")
        result = work(tx)
        if tx.failure is not None:
            raise tx.failure
        return result
    except sqlite3.Error as error:
        raise DatabaseUnavailable(words(error)) from None
    finally:
        tx.end()
        with contextlib.suppress(sqlite3.Error):  # then the next BEGIN fails and the connection is replaced
            connection.rollback()


def _prepared(path: Path) -> Path:
    """Make the file if it is missing, for our eyes only, and return where it really is."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        return path.resolve(strict=True)  # its lock shall be the same under every name
    except OSError as error:
        raise DatabaseUnavailable(f"{path.name} cannot be opened: {error.strerror}") from None


def _locked(path: Path) -> int:
    """Take the lock of the one process that serves a file; it ends with the process, however that ends."""
    try:
        lock = os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise DatabaseUnavailable(f"{path.name} cannot be locked: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise AlreadyOpen(f"{path.name} is in use by another process") from None
    return lock
