"""The doorbell inside one process."""

import asyncio
from collections.abc import Collection
from typing import Final, final

KINDS_MAX: Final = 64
"""Kinds whose rings are kept while nobody waits. Kinds are words of the code; more would be a mistake,
and losing its ring costs a poll interval."""


@final
class LocalDoorbell:
    """Wakes waiters of the same event loop."""

    def __init__(self) -> None:
        self._kept: set[str] = set()
        self._waiting: dict[asyncio.Future[None], frozenset[str]] = {}

    def ring(self, kind: str) -> None:
        """Wake all who wait for this kind now, or keep the ring for the next who will."""
        heard = False
        for waiter, kinds in self._waiting.items():
            if kind in kinds and not waiter.done():
                waiter.set_result(None)
                heard = True
        if not heard and len(self._kept) < KINDS_MAX:
            self._kept.add(kind)

    def ring_all(self) -> None:
        """Wake everybody: rings may have been missed."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, kinds: Collection[str], at_most_seconds: float) -> bool:
        """Wait until one of these kinds is rung for, or the time is over; True when it rang."""
        wanted = frozenset(kinds)
        if kept := self._kept & wanted:
            self._kept -= kept
            await asyncio.sleep(0)  # whoever rings and waits in turns must let the others run
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = wanted
        try:
            async with asyncio.timeout(at_most_seconds):
                await waiter
        except TimeoutError:
            return False
        finally:
            del self._waiting[waiter]
        return True
