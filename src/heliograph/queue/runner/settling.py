"""Writes how claims ended, takes over what nobody settled, and removes what is old."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, final

from heliograph.ambient.clock import Clock
from heliograph.ambient.telemetry import Event, Telemetry, locations
from heliograph.doorbell.port import Doorbell
from heliograph.queue import store
from heliograph.queue.machine import INTERNAL, Change, Later, State
from heliograph.queue.model import Claim, Ending, Swept
from heliograph.queue.pace import Pace
from heliograph.queue.runner.handler import Handler
from heliograph.storage.database import Database, DatabaseUnavailable, Tx
from heliograph.wire.instant import Instant


@final
class Settling:
    """Settles, sweeps and prunes for one runner."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        doorbell: Doorbell,
        handlers: Mapping[str, Handler[Any]],
        *,
        telemetry: Telemetry,
        pace: Pace,
    ) -> None:
        self._database = database
        self._clock = clock
        self._doorbell = doorbell
        self._handlers = handlers
        self._policies = {kind: handler.policy for kind, handler in handlers.items()}
        self._telemetry = telemetry
        self._pace = pace

    async def settle(self, endings: Sequence[Ending]) -> list[Change | None]:
        """Settle a batch in one transaction, or one by one when a handler's bug breaks the batch.

        Returns:
            What became of each; None where the fence did not hold.

        Raises:
            DatabaseUnavailable: Some are perhaps not settled. To settle all again does no harm.
        """
        if not endings:
            return []
        now = self._clock.now()
        try:
            changes = await self._database.transact(self._write, endings, now)
        except DatabaseUnavailable:
            raise
        except Exception:  # noqa: BLE001 - a handler's bug; settling one by one finds and tells it
            changes = [await self._settle_alone(ending, now) for ending in endings]
        for ending, change in zip(endings, changes, strict=True):
            self._tell(ending.claim, change)
        return changes

    def _write(self, tx: Tx, endings: Sequence[Ending], now: Instant) -> list[Change | None]:
        changes = store.settle_all(tx, endings, now)
        for ending, change in zip(endings, changes, strict=True):
            if change is not None:
                self._handlers[ending.claim.kind].settled(tx, ending.claim, change)
        return changes

    async def _settle_alone(self, ending: Ending, now: Instant) -> Change | None:
        """Settle one item of a broken batch: as it ended, else as our failure, else without its handler."""
        failure = Ending(ending.claim, Later(INTERNAL), ending.policy, ending.fraction)
        for attempt in (ending, failure):
            try:
                return (await self._database.transact(self._write, [attempt], now))[0]
            except DatabaseUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - a handler's bug; the item must end all the same
                self._failed(ending.claim.kind, error)
        return (await self._database.transact(store.settle_all, [failure], now))[0]

    async def sweep(self) -> int:
        """Take over every lease of our kinds that has ended, and ring for what is ready again.

        Returns:
            How many there were.

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
            self._tell_swept(page)
            if page.following is None:
                return swept
            after = page.following

    def _sweep_page(self, tx: Tx, now: Instant, limit: int, after: tuple[Instant, str]) -> Swept:
        page = store.sweep(tx, self._policies, now, limit, after)
        for claim, change in page.settled:
            self._handlers[claim.kind].settled(tx, claim, change)
        return page

    async def prune(self) -> int:
        """Remove rows past their retention.

        Returns:
            How many there were.

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

    def _tell_swept(self, page: Swept) -> None:
        for kind, count in Counter(claim.kind for claim, _ in page.settled).items():
            self._telemetry.event(Event.LEASES_EXPIRED, kind=kind, count=count)
        for claim, change in page.settled:
            self._tell(claim, change)
        for kind in {claim.kind for claim, change in page.settled if change.state is State.READY}:
            self._doorbell.ring(kind)

    def _tell(self, claim: Claim, change: Change | None) -> None:
        """Tell what became of a claim."""
        if change is None:
            self._telemetry.event(Event.CLAIM_FENCED, kind=claim.kind)
            return
        kind, attempt, reason, state = claim.kind, claim.attempt, change.reason or "none", change.state
        self._telemetry.event(Event.ITEM_SETTLED, kind=kind, state=state, reason=reason, attempt=attempt)
        if state is State.READY:
            after_ms = max(0, change.due_at - self._clock.now())
            self._telemetry.event(
                Event.ITEM_RETRIED, kind=kind, reason=reason, attempt=attempt, after_ms=after_ms
            )
        elif state is State.DEAD:
            self._telemetry.event(Event.ITEM_DIED, kind=kind, reason=reason, attempt=attempt)

    def _failed(self, kind: str, error: Exception) -> None:
        self._telemetry.event(Event.HANDLER_FAILED, kind=kind, exception=error, where=locations(error))
