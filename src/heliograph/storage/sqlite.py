"""SQLite: one writer connection behind a group commit, a few readers beside it, every commit on disk."""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar, final

from heliograph.storage.batching import BATCH_MS_MAX, Batcher, Care, Job, Observer, Ran, Spoiled, Work, bound
from heliograph.storage.database import (
    CommitUnknown,
    ConstraintViolated,
    DatabaseUnavailable,
    Params,
    Query,
    Row,
    StatementRefused,
)
from heliograph.storage.queries import load_queries
from heliograph.storage.reading import Readers
from heliograph.storage.values import storable

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
    f"PRAGMA busy_timeout = {BUSY_MS}",
    f"PRAGMA journal_size_limit = {LOG_KEPT_BYTES}",
    f"PRAGMA cache_size = -{CACHE_KIB}",
    "PRAGMA temp_store = MEMORY",
)

_OURS: Final = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_RANGE,
    }
)
"""Errors that are the statement's own fault. All others are the file's, the disk's or another process's."""


def _words(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _is_ours(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # none: the driver refused it before the database saw it
    return code is None or code & 0xFF in _OURS


@final
class _Tx:
    """A transaction on one connection."""

    __slots__ = ("_before", "_callbacks", "_changed_schema", "_connection", "_readonly", "failure")

    def __init__(
        self, connection: sqlite3.Connection, callbacks: list[Callable[[], None]], *, readonly: bool = False
    ) -> None:
        self._connection = connection
        self._callbacks = callbacks
        self._readonly = readonly
        self._before = connection.total_changes
        self._changed_schema = False
        self.failure: Exception | None = None

    @property
    def wrote(self) -> bool:
        """Whether there is something to roll back."""
        return self._changed_schema or self._connection.total_changes != self._before

    def all(self, query: Query, params: Params | None = None) -> list[Row]:
        try:
            return self._execute(query, params).fetchall()
        except sqlite3.Error as error:
            raise self._failed(query, error) from None

    def one(self, query: Query, params: Params | None = None) -> Row | None:
        try:
            row: Row | None = self._execute(query, params).fetchone()
        except sqlite3.Error as error:
            raise self._failed(query, error) from None
        return row

    def run(self, query: Query, params: Params | None = None) -> int:
        try:
            cursor = self._execute(query, params)
            if cursor.rowcount >= 0:
                return cursor.rowcount
            self._changed_schema = True  # or it was a query, which does no harm
            return 0
        except sqlite3.Error as error:
            raise self._failed(query, error) from None

    def many(self, query: Query, rows: Iterable[Params]) -> int:
        self._check()
        every = [storable(row) for row in rows]
        try:
            return max(0, self._connection.executemany(query.sqlite, every).rowcount)
        except sqlite3.Error as error:
            raise self._failed(query, error) from None

    def after_commit(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def only_read(self, work: Work) -> Any:
        """Run a function that must not write."""
        self._readonly = True
        self._connection.execute("PRAGMA query_only = ON")
        try:
            return work(self)
        finally:
            self._connection.execute("PRAGMA query_only = OFF")

    def end(self) -> None:
        """Refuse everything from now on."""
        self.failure = RuntimeError("the transaction is over")

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _execute(self, query: Query, params: Params | None) -> sqlite3.Cursor:
        self._check()
        return self._connection.execute(query.sqlite, storable(params))

    def _failed(self, query: Query, error: sqlite3.Error) -> Exception:
        """Say it in our words, and remember it: SQLite may have rolled back more than the statement."""
        if isinstance(error, sqlite3.IntegrityError):
            self.failure = ConstraintViolated(f"{query.name}: {error}")
        elif _is_ours(error) or (self._readonly and _words(error) == "SQLITE_READONLY"):
            self.failure = StatementRefused(f"{query.name}: {error}")
        else:
            self.failure = DatabaseUnavailable(_words(error))
        return self.failure


class AlreadyOpen(Exception):  # noqa: N818 - a state of the world
    """Another process writes to this database file. SQLite is for one process."""


@final
class SqliteDatabase:
    """A ``Database`` on one SQLite file. Build it with ``open``."""

    def __init__(
        self, path: Path | None, lock: int | None, timeout_s: float, readers: int, observer: Observer
    ) -> None:
        self._path = path
        self._lock = lock
        self._timeout_s = timeout_s
        self._writer: sqlite3.Connection | None = None
        self._care = Care()
        self._batcher = Batcher(self._run_batch, "sqlite-writer", observer.tell)
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
        observe: Callable[[int, float], None] | None = None,
    ) -> "SqliteDatabase":
        """Open a database file, making it if it is missing.

        Args:
            path: The file, whose folder must exist; or ``":memory:"``, for tests: gone when it is closed.
            exclusive: Refuse to share the file with another process that writes all the time; two would
                starve each other. A command that writes a row or two is a guest and passes False.
            busy_s: How long to wait for another process that holds the file.
            readers: How many reads may run at once.
            observe: Told how many transactions shared each commit and the seconds it took.

        Raises:
            AlreadyOpen: Another process writes to it.
            DatabaseUnavailable: It cannot be opened.
        """
        if sqlite3.sqlite_version_info < VERSION_MIN:
            raise DatabaseUnavailable(f"SQLite {sqlite3.sqlite_version} is too old")
        file = None if path == MEMORY else _prepared(Path(path))
        lock = None if file is None or not exclusive else _locked(file)
        database = cls(file, lock, busy_s, readers, Observer(committed=observe))
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

    async def transact(self, fn: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that may write, and return once its commit is durable."""
        result: T = await self._batcher.put(bound(fn, args, kwargs))
        return result

    claim = transact  # one writer: every transaction is alone

    async def read(self, fn: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
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
            raise DatabaseUnavailable(_words(error)) from None
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
            gone = DatabaseUnavailable(_words(error))
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
    tx = _Tx(connection, job.callbacks)
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
            raise CommitUnknown(_words(error)) from None
        raise


def _read(connection: sqlite3.Connection, work: Work) -> Any:
    """Run a function on a snapshot of a reader connection."""
    tx = _Tx(connection, [], readonly=True)
    try:
        connection.execute("BEGIN")
        result = work(tx)
        if tx.failure is not None:
            raise tx.failure
        return result
    except sqlite3.Error as error:
        raise DatabaseUnavailable(_words(error)) from None
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
