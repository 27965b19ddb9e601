"""PostgreSQL: a few writer connections, each behind a group commit of its own, at SERIALIZABLE.

Transactions behave as if each ran alone, so stores need no row locks and are reasoned about once for both
databases. The price is that the server may refuse one of two that collide: its batch is run again from the
start, and if it collides again, its transactions are run one by one.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, final

import psycopg

from heliograph.storage.batching import Batcher, Job
from heliograph.storage.database import DatabaseUnavailable, Params, Query, Row

P = ParamSpec("P")
T = TypeVar("T")

WRITERS: Final = 2
"""Writer connections of one process: one commits while another gathers; more only collide more."""

READERS: Final = 2
BATCH_MAX: Final = 64
"""Transactions that share a commit here: a collision repeats all of them."""

RETRIES_MAX: Final = 20
"""How often one transaction is run again before the database counts as unavailable."""

COLLISIONS_MAX: Final = 3
"""How often a broken unique constraint counts as a collision before it is the job's own mistake."""

_COLLISIONS: Final = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.UniqueViolation,
)

CONNECT_S: Final = 5
STATEMENT_MS: Final = 60_000


@final
class _Tx:
    """A transaction on one connection."""

    __slots__ = ("_callbacks", "_connection")

    def __init__(self, connection: psycopg.Connection[Row], callbacks: list[Callable[[], None]]) -> None:
        self._connection = connection
        self._callbacks = callbacks

    def all(self, query: Query, params: Params | None = None) -> list[Row]:
        return self._connection.execute(query.postgres.encode(), params or {}).fetchall()

    def one(self, query: Query, params: Params | None = None) -> Row | None:
        return self._connection.execute(query.postgres.encode(), params or {}).fetchone()

    def run(self, query: Query, params: Params | None = None) -> int:
        return self._connection.execute(query.postgres.encode(), params or {}).rowcount

    def many(self, query: Query, rows: Iterable[Params]) -> int:
        with self._connection.cursor() as cursor:
            cursor.executemany(query.postgres.encode(), rows)
            return cursor.rowcount

    def after_commit(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)


@final
class _Writer:
    """One connection, and how a batch is run on it. Used by one thread."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Row]], isolation: str) -> None:
        self._connect = connect
        self._begin = f"BEGIN ISOLATION LEVEL {isolation}".encode()
        self._connection: psycopg.Connection[Row] | None = None
        self.retries = 0

    def run_batch(self, batch: list[Job]) -> None:
        """Run a batch and commit it, or tell every job why not."""
        pending = [batch]
        tries = 0
        while pending:
            part = pending.pop(0)
            try:
                self._try(part)
            except _COLLISIONS:
                self._rollback()
                tries += 1
                self.retries += 1
                if tries > RETRIES_MAX + len(batch):
                    self._give_up([part, *pending], "it keeps refusing to serialize")
                    return
                pending = [[job] for job in part] + pending if len(part) > 1 else [part, *pending]
            except psycopg.Error as error:
                self._give_up([part, *pending], type(error).__name__)
                return

    def _try(self, batch: list[Job]) -> None:
        connection = self._connection
        if connection is None or connection.closed:
            connection = self._connection = self._connect()
        connection.execute(self._begin)
        alone = len(batch) == 1
        for job in batch:
            job.error = None
            job.callbacks.clear()
            if not alone:
                connection.execute(b"SAVEPOINT job")
            try:
                job.result = job.work(_Tx(connection, job.callbacks))
            except (
                psycopg.errors.SerializationFailure,
                psycopg.errors.DeadlockDetected,
                psycopg.OperationalError,
                psycopg.InterfaceError,
            ):
                raise  # the server or its will, not this job's own fault
            except psycopg.errors.UniqueViolation as error:
                # Another transaction wrote the row between this one's look and its own write. Run again it
                # sees that row; only a job that violates the constraint by itself does so every time.
                job.collisions += 1
                if job.collisions < COLLISIONS_MAX:
                    raise
                job.error = error
                connection.execute(b"ROLLBACK" if alone else b"ROLLBACK TO SAVEPOINT job")
                if alone:
                    return
            except BaseException as error:  # noqa: BLE001 - it belongs to the job's own caller
                job.error = error
                connection.execute(b"ROLLBACK" if alone else b"ROLLBACK TO SAVEPOINT job")
                if alone:
                    return
            if not alone:
                connection.execute(b"RELEASE SAVEPOINT job")
        connection.execute(b"COMMIT")

    def _rollback(self) -> None:
        try:
            if self._connection is not None:
                self._connection.execute(b"ROLLBACK")
        except psycopg.Error:
            self.close()

    def _give_up(self, parts: list[list[Job]], why: str) -> None:
        gone = DatabaseUnavailable(why)
        for job in itertools.chain.from_iterable(parts):
            job.error = gone
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@final
class PostgresDatabase:
    """A ``Database`` on a PostgreSQL server. Build it with ``open``."""

    def __init__(self, url: str, writers: int, observe: Callable[[int, float], None] | None) -> None:
        self._url = url
        self._writers = [_Writer(self._connect, "SERIALIZABLE") for _ in range(writers)]
        self._claimer = _Writer(self._connect, "READ COMMITTED")
        self._batchers = [
            Batcher(writer.run_batch, f"postgres-writer-{number}", observe, batch_max=BATCH_MAX)
            for number, writer in enumerate(self._writers)
        ]
        self._claims = Batcher(self._claimer.run_batch, "postgres-claimer", batch_max=1)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="postgres-reader")
        self._idle_readers: list[psycopg.Connection[Row]] = []

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        writers: int = WRITERS,
        observe: Callable[[int, float], None] | None = None,
    ) -> "PostgresDatabase":
        """Connect to a server.

        Args:
            url: A libpq URL; it may hold a password and is never shown.
            writers: How many connections write; besides them one claims and a few read.
            observe: Told how many transactions shared each commit and the seconds it took.

        Raises:
            DatabaseUnavailable: It cannot be reached.
        """
        database = cls(url, writers, observe)
        try:
            await database.ping()
        except DatabaseUnavailable:
            await database.close()
            raise
        return database

    @property
    def retries(self) -> int:
        """How often transactions were run again because they collided."""
        return sum(writer.retries for writer in (*self._writers, self._claimer))

    def _connect(self) -> psycopg.Connection[Row]:
        return psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=CONNECT_S,
            prepare_threshold=2,
            application_name="heliograph",
            options=f"-c statement_timeout={STATEMENT_MS} -c synchronous_commit=on -c TimeZone=UTC",
        )

    async def transact(
        self, fn: "Callable[Concatenate[Any, P], T]", /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function that may write, and return once its commit is durable."""
        # Whichever would commit it soonest; among equals the first, so that batches grow before they spread.
        batcher = min(self._batchers, key=lambda each: each.load)
        result: T = await batcher.put(partial(_called, fn, args, kwargs))
        return result

    async def claim(self, fn: "Callable[Concatenate[Any, P], T]", /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``transact``, at READ COMMITTED: for claims with SKIP LOCKED."""
        result: T = await self._claims.put(partial(_called, fn, args, kwargs))
        return result

    async def read(self, fn: "Callable[Concatenate[Any, P], T]", /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, on a snapshot."""
        work = partial(self._read, partial(_called, fn, args, kwargs))
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def _read(self, work: Callable[[_Tx], T]) -> T:
        try:
            connection = self._idle_readers.pop() if self._idle_readers else self._connect()
        except psycopg.Error as error:
            raise DatabaseUnavailable(type(error).__name__) from None
        try:
            connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            result = work(_Tx(connection, []))
            connection.execute(b"COMMIT")
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            connection.close()
            raise DatabaseUnavailable(type(error).__name__) from None
        except BaseException:
            connection.execute(b"ROLLBACK")
            self._idle_readers.append(connection)
            raise
        self._idle_readers.append(connection)
        return result

    async def ping(self) -> None:
        """Prove that a write can be committed now."""
        await self.transact(_touch)

    async def close(self) -> None:
        """Finish what was handed over, then let go of every connection."""
        for batcher in (*self._batchers, self._claims):
            await batcher.close()
        self._readers.shutdown(wait=True)
        for connection in self._idle_readers:
            connection.close()
        for writer in (*self._writers, self._claimer):
            writer.close()


def _called(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], tx: _Tx) -> T:
    return fn(tx, *args, **kwargs)


_TOUCH: Final = Query("postgres.touch", "", "SELECT pg_current_xact_id()")


def _touch(tx: _Tx) -> None:
    tx.run(_TOUCH)
