"""The loop: claim, perform, settle.

A runner has at most ``concurrency`` items in flight. It claims as many as it has free slots, performs
each in a task of its own, gathers what has ended while the last settlement was being committed, and
settles that in one transaction. So claims, performances and settlements overlap, and batches grow by
themselves as the load does.

What a handler may do wrong is contained. An exception while performing counts as *later*. One while
loading or settling a batch takes the batch apart, so that only the item that caused it suffers. Attempts
are counted at the claim, so every such item ends.

A performance is cut off at three quarters of its lease and leases are not renewed: the wait for a
provider is bounded anyway, and a fixed lease needs no second stream of writes. Should a performance
ignore its end, the fence refuses what it says later.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from heliograph.ambient.clock import Clock
from heliograph.ambient.entropy import Entropy
from heliograph.ambient.telemetry import Event, Telemetry, locations
from heliograph.doorbell.port import Doorbell
from heliograph.queue.claiming.rooms import InProgress
from heliograph.queue.machine import (
    INTERNAL,
    Delivered,
    Happening,
    Later,
    Refused,
    Released,
    RouteGone,
    Signal,
    State,
)
from heliograph.queue.model import Claim, Ending
from heliograph.queue.pace import Pace
from heliograph.queue.runner.handler import TIMED_OUT, Handler
from heliograph.queue.runner.intake import Flight, Intake
from heliograph.queue.runner.settling import Settling
from heliograph.storage.database import Database, DatabaseUnavailable

OUTAGE_SECONDS_FIRST: Final = 0.1
OUTAGE_SECONDS_MAX: Final = 5.0
"""The longest pause between two tries to reach a database that is away."""

OUTAGE_DOUBLINGS_MAX: Final = 6

ABANDON_SECONDS: Final = 1.0
"""How long a stopping runner waits for performances that it has cut off to notice."""

FAREWELL_TRIES: Final = 3
"""How often a stopping runner tries a settlement. What it cannot settle, a sweep takes over."""

DEFAULT_PACE: Final = Pace()


@dataclass(slots=True)
class Turn:
    """What one turn did.

    Attributes:
        claimed: Items taken.
        settled: How many items went to each state.
        fenced: Items that somebody else had taken over meanwhile.
        more: Work that is due may be left.
    """

    claimed: int = 0
    settled: Counter[State] = field(default_factory=Counter)
    fenced: int = 0
    more: bool = False


@final
class Runner:
    """Does the work of some kinds.

    Args:
        database: Where the rows are.
        clock: Tells and waits.
        entropy: Draws jitter.
        doorbell: Says that there may be work.
        handlers: One for each kind.
        telemetry: Hears what happened.
        pace: How much at once, how long, how often.

    Raises:
        ValueError: Two handlers are for one kind, or there is none.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        entropy: Entropy,
        doorbell: Doorbell,
        handlers: Sequence[Handler[Any]],
        *,
        telemetry: Telemetry,
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        self._handlers = {handler.kind: handler for handler in handlers}
        if not handlers or len(self._handlers) != len(handlers):
            raise ValueError("a runner needs handlers, each for a kind of its own")
        self._clock = clock
        self._entropy = entropy
        self._doorbell = doorbell
        self._telemetry = telemetry
        self._pace = pace
        self._intake = Intake(database, clock, self._handlers, telemetry, pace.lease_ms)
        self._settling = Settling(database, clock, doorbell, self._handlers, telemetry=telemetry, pace=pace)
        self._flying: dict[tuple[str, int], tuple[Claim, asyncio.Task[None]]] = {}
        self._ended: list[Ending] = []
        self._unsettled = 0
        self._lanes: Counter[str] = Counter()
        self._gates: Counter[str] = Counter()
        self._stopping = False
        self._something_ended = asyncio.Event()
        self._slots_freed = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """How many items are claimed and not yet settled; never more than the pace's concurrency."""
        return self._unsettled

    async def turn(self) -> Turn:
        """Claim one batch, perform it and settle it.

        Raises:
            DatabaseUnavailable: The database is away; leases that were taken run out by themselves.
        """
        taken = await self._intake.take(min(self._pace.batch, self._pace.concurrency))
        flights = taken.flights
        endings = await asyncio.gather(*(self._perform(flight) for flight in flights))
        changes = await self._settling.settle(endings)
        return Turn(
            claimed=len(flights),
            settled=Counter(change.state for change in changes if change is not None),
            fenced=changes.count(None),
            more=taken.more,
        )

    async def sweep(self) -> int:
        """Take over every lease of our kinds that has ended; tell how many there were."""
        return await self._settling.sweep()

    async def prune(self) -> int:
        """Remove rows past their retention; tell how many there were."""
        return await self._settling.prune()

    async def run(self, stop: asyncio.Event) -> None:
        """Do turns without pause while there is work, and between rings when there is none.

        When ``stop`` is set nothing more is claimed; what is in flight may finish within the grace of the
        pace, and the rest is handed back without burning its attempt.
        """
        self._telemetry.event(Event.RUNNER_STARTED, concurrency=self._pace.concurrency)
        self._stopping = False
        try:
            async with asyncio.TaskGroup() as tasks:
                stopped = tasks.create_task(_until(stop))
                upkeep = tasks.create_task(self._keep_up())
                settling = tasks.create_task(self._settle_forever())
                await self._take_until(stopped)
                upkeep.cancel()
                await self._land()
                self._stopping = True
                self._something_ended.set()
                await settling
        finally:
            for _, task in self._flying.values():
                task.cancel()
            self._flying.clear()
            self._unsettled = 0
            self._lanes.clear()
            self._gates.clear()
            self._ended.clear()
        self._telemetry.event(Event.RUNNER_STOPPED)

    # ── taking ───────────────────────────────────────────────────────────────────────────────────

    async def _take_until(self, stopped: asyncio.Task[None]) -> None:
        """Claim whenever there are free slots and may be work."""
        failures = 0
        poll_seconds = self._pace.poll_ms / 1_000
        while not stopped.done():
            room = min(self._pace.concurrency - self._unsettled, self._pace.batch)
            if room < 1:
                self._slots_freed.clear()
                await _first(self._slots_freed.wait(), stopped)
                continue
            self._slots_freed.clear()
            try:
                taken = await self._intake.take(room, self._progress())
            except Exception as error:  # noqa: BLE001 - an outage passes, and a bug must not end the loop
                failures += 1
                self._tell_outage(error)
                await _first(self._clock.sleep(self._outage_seconds(failures)), stopped)
                continue
            failures = 0
            for flight in taken.flights:
                self._launch(flight)
            if not taken.more:
                at_most = poll_seconds * (0.5 + self._entropy.fraction() / 2)
                ring = self._doorbell.wait(self._handlers.keys(), at_most)
                await _first(self._or_freed(ring) if taken.crowded else ring, stopped)

    def _progress(self) -> InProgress:
        """Count what is in progress by lane and gate."""
        return InProgress(self._pace.concurrency, self._lanes, self._gates)

    async def _or_freed(self, ring: Coroutine[Any, Any, bool]) -> None:
        """Wait for a ring, or for a place if that comes first."""
        freed = asyncio.ensure_future(self._slots_freed.wait())
        try:
            await _first(ring, freed)
        finally:
            freed.cancel()

    def _launch(self, flight: Flight) -> None:
        """Perform in a task of its own."""
        claim = flight.claim
        self._unsettled += 1
        self._lanes[claim.lane] += 1
        self._gates[claim.gate] += 1
        self._flying[claim.item_id, claim.revision] = claim, asyncio.create_task(self._fly(flight))

    async def _fly(self, flight: Flight) -> None:
        try:
            ending = await self._perform(flight)
        except asyncio.CancelledError:  # only a stopping runner cancels a flight
            ending = self._ending(flight.claim, Released())
        self._end(ending)

    def _end(self, ending: Ending) -> None:
        """Hand an ended item to the settling task, unless it was given up meanwhile."""
        if self._flying.pop((ending.claim.item_id, ending.claim.revision), None) is not None:
            self._ended.append(ending)
            self._something_ended.set()

    async def _perform(self, flight: Flight) -> Ending:
        """Let the handler do the work, unless it ended before it began."""
        if flight.ended is not None:
            return self._ending(flight.claim, flight.ended)
        return self._ending(flight.claim, await self._signal(flight.claim, flight.loaded))

    def _ending(self, claim: Claim, happening: Happening) -> Ending:
        return Ending(claim, happening, self._handlers[claim.kind].policy, self._entropy.fraction())

    async def _signal(self, claim: Claim, loaded: Any) -> Signal:
        """Perform within the time; whatever goes wrong is *later*."""
        try:
            async with asyncio.timeout(self._pace.perform_seconds):
                return _checked(await self._handlers[claim.kind].perform(claim, loaded))
        except TimeoutError:
            return Later(TIMED_OUT)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failure: BaseException = error  # a cancellation of somebody else's leaked into the handler
        except Exception as error:  # noqa: BLE001 - a handler's bug: the others go on
            failure = error
        self._failed(claim.kind, failure)
        return Later(INTERNAL)

    # ── settling and upkeep ──────────────────────────────────────────────────────────────────────

    async def _settle_forever(self) -> None:
        """Settle what has ended, all that gathered at once, until the runner stops."""
        failures = 0
        while self._ended or not self._stopping:
            if not self._ended:
                self._something_ended.clear()
                await self._something_ended.wait()
                continue
            batch = self._ended[: self._pace.batch]
            try:
                await self._settling.settle(batch)
            except Exception as error:  # noqa: BLE001 - an outage passes; of a bug the sweep makes an end
                failures += 1
                self._tell_outage(error)
                if self._stopping and failures >= FAREWELL_TRIES:
                    return
                if isinstance(error, DatabaseUnavailable):
                    await self._clock.sleep(self._outage_seconds(failures))
                    continue
            failures = 0
            del self._ended[: len(batch)]
            self._unsettled -= len(batch)
            for ending in batch:
                _one_less(self._lanes, ending.claim.lane)
                _one_less(self._gates, ending.claim.gate)
            self._slots_freed.set()

    async def _keep_up(self) -> None:
        """Sweep and prune from time to time."""
        prune_at = self._clock.monotonic()
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                await self._guarded(self._settling.sweep())
                if self._clock.monotonic() >= prune_at:
                    await self._guarded(self._settling.prune())
                    prune_at = self._clock.monotonic() + self._jittered(self._pace.prune_ms)
            await self._clock.sleep(self._jittered(self._pace.sweep_ms))

    async def _guarded(self, work: Coroutine[Any, Any, int]) -> None:
        """Do some upkeep; a bug in it must not end the runner."""
        try:
            await work
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - told, and tried again at the next interval
            self._failed("any", error)

    async def _land(self) -> None:
        """Let flights end, cut off those that do not, and hand back what they held."""
        if not self._flying:
            return
        await asyncio.wait([task for _, task in self._flying.values()], timeout=self._pace.grace_ms / 1_000)
        for _, task in self._flying.values():
            task.cancel()
        if self._flying:
            await asyncio.wait([task for _, task in self._flying.values()], timeout=ABANDON_SECONDS)
        for claim, _ in list(self._flying.values()):
            self._end(self._ending(claim, Released()))

    # ── small things ─────────────────────────────────────────────────────────────────────────────

    def _jittered(self, interval_ms: int) -> float:
        """Return between half of an interval and all of it, in seconds, so that nodes drift apart."""
        return interval_ms / 1_000 * (0.5 + self._entropy.fraction() / 2)

    def _outage_seconds(self, failures: int) -> float:
        doubled: float = OUTAGE_SECONDS_FIRST * 2 ** min(failures, OUTAGE_DOUBLINGS_MAX)
        return min(OUTAGE_SECONDS_MAX, doubled) * (0.5 + self._entropy.fraction() / 2)

    def _tell_outage(self, error: Exception) -> None:
        """Tell of a bug; an outage is told by the database itself."""
        if not isinstance(error, DatabaseUnavailable):
            self._failed("any", error)

    def _failed(self, kind: str, error: BaseException) -> None:
        self._telemetry.event(Event.HANDLER_FAILED, kind=kind, exception=error, where=locations(error))


def _checked(signal: Signal) -> Signal:
    """Refuse an answer that is none of the four."""
    if not isinstance(signal, Delivered | RouteGone | Refused | Later):
        raise TypeError("a handler must answer with one of the four signals")
    return signal


def _one_less(counts: Counter[str], name: str) -> None:
    """Count down, and forget what is nothing."""
    counts[name] -= 1
    if counts[name] <= 0:
        del counts[name]


async def _until(stop: asyncio.Event) -> None:
    """Wait for an event, as a task that tells nothing."""
    await stop.wait()


async def _first(waiting: Coroutine[Any, Any, Any], stopped: asyncio.Future[Any]) -> None:
    """Wait for something, or for the stop if that comes first."""
    task = asyncio.ensure_future(waiting)
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
