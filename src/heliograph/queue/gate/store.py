"""The rows of gates that are not simply open. Synchronous; every function takes a ``Tx``."""

from typing import Final

from heliograph.queue.gate.decide import Closing, Gate
from heliograph.queue.gate.decide import shut as decide_shut
from heliograph.queue.gate.decide import undecided as decide_undecided
from heliograph.storage.database import Tx
from heliograph.storage.queries import load_queries
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.queue.gate", "gate.sql")

GATES_SHOWN_MAX: Final = 1_000
"""Gates that are read at once. More than that are closed only where strangers name them."""


def gate(tx: Tx, name: str) -> Gate | None:
    """Return a gate's record; None when it is open."""
    row = tx.one(_SQL["get"], {"gate": name})
    return None if row is None else Gate(*row)


def gates(tx: Tx) -> list[Gate]:
    """Return the gates that are not simply open, at most ``GATES_SHOWN_MAX``."""
    return [Gate(*row) for row in tx.all(_SQL["all"], {"limit": GATES_SHOWN_MAX})]


def shut(tx: Tx, name: str, closing: Closing, item_id: str, now: Instant) -> Gate:
    """Note a failure behind a gate; see ``decide.shut``."""
    decided = decide_shut(gate(tx, name), name, closing, item_id, now)
    _put(tx, decided)
    return decided


def passed(tx: Tx, name: str, item_id: str) -> bool:
    """Open a gate if this item was its probe. The caller rings the doorbell after the commit.

    Returns:
        Whether it is open now and was not before.
    """
    return tx.run(_SQL["passed"], {"gate": name, "item_id": item_id}) == 1


def undecided(tx: Tx, name: str, item_id: str, now: Instant) -> None:
    """Note that a probe ended without a word on its gate; another may try soon."""
    found = gate(tx, name)
    if found is not None and found.probe == item_id:
        _put(tx, decide_undecided(found, item_id, now))


def open_gate(tx: Tx, name: str) -> bool:
    """Open a gate because an operator says so; tell whether it was not open."""
    return tx.run(_SQL["open"], {"gate": name}) == 1


def forget(tx: Tx, before: Instant) -> int:
    """Forget gates that have been ajar since before an instant: nobody waits behind them."""
    return tx.run(_SQL["forget"], {"before": before})


def _put(tx: Tx, record: Gate) -> None:
    tx.run(
        _SQL["put"],
        {
            "gate": record.name,
            "closed_until": record.closed_until,
            "closed_at": record.closed_at,
            "reason": record.reason,
            "step": record.step,
            "probe": record.probe,
        },
    )
