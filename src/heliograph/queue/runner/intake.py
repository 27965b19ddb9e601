"""Takes work: claims it and loads its details in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from heliograph.ambient.clock import Clock
from heliograph.ambient.telemetry import Event, Telemetry, locations
from heliograph.queue import store
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

    async def take(self, limit: int) -> tuple[list[Flight], bool]:
        """Claim and load.

        Args:
            limit: How many at most.

        Returns:
            What was taken, expired items and those that cannot be loaded included as already ended; and
            whether work that is due may be left.

        Raises:
            DatabaseUnavailable: Nothing is known to be taken; what was is swept when its lease ends.
        """
        now = self._clock.now()
        # When slots are fewer than lanes the first kind has the advantage, so each is first in turn.
        self._kinds.append(self._kinds.pop(0))
        kinds = tuple(self._kinds)
        try:
            claimed, flights = await self._database.claim(
                self._claim_and_load, kinds, limit, now, self._place
            )
        except DatabaseUnavailable:
            raise
        except Exception:  # noqa: BLE001 - a handler's bug; loading one by one finds and tells it
            claimed = await self._database.claim(self._claim, kinds, limit, now, self._place)
            flights = [await self._load_alone(claim, now) for claim in claimed.claims]
        self._place = claimed.place
        for kind, count in Counter(claim.kind for claim in claimed.claims).items():
            self._telemetry.event(Event.ITEMS_CLAIMED, kind=kind, count=count)
        return flights, claimed.more

    def _claim(self, tx: Tx, kinds: Sequence[str], limit: int, now: Instant, place: Round) -> Claimed:
        return store.claim_round(tx, kinds, limit, now, self._lease_ms, place=place)

    def _claim_and_load(
        self, tx: Tx, kinds: Sequence[str], limit: int, now: Instant, place: Round
    ) -> tuple[Claimed, list[Flight]]:
        claimed = self._claim(tx, kinds, limit, now, place)
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
