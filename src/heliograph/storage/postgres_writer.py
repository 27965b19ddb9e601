"""One writer connection to PostgreSQL, and how a batch is committed on it however it collides."""

import itertools
from time import perf_counter, sleep
from typing import Final, final

import psycopg

from heliograph.storage.batching import BATCH_MS_MAX, Care, Job, Ran, Spoiled
from heliograph.storage.database import CommitUnknown, DatabaseUnavailable, Query
from heliograph.storage.postgres_link import PostgresLink
from heliograph.storage.postgres_tx import TOOK_TOO_LONG, Collided, Connection, PostgresTx, in_our_words

BATCH_MAX: Final = 64
"""Transactions that share a commit here: a collision repeats all of them, and the server keeps track of no
more than 64 savepoints of a transaction in fast memory."""

GROWTH: Final = 8
"""How much more of a batch is tried together after a commit without a collision; a collision halves it."""

ALONE_MAX: Final = 20
"""How often one transaction is run by itself before the database counts as unavailable to it."""

PAUSE_MS_FIRST: Final = 1
PAUSE_MS_MAX: Final = 50
"""Pauses between tries alone: doubled from the first to the longest, so that a crowd can thin out."""

_TRANSACTION: Final = Query("transaction", "", "")


@final
class Writer:
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
                again += [job for job in part[:taken] if isinstance(job.error, Collided)]
            while again:
                self._alone(again[0], retried, violations_count=True)
                again.pop(0)
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
            except Collided as collision:
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
            except Collided as collision:
                retried.append(str(collision))
            else:
                if not isinstance(job.error, Collided):
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
            Collided: Nothing was committed; another try may do better.
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
            gone = in_our_words(_TRANSACTION, error, connection)
            self._rollback()
            if isinstance(gone, Collided):
                raise gone from None
            if commits and connection.closed:
                raise CommitUnknown("the connection broke in a commit") from None
            raise DatabaseUnavailable(str(gone)) from None

    def _run_one(self, connection: Connection, job: Job, *, violations_count: bool) -> bool:
        """Run one job and return whether there is something to commit, or to roll back if it raised.

        Raises:
            Collided: The whole transaction is lost, whatever the job made of it.
            DatabaseUnavailable: The same, and the server is to blame.
        """
        job.reset()
        tx = PostgresTx(connection, job.callbacks)
        try:
            job.result = job.work(tx)
        except BaseException as error:  # noqa: BLE001 - it belongs to the job's own caller
            job.error = error
        if isinstance(tx.failure, Collided) or (
            isinstance(tx.failure, DatabaseUnavailable) and tx.code not in TOOK_TOO_LONG
        ):
            self._rollback()
            raise tx.failure
        if tx.code == psycopg.errors.UniqueViolation.sqlstate and not violations_count:
            # Another transaction wrote the row between this one's look and its own write. Run again it
            # sees that row; only a job that violates the constraint by itself does so every time.
            job.error = Collided("UniqueViolation")
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
