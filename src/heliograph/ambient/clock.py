"""The only reader of time."""

import asyncio
import time
from typing import Protocol, final

from heliograph.wire.instant import Instant


class Clock(Protocol):
    """Tells the time and waits. Everything else gets instants as arguments."""

    def now(self) -> Instant:
        """Return wall-clock time in milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never steps, for measuring durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait at least so many seconds."""
        ...


@final
class SystemClock:
    """The machine's own clock."""

    def now(self) -> Instant:
        """Return wall-clock time in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds on a clock that never steps."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait at least so many seconds."""
        await asyncio.sleep(seconds)
