"""What a store, a service and the runner may ask of a database.

A transaction is an ordinary synchronous function that is handed a ``Tx``. It runs in a thread that
owns a connection, so nothing can be awaited inside it and no transaction is ever held across the
network. It must be re-runnable: it may be run again from its start when the database says that two
transactions collided, so it does no I/O and keeps no state outside its return value.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, runtime_checkable

Row: TypeAlias = tuple[Any, ...]
Value: TypeAlias = str | int | float | bytes | bool | None
Params: TypeAlias = Mapping[str, Value]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement from a ``.sql`` file, ready for each database.

    Only a ``Query`` can be run: a SQL string in Python is a type error.

    Attributes:
        name: ``file.statement``, for errors and metrics.
        sqlite: The text with ``:name`` parameters.
        postgres: The text with ``%(name)s`` parameters; from the same source unless a twin exists.
    """

    name: str
    sqlite: str
    postgres: str


class Tx(Protocol):
    """A transaction in progress. Valid only inside the function that was handed it.

    A statement that fails ends the transaction on both databases: every later one raises the same error, and
    a function that swallows it is rolled back all the same. What may fail is asked first.

    Truth values come back as ``bool`` from one database and as 0 and 1 from the other.

    Raises:
        UnstorableValue: A parameter that not both databases can keep; nothing was sent.
        StatementRefused: The statement broke a constraint (``ConstraintViolated``) or is wrong.
        DatabaseUnavailable: The database went away, is full or took too long.
    """

    def all(self, query: Query, params: Params | None = None) -> list[Row]:
        """Run a statement and return its rows."""
        ...

    def one(self, query: Query, params: Params | None = None) -> Row | None:
        """Run a statement and return its first row, or None."""
        ...

    def run(self, query: Query, params: Params | None = None) -> int:
        """Run a statement without RETURNING and return how many rows it changed."""
        ...

    def many(self, query: Query, rows: Iterable[Params]) -> int:
        """Run one statement for each set of parameters and return how many rows changed in all."""
        ...

    def after_commit(self, callback: Callable[[], None]) -> None:
        """Call back in the event loop once this transaction is on disk; never if it is not.

        Callbacks are for doorbells and caches: they must not raise and must be cheap.
        """
        ...


class DatabaseUnavailable(Exception):  # noqa: N818 - a state of the world, not a bug
    """The database cannot take work now: gone, full, locked or shutting down. Nothing was committed."""


class CommitUnknown(DatabaseUnavailable):
    """The database went away while a commit was on its way: it is on disk, or it is not.

    Nothing may be told to be done. Whoever tries again must be able to find the first try in the data: an
    idempotency key, a fence, an id drawn before.
    """


class StatementRefused(Exception):  # noqa: N818 - the database's word, said in ours
    """The database refused a statement: a wrong text, a wrong type, a broken constraint. A bug of ours.

    The text names the statement and the database's own code and never holds a value: drivers quote values in
    their errors, and a value may be a secret.
    """


class ConstraintViolated(StatementRefused):
    """A row would have broken a constraint."""


class UnstorableValue(ValueError):  # noqa: N818 - reads as what it is
    """A parameter that not both databases can keep: U+0000, half a surrogate pair, 65 bits, not a number."""


@runtime_checkable
class Database(Protocol):
    """A database that runs functions as transactions.

    ``transact`` gives every function the isolation of running alone (SQLite's single writer,
    PostgreSQL SERIALIZABLE with re-runs) and returns only after the commit is on disk. Functions
    that wait at the same moment share one commit, each in a savepoint of its own: one that raises is
    rolled back alone and its exception reaches its own caller.
    """

    async def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, on a snapshot."""
        ...

    async def transact(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that may write, and return once its commit is durable.

        What the function itself raises reaches its caller, and nothing of it is committed. A caller that is
        cancelled before its function runs takes it along; later, the function is committed all the same.

        Raises:
            DatabaseUnavailable: Nothing was committed and the same call may be tried again later.
            CommitUnknown: As that, but the commit was on its way when the database went.
        """
        ...

    async def claim(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As ``transact``, at READ COMMITTED where the database knows it: for claims with SKIP LOCKED."""
        ...

    async def ping(self) -> None:
        """Prove that a write can be committed now; for readiness.

        Raises:
            DatabaseUnavailable: It cannot.
        """
        ...

    async def close(self) -> None:
        """Finish what was handed over, then let go of every connection."""
        ...
