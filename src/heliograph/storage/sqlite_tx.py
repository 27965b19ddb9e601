"""A transaction on SQLite, and SQLite's errors in our words."""

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Final, final

from heliograph.storage.batching import Work
from heliograph.storage.database import (
    ConstraintViolated,
    DatabaseUnavailable,
    Params,
    Query,
    Row,
    StatementRefused,
)
from heliograph.storage.values import storable

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


def words(error: sqlite3.Error) -> str:
    """Return SQLite's own name of an error; its text may be in any words."""
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _is_ours(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # none: the driver refused it before the database saw it
    return code is None or code & 0xFF in _OURS


@final
class SqliteTx:
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
        """Run a statement and return its rows."""
        try:
            return self._execute(query, params).fetchall()
        except sqlite3.Error as error:
            raise self._failed(query, error) from None

    def one(self, query: Query, params: Params | None = None) -> Row | None:
        """Run a statement and return its first row, or None."""
        try:
            row: Row | None = self._execute(query, params).fetchone()
        except sqlite3.Error as error:
            raise self._failed(query, error) from None
        return row

    def run(self, query: Query, params: Params | None = None) -> int:
        """Run a statement and return how many rows it changed."""
        try:
            cursor = self._execute(query, params)
            if cursor.rowcount >= 0:
                return cursor.rowcount
            self._changed_schema = True  # or it was a query, which does no harm
            return 0
        except sqlite3.Error as error:
            raise self._failed(query, error) from None

    def many(self, query: Query, rows: Iterable[Params]) -> int:
        """Run one statement for each set of parameters and return how many rows changed in all."""
        self._check()
        every = [storable(row) for row in rows]
        try:
            return max(0, self._connection.executemany(query.sqlite, every).rowcount)
        except sqlite3.Error as error:
            raise self._failed(query, error) from None

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call back once this is on disk."""
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
        elif _is_ours(error) or (self._readonly and words(error) == "SQLITE_READONLY"):
            self.failure = StatementRefused(f"{query.name}: {error}")
        else:
            self.failure = DatabaseUnavailable(words(error))
        return self.failure
