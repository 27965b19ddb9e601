"""What operators ask of a Gateway: whom it trusts, what is registered, what became of deliveries."""

from collections.abc import Mapping
from typing import Final, final

from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.hygiene import store as hygiene
from heliograph.arkret.gateway.hygiene.store import Undoable
from heliograph.arkret.gateway.model import AppCount
from heliograph.arkret.gateway.store import DeliveryLine, RegistrationLine, TrustedStation
from heliograph.queue import store as queue
from heliograph.storage.database import Database
from heliograph.wire.instant import Instant

PAGE_MAX: Final = 500
"""Rows of one page: what a person scrolls through, and a read that disturbs nobody."""


@final
class Office:
    """The operator's view. It never opens a route and shows no receipt."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stations(self) -> list[TrustedStation]:
        """Return the trusted Stations."""
        return await self._database.read(store.stations)

    async def trust(self, station: TrustedStation) -> None:
        """Trust a Station, or replace its key or profiles."""
        await self._database.transact(store.station_put, station)

    async def distrust(self, service_id: str, now: Instant) -> bool:
        """Stop trusting a Station; tell whether it was trusted. Its installations stay and stay its own."""
        return await self._database.transact(store.station_remove, service_id, now)

    async def registrations(self, tenant: str, after: str, limit: int) -> list[RegistrationLine]:
        """Return one page of a Station's registrations, ordered by id."""
        return await self._database.read(store.registrations, tenant, after, min(limit, PAGE_MAX))

    async def registration_counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count registrations by Station and state."""
        return await self._database.read(store.registration_counts)

    async def app_counts(self) -> list[AppCount]:
        """Count live registrations and waiting deliveries by application."""
        return await self._database.read(store.app_counts)

    async def stale_routes(self, current_version: int) -> int:
        """Count the routes that an older master key still seals."""
        return await self._database.read(store.stale_route_count, current_version)

    async def undoable(self, credential: str, since: Instant, now: Instant) -> list[Undoable]:
        """Tell which routes that ended by a credential's word since an instant could be brought back."""
        return await self._database.read(hygiene.undoable, credential, since, now)

    async def undo(self, credential: str, since: Instant, now: Instant) -> int:
        """Bring those routes back; tell how many there were."""
        return await self._database.transact(hygiene.undo, credential, since, now)

    async def deliveries(self, state: str | None, after: str, limit: int) -> list[DeliveryLine]:
        """Return one page of deliveries, ordered by time of acceptance."""
        return await self._database.read(store.deliveries, state, after, min(limit, PAGE_MAX))

    async def delivery(self, item_id: str) -> DeliveryLine | None:
        """Return one delivery."""
        return await self._database.read(store.delivery_line, item_id)

    async def retry(self, item_id: str, now: Instant) -> bool:
        """Let a delivery that was given up be tried again; tell whether it could be."""
        return await self._database.transact(queue.retry, item_id, now)
