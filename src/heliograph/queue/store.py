"""The rows of the queue: what to do, who has it, how it ended. Knows SQL and not one push word.

Every function is synchronous and takes a ``Tx``. What makes it safe:

- **The fence.** A claim raises the item's revision, and a settlement is written only while the item is
  still leased under the revision that was claimed. Whoever lost a lease can say what it likes. Clocks
  decide when a lease may be taken over, never who may write, so a skewed clock costs time and nothing
  else.
- **The lanes and the gates.** How claims are shared out is told in ``queue.claiming.store``.
- **The expiry.** Every item has one. An item that is past it when it is claimed is not performed: the
  claim says so by ``expires_at`` and the runner ends it. So no index on expiries is needed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from heliograph.queue.claiming.store import claim, claim_round
from heliograph.queue.machine import (
    Change,
    ImpossibleChange,
    Item,
    LeaseExpired,
    Policy,
    Released,
    RetryAsked,
    State,
    change,
)
from heliograph.queue.model import (
    LIFE_MS,
    Canceled,
    Claim,
    Claimed,
    DeadItem,
    Ending,
    NewItem,
    Round,
    Swept,
)
from heliograph.storage.database import Tx, Value
from heliograph.storage.queries import load_queries
from heliograph.wire.instant import Instant

__all__ = [
    "Canceled",
    "Claim",
    "Claimed",
    "DeadItem",
    "Ending",
    "NewItem",
    "Round",
    "Swept",
    "cancel",
    "claim",
    "claim_round",
    "counts",
    "dead",
    "enqueue",
    "lag_ms",
    "prune",
    "prune_dead",
    "release",
    "retry",
    "settle",
    "settle_all",
    "sweep",
]

_SQL: Final = load_queries("heliograph.queue", "queue.sql")

PAGE_ITEMS_MAX: Final = 1_000
"""Rows of one page of a sweep, a prune or a listing: one transaction must not keep the others waiting."""


def _json(value: object) -> str:
    """Spell many rows as one parameter: one statement is far cheaper than one for each."""
    return msgspec.json.encode(value).decode()


def enqueue(tx: Tx, items: Sequence[NewItem], now: Instant) -> set[str]:
    """Add work. The caller rings the doorbell after the commit.

    Args:
        tx: The transaction that the work belongs to.
        items: What to add.
        now: The present instant.

    Returns:
        The ids that were really added. The others joined an equal item that waits unclaimed.
    """
    rows: list[dict[str, Value]] = [
        {
            "item_id": item.item_id,
            "kind": item.kind,
            "lane": item.lane,
            "gate": item.gate or "",
            "group_key": item.group,
            "reference": item.reference,
            "fold_key": item.fold_key,
            "due_at": item.due_at,
            "expires_at": max(item.due_at, now) + LIFE_MS if item.expires_at is None else item.expires_at,
        }
        for item in items
    ]
    if len(rows) == 1:
        return {items[0].item_id} if tx.run(_SQL["enqueue_one"], {**rows[0], "created_at": now}) else set()
    added = tx.all(_SQL["enqueue"], {"items": _json(rows), "created_at": now})
    return {item_id for (item_id,) in added}


def settle(tx: Tx, claim: Claim, change: Change, now: Instant) -> bool:
    """Write what became of a claim, if the fence holds.

    Returns:
        False when the item is no longer leased under this claim; nothing was written.
    """
    _move(tx, claim, change)
    return tx.run(_SQL["settle"], {"changes": _json([_settlement(claim, change, now)])}) == 1


def settle_all(tx: Tx, endings: Sequence[Ending], now: Instant) -> list[Change | None]:
    """Decide and write what becomes of many claims.

    Args:
        tx: The transaction.
        endings: The claims and how each ended.
        now: The present instant.

    Returns:
        The change written for each claim; None where the fence did not hold.
    """
    held = {
        (item_id, revision): bool(cancel_requested)
        for item_id, revision, cancel_requested in tx.all(
            _SQL["held"], {"item_ids": _json([ending.claim.item_id for ending in endings])}
        )
    }
    changes: list[Change | None] = []
    rows: list[dict[str, Value]] = []
    for ending in endings:
        lease = ending.claim
        cancel_requested = held.pop((lease.item_id, lease.revision), None)
        if cancel_requested is None:
            changes.append(None)
            continue
        item = Item(State.LEASED, lease.attempt, lease.revision, cancel_requested, lease.expires_at)
        decided = change(item, ending.happening, ending.policy, now, ending.fraction)
        changes.append(decided)
        _move(tx, lease, decided)
        rows.append(_settlement(lease, decided, now))
    if rows:
        tx.run(_SQL["settle"], {"changes": _json(rows)})
    return changes


def _move(tx: Tx, claim: Claim, change: Change) -> None:
    """Let an item wait behind another gate; too rare to be a part of every settlement."""
    if change.gate is not None and change.gate != claim.gate:
        tx.run(_SQL["move"], {"gate": change.gate, "item_id": claim.item_id, "revision": claim.revision})


def _settlement(claim: Claim, change: Change, now: Instant) -> dict[str, Value]:
    """Spell a settlement as parameters."""
    return {
        "item_id": claim.item_id,
        "revision": claim.revision,
        "state": change.state.value,
        "attempt": change.attempt,
        "due_at": change.due_at,
        "reason": change.reason,
        "cause": change.cause,
        "settled_at": now if change.state.settled else None,
    }


def release(
    tx: Tx, claims: Iterable[Claim], policies: Mapping[str, Policy], now: Instant
) -> list[Change | None]:
    """Hand claims back untouched, without burning their attempts; see ``settle_all``."""
    return settle_all(tx, [Ending(lease, Released(), policies[lease.kind]) for lease in claims], now)


def sweep(
    tx: Tx,
    policies: Mapping[str, Policy],
    now: Instant,
    limit: int = PAGE_ITEMS_MAX,
    after: tuple[Instant, str] = (0, ""),
) -> Swept:
    """Take over one page of leases that have ended.

    Call it again from ``following`` until that is None. Rows that stay as they are, because their kind
    belongs to another runner, never hide the rows behind them.

    Args:
        tx: The transaction.
        policies: The kinds to look after and their patience.
        now: The present instant.
        limit: Rows of the page.
        after: Where the page begins.

    Returns:
        What became of them and where to go on.
    """
    rows = tx.all(
        _SQL["overdue"],
        {"now": now, "after_until": after[0], "after_item_id": after[1], "limit": min(limit, PAGE_ITEMS_MAX)},
    )
    claims = [Claim(*row) for row in rows]
    ours = [lease for lease in claims if lease.kind in policies]
    changes = settle_all(tx, [Ending(lease, LeaseExpired(), policies[lease.kind]) for lease in ours], now)
    settled = [(lease, made) for lease, made in zip(ours, changes, strict=True) if made is not None]
    last = claims[-1] if len(claims) == min(limit, PAGE_ITEMS_MAX) else None
    return Swept(settled, (last.leased_until, last.item_id) if last else None)


def cancel(tx: Tx, group: str, now: Instant) -> Canceled:
    """Call off a group: what waits is canceled now, what is leased may finish its attempt.

    Returns:
        How many items were canceled and how many were asked for the first time.
    """
    waiting = tx.run(_SQL["cancel_waiting"], {"group_key": group, "now": now})
    return Canceled(waiting, tx.run(_SQL["cancel_leased"], {"group_key": group}))


def prune(tx: Tx, before: Instant, limit: int = PAGE_ITEMS_MAX) -> int:
    """Remove items that were done, failed or canceled before an instant, oldest first.

    Returns:
        How many were removed; fewer than the limit when none is left.
    """
    return tx.run(_SQL["prune"], {"before": before, "limit": min(limit, PAGE_ITEMS_MAX)})


def prune_dead(tx: Tx, before: Instant, limit: int = PAGE_ITEMS_MAX) -> int:
    """Remove dead items that died before an instant; see ``prune``."""
    return tx.run(_SQL["prune_dead"], {"before": before, "limit": min(limit, PAGE_ITEMS_MAX)})


def dead(tx: Tx, after: str = "", limit: int = 100) -> list[DeadItem]:
    """List a page of the dead-letter list, oldest item first.

    Args:
        tx: The transaction.
        after: The id that the page begins behind; it need not exist.
        limit: Rows of the page, at most ``PAGE_ITEMS_MAX``.
    """
    rows = tx.all(_SQL["dead"], {"after": after, "limit": min(limit, PAGE_ITEMS_MAX)})
    return [DeadItem(*row) for row in rows]


def retry(tx: Tx, item_id: str, now: Instant) -> bool:
    """Try a dead item again, with all its attempts. The caller rings the doorbell after the commit.

    Returns:
        False when it is not dead, or past its expiry.
    """
    row = tx.one(_SQL["dead_one"], {"item_id": item_id})
    if row is None:
        return False
    attempt, revision, expires_at = row
    item = Item(State.DEAD, attempt, revision, cancel_requested=False, expires_at=expires_at)
    try:
        made = change(item, RetryAsked(), Policy(), now, 0.0)
    except ImpossibleChange:
        return False
    return (
        tx.run(
            _SQL["retry"],
            {"item_id": item_id, "attempt": made.attempt, "due_at": made.due_at, "reason": made.reason},
        )
        == 1
    )


def counts(tx: Tx) -> dict[tuple[str, State], int]:
    """Count items by kind and state. Reads the whole table: for a page or a slow metric."""
    return {(kind, State(state)): count for kind, state, count in tx.all(_SQL["counts"])}


def lag_ms(tx: Tx, kinds: Iterable[str], now: Instant) -> dict[str, int]:
    """Tell how long the oldest due item of each kind has been due; 0 when none is."""
    oldest = ((kind, tx.one(_SQL["oldest"], {"kind": kind})) for kind in kinds)
    return {kind: max(0, now - row[0]) if row and row[0] is not None else 0 for kind, row in oldest}
