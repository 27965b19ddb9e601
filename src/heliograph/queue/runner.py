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
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar, final

from heliograph.ambient.clock import Clock
from heliograph.ambient.entropy import Entropy
from heliograph.ambient.telemetry import Event, Telemetry, locations
from heliograph.doorbell.port import Doorbell
from heliograph.queue import store
from heliograph.queue.machine import (
    INTERNAL,
    Change,
    Delivered,
    FoundExpired,
    Happening,
    Later,
    Policy,
    Refused,
    Released,
    RouteGone,
    Signal,
    State,
)
from heliograph.queue.model import Claim, Claimed, Ending, Swept
from heliograph.queue.pace import Pace
from heliograph.storage.database import Database, DatabaseUnavailable, Tx
from heliograph.wire.instant import Instant

TIMED_OUT: Final = "timed_out"
"""The reason of a performance that was cut off at its limit."""

OUTAGE_SECONDS_FIRST: Final = 0.1
OUTAGE_SECONDS_MAX: Final = 5.0
"""The longest pause between two tries to reach a database that is away."""

ABANDON_SECONDS: Final = 1.0
"""How long a stopping runner waits for performances that it has cut off to notice."""

FAREWELL_TRIES: Final = 3
"""How often a stopping runner tries its last settlement. What it cannot settle, a sweep takes over."""

L = TypeVar("L")


class Handler(Protocol[L]):
    """What a kind of work is. ``L`` is whatever its ``load`` hands to its ``perform``."""

    @property
    def kind(self) -> str:
        """The kind of work that it performs."""
        ...

    @property
    def policy(self) -> Policy:
        """How patient that kind is."""
        ...

    def load(self, tx: Tx, claims: Sequence[Claim]) -> Sequence[L]:
        """Read the details of each claim, in the same order, inside the claiming transaction."""
        ...

    async def perform(self, claim: Claim, loaded: L) -> Signal:
        """Do the work, holding no transaction, and say how it ended. May be done more than once."""
        ...

    def settled(self, tx: Tx, claim: Claim, change: Change) -> None:
        """Note what became of the claim, inside the settling transaction. May be run again."""
        ...


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


@dataclass(frozen=True, slots=True)
class _Flight:
    """A claim with its details, or with how it ended before it began."""

    claim: Claim
    loaded: Any = None
    ended: Happening | None = None


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
        ValueError: Two handlers claim one kind, or there is none.
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
        pace: Pace = Pace(),
    ) -> None:
        self._handlers: Mapping[str, Handler[Any]] = {handler.kind: handler for handler in handlers}
        if not handlers or len(self._handlers) != len(handlers):
            raise ValueError("a runner needs handlers, each of a kind of its own")
        self._database = database
        self._clock = clock
        self._entropy = entropy
        self._doorbell = doorbell
        self._telemetry = telemetry
        self._pace = pace
        self._policies = {kind: handler.policy for kind, handler in self._handlers.items()}
        self._kinds = list(self._handlers)
        self._after: Mapping[str, str] = {}
        self._in_flight: dict[tuple[str, int], tuple[Claim, asyncio.Task[None] | None]] = {}
        self._ended: list[Ending] = []
        self._something_ended = asyncio.Event()
        self._room = asyncio.Event()

    # ── one turn ─────────────────────────────────────────────────────────────────────────────────

    async def turn(self) -> Turn:
        """Claim one batch, perform it and settle it.

        Raises:
            DatabaseUnavailable: The database is away; leases that were taken run out by themselves.
        """
        flights, more = await self._claim(min(self._pace.batch, self._pace.concurrency))
        endings = await asyncio.gather(*(self._perform(flight) for flight in flights))
        report = Turn(claimed=len(flights), more=more)
        await self._settle(list(endings), report)
        return report

    async def _claim(self, limit: int) -> tuple[list[_Flight], bool]:
        """Take work and load its details; what cannot be loaded or is expired has ended already."""
        now = self._clock.now()
        self._kinds.append(self._kinds.pop(0))
        kinds = tuple(self._kinds)
        try:
            claimed, flights = await self._database.claim(
                self._claim_and_load, kinds, limit, now, self._after
            )
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - a handler's bug: it must hurt its own item only
            self._failed(kinds[0] if len(kinds) == 1 else "any", error)
            claimed = await self._database.claim(self._claim_only, kinds, limit, now, self._after)
            flights = [await self._load_alone(claim, now) for claim in claimed.claims]
        self._after = claimed.after
        for kind, count in Counter(claim.kind for claim in claimed.claims).items():
            self._telemetry.event(Event.ITEMS_CLAIMED, kind=kind, count=count)
        return flights, claimed.more

    def _claim_only(
        self, tx: Tx, kinds: Sequence[str], limit: int, now: Instant, after: Mapping[str, str]
    ) -> Claimed:
        return store.claim_after(tx, kinds, limit, now, self._pace.lease_ms, after=after)

    def _claim_and_load(
        self, tx: Tx, kinds: Sequence[str], limit: int, now: Instant, after: Mapping[str, str]
    ) -> tuple[Claimed, list[_Flight]]:
        claimed = self._claim_only(tx, kinds, limit, now, after)
        flights: list[_Flight] = []
        wanted: dict[str, list[Claim]] = {}
        for claim in claimed.claims:
            if claim.expires_at <= now:
                flights.append(_Flight(claim, ended=FoundExpired()))
            else:
                wanted.setdefault(claim.kind, []).append(claim)
        for kind, claims in wanted.items():
            loaded = self._handlers[kind].load(tx, claims)
            flights += [_Flight(claim, each) for claim, each in zip(claims, loaded, strict=True)]
        return claimed, flights

    async def _load_alone(self, claim: Claim, now: Instant) -> _Flight:
        """Load the details of one claim; when that fails only this item has failed."""
        if claim.expires_at <= now:
            return _Flight(claim, ended=FoundExpired())
        try:
            (loaded,) = await self._database.transact(self._handlers[claim.kind].load, [claim])
        except DatabaseUnavailable:
            return _Flight(claim, ended=Released())
        except Exception as error:  # noqa: BLE001 - a stored detail that cannot be read is a bug or damage
            self._failed(claim.kind, error)
            return _Flight(claim, ended=Later(INTERNAL))
        return _Flight(claim, loaded)

    async def _perform(self, flight: _Flight) -> Ending:
        """Let the handler do the work, within its time."""
        claim, happening = flight.claim, flight.ended
        if happening is None:
            happening = await self._signal(claim, flight.loaded)
        return Ending(claim, happening, self._policies[claim.kind], self._entropy.fraction())

    async def _signal(self, claim: Claim, loaded: Any) -> Signal:
        try:
            async with asyncio.timeout(self._pace.perform_seconds):
                signal = await self._handlers[claim.kind].perform(claim, loaded)
            if not isinstance(signal, Delivered | RouteGone | Refused | Later):
                raise TypeError("a handler must answer with one of the four signals")
        except TimeoutError:
            return Later(TIMED_OUT)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._failed(claim.kind, error)  # somebody else's cancellation leaked into the handler
            return Later(INTERNAL)
        except Exception as error:  # noqa: BLE001 - a handler's bug: the others go on
            self._failed(claim.kind, error)
            return Later(INTERNAL)
        return signal

    # ── settling ─────────────────────────────────────────────────────────────────────────────────

    async def _settle(self, endings: list[Ending], report: Turn | None = None) -> None:
        """Settle a batch in one transaction, or one by one when that raises."""
        if not endings:
            return
        now = self._clock.now()
        try:
            changes = await self._database.transact(self._write, endings, now)
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - a handler's bug: it must hurt its own item only
            if len(endings) == 1:
                self._failed(endings[0].claim.kind, error)
            changes = [await self._settle_alone(ending, now) for ending in endings]
        for ending, change in zip(endings, changes, strict=True):
            self._tell(ending.claim, change)
            if report is not None:
                report.fenced += change is None
                report.settled.update([change.state] if change else [])

    def _write(self, tx: Tx, endings: Sequence[Ending], now: Instant) -> list[Change | None]:
        changes = store.settle_all(tx, endings, now)
        for ending, change in zip(endings, changes, strict=True):
            if change is not None:
                self._handlers[ending.claim.kind].settled(tx, ending.claim, change)
        return changes

    async def _settle_alone(self, ending: Ending, now: Instant) -> Change | None:
        """Settle one item whose batch failed: as it ended, else as our failure, else without its handler."""
        failure = Ending(ending.claim, Later(INTERNAL), ending.policy, ending.fraction)
        for attempt in (ending, failure):
            try:
                return (await self._database.transact(self._write, [attempt], now))[0]
            except DatabaseUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - as above
                self._failed(ending.claim.kind, error)
        return (await self._database.transact(store.settle_all, [failure], now))[0]

    def _tell(self, claim: Claim, change: Change | None) -> None:
        """Tell what became of a claim."""
        if change is None:
            self._telemetry.event(Event.CLAIM_FENCED, kind=claim.kind)
            return
        reason, state = change.reason or "none", change.state
        self._telemetry.event(
            Event.ITEM_SETTLED, kind=claim.kind, state=state, reason=reason, attempt=claim.attempt
        )
        if state is State.READY:
            after_ms = max(0, change.due_at - self._clock.now())
            self._telemetry.event(
                Event.ITEM_RETRIED, kind=claim.kind, reason=reason, attempt=claim.attempt, after_ms=after_ms
            )
        elif state is State.DEAD:
            self._telemetry.event(Event.ITEM_DIED, kind=claim.kind, reason=reason, attempt=claim.attempt)

    def _failed(self, kind: str, error: BaseException) -> None:
        self._telemetry.event(Event.HANDLER_FAILED, kind=kind, exception=error, where=locations(error))

    # ── upkeep ───────────────────────────────────────────────────────────────────────────────────

    async def sweep(self) -> int:
        """Take over every lease of our kinds that has ended; tell how many there were.

        Raises:
            DatabaseUnavailable: The database is away.
        """
        swept, limit, after = 0, store.PAGE_ITEMS_MAX, (0, "")
        now = self._clock.now()
        while True:
            try:
                page = await self._database.transact(self._sweep_page, now, limit, after)
            except DatabaseUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - a handler's bug: find its item, spare the others
                if limit > 1:
                    limit = 1
                    continue
                self._failed("any", error)
                page = await self._database.transact(store.sweep, self._policies, now, 1, after)
            swept += len(page.settled)
            for kind, count in Counter(claim.kind for claim, _ in page.settled).items():
                self._telemetry.event(Event.LEASES_EXPIRED, kind=kind, count=count)
            for claim, change in page.settled:
                self._tell(claim, change)
                if change.state is State.READY:
                    self._doorbell.ring(claim.kind)
            if page.following is None:
                return swept
            after = page.following

    def _sweep_page(self, tx: Tx, now: Instant, limit: int, after: tuple[Instant, str]) -> Swept:
        page = store.sweep(tx, self._policies, now, limit, after)
        for claim, change in page.settled:
            self._handlers[claim.kind].settled(tx, claim, change)
        return page

    async def prune(self) -> int:
        """Remove rows past their retention; tell how many there were.

        Raises:
            DatabaseUnavailable: The database is away.
        """
        pruned, now = 0, self._clock.now()
        for remove, keep_ms in (
            (store.prune, self._pace.keep_ms),
            (store.prune_dead, self._pace.keep_dead_ms),
        ):
            count = store.PAGE_ITEMS_MAX
            while count == store.PAGE_ITEMS_MAX:
                count = await self._database.transact(remove, now - keep_ms)
                pruned += count
        if pruned:
            self._telemetry.event(Event.ITEMS_PRUNED, count=pruned)
        return pruned
