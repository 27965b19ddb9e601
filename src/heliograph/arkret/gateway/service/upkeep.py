"""What a Gateway does beside its requests: refreshes trust, reseals, prunes, and counts what waits."""

from typing import Final, final

from heliograph.ambient.clock import Clock
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.hygiene import store as hygiene
from heliograph.arkret.gateway.service.notify import NotifyDesk
from heliograph.arkret.gateway.service.reseal import Resealer
from heliograph.arkret.gateway.service.takeover import KIND, KIND_HARDENED
from heliograph.arkret.gateway.service.trust import TrustBook
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.ledger import prune as prune_ledger
from heliograph.storage.database import Database, DatabaseUnavailable
from heliograph.wire.instant import Instant

PRUNE_BATCH: Final = 2_000
"""Rows forgotten in one transaction: short enough that a notify beside it does not notice."""

COUNT_EVERY_MS: Final = 5_000
"""How often waiting wakeups are counted anew; between counts each process adds its own."""

PRUNE_EVERY_MS: Final = 30_000
RESEAL_EVERY_MS: Final = 10_000
"""How often a process looks for routes of an older master key; while there are any it goes on at once."""

CONTENT_GRACE_MS: Final = 3_600_000
"""A content without its work item is an orphan of pruning; a young one may be in the making."""


@final
class Upkeep:
    """The Gateway's periodic work, one small transaction at a time."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        trust: TrustBook,
        notifies: NotifyDesk,
        resealer: Resealer,
        settings: GatewaySettings,
    ) -> None:
        self._database = database
        self._clock = clock
        self._trust = trust
        self._notifies = notifies
        self._resealer = resealer
        self._settings = settings
        self._due: dict[str, Instant] = {}

    async def turn(self) -> None:
        """Do what is due now. A database that is away is met again at the next turn."""
        now = self._clock.now()
        try:
            if self._is_due("trust", self._settings.trust_refresh_s * 1_000, now):
                await self._trust.refresh()
            if self._is_due("count", COUNT_EVERY_MS, now):
                self._notifies.waiting_is(
                    await self._database.read(store.waiting_by_lane, (KIND, KIND_HARDENED))
                )
            if self._is_due("reseal", RESEAL_EVERY_MS, now):
                resealed = await self._resealer.turn()
                if resealed.more:
                    self._due["reseal"] = now
            if self._is_due("prune", PRUNE_EVERY_MS, now):
                await self._prune(now)
        except DatabaseUnavailable:
            self._due.clear()

    def _is_due(self, task: str, every_ms: int, now: Instant) -> bool:
        if now < self._due.get(task, 0):
            return False
        self._due[task] = now + every_ms
        return True

    async def _prune(self, now: Instant) -> None:
        keys_before = now - self._settings.key_retention_h * 3_600_000
        forgotten = await self._database.transact(prune_ledger, now, keys_before, PRUNE_BATCH)
        swept = await self._database.transact(store.delivery_sweep, now - CONTENT_GRACE_MS, PRUNE_BATCH)
        await self._database.transact(hygiene.prune, now)
        if PRUNE_BATCH in (forgotten, swept):
            self._due["prune"] = now
