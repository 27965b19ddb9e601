"""Which Stations are trusted now, kept in memory and refreshed from the database."""

from collections.abc import Sequence
from typing import final

from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.describe import HARDENED
from heliograph.arkret.gateway.store import TrustedStation
from heliograph.signing.ed25519 import VerifyKey
from heliograph.storage.database import Database


@final
class TrustBook:
    """The trusted Stations, as of the last refresh.

    A signed request is checked against memory, so a Station that was removed may still be served until the
    next refresh (setting ``gateway.trust_refresh_s``).
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stations: dict[str, tuple[TrustedStation, VerifyKey]] = {}

    async def refresh(self) -> None:
        """Read the trusted Stations anew."""
        self.replace(await self._database.read(store.stations))

    def replace(self, stations: Sequence[TrustedStation]) -> None:
        """Hold exactly these Stations from now on."""
        self._stations = {
            station.service_id: (station, VerifyKey.from_multibase(station.public_key))
            for station in stations
        }

    def key_for(self, source_id: str, keyid: str) -> VerifyKey | None:
        """Return the key that a source signs with, if it is trusted and this is its current method."""
        known = self._stations.get(source_id)
        if known is None or known[0].verification_method != keyid:
            return None
        return known[1]

    def station(self, source_id: str) -> TrustedStation | None:
        """Return a trusted Station."""
        known = self._stations.get(source_id)
        return None if known is None else known[0]

    def hardened(self, source_id: str) -> bool:
        """Tell whether a source's provider-bound pushes must not tell the time of its events."""
        known = self._stations.get(source_id)
        return known is not None and HARDENED in known[0].profiles

    def __len__(self) -> int:
        return len(self._stations)
