"""What the database must say once everything has come to rest."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.crash.history import Handoff, Timeline

WAITING: Final = "SELECT COUNT(*) FROM queue_items WHERE state IN ('ready', 'leased')"
STALE: Final = "SELECT COUNT(*) FROM arkret_installations WHERE route_version <> {newest}"
ITEMS: Final = """
SELECT q.state, q.reason, d.item_id IS NOT NULL, COUNT(*)
FROM queue_items q LEFT JOIN arkret_deliveries d ON d.item_id = q.item_id
GROUP BY q.state, q.reason, d.item_id IS NOT NULL
"""
ORPHANS: Final = """
SELECT COUNT(*) FROM arkret_deliveries d
WHERE NOT EXISTS (SELECT 1 FROM queue_items q WHERE q.item_id = d.item_id)
"""
ANSWERS: Final = "SELECT scope, key, reply FROM ledger_entries"
INSTALLATIONS: Final = """
SELECT tenant, registration_id, state, receipt, request_digest, stored_at, successor_id, route IS NOT NULL
FROM arkret_installations
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """A row of a registration."""

    state: str
    receipt: bytes
    digest: str
    stored_at: int
    successor: str | None
    routed: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was found.

    Attributes:
        items: How many work items there are by (state, reason, whether their details are there).
        orphans: Details without a work item.
        answers: What the ledger holds, by (scope, key).
        installations: By (tenant, registration id).
    """

    items: Mapping[tuple[str, str | None, bool], int]
    orphans: int
    answers: Mapping[tuple[str, str], bytes]
    installations: Mapping[tuple[str, str], Installed]


class Rows:
    """Looks into a database from outside, only while nothing of it is being killed.

    A connection of ours that outlived the program's would clear away what a crash leaves behind.

    Args:
        place: A PostgreSQL URL, or the path of an SQLite file.
    """

    def __init__(self, place: str | Path) -> None:
        self._place = place

    def _all(self, *statements: str) -> list[list[Sequence[Any]]]:
        if isinstance(self._place, Path):
            with closing(sqlite3.connect(self._place, isolation_level=None)) as file:
                file.execute("PRAGMA query_only = 1")
                file.execute("BEGIN")
                return [file.execute(statement).fetchall() for statement in statements]
        with psycopg.connect(self._place) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            return [list(connection.execute(statement.encode())) for statement in statements]

    def restless(self, newest: int) -> tuple[int, int] | None:
        """Count the work that is not settled and the routes of older keys; None when there is neither."""
        waiting, stale = self._all(WAITING, STALE.format(newest=newest))
        found = int(waiting[0][0]), int(stale[0][0])
        return found if any(found) else None

    def snapshot(self) -> Snapshot:
        items, orphans, answers, installations = self._all(ITEMS, ORPHANS, ANSWERS, INSTALLATIONS)
        return Snapshot(
            items={(state, reason, bool(detailed)): count for state, reason, detailed, count in items},
            orphans=orphans[0][0],
            answers={(scope, key): bytes(reply) for scope, key, reply in answers},
            installations={
                (row[0], row[1]): Installed(row[2], bytes(row[3]), row[4], row[5], row[6], bool(row[7]))
                for row in installations
            },
        )


def items_and_details_belong_together(snapshot: Snapshot, accepted: int) -> Iterator[str]:
    """One ended work item for each acceptance; no details without an item, no item without its own (R092).

    Args:
        snapshot: What was found at rest.
        accepted: How many outcomes ``accepted`` were ever answered in this life.
    """
    if snapshot.orphans:
        yield f"{snapshot.orphans} details have no work item"
    found = 0
    for (state, reason, detailed), count in snapshot.items.items():
        found += count
        match state, reason, detailed:
            case "done", _, False:
                pass
            case "failed", "route_gone", False:
                pass
            case _:
                but = "with" if detailed else "without"
                yield f"{count} work items are {state} ({reason}), {but} details"
    if found != accepted:
        yield f"{found} work items for {accepted} acceptances"


def answers_are_the_rows(snapshot: Snapshot, answers: Mapping[tuple[str, str], bytes]) -> Iterator[str]:
    """The ledger holds what was answered, octet for octet, and nothing of what was refused (R316, R124).

    Args:
        snapshot: What was found at rest.
        answers: What was answered in this life, by (tenant, key).
    """
    expected = {(f"arkret.notify:{tenant}", key): answer for (tenant, key), answer in answers.items()}
    yield from (
        f"{key} was never answered, yet is remembered" for key in snapshot.answers.keys() - expected.keys()
    )
    for key, answer in expected.items():
        if snapshot.answers.get(key) != answer:
            yield f"{key} was answered {answer!r} and is remembered as {snapshot.answers.get(key)!r}"


def receipts_are_the_rows(
    snapshot: Snapshot, handoffs: Sequence[Handoff], tenant_of: Mapping[str, str], before: Snapshot | None
) -> Iterator[str]:
    """A row for each registration that was taken, with its receipt; none ever moves (R122–R133).

    Args:
        snapshot: What was found at rest.
        handoffs: All of this life.
        tenant_of: The Station of each push target.
        before: What was found the last time.
    """
    expected: dict[tuple[str, str], tuple[str, bytes, bool]] = {}
    timeline = Timeline(handoffs)
    for handoff in handoffs:
        if not handoff.takes or handoff.status != 200:
            continue
        key = tenant_of[handoff.address[0]], handoff.registration
        current = timeline.current(handoff.address) == handoff.registration
        if handoff.state == "revoked":
            expected[key] = "revoked", handoff.answer, False
        elif expected.get(key, ("", b"", False))[0] != "revoked":
            expected[key] = "active" if current else "revoked", handoff.answer, current
    for key in snapshot.installations.keys() - expected.keys():
        yield f"{key[1]} was never taken, yet has a row"
    for key, (state, receipt, routed) in expected.items():
        row = snapshot.installations.get(key)
        if row is None:
            yield f"{key[1]} has a receipt and no row"
        elif (row.state, row.receipt, row.routed) != (state, receipt, routed):
            yield f"{key[1]} is {row.state}, routed {row.routed}: {row.receipt!r}; not {state}: {receipt!r}"
    for key, earlier in (before.installations if before else {}).items():
        row = snapshot.installations.get(key)
        if (
            row is not None
            and row.receipt == earlier.receipt
            and (row.digest, row.stored_at)
            != (
                earlier.digest,
                earlier.stored_at,
            )
        ):
            yield f"the row of {key[1]} moved under its receipt"
