"""Items that wait at the same moment share one transaction, and its statements.

Group commit lets transactions share a commit; each still runs its own statements. Where many callers ask for
the same thing at once, one statement can serve them all: on PostgreSQL that saves most of the round trips, on
SQLite most of the calls. A gathering is that: whoever puts an item in waits for a result of its own, and one
function is given all items that wait.

The function must treat its items as if they came one after another. Items with the same key, such as retries
of one request, never meet in one gathering, so that it need not look among them. If it raises, nothing of the
gathering is committed and each item is run alone: a bug that one item lays bare harms no other.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from heliograph.storage.database import Database, DatabaseUnavailable, Tx

T = TypeVar("T")
R = TypeVar("R")

WAITING_MAX: Final = 16_384
"""Items that may wait. More than this is some seconds of work: better refused than made to wait."""


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[T, R]):
    """An item and who waits for its result."""

    item: T
    key: Hashable
    weight: int
    result: "asyncio.Future[R]"


@final
class Gathering(Generic[T, R]):
    """Gathers items for one function.

    Args:
        database: Where the function runs, by ``transact``.
        run: Given the items in the order in which they came, returns a result for each. May be run again.
        key: Items with equal keys never share a transaction; the later one runs in a later one.
        weight: What an item costs, at least 1.
        weight_max: The most that one transaction takes, unless a single item weighs more.
        flying_max: How many gatherings may be on their way at once: as many as the database has writers.
    """

    def __init__(
        self,
        database: Database,
        run: Callable[[Tx, Sequence[T]], Sequence[R]],
        *,
        key: Callable[[T], Hashable],
        weight: Callable[[T], int],
        weight_max: int,
        flying_max: int = 1,
    ) -> None:
        self._database = database
        self._run = run
        self._key = key
        self._weight = weight
        self._weight_max = weight_max
        self._flying_max = flying_max
        self._waiting: deque[_Waiting[T, R]] = deque()
        self._flying: set[asyncio.Task[None]] = set()
        self._called = False

    async def put(self, item: T) -> R:
        """Run the function for an item, together with others, and return its result once that is on disk.

        A caller that is cancelled before the function runs takes its item along; later, it is committed and
        nobody hears of it.

        Raises:
            DatabaseUnavailable: Too many wait, or as ``Database.transact`` says.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise DatabaseUnavailable("too many items wait")
        loop = asyncio.get_running_loop()
        waiting: _Waiting[T, R] = _Waiting(item, self._key(item), self._weight(item), loop.create_future())
        self._waiting.append(waiting)
        self._call(loop)
        return await waiting.result

    def _call(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._called and len(self._flying) < self._flying_max:
            # Not at once: whatever else this iteration of the loop brings shall come along.
            self._called = True
            loop.call_soon(self._depart, loop)

    def _depart(self, loop: asyncio.AbstractEventLoop) -> None:
        self._called = False
        gathered = self._gathered()
        if gathered:
            flight = loop.create_task(self._fly(gathered))
            self._flying.add(flight)
            flight.add_done_callback(self._landed)

    def _landed(self, flight: "asyncio.Task[None]") -> None:
        self._flying.discard(flight)
        if self._waiting:
            self._call(flight.get_loop())

    def _gathered(self) -> list[_Waiting[T, R]]:
        """Take what may go together, in order; who must not or does not fit stays in front."""
        gathered: list[_Waiting[T, R]] = []
        left: list[_Waiting[T, R]] = []
        keys: set[Hashable] = set()
        weight = 0
        while self._waiting:
            waiting = self._waiting.popleft()
            if waiting.result.done():
                continue
            if waiting.key in keys:
                left.append(waiting)
                continue
            if gathered and weight + waiting.weight > self._weight_max:
                self._waiting.appendleft(waiting)
                break
            # A key that stays behind keeps later items of its own behind it.
            keys.add(waiting.key)
            gathered.append(waiting)
            weight += waiting.weight
        self._waiting.extendleft(reversed(left))
        return gathered

    async def _fly(self, gathered: Sequence[_Waiting[T, R]]) -> None:
        try:
            results = await self._database.transact(self._run, [waiting.item for waiting in gathered])
        except DatabaseUnavailable as error:
            for waiting in gathered:
                _fail(waiting.result, type(error)(*error.args))
        except Exception as bug:  # noqa: BLE001 - whose it is shows when each runs alone
            if len(gathered) == 1:
                _fail(gathered[0].result, bug)
            else:
                await asyncio.gather(*(self._fly([waiting]) for waiting in gathered))
        else:
            for waiting, result in zip(gathered, results, strict=True):
                if not waiting.result.done():
                    waiting.result.set_result(result)


def _fail(future: "asyncio.Future[R]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
