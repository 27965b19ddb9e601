"""What a process does about the health of credentials beside its deliveries."""

from typing import Final, final

from heliograph.ambient.clock import Clock
from heliograph.delivery.gates import KnownGates
from heliograph.queue.gate import store as gate_store
from heliograph.queue.gate.decide import Gate
from heliograph.storage.database import Database, DatabaseUnavailable, Tx
from heliograph.wire.instant import Instant

LOOK_EVERY_MS: Final = 2_000
"""How often a process looks which credentials rest; its claims look as well."""

FORGET_EVERY_MS: Final = 600_000
FORGET_AFTER_MS: Final = 86_400_000
"""A gate that has been ajar for a day has nothing waiting behind it."""


@final
class Watch:
    """Keeps what a process knows of credentials fresh, one small transaction at a time."""

    def __init__(self, database: Database, clock: Clock, gates: KnownGates) -> None:
        self._database = database
        self._clock = clock
        self._gates = gates
        self._look_at: Instant = 0
        self._forget_at: Instant = 0

    async def turn(self) -> None:
        """Do what is due. A database that is away is met again at the next turn."""
        now = self._clock.now()
        try:
            if now >= self._look_at:
                self._gates.learn(await self._database.read(gate_store.gates))
                self._look_at = now + LOOK_EVERY_MS
            if now >= self._forget_at:
                await self._database.transact(gate_store.forget, now - FORGET_AFTER_MS)
                self._forget_at = now + FORGET_EVERY_MS
        except DatabaseUnavailable:
            return


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
        return await self._database.transact(_open, name)


def _open(tx: Tx, name: str) -> bool:
    return gate_store.open_gate(tx, name)
