"""What a process does about the health of credentials beside its deliveries, and what an operator may do."""

from collections.abc import Callable
from typing import Final, final

from heliograph.ambient.clock import Clock
from heliograph.delivery.gates import KnownGates
from heliograph.delivery.hygiene import store
from heliograph.delivery.hygiene.decide import Freeze, Tally
from heliograph.delivery.hygiene.health import Health
from heliograph.queue.gate import store as gate_store
from heliograph.queue.gate.decide import Gate
from heliograph.storage.database import Database, DatabaseUnavailable, Tx
from heliograph.wire.instant import Instant

LOOK_EVERY_MS: Final = 2_000
"""How often a process looks which credentials rest or are frozen; its claims and settlements look as well."""

FORGET_EVERY_MS: Final = 600_000
FORGET_AFTER_MS: Final = 86_400_000
"""A gate that has been ajar for a day has nothing waiting behind it."""


@final
class Watch:
    """Keeps what processes know of credentials alike, one small transaction at a time.

    Args:
        database: Where it is written down.
        clock: Tells the time.
        gates: What this process knows of gates.
        health: What it knows of the health of credentials.
        worker: A name for this process that no other has.
        froze: Told of a credential that froze here and could not be written down before.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        gates: KnownGates,
        health: Health,
        worker: str,
        froze: Callable[[Freeze], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._gates = gates
        self._health = health
        self._worker = worker
        self._froze = froze
        self._look_at: Instant = 0
        self._forget_at: Instant = 0

    async def turn(self) -> None:
        """Do what is due. A database that is away is met again at the next turn."""
        now = self._clock.now()
        try:
            if now >= self._look_at:
                await self._look(now)
                self._look_at = now + LOOK_EVERY_MS
            if now >= self._forget_at:
                await self._database.transact(gate_store.forget, now - FORGET_AFTER_MS)
                await self._database.transact(store.forget, now)
                self._forget_at = now + FORGET_EVERY_MS
        except DatabaseUnavailable:
            return

    async def _look(self, now: Instant) -> None:
        for freeze in self._health.unwritten():
            if await self._database.transact(store.freeze, freeze):
                self._froze(freeze)
            self._health.written(freeze.credential)
        pulses = self._health.pulses()
        if pulses:
            await self._database.transact(store.beat, self._worker, pulses)
        gates, freezes, others = await self._database.read(_look, self._worker, now)
        self._gates.learn(gates)
        self._health.learn(freezes, others)


def _look(tx: Tx, worker: str, now: Instant) -> tuple[list[Gate], list[Freeze], dict[str, Tally]]:
    return gate_store.gates(tx), store.freezes(tx), store.others(tx, worker, now)


@final
class HygieneDesk:
    """The operator's view of credentials."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def gates(self) -> list[Gate]:
        """Return the credentials, and services of one, that rest."""
        return await self._database.read(gate_store.gates)

    async def open(self, name: str) -> bool:
        """Let everything go out again at once; tell whether it rested."""
        return await self._database.transact(gate_store.open_gate, name)

    async def freezes(self) -> list[Freeze]:
        """Return the credentials whose word on routes is not acted upon."""
        return await self._database.read(store.freezes)

    async def thaw(self, credential: str) -> bool:
        """Act upon a credential's word again; tell whether it was frozen."""
        return await self._database.transact(store.thaw, credential)
