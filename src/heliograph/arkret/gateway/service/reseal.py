"""Moves sealed routes under the newest master key, a few at a time, while everything goes on."""

from dataclasses import dataclass
from typing import Final, final

from heliograph.ambient.entropy import Entropy
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.service.routes import open_route, seal_route
from heliograph.signing.seal import SealBroken, TenantKeys
from heliograph.storage.database import Database, Tx

BATCH: Final = 200
"""Routes resealed in one transaction: a few milliseconds of work, so that notifies do not wait for it."""


@dataclass(frozen=True, slots=True)
class Resealed:
    """What one pass did.

    Attributes:
        moved: Routes that the newest key seals now.
        broken: Routes that no known key opens; they were left as they are for an operator to see.
        more: Whether another pass would find work.
    """

    moved: int
    broken: int
    more: bool


@final
class Resealer:
    """Reseals routes of older key versions."""

    def __init__(self, database: Database, keys: TenantKeys, entropy: Entropy) -> None:
        self._database = database
        self._keys = keys
        self._entropy = entropy
        # Moves on past routes that no key opens, so that they never hide the ones behind them.
        self._behind: store.StaleRoute | None = None

    async def turn(self) -> Resealed:
        """Move one batch. When the end is reached the next turn begins anew."""
        stale = await self._database.read(store.stale_routes, self._keys.current, self._behind, BATCH)
        self._behind = stale[-1] if len(stale) == BATCH else None
        nonces = [self._entropy.octets(12) for _ in stale]
        moved = await self._database.transact(self._move, stale, nonces) if stale else 0
        return Resealed(moved=moved, broken=len(stale) - moved, more=self._behind is not None)

    def _move(self, tx: Tx, stale: list[store.StaleRoute], nonces: list[bytes]) -> int:
        moved = 0
        for row, nonce in zip(stale, nonces, strict=True):
            try:
                route = open_route(self._keys, row.tenant, row.registration_id, row.route)
            except SealBroken:
                continue
            renewed = seal_route(self._keys, row.tenant, row.registration_id, route, nonce)
            moved += store.route_reseal(tx, row, renewed, self._keys.current)
        return moved
