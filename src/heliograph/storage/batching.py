"""Group commit: transactions that wait at the same moment share one commit, each in a savepoint of its own.

The event loop drives it. Whatever calls ``put`` in one iteration of the loop waits in a list; once the
writer is idle the whole list is handed to it as one batch, and while it works the next batch gathers. A
writer that took what was queued by itself would wake for the first call, find one or two, and pay a commit
for each: the batches form themselves only when the loop hands them over.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, final

from heliograph.storage.database import DatabaseUnavailable

BATCH_MAX: Final = 256
"""Transactions that share a commit: larger batches hardly gain and make the first of them wait."""

WAITING_MAX: Final = 16_384
"""Transactions that may wait. More than this is some seconds of work: better refused than made to wait."""


@dataclass(slots=True)
class Job:
    """One transaction: what to run, and where its end is told."""

    work: Callable[..., Any]
    future: "asyncio.Future[Any]"
    result: Any = None
    error: BaseException | None = None
    callbacks: list[Callable[[], None]] = field(default_factory=list)
    collisions: int = 0


@final
class Batcher:
    """Hands batches to one writer thread.

    Args:
        run: Runs a batch in the writer thread: fills in each job's result or error and commits. It raises
            nothing: a batch that could not be committed has ``DatabaseUnavailable`` as every job's error.
        name: The thread's name.
        observe: Told how many shared each commit and the seconds it took.
        batch_max: How many may share one.
    """

    def __init__(
        self,
        run: Callable[[list[Job]], None],
        name: str,
        observe: Callable[[int, float], None] | None = None,
        batch_max: int = BATCH_MAX,
    ) -> None:
        self._run = run
        self._batch_max = batch_max
        self._observe = observe
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting: list[Job] = []
        self._busy = False
        self._running = 0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """How many transactions wait for the next commit."""
        return len(self._waiting)

    @property
    def load(self) -> int:
        """How long a new transaction would wait, in batches, for choosing among several."""
        return self._running + len(self._waiting) // self._batch_max

    async def put(self, work: Callable[..., Any]) -> Any:
        """Run a function in the next batch and return what it returned, once that is on disk.

        A caller that is cancelled meanwhile does not hear the end; the transaction goes on all the same.
        """
        if self._closed:
            raise DatabaseUnavailable("it is closed")
        if len(self._waiting) >= WAITING_MAX:
            raise DatabaseUnavailable("too many transactions wait")
        loop = asyncio.get_running_loop()
        job = Job(work, loop.create_future())
        self._waiting.append(job)
        if not self._busy:
            # Not at once: whatever else this iteration of the loop brings shall come along.
            self._busy = True
            self._idle.clear()
            loop.call_soon(self._hand_over, loop)
        return await job.future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[: self._batch_max], self._waiting[self._batch_max :]
        if not batch:
            self._busy = False
            self._running = 0
            self._idle.set()
            return
        self._running = 1
        self._executor.submit(self._work, loop, batch)

    def _work(self, loop: asyncio.AbstractEventLoop, batch: list[Job]) -> None:
        began = perf_counter()
        self._run(batch)
        loop.call_soon_threadsafe(self._answer, loop, batch, perf_counter() - began)

    def _answer(self, loop: asyncio.AbstractEventLoop, batch: list[Job], seconds: float) -> None:
        """Resolve a whole batch in one call back into the loop, and hand over the next."""
        if self._observe is not None:
            self._observe(len(batch), seconds)
        self._hand_over(loop)
        for job in batch:
            if job.error is None:
                for callback in job.callbacks:
                    callback()
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)

    async def close(self) -> None:
        """Finish what was handed over and end the thread."""
        self._closed = True
        await self._idle.wait()
        self._executor.shutdown(wait=True)
