"""A transaction on PostgreSQL, and the server's errors in our words."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, final

import psycopg

from heliograph.storage.database import (
    ConstraintViolated,
    DatabaseUnavailable,
    Params,
    Query,
    Row,
    StatementRefused,
)
from heliograph.storage.values import storable

Connection: TypeAlias = psycopg.Connection[Row]

_SERVERS_OWN: Final = ("08", "25006", "53", "57P", "58", "F0", "XX")
"""Beginnings of the codes with which the server speaks of itself: gone, read-only, full, broken."""

TOOK_TOO_LONG: Final = ("57014", "55P03", "25P03")
"""Codes of a statement that was cut off: this transaction's fate, and nobody else's."""

_SAYS_NO_VALUES: Final = ("23", "42")
"""Code classes whose first line names tables and constraints, and never a value."""


class Collided(Exception):  # noqa: N818 - never leaves this module
    """The server refused one of two transactions that collided."""


def in_our_words(
    query: Query, error: psycopg.Error, connection: Connection, *, readonly: bool = False
) -> Exception:
    """Say a driver's error without the values that it may quote."""
    code = error.sqlstate
    if isinstance(error, psycopg.errors.SerializationFailure | psycopg.errors.DeadlockDetected):
        return Collided(type(error).__name__)
    if connection.closed or (code is None and isinstance(error, psycopg.OperationalError)):
        return DatabaseUnavailable("the connection broke")
    ours = readonly and isinstance(error, psycopg.errors.ReadOnlySqlTransaction)
    if code is not None and not ours and (code in TOOK_TOO_LONG or code.startswith(_SERVERS_OWN)):
        return DatabaseUnavailable(f"{query.name}: {type(error).__name__}")
    said = error.diag.message_primary if code is not None and code.startswith(_SAYS_NO_VALUES) else None
    words = f"{query.name}: {said or type(error).__name__}"
    return ConstraintViolated(words) if isinstance(error, psycopg.IntegrityError) else StatementRefused(words)


@final
class PostgresTx:
    """A transaction on one connection."""

    __slots__ = ("_callbacks", "_connection", "_cursor", "_readonly", "code", "failure", "wrote")

    def __init__(
        self, connection: Connection, callbacks: list[Callable[[], None]], *, readonly: bool = False
    ) -> None:
        self._connection = connection
        self._readonly = readonly
        self._cursor = connection.cursor()
        self._callbacks = callbacks
        self.failure: Exception | None = None
        self.code: str | None = None
        self.wrote = False

    def all(self, query: Query, params: Params | None = None) -> list[Row]:
        """Run a statement and return its rows."""
        self._execute(query, params)
        return self._cursor.fetchall()

    def one(self, query: Query, params: Params | None = None) -> Row | None:
        """Run a statement and return its first row, or None."""
        self._execute(query, params)
        return self._cursor.fetchone()

    def run(self, query: Query, params: Params | None = None) -> int:
        """Run a statement and return how many rows it changed."""
        self._execute(query, params)
        return max(0, self._cursor.rowcount)

    def many(self, query: Query, rows: Iterable[Params]) -> int:
        """Run one statement for each set of parameters and return how many rows changed in all."""
        self._check()
        every = [storable(row) for row in rows]
        try:
            self._cursor.executemany(query.postgres.encode(), every)
        except psycopg.Error as error:
            raise self._failed(query, error) from None
        self.wrote = True
        return max(0, self._cursor.rowcount) if every else 0

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call back once this is on disk."""
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
        self.failure = in_our_words(query, error, self._connection, readonly=self._readonly)
        return self.failure
