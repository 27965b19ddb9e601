"""PostgreSQL: a few writer connections, each behind a group commit of its own, at SERIALIZABLE.

Transactions behave as if each ran alone, so stores need no row locks and are reasoned about once for both
databases. The price is that the server may refuse one of two that collide: its batch is run again from the
start, and if it collides again, its transactions are run one by one.

Importing this module needs the driver, which is the extra ``heliograph[postgres]``.
"""

import itertools
from collections.abc import Callable, Iterable
from time import perf_counter, sleep
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar, final

import psycopg

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
from heliograph.storage.postgres_link import PostgresLink
from heliograph.storage.queries import load_queries
from heliograph.storage.reading import Readers
from heliograph.storage.values import storable

P = ParamSpec("P")
T = TypeVar("T")
Connection: TypeAlias = psycopg.Connection[Row]

_SQL: Final = load_queries("heliograph.storage", "storage.sql")

WRITERS: Final = 2
"""Writer connections of one process: one commits while another gathers; more only collide more."""

READERS: Final = 2
"""Reader connections: reads are short."""

BATCH_MAX: Final = 64
"""Transactions that share a commit here: a collision repeats all of them, and the server keeps track of no
more than 64 savepoints of a transaction in fast memory."""

GROWTH: Final = 8
"""How much more of a batch is tried together after a commit without a collision; a collision halves it."""

APART_BATCHES: Final = 32
"""Batches for which, after a collision of our own writers, only one of them is given new work: while they
collide, two achieve less than one."""

ALONE_MAX: Final = 20
"""How often one transaction is run by itself before the database counts as unavailable to it."""

PAUSE_MS_FIRST: Final = 1
PAUSE_MS_MAX: Final = 50
"""Pauses between tries alone: doubled from the first to the longest, so that a crowd can thin out."""

_SERVERS_OWN: Final = ("08", "25006", "53", "57P", "58", "F0", "XX")
"""Beginnings of the codes with which the server speaks of itself: gone, read-only, full, broken."""

_TOOK_TOO_LONG: Final = ("57014", "55P03", "25P03")
"""Codes of a statement that was cut off: this transaction's fate, and nobody else's."""

_SAYS_NO_VALUES: Final = ("23", "42")
"""Code classes whose first line names tables and constraints, and never a value."""


class _Collided(Exception):  # noqa: N818 - never leaves this module
    """The server refused one of two transactions that collided."""


def _in_our_words(query: Query, error: psycopg.Error, connection: Connection) -> Exception:
    """Say a driver's error without the values that it may quote."""
    code = error.sqlstate
    if isinstance(error, psycopg.errors.SerializationFailure | psycopg.errors.DeadlockDetected):
        return _Collided(type(error).__name__)
    if connection.closed or (code is None and isinstance(error, psycopg.OperationalError)):
        return DatabaseUnavailable("the connection broke")
    if code is not None and (code in _TOOK_TOO_LONG or code.startswith(_SERVERS_OWN)):
        return DatabaseUnavailable(f"{query.name}: {type(error).__name__}")
    said = error.diag.message_primary if code is not None and code.startswith(_SAYS_NO_VALUES) else None
    words = f"{query.name}: {said or type(error).__name__}"
    return ConstraintViolated(words) if isinstance(error, psycopg.IntegrityError) else StatementRefused(words)


@final
class _Tx:
    """A transaction on one connection."""

    __slots__ = ("_callbacks", "_connection", "_cursor", "code", "failure", "wrote")

    def __init__(self, connection: Connection, callbacks: list[Callable[[], None]]) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._callbacks = callbacks
        self.failure: Exception | None = None
        self.code: str | None = None
        self.wrote = False

    def all(self, query: Query, params: Params | None = None) -> list[Row]:
        self._execute(query, params)
        return self._cursor.fetchall()

    def one(self, query: Query, params: Params | None = None) -> Row | None:
        self._execute(query, params)
        return self._cursor.fetchone()

    def run(self, query: Query, params: Params | None = None) -> int:
        self._execute(query, params)
        return max(0, self._cursor.rowcount)

    def many(self, query: Query, rows: Iterable[Params]) -> int:
        self._check()
        every = [storable(row) for row in rows]
        try:
            self._cursor.executemany(query.postgres.encode(), every)
        except psycopg.Error as error:
            raise self._failed(query, error) from None
        self.wrote = True
        return max(0, self._cursor.rowcount) if every else 0

    def after_commit(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def end(self) -> None:
        """Refuse everything from now on."""
        self.failure = RuntimeError("the transaction is over")

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _execute(self, query: Query, params: Params | None) -> None:
        self._check()
        try:
            self._cursor.execute(query.postgres.encode(), storable(params))
        except psycopg.Error as error:
            raise self._failed(query, error) from None
        if self._cursor.rowcount and not (self._cursor.statusmessage or "").startswith("SELECT"):
            self.wrote = True

    def _failed(self, query: Query, error: psycopg.Error) -> Exception:
        self.code = error.sqlstate
        self.failure = _in_our_words(query, error, self._connection)
        return self.failure


@final
class _Writer:
    """One connection, and how a batch is run on it. Used by one thread."""

    def __init__(self, link: PostgresLink, isolation: str) -> None:
        self._link = link
        self._begin = f"BEGIN ISOLATION LEVEL {isolation}".encode()
        self._care = Care()
        self._size = BATCH_MAX
        self._connection: Connection | None = None
        self.retries = 0

    def run_batch(self, batch: list[Job]) -> Ran:
        """Run a batch and commit it, in one transaction if it can be, or tell every job why not."""
        deadline = perf_counter() + BATCH_MS_MAX / 1000
        retried: list[str] = []
        again: list[Job] = []
        done = 0
        try:
            while done < len(batch) and (done == 0 or perf_counter() < deadline):
                part = batch[done : done + self._size]
                taken = self._together(part, deadline, retried) if len(part) > 1 else 0
                if taken == 0:
                    taken = 1
                    self._alone(part[0], retried)
                done += taken
                again += [job for job in part[:taken] if isinstance(job.error, _Collided)]
            for job in again:
                self._alone(job, retried, violations_count=True)
        except DatabaseUnavailable as gone:
            for job in itertools.chain(again, batch[done:]):
                job.error = gone
            done = len(batch)
            self.close()
        self.retries += len(retried)
        return Ran(done, tuple(retried))

    def _together(self, part: list[Job], deadline: float, retried: list[str]) -> int:
        """Commit the beginning of a part at once and return how much of it; 0 if that collides to the end.

        Two transactions collide the likelier the more each of them holds. So a collision halves what is
        tried next, and a commit that met none lets it grow again.
        """
        careful = self._care.begin()
        while len(part) > 1:
            try:
                taken = self._attempt(part, deadline, careful=careful)
            except _Collided as collision:
                retried.append(str(collision))
                self._size = len(part) // 2
                part = part[: self._size]
            except Spoiled:
                self._care.repeat()
                careful = True
            else:
                self._grow()
                return taken
        return 0

    def _alone(self, job: Job, retried: list[str], *, violations_count: bool = False) -> None:
        """Commit one job by itself, however often it collides within reason."""
        pause_ms = PAUSE_MS_FIRST
        for tries in range(ALONE_MAX):
            try:
                self._attempt([job], 0.0, violations_count=violations_count or tries > 0)
            except _Collided as collision:
                retried.append(str(collision))
            else:
                if not isinstance(job.error, _Collided):
                    self._grow()
                    return
                retried.append(str(job.error))
            if tries:
                sleep(pause_ms / 1000)
                pause_ms = min(2 * pause_ms, PAUSE_MS_MAX)
        job.error = DatabaseUnavailable("it keeps colliding")

    def _grow(self) -> None:
        self._size = min(BATCH_MAX, self._size + GROWTH)

    def _attempt(
        self, part: list[Job], deadline: float, *, careful: bool = False, violations_count: bool = False
    ) -> int:
        """Run the beginning of a part in one transaction, commit, and return how much of it that is.

        Raises:
            Spoiled: Nothing was committed; run it again, carefully.
            _Collided: Nothing was committed; another try may do better.
            DatabaseUnavailable: Nothing was committed, and the server is to blame.
            CommitUnknown: The connection broke in the commit.
        """
        connection = self._begun()
        others_wrote = False
        taken = 0
        for job in part:
            if careful:
                self._send(connection, b"SAVEPOINT job")
            must_go = self._run_one(connection, job, violations_count=violations_count)
            if job.error is None:
                others_wrote |= must_go
                if careful:
                    self._send(connection, b"RELEASE SAVEPOINT job")
            elif careful:
                self._send(connection, b"ROLLBACK TO SAVEPOINT job; RELEASE SAVEPOINT job")
            elif must_go:
                self._send(connection, b"ROLLBACK")
                if others_wrote:
                    raise Spoiled
                self._send(connection, self._begin)
            taken += 1
            if perf_counter() >= deadline:
                break
        self._send(connection, b"COMMIT", commits=True)
        return taken

    def _begun(self) -> Connection:
        """Begin a transaction; on a new connection if the old one broke while it lay idle."""
        if self._connection is not None:
            try:
                self._connection.execute(self._begin, prepare=False)
            except psycopg.Error:
                self.close()
            else:
                return self._connection
        connection = self._connection = self._link.connect()
        self._send(connection, self._begin)
        return connection

    def _send(self, connection: Connection, command: bytes, *, commits: bool = False) -> None:
        """Send a command about the transaction itself."""
        try:
            connection.execute(command, prepare=False)
        except psycopg.Error as error:
            gone = _in_our_words(_TRANSACTION, error, connection)
            self._rollback()
            if isinstance(gone, _Collided):
                raise gone from None
            if commits and connection.closed:
                raise CommitUnknown("the connection broke in a commit") from None
            raise DatabaseUnavailable(str(gone)) from None

    def _run_one(self, connection: Connection, job: Job, *, violations_count: bool) -> bool:
        """Run one job and return whether there is something to commit, or to roll back if it raised.

        Raises:
            _Collided: The whole transaction is lost, whatever the job made of it.
            DatabaseUnavailable: The same, and the server is to blame.
        """
        job.reset()
        tx = _Tx(connection, job.callbacks)
        try:
            job.result = job.work(tx)
        except BaseException as error:  # noqa: BLE001 - it belongs to the job's own caller
            job.error = error
        if isinstance(tx.failure, _Collided) or (
            isinstance(tx.failure, DatabaseUnavailable) and tx.code not in _TOOK_TOO_LONG
        ):
            self._rollback()
            raise tx.failure
        if tx.code == psycopg.errors.UniqueViolation.sqlstate and not violations_count:
            # Another transaction wrote the row between this one's look and its own write. Run again it
            # sees that row; only a job that violates the constraint by itself does so every time.
            job.error = _Collided("UniqueViolation")
        job.error = job.error or tx.failure
        failed = tx.failure is not None
        tx.end()
        return tx.wrote or failed

    def _rollback(self) -> None:
        try:
            if self._connection is not None:
                self._connection.execute(b"ROLLBACK", prepare=False)
        except psycopg.Error:
            self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_TRANSACTION: Final = Query("transaction", "", "")


@final
class PostgresDatabase:
    """A ``Database`` on a PostgreSQL server. Build it with ``open``."""

    def __init__(self, link: PostgresLink, writers: int, readers: int, observer: Observer) -> None:
        self._observer = observer
        self._apart = 0
        self._writers = [_Writer(link, "SERIALIZABLE") for _ in range(writers)]
        self._claimer = _Writer(link, "READ COMMITTED")
        self._batchers = [
            Batcher(writer.run_batch, f"postgres-writer-{number}", self._seen, batch_max=BATCH_MAX)
            for number, writer in enumerate(self._writers)
        ]
        self._claims = Batcher(
            self._claimer.run_batch, "postgres-claimer", Observer(retried=observer.retried).tell, batch_max=1
        )
        self._readers = Readers(
            "postgres-reader", readers, connect=link.connect, read=_read, is_usable=_is_usable
        )

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        writers: int = WRITERS,
        readers: int = READERS,
        observe: Callable[[int, float], None] | None = None,
        retried: Callable[[str], None] | None = None,
    ) -> "PostgresDatabase":
        """Connect to a server.

        Args:
            url: A libpq URL; it may hold a password and is never shown.
            writers: How many connections write; besides them one claims.
            readers: How many connections read.
            observe: Told how many transactions shared each commit and the seconds it took.
            retried: Told why, each time that transactions are run again.

        Raises:
            DatabaseUnavailable: It cannot be reached, or is not a server that we can work with.
        """
        database = cls(PostgresLink(url), writers, readers, Observer(observe, retried))
        try:
            await database.ping()
        except BaseException:
            await database.close()
            raise
        return database

    @property
    def retries(self) -> int:
        """How often transactions were run again because they collided."""
        return sum(writer.retries for writer in (*self._writers, self._claimer))

    @property
    def waiting(self) -> int:
        """How many transactions wait for the next commit."""
        return sum(batcher.waiting for batcher in (*self._batchers, self._claims))

    async def transact(self, fn: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that may write, and return once its commit is durable."""
        # Whichever would commit it soonest; among equals the first, so that batches grow before they spread.
        open_to_new = self._batchers[:1] if self._apart else self._batchers
        batcher = min(open_to_new, key=lambda each: each.load)
        result: T = await batcher.put(bound(fn, args, kwargs))
        return result

    async def claim(self, fn: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``transact``, at READ COMMITTED: for claims with SKIP LOCKED."""
        result: T = await self._claims.put(bound(fn, args, kwargs))
        return result

    async def read(self, fn: Callable[Concatenate[Any, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, on a snapshot."""
        result: T = await self._readers.run(bound(fn, args, kwargs))
        return result

    def _seen(self, ran: Ran, seconds: float) -> None:
        self._apart = APART_BATCHES if ran.retried else max(0, self._apart - 1)
        self._observer.tell(ran, seconds)

    async def ping(self) -> None:
        """Prove that a write can be committed now."""
        await self.transact(_touch)

    async def close(self) -> None:
        """Finish what was handed over, then let go of every connection."""
        for batcher in (*self._batchers, self._claims):
            await batcher.close()
        await self._readers.close()
        for writer in (*self._writers, self._claimer):
            writer.close()


def _touch(tx: _Tx) -> None:
    tx.one(_SQL["touch"])


def _is_usable(connection: Connection) -> bool:
    return not connection.closed


def _read(connection: Connection, work: Work) -> Any:
    """Run a function on a snapshot of a reader connection."""
    tx = _Tx(connection, [])
    try:
        connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", prepare=False)
        result = work(tx)
        if tx.failure is not None:
            raise tx.failure
        return result
    except psycopg.Error as error:
        raise DatabaseUnavailable(type(error).__name__) from None
    finally:
        tx.end()
        try:
            connection.execute(b"ROLLBACK", prepare=False)
        except psycopg.Error:
            connection.close()
