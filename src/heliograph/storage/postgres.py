"""PostgreSQL: a few writer connections, each behind a group commit of its own, at SERIALIZABLE.

Transactions behave as if each ran alone, so stores need no row locks and are reasoned about once for both
databases. The price is that the server may refuse one of two that collide: its batch is run again from the
start, and if it collides again, its transactions are run one by one.

Importing this module needs the driver, which is the extra ``heliograph[postgres]``.
"""

from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, final

import psycopg

from heliograph.storage.batching import WAITING_MAX, Batcher, Observer, Ran, Work, bound
from heliograph.storage.database import DatabaseUnavailable, Tx
from heliograph.storage.postgres_link import PostgresLink
from heliograph.storage.postgres_tx import Connection, PostgresTx
from heliograph.storage.postgres_writer import BATCH_MAX, Writer
from heliograph.storage.queries import load_queries
from heliograph.storage.reading import Readers

P = ParamSpec("P")
T = TypeVar("T")

_SQL: Final = load_queries("heliograph.storage", "storage.sql")

WRITERS: Final = 2
"""Writer connections of one process: one commits while another gathers; more only collide more."""

READERS: Final = 2
"""Reader connections: reads are short."""

APART_BATCHES: Final = 32
"""Batches for which, after a collision of our own writers, only one of them is given new work: while they
collide, two achieve less than one."""


@final
class PostgresDatabase:
    """A ``Database`` on a PostgreSQL server. Build it with ``open``."""

    def __init__(
        self, link: PostgresLink, *, writers: int, readers: int, waiting_max: int, observer: Observer
    ) -> None:
        self._observer = observer
        self._apart = 0
        self._writers = [Writer(link, "SERIALIZABLE") for _ in range(writers)]
        self._claimer = Writer(link, "READ COMMITTED")
        self._batchers = [
            Batcher(
                writer.run_batch,
                f"postgres-writer-{number}",
                self._seen,
                batch_max=BATCH_MAX,
                waiting_max=waiting_max,
            )
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
        waiting_max: int = WAITING_MAX,
        observe: Callable[[int, float], None] | None = None,
        retried: Callable[[str], None] | None = None,
    ) -> "PostgresDatabase":
        """Connect to a server.

        Args:
            url: A libpq URL; it may hold a password and is never shown.
            writers: How many connections write; besides them one claims.
            readers: How many connections read.
            waiting_max: How many transactions may wait for each of the writers; more are refused.
            observe: Told how many transactions shared each commit and the seconds it took.
            retried: Told why, each time that transactions are run again.

        Raises:
            DatabaseUnavailable: It cannot be reached, or is not a server that we can work with.
        """
        database = cls(
            PostgresLink(url),
            writers=writers,
            readers=readers,
            waiting_max=waiting_max,
            observer=Observer(observe, retried),
        )
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

    async def transact(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that may write, and return once its commit is durable."""
        # Whichever would commit it soonest; among equals the first, so that batches grow before they spread.
        open_to_new = self._batchers[:1] if self._apart else self._batchers
        batcher = min(open_to_new, key=lambda each: each.load)
        result: T = await batcher.put(bound(fn, args, kwargs))
        return result

    async def claim(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``transact``, at READ COMMITTED: for claims with SKIP LOCKED."""
        result: T = await self._claims.put(bound(fn, args, kwargs))
        return result

    async def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
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


def _touch(tx: Tx) -> None:
    tx.one(_SQL["touch"])


def _is_usable(connection: Connection) -> bool:
    return not connection.closed


def _read(connection: Connection, work: Work) -> Any:
    """Run a function on a snapshot of a reader connection."""
    tx = PostgresTx(connection, [], readonly=True)
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
