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

from heliograph.queue.claiming.rooms import InProgress, Rooms
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
_KIND: Final = 1
_LANE: Final = 2
_GATE: Final = 10
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
class _Search:
    """What a claim looks for: of which kinds, from how many pairs, from where on, and with which rooms."""

    kinds: Sequence[str]
    limit: int
    place: Round
    rooms: Rooms


@dataclass(frozen=True, slots=True)
class _Portion:
    """How much a statement takes: from each pair, and in all."""

    share: int
    room: int


@dataclass(frozen=True, slots=True)
class _Survey:
    """What a claim found before it takes: pairs, how far it looked, and whether some have enough already."""

    due: list[_Pair]
    marks: dict[str, tuple[str, str] | None]
    crowded: bool


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
    progress: InProgress | None = None,
) -> Claimed:
    """Lease work that is due, an equal share from each pair of gate and lane that has room.

    In a pair the item that has been due longest comes first, then the lower id. The attempt and the
    revision of each item grow by one. Run it through ``Database.claim``.

    Args:
        tx: The transaction.
        kinds: Which kinds of work; when slots are fewer than lanes the earlier kinds come first.
        limit: How many items at most; no more than ``CLAIM_ITEMS_MAX`` are taken.
        now: The present instant.
        lease_ms: How long the lease lasts.
        place: How far the last claim came.
        progress: What the claimer has in progress, to leave room for others; see ``claiming.rooms``.

    Returns:
        The leases and how far this claim came.

    Raises:
        Malformed: The lease is not within the limits.
    """
    check_lease(lease_ms)
    limit = min(limit, CLAIM_ITEMS_MAX)
    if limit < 1:
        return Claimed([], place, more=True)
    lease, rooms = _Lease(now, now + lease_ms), Rooms(progress)
    survey = _survey(tx, _Search(kinds, limit, place, rooms), now)
    open_, over, ajar = _sorted(survey.due, now)
    rows = _take(tx, "claim_over", over, _equal(over, 1 + limit // 2), lease)
    probes: set[str] = set()
    for pair in ajar:
        if len(rows) < limit and (row := _probe(tx, pair, lease)) is not None:
            rows.append(row)
            probes.add(row[0])
    for row in rows:
        rooms.take(row[_GATE], row[_LANE])
    crowded = survey.crowded
    for _ in range(PASSES_MAX):
        if not open_ or len(rows) >= limit:
            break
        taken, open_, left = _pass(tx, open_, limit - len(rows), rooms, lease)
        rows += taken
        crowded |= left
    rows.sort(key=lambda row: (row[_DUE_AT], row[0]))
    claims = [replace(Claim(*row[:_DUE_AT]), probe=row[0] in probes) for row in rows]

    round_over = all(mark is None for mark in survey.marks.values())
    if round_over and not place.marks:
        more = bool(open_) or bool(over) or len(rows) == limit
        return Claimed(claims, Round(), more=more, crowded=crowded)
    taken_in_round = place.taken + len(rows)
    if round_over:
        return Claimed(claims, Round(), more=taken_in_round > 0, crowded=crowded)
    return Claimed(claims, Round(survey.marks, taken_in_round), more=True, crowded=crowded)


def _pass(
    tx: Tx, pairs: Sequence[_Pair], room: int, rooms: Rooms, lease: _Lease
) -> tuple[list[Row], list[_Pair], bool]:
    """Hand round what is left once: an equal share to pairs with room for it, one item to those with less.

    Returns:
        What was taken, the pairs that may have more, and whether some had to be left for want of room.
    """
    portion = _equal(pairs, room)
    share = portion.share
    wide: list[_Pair] = []
    tight: list[_Pair] = []
    promised = Counter[tuple[str, str]]()
    for pair in pairs:
        may = rooms.of(pair.gate, pair.lane)
        if may is None:
            wide.append(pair)
            continue
        held = max(promised["lane", pair.lane], promised["gate", pair.gate] if pair.gate else 0)
        amount = share if may >= held + share else int(may > held)
        if amount:
            (wide if amount == share else tight).append(pair)
            promised["lane", pair.lane] += amount
            promised["gate", pair.gate] += amount
    rows = _take(tx, "claim", wide, portion, lease)
    rows += _take(tx, "claim", tight, _Portion(1, room - len(rows)), lease)
    for row in rows:
        rooms.take(row[_GATE], row[_LANE])
    tally = Counter((row[_KIND], row[_GATE], row[_LANE]) for row in rows)
    plenty = [pair for pair in (*wide, *tight) if tally[pair.spelled()] >= (share if pair in wide else 1)]
    roomy = [pair for pair in plenty if rooms.of(pair.gate, pair.lane) != 0]
    return rows, roomy, len(wide) + len(tight) < len(pairs) or len(roomy) < len(plenty)


def _equal(pairs: Sequence[_Pair], room: int) -> _Portion:
    return _Portion(max(1, room // max(1, len(pairs))), room)


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


def _survey(tx: Tx, search: _Search, now: Instant) -> _Survey:
    """Find the next pairs from which something can be taken, and where the search of each kind came to."""
    found: list[_Pair] = []
    marks: dict[str, tuple[str, str] | None] = {}
    crowded = False
    for kind in search.kinds:
        start = search.place.marks.get(kind, _START)
        if start is None:
            marks[kind] = None
            continue
        visited = _pairs(tx, kind, start)
        room = search.limit - len(found)
        ready = [pair for pair in visited if _can_be_taken(pair, now)]
        due = [
            pair
            for pair in ready
            if pair.closed_until is not None or search.rooms.of(pair.gate, pair.lane) != 0
        ]
        crowded |= len(due) < len(ready)
        found += due[:room]
        if len(due) > room:
            marks[kind] = (due[room - 1].gate, due[room - 1].lane) if room else start
        elif len(visited) == PAIRS_VISITED_MAX:
            marks[kind] = visited[-1].gate, visited[-1].lane
        else:
            marks[kind] = None
    return _Survey(found, marks, crowded)


def _has_room(pair: _Pair, rooms: Rooms) -> bool:
    return pair.closed_until is not None or rooms.of(pair.gate, pair.lane) != 0


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


def _take(tx: Tx, how: str, pairs: Sequence[_Pair], portion: _Portion, lease: _Lease) -> list[Row]:
    """Lease a portion of the pairs."""
    if not pairs or portion.room < 1:
        return []
    return tx.all(
        _SQL[how],
        {
            "pairs": msgspec.json.encode([pair.spelled() for pair in pairs]).decode(),
            "share": portion.share,
            "room": portion.room,
            "now": lease.now,
            "leased_until": lease.until,
        },
    )


def _probe(tx: Tx, pair: _Pair, lease: _Lease) -> Row | None:
    """Lease the one item that tries a gate, and close the gate meanwhile; None if another was quicker."""
    gate = {"gate": pair.gate}
    if not tx.run(_SQL["try_gate"], {**gate, "now": lease.now, "leased_until": lease.until}):
        return None
    rows = _take(tx, "claim", [pair], _Portion(1, 1), lease)
    if not rows:
        tx.run(_SQL["name_probe"], {**gate, "closed_until": lease.now, "probe": None})
        return None
    tx.run(_SQL["name_probe"], {**gate, "closed_until": lease.until, "probe": rows[0][0]})
    return rows[0]
