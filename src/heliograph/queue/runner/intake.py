"""Takes work: claims it and loads its details in one transaction."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from heliograph.ambient.clock import Clock
from heliograph.ambient.telemetry import Event, Telemetry, locations
from heliograph.queue import store
from heliograph.queue.claiming.rooms import InProgress
from heliograph.queue.machine import INTERNAL, FoundExpired, Happening, Later, Released
from heliograph.queue.model import Claim, Claimed, Round
from heliograph.queue.runner.handler import Handler
from heliograph.storage.database import Database, DatabaseUnavailable, Tx
from heliograph.wire.instant import Instant


@dataclass(frozen=True, slots=True)
class Flight:
    """A claim with its details, or with how it ended before it began."""

    claim: Claim
    loaded: Any = None
    ended: Happening | None = None


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a claim asks for."""

    kinds: tuple[str, ...]
    limit: int
    now: Instant
    place: Round
    progress: InProgress | None


@dataclass(frozen=True, slots=True)
class Taken:
    """What one claim brought.

    Attributes:
        flights: What was taken.
        more: Work that is due may be left.
        crowded: Some was left because its lane or its gate has enough in progress.
    """

    flights: list[Flight]
    more: bool
    crowded: bool


@final
class Intake:
    """Claims for one runner, keeping its place in the round of lanes."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        handlers: Mapping[str, Handler[Any]],
        telemetry: Telemetry,
        lease_ms: int,
    ) -> None:
        self._database = database
        self._clock = clock
        self._handlers = handlers
        self._telemetry = telemetry
        self._lease_ms = lease_ms
        self._kinds = list(handlers)
        self._place = Round()

    async def take(self, limit: int, progress: InProgress | None = None) -> Taken:
        """Claim and load.

        Args:
            limit: How many at most.
            progress: What is in progress, to leave room for others; None to take without regard to it.

        Returns:
            What was taken, expired items and those that cannot be loaded included as already ended.

        Raises:
            DatabaseUnavailable: Nothing is known to be taken; what was is swept when its lease ends.
        """
        now = self._clock.now()
        # When slots are fewer than lanes the first kind has the advantage, so each is first in turn.
        self._kinds.append(self._kinds.pop(0))
        wish = _Wish(tuple(self._kinds), limit, now, self._place, progress)
        try:
            claimed, flights = await self._database.claim(self._claim_and_load, wish)
        except DatabaseUnavailable:
            raise
        except Exception:  # noqa: BLE001 - a handler's bug; loading one by one finds and tells it
            claimed = await self._database.claim(self._claim, wish)
            flights = [await self._load_alone(claim, now) for claim in claimed.claims]
        self._place = claimed.place
        for kind, count in Counter(claim.kind for claim in claimed.claims).items():
            self._telemetry.event(Event.ITEMS_CLAIMED, kind=kind, count=count)
        return Taken(flights, claimed.more, claimed.crowded)

    def _claim(self, tx: Tx, wish: _Wish) -> Claimed:
        return store.claim_round(
            tx, wish.kinds, wish.limit, wish.now, self._lease_ms, place=wish.place, progress=wish.progress
        )

    def _claim_and_load(self, tx: Tx, wish: _Wish) -> tuple[Claimed, list[Flight]]:
        claimed, now = self._claim(tx, wish), wish.now
        flights: list[Flight] = []
        wanted: dict[str, list[Claim]] = {}
        for claim in claimed.claims:
            if claim.expires_at <= now:
                flights.append(Flight(claim, ended=FoundExpired()))
            else:
                wanted.setdefault(claim.kind, []).append(claim)
        for kind, claims in wanted.items():
            loaded = self._handlers[kind].load(tx, claims)
            flights += [Flight(claim, each) for claim, each in zip(claims, loaded, strict=True)]
        return claimed, flights

    async def _load_alone(self, claim: Claim, now: Instant) -> Flight:
        """Load the details of one claim; when that fails only this item has failed."""
        if claim.expires_at <= now:
            return Flight(claim, ended=FoundExpired())
        try:
            (loaded,) = await self._database.claim(self._handlers[claim.kind].load, [claim])
        except DatabaseUnavailable:
            return Flight(claim, ended=Released())
        except Exception as error:  # noqa: BLE001 - a stored detail that cannot be read: a bug or damage
            self._telemetry.event(
                Event.HANDLER_FAILED, kind=claim.kind, exception=error, where=locations(error)
            )
            return Flight(claim, ended=Later(INTERNAL))
        return Flight(claim, loaded)
