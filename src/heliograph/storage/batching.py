"""Group commit: transactions that wait at the same moment share one commit, and one that raises is alone.

The event loop drives it. Whatever calls ``put`` in one iteration of the loop waits in a list; once the
writer is idle the whole list is handed to it as one batch, and while it works the next batch gathers. A
writer that took what was queued by itself would wake for the first call, find one or two, and pay a commit
for each: the batches form themselves only when the loop hands them over.

A transaction that raises must take its own writes back and nobody else's. A savepoint around each would do
it, at up to half the price of the whole batch, for what hardly ever happens: most that raise have only read.
So a batch is run without savepoints, and if one raises behind a write, the batch is rolled back and run again
with them; functions must be re-runnable anyway. ``Care`` then keeps them on for a while.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, TypeAlias, final

from heliograph.storage.database import DatabaseUnavailable

BATCH_MAX: Final = 256
"""Transactions that share a commit: larger batches hardly gain and make the first of them wait."""

BATCH_MS_MAX: Final = 50
"""Once a batch has worked so long it is committed; the rest of it leads the next one. Light functions never
come near it; without it, 256 heavy ones would keep the first caller waiting for seconds."""

WAITING_MAX: Final = 16_384
"""Transactions that may wait. More than this is some seconds of work: better refused than made to wait."""

CAREFUL_BATCHES: Final = 32
"""Batches that use savepoints after one that had to be run again: whoever makes transactions raise behind
their writes, one after another, costs everybody a savepoint each, and one batch in 33 a second run."""

Work: TypeAlias = Callable[[Any], Any]
"""What is run in a transaction, given its ``Tx``."""


@dataclass(slots=True)
class Job:
    """One transaction: what to run, and where its end is told."""

    work: Work
    future: "asyncio.Future[Any]"
    result: Any = None
    error: BaseException | None = None
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def reset(self) -> None:
        """Forget what an earlier run left."""
        self.result, self.error = None, None
        self.callbacks.clear()


@dataclass(frozen=True, slots=True)
class Ran:
    """What a writer did with a batch.

    Attributes:
        taken: How many jobs, from the first on, have their end; the others wait again.
        retried: Why transactions were run again, once for each time.
    """

    taken: int
    retried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observer:
    """Who is told, in the event loop, how the writers are doing.

    Attributes:
        committed: Told how many transactions shared each commit and the seconds it took.
        retried: Told, for each time that transactions collided and were run again, why.
    """

    committed: Callable[[int, float], None] | None = None
    retried: Callable[[str], None] | None = None

    def tell(self, ran: Ran, seconds: float) -> None:
        """Tell of one batch."""
        if self.committed is not None:
            self.committed(ran.taken, seconds)
        if self.retried is not None:
            for reason in ran.retried:
                self.retried(reason)


@final
class Care:
    """Whether savepoints are worth their price just now. Used by one thread."""

    def __init__(self) -> None:
        self._left = 0

    def begin(self) -> bool:
        """Say for a new batch whether each of its transactions shall have a savepoint."""
        if not self._left:
            return False
        self._left -= 1
        return True

    def repeat(self) -> None:
        """Take note that a batch has to be run again."""
        self._left = CAREFUL_BATCHES


class Spoiled(Exception):  # noqa: N818 - never leaves the writers
    """A transaction raised behind a write while others of its batch had written before it."""


def bound(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Work:
    """Return a function of a ``Tx`` alone."""

    def work(tx: Any) -> Any:
        try:
            return fn(tx, *args, **kwargs)
        except StopIteration as stop:
            # A future cannot carry it: whoever awaits would wait for ever.
            raise RuntimeError("a transaction function raised StopIteration") from stop

    return work


@final
class Batcher:
    """Hands batches to one writer thread.

    Args:
        run: Runs a batch in the writer thread: fills in each job's result or error and commits. A batch that
            could not be committed has ``DatabaseUnavailable`` as every job's error.
        name: The thread's name.
        observe: Told, in the event loop, of each batch and the seconds it took.
        batch_max: How many may share a commit.
        waiting_max: How many may wait.
    """

    def __init__(
        self,
        run: Callable[[list[Job]], Ran],
        name: str,
        observe: Callable[[Ran, float], None],
        *,
        batch_max: int = BATCH_MAX,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self._run = run
        self._batch_max = batch_max
        self._waiting_max = waiting_max
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

    async def put(self, work: Work) -> Any:
        """Run a function in the next batch and return what it returned, once that is on disk.

        A caller that is cancelled before its function runs takes it along; later, the function is committed
        and nobody hears of it.

        Raises:
            DatabaseUnavailable: It is closed, too many wait, or the commit failed.
        """
        if self._closed:
            raise DatabaseUnavailable("it is closed")
        if len(self._waiting) >= self._waiting_max:
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
        batch: list[Job] = []
        while self._waiting and not batch:
            batch, self._waiting = self._waiting[: self._batch_max], self._waiting[self._batch_max :]
            batch = [job for job in batch if not job.future.done()]
        if not batch:
            self._busy = False
            self._running = 0
            self._idle.set()
            return
        self._running = 1
        self._executor.submit(self._work, loop, batch)

    def _work(self, loop: asyncio.AbstractEventLoop, batch: list[Job]) -> None:
        began = perf_counter()
        try:
            ran = self._run(batch)
        except BaseException as bug:  # noqa: BLE001 - a bug of the writer must not leave its callers waiting
            for job in batch:
                job.error = bug
            ran = Ran(len(batch))
        loop.call_soon_threadsafe(self._answer, loop, batch, ran, perf_counter() - began)

    def _answer(self, loop: asyncio.AbstractEventLoop, batch: list[Job], ran: Ran, seconds: float) -> None:
        """Resolve a whole batch in one call back into the loop, and hand over the next."""
        self._waiting[:0] = batch[ran.taken :]
        self._hand_over(loop)
        _guarded(loop, self._observe, ran, seconds)
        for job in batch[: ran.taken]:
            if job.error is None:
                for callback in job.callbacks:
                    _guarded(loop, callback)
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


def _guarded(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: Any) -> None:
    """Call back; a bug in it is told to the loop and does not keep the next caller from its answer."""
    try:
        callback(*args)
    except Exception as bug:  # noqa: BLE001 - see above
        loop.call_exception_handler({"message": "a callback after a commit failed", "exception": bug})
