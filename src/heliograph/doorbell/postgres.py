"""The doorbell between processes that share a PostgreSQL server: LISTEN and NOTIFY.

Two connections of its own, one that listens and one that tells. A ring is told *after* the commit and
not inside the transaction: a transaction that notifies takes a lock of the whole server at its commit,
which would undo the group commit. Rings that gather while one is on its way are told once. What this
costs: a process that dies between its commit and the ring leaves its work to the others' next poll.

When a connection breaks, rings are dropped, not queued, and the connection is sought again with growing
pauses; meanwhile polling finds the work. After each new start of listening everybody local is woken once,
because rings may have been missed. A notification carries the kind and nothing else.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Self, final

import psycopg

from heliograph.ambient.clock import Clock
from heliograph.ambient.entropy import Entropy
from heliograph.doorbell.local import KINDS_MAX, LocalDoorbell

CHANNEL: Final = "heliograph_work"

CONNECT_SECONDS_MAX: Final = 5
PAUSE_SECONDS_FIRST: Final = 0.2
PAUSE_SECONDS_MAX: Final = 10.0
"""The longest pause between two tries to reach the server; polling covers it."""


@final
class PostgresDoorbell:
    """Wakes waiters of every process that listens on the same database.

    Args:
        url: Where the server is; may hold a password and is never shown.
        clock: Waits between tries.
        entropy: Spreads the tries of several processes.
        channel: The name of the notification channel.
    """

    def __init__(self, url: str, clock: Clock, entropy: Entropy, channel: str = CHANNEL) -> None:
        self._url = url
        self._clock = clock
        self._entropy = entropy
        self._channel = channel
        self._local = LocalDoorbell()
        self._untold: set[str] = set()
        self._something_to_tell = asyncio.Event()
        self._own_pid: int | None = None
        self._listening = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(cls, url: str, clock: Clock, entropy: Entropy, channel: str = CHANNEL) -> Self:
        """Start listening and telling in the background. A server that is away is no error."""
        doorbell = cls(url, clock, entropy, channel)
        doorbell._tasks = [
            asyncio.create_task(doorbell._persist(doorbell._listen), name="doorbell listens"),
            asyncio.create_task(doorbell._persist(doorbell._tell), name="doorbell tells"),
        ]
        return doorbell

    def ring(self, kind: str) -> None:
        """Wake who waits here at once, and the other processes as soon as the server is told."""
        self._local.ring(kind)
        if len(self._untold) < KINDS_MAX:
            self._untold.add(kind)
            self._something_to_tell.set()

    async def wait(self, kinds: Collection[str], at_most_seconds: float) -> bool:
        """Wait until one of these kinds is rung for in any process, or the time is over."""
        return await self._local.wait(kinds, at_most_seconds)

    async def listening(self) -> None:
        """Return once the server hears for us; for those who must not miss the next ring."""
        await self._listening.wait()

    async def close(self) -> None:
        """Let go of both connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _persist(self, work: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        """Run one side for ever: whenever its connection breaks, pause and begin again."""
        pause = PAUSE_SECONDS_FIRST

        def connected() -> None:
            nonlocal pause
            pause = PAUSE_SECONDS_FIRST

        while True:
            with contextlib.suppress(psycopg.Error, OSError):
                await work(connected)
            await self._clock.sleep(pause * (0.5 + self._entropy.fraction() / 2))
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _connect(self) -> psycopg.AsyncConnection[tuple[object, ...]]:
        return await psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS_MAX,
            application_name="heliograph doorbell",
        )

    async def _listen(self, connected: Callable[[], None]) -> None:
        """Pass every notification on to who waits here, until the connection breaks."""
        async with await self._connect() as connection:
            await connection.execute(
                psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(self._channel))
            )
            connected()
            self._local.ring_all()
            self._listening.set()
            try:
                async for heard in connection.notifies():
                    if heard.pid != self._own_pid:  # our own rings were heard here already
                        self._local.ring(heard.payload)
            finally:
                self._listening.clear()

    async def _tell(self, connected: Callable[[], None]) -> None:
        """Tell the server of rings as they come, until the connection breaks."""
        async with await self._connect() as connection:
            connected()
            self._own_pid = connection.info.backend_pid
            while True:
                await self._something_to_tell.wait()
                self._something_to_tell.clear()
                kinds, self._untold = self._untold, set()
                for kind in kinds:
                    await connection.execute("SELECT pg_notify(%s, %s)", (self._channel, kind))
