"""Claims: leases on work that is due, lane by lane, through gates that are open.

- **The pairs.** A claim takes from each pair of gate and lane an equal share, and what small ones leave goes
  to the large ones. It finds them by hopping along the index from pair to pair, so a million items of one
  pair cost it one hop. It visits at most ``PAIRS_VISITED_MAX`` of a kind and takes from no more than it has
  room for; the next claim goes on from there, so in a round each pair has its turn.
- **The gates.** Behind a closed gate nothing is taken, and that costs a hop for each lane, not a row for each
  item. Only what is past its expiry is, for it ends without being performed. Through a gate that is ajar one
  item comes, the probe, and in the same transaction the gate is closed for as long as its lease lasts.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from heliograph.queue.model import CLAIM_ITEMS_MAX, Claim, Claimed, Round
from heliograph.queue.pace import check_lease
from heliograph.storage.database import Row, Tx
from heliograph.storage.queries import load_queries
from heliograph.wire.instant import Instant

_SQL: Final = load_queries("heliograph.queue.claiming", "claiming.sql")

PAIRS_VISITED_MAX: Final = 256
"""Pairs of one kind that one claim looks at. A hop costs a few microseconds."""

PASSES_MAX: Final = 3
"""How often a claim hands round what is left. After the second round only lanes with plenty are left."""

_START: Final = ("", "")
_DUE_AT: Final = 11
"""The column of the due time; those before it make a claim."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A gate and a lane of one kind, with the first item that waits there."""

    kind: str
    gate: str
    lane: str
    due_at: Instant
    expires_at: Instant
    closed_until: Instant | None

    def spelled(self) -> tuple[str, str, str]:
        """Return what the statement needs."""
        return self.kind, self.gate, self.lane


@dataclass(frozen=True, slots=True)
class _Lease:
    """What all statements of one claim share."""

    now: Instant
    until: Instant


def claim(tx: Tx, kinds: Sequence[str], limit: int, now: Instant, lease_ms: int) -> list[Claim]:
    """Lease work that is due, beginning with the first lanes; see ``claim_round``."""
    return claim_round(tx, kinds, limit, now, lease_ms, place=Round()).claims


def claim_round(
    tx: Tx,
    kinds: Sequence[str],
    limit: int,
    now: Instant,
    lease_ms: int,
    *,
    place: Round,
) -> Claimed:
    """Lease work that is due, an equal share from each pair of gate and lane.

    In a pair the item that has been due longest comes first, then the lower id. The attempt and the
    revision of each item grow by one. Run it through ``Database.claim``.

    Args:
        tx: The transaction.
        kinds: Which kinds of work; when slots are fewer than lanes the earlier kinds come first.
        limit: How many items at most; no more than ``CLAIM_ITEMS_MAX`` are taken.
        now: The present instant.
        lease_ms: How long the lease lasts.
        place: How far the last claim came.

    Returns:
        The leases and how far this claim came.

    Raises:
        Malformed: The lease is not within the limits.
    """
    check_lease(lease_ms)
    limit = min(limit, CLAIM_ITEMS_MAX)
    if limit < 1:
        return Claimed([], place, more=True)
    lease = _Lease(now, now + lease_ms)
    due, marks = _survey(tx, kinds, limit, now, place)
    open_, over, ajar = _sorted(due, now)
    rows = _take(tx, "claim_over", over, 1 + limit // 2, lease) if over else []
    probes: set[str] = set()
    for pair in ajar:
        if len(rows) < limit and (row := _probe(tx, pair, lease)) is not None:
            rows.append(row)
            probes.add(row[0])
    for _ in range(PASSES_MAX):
        room = limit - len(rows)
        if not open_ or not room:
            break
        share = max(1, room // len(open_))
        taken = _take(tx, "claim", open_, room, lease)
        rows += taken
        tally = Counter(row[1:3] + row[10:11] for row in taken)
        open_ = [pair for pair in open_ if tally[pair.kind, pair.lane, pair.gate] >= share]
    rows.sort(key=lambda row: (row[_DUE_AT], row[0]))
    claims = [replace(Claim(*row[:_DUE_AT]), probe=row[0] in probes) for row in rows]

    round_over = all(mark is None for mark in marks.values())
    if round_over and not place.marks:
        more = bool(open_) or bool(over) or len(rows) == limit
        return Claimed(claims, Round(), more=more)
    taken_in_round = place.taken + len(rows)
    if round_over:
        return Claimed(claims, Round(), more=taken_in_round > 0)
    return Claimed(claims, Round(marks, taken_in_round), more=True)


def _sorted(due: Sequence[_Pair], now: Instant) -> tuple[list[_Pair], list[_Pair], list[_Pair]]:
    """Part the pairs: through an open gate; of a shut one but past expiry; one for each gate that is ajar."""
    open_ = [pair for pair in due if pair.closed_until is None]
    shut = [pair for pair in due if pair.closed_until is not None]
    over = [pair for pair in shut if pair.expires_at <= now]
    ajar: dict[str, _Pair] = {}
    for pair in shut:
        if pair.closed_until is not None and pair.closed_until <= now < pair.expires_at:
            first = ajar.get(pair.gate)
            if first is None or pair.due_at < first.due_at:
                ajar[pair.gate] = pair
    return open_, over, list(ajar.values())


def _survey(
    tx: Tx, kinds: Sequence[str], limit: int, now: Instant, place: Round
) -> tuple[list[_Pair], dict[str, tuple[str, str] | None]]:
    """Find the next pairs from which something can be taken, and where the search of each kind came to."""
    found: list[_Pair] = []
    marks: dict[str, tuple[str, str] | None] = {}
    for kind in kinds:
        start = place.marks.get(kind, _START)
        if start is None:
            marks[kind] = None
            continue
        visited = _pairs(tx, kind, start)
        room = limit - len(found)
        due = [pair for pair in visited if _can_be_taken(pair, now)]
        found += due[:room]
        if len(due) > room:
            marks[kind] = (due[room - 1].gate, due[room - 1].lane) if room else start
        elif len(visited) == PAIRS_VISITED_MAX:
            marks[kind] = visited[-1].gate, visited[-1].lane
        else:
            marks[kind] = None
    return found, marks


def _can_be_taken(pair: _Pair, now: Instant) -> bool:
    shut = pair.closed_until is not None and pair.closed_until > now
    return pair.due_at <= now and (not shut or pair.expires_at <= now)


def _pairs(tx: Tx, kind: str, after: tuple[str, str]) -> list[_Pair]:
    """List the next pairs that have waiting items."""
    rows = tx.all(
        _SQL["pairs"],
        {"kind": kind, "after_gate": after[0], "after_lane": after[1], "pairs": PAIRS_VISITED_MAX},
    )
    return [_Pair(kind, *row) for row in rows]


def _take(tx: Tx, how: str, pairs: Sequence[_Pair], room: int, lease: _Lease) -> list[Row]:
    """Lease an equal share of the pairs."""
    return tx.all(
        _SQL[how],
        {
            "pairs": msgspec.json.encode([pair.spelled() for pair in pairs]).decode(),
            "share": max(1, room // len(pairs)),
            "room": room,
            "now": lease.now,
            "leased_until": lease.until,
        },
    )


def _probe(tx: Tx, pair: _Pair, lease: _Lease) -> Row | None:
    """Lease the one item that tries a gate, and close the gate meanwhile; None if another was quicker."""
    gate = {"gate": pair.gate}
    if not tx.run(_SQL["try_gate"], {**gate, "now": lease.now, "leased_until": lease.until}):
        return None
    rows = _take(tx, "claim", [pair], 1, lease)
    if not rows:
        tx.run(_SQL["name_probe"], {**gate, "closed_until": lease.now, "probe": None})
        return None
    tx.run(_SQL["name_probe"], {**gate, "closed_until": lease.until, "probe": rows[0][0]})
    return rows[0]
