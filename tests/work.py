"""Builders and stand-ins for tests of the queue: items, a clock that is told the time, handlers."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.telemetry import Level, Telemetry
from heliograph.doorbell.local import LocalDoorbell
from heliograph.doorbell.port import Doorbell
from heliograph.queue.machine import Change, Delivered, Policy, Signal, State
from heliograph.queue.model import Claim, NewItem
from heliograph.queue.pace import Pace
from heliograph.queue.runner import Runner
from heliograph.storage.database import Database, Query, Row, Tx
from heliograph.wire.instant import Instant

NOW = 1_790_000_000_000
LEASE_MS = 30_000

POLICY = Policy(max_attempts=5, first_backoff_ms=1_000, max_backoff_ms=60_000)

SHOW = Query(
    "tests.show",
    "SELECT state, attempt, revision, reason FROM queue_items WHERE item_id = :item_id",
    "SELECT state, attempt, revision, reason FROM queue_items WHERE item_id = %(item_id)s",
)
ALL = Query("tests.all", *["SELECT item_id, state, attempt, revision FROM queue_items ORDER BY item_id"] * 2)


def item(number: int, *, lane: str = "a", kind: str = "k", due_at: Instant = NOW, **more: Any) -> NewItem:
    """Make an item whose id sorts by its number."""
    return NewItem(f"item-{number:06}", kind, lane, f"ref-{number}", due_at, **more)


def items(count: int, *, first: int = 0, **more: Any) -> list[NewItem]:
    """Make many alike."""
    return [item(number, **more) for number in range(first, first + count)]


async def show(database: Database, number: int) -> tuple[State, int, int, str | None]:
    """Read (state, attempt, revision, reason) of one item."""
    row = await database.read(lambda tx: tx.one(SHOW, {"item_id": f"item-{number:06}"}))
    assert row is not None
    return State(row[0]), row[1], row[2], row[3]


async def states(database: Database) -> dict[State, int]:
    """Count the items by state."""
    rows: list[Row] = await database.read(lambda tx: tx.all(ALL))
    found = [State(row[1]) for row in rows]
    return {state: found.count(state) for state in State if state in found}


class ToldClock:
    """Says the time it was told; sleeps for real."""

    def __init__(self, now: Instant = NOW) -> None:
        self.at = now

    def now(self) -> Instant:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await SystemClock().sleep(seconds)


class SeededEntropy:
    """The same draws every time."""

    def __init__(self) -> None:
        self._random = random.Random(7)

    def octets(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def uuid7(self, now: Instant) -> str:
        return f"{now:012x}{self._random.getrandbits(80):020x}"

    def uuid4(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def fraction(self) -> float:
        return self._random.random()


class DeafDoorbell:
    """Never rings: every wait lasts as long as it may. Remembers how long that was."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def ring(self, kind: str) -> None:
        pass

    async def wait(self, kinds: Collection[str], at_most_seconds: float) -> bool:
        self.waits.append(at_most_seconds)
        await asyncio.sleep(at_most_seconds)
        return False


Play = Callable[[Claim], Awaitable[Signal] | Signal]


class Performer:
    """A handler that does what the test says and remembers what it was asked.

    Attributes:
        performed: The claims, as they were performed.
        notes: (item id, change) for each committed settlement.
        unreadable: Item ids whose details cannot be loaded.
        unsettleable: Item ids whose settlement raises.
    """

    def __init__(self, play: Play | None = None, *, kind: str = "k", policy: Policy = POLICY) -> None:
        self.play = play or (lambda claim: Delivered())
        self.kind = kind
        self.policy = policy
        self.performed: list[Claim] = []
        self.notes: list[tuple[str, Change]] = []
        self.unreadable: set[str] = set()
        self.unsettleable: set[str] = set()
        self._progress = asyncio.Event()

    def load(self, tx: Tx, claims: Sequence[Claim]) -> Sequence[str]:
        if any(claim.item_id in self.unreadable for claim in claims):
            raise ValueError("this detail is damaged")
        return [claim.reference for claim in claims]

    async def perform(self, claim: Claim, loaded: str) -> Signal:
        assert loaded == claim.reference
        self.performed.append(claim)
        self._progress.set()
        answer = self.play(claim)
        return await answer if isinstance(answer, Awaitable) else answer

    def settled(self, tx: Tx, claim: Claim, change: Change) -> None:
        if claim.item_id in self.unsettleable:
            raise ValueError("this settlement is broken")
        tx.after_commit(lambda: self._note(claim, change))

    def _note(self, claim: Claim, change: Change) -> None:
        self.notes.append((claim.item_id, change))
        self._progress.set()

    async def until(self, reached: Callable[["Performer"], bool]) -> None:
        """Return when something holds of this handler; the suite's own limit is the only one."""
        while not reached(self):
            self._progress.clear()
            await self._progress.wait()

    @property
    def ends(self) -> list[State]:
        """The states that committed settlements led to."""
        return [change.state for _, change in self.notes]


def runner(
    database: Database,
    *handlers: Performer,
    clock: ToldClock | None = None,
    doorbell: Doorbell | None = None,
    **pace: int,
) -> Runner:
    """Build a runner with short intervals."""
    settings = {"poll_ms": 10, "sweep_ms": 20, "grace_ms": 0, "lease_ms": LEASE_MS, **pace}
    return Runner(
        database,
        clock or ToldClock(),
        SeededEntropy(),
        doorbell or LocalDoorbell(),
        handlers,
        telemetry=Telemetry(Level.ERROR),
        pace=Pace(**settings),
    )
