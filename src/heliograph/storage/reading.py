"""A few threads that read, each on a connection of its own."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, Protocol, TypeVar, final

from heliograph.storage.batching import Work
from heliograph.storage.database import DatabaseUnavailable

READS_WAITING_MAX: Final = 4_096
"""Reads that may wait or run: as for transactions, more are better refused than made to wait."""


class Connection(Protocol):
    """What is known of a connection here."""

    def close(self) -> None:
        """Let go of it."""


C = TypeVar("C", bound=Connection)


@final
class Readers(Generic[C]):
    """Runs functions that only read.

    Args:
        name: The name of the threads.
        threads: How many, each with a connection of its own.
        connect: Opens a connection. Raises ``DatabaseUnavailable``.
        read: Runs a function on a snapshot of a connection. Raises ``DatabaseUnavailable`` when the database
            failed, and whatever the function raises.
        is_usable: Whether a connection may be used again after ``DatabaseUnavailable``.
        waiting_max: How many reads may wait or run.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        *,
        connect: Callable[[], C],
        read: Callable[[C, Work], Any],
        is_usable: Callable[[C], bool],
        waiting_max: int = READS_WAITING_MAX,
    ) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._connect = connect
        self._read = read
        self._is_usable = is_usable
        self._waiting_max = waiting_max
        self._waiting = 0
        self._closed = False
        self._of_thread: dict[int, C] = {}

    async def run(self, work: Work) -> Any:
        """Run a function on a snapshot and return what it returned.

        Raises:
            DatabaseUnavailable: It is closed, too many wait, or the database failed.
        """
        if self._closed:
            raise DatabaseUnavailable("it is closed")
        if self._waiting >= self._waiting_max:
            raise DatabaseUnavailable("too many reads wait")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, self._in_thread, work)
        finally:
            self._waiting -= 1

    def _in_thread(self, work: Work) -> Any:
        me = threading.get_ident()
        connection = self._of_thread.get(me)
        if connection is not None:
            try:
                return self._read(connection, work)
            except DatabaseUnavailable:
                if self._is_usable(connection):
                    raise
                # It may have broken while it lay idle: a read can simply be begun anew on another one.
                connection.close()
                del self._of_thread[me]
        connection = self._of_thread[me] = self._connect()
        return self._read(connection, work)

    async def close(self) -> None:
        """Finish the reads that run or wait, and let go of the connections."""
        self._closed = True
        await asyncio.to_thread(self._executor.shutdown)
        while self._of_thread:
            self._of_thread.popitem()[1].close()
