"""Lets out what rests behind a credential that is another one now.

A provider that refused a key closes the gate that everything with this key waits behind, for every process.
When the key has been replaced, or an application has moved away from it, that refusal is history.
"""

from collections.abc import Iterable
from typing import Final

from heliograph.doorbell.port import Doorbell
from heliograph.queue.gate import store
from heliograph.storage.database import Database, Tx

PART_MARK: Final = "#"
"""A gate bears its credential's name; that of a part, such as one push service, goes on behind this mark."""


async def reopen(
    credentials: frozenset[str], database: Database, doorbell: Doorbell, kinds: Iterable[str]
) -> None:
    """Open every gate of some credentials, and ring for what waited behind them.

    Args:
        credentials: By name.
        database: Where the gates are.
        doorbell: Rung if a gate was opened.
        kinds: The kinds of work that wait behind credentials.
    """
    if await database.transact(_opened, credentials):
        for kind in kinds:
            doorbell.ring(kind)


def _opened(tx: Tx, credentials: frozenset[str]) -> int:
    names = [gate.name for gate in store.gates(tx) if gate.name.partition(PART_MARK)[0] in credentials]
    return sum(store.open_gate(tx, name) for name in names)
