"""What the hot statements read: pinned, because a table scan is correct and ruinous."""

import json
import re
from typing import Any

import pytest
from tests.work import NOW, item

from heliograph.queue import store
from heliograph.queue.model import NewItem
from heliograph.storage.database import Database, Query, Tx
from heliograph.storage.queries import load_queries
from heliograph.storage.sqlite import SqliteDatabase

pytestmark = pytest.mark.anyio

SQL = {
    **load_queries("heliograph.queue", "queue.sql"),
    **load_queries("heliograph.queue.claiming", "claiming.sql"),
}

SETTLEMENT = {
    "item_id": "item-000001",
    "revision": 1,
    "state": "done",
    "attempt": 1,
    "due_at": NOW,
    "reason": None,
    "cause": None,
    "settled_at": NOW,
}

STATEMENTS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "pairs": (
        {"kind": "k", "after_gate": "", "after_lane": "", "pairs": 9},
        {"queue_items_ready"},
    ),
    "claim": (
        {"pairs": json.dumps([["k", "", "a"]]), "share": 9, "room": 9, "now": NOW, "leased_until": NOW},
        {"queue_items_ready", "KEY"},
    ),
    "claim_over": (
        {"pairs": json.dumps([["k", "", "a"]]), "share": 9, "room": 9, "now": NOW, "leased_until": NOW},
        {"queue_items_ready", "KEY"},
    ),
    "move": ({"gate": "g", "item_id": "item-000001", "revision": 1}, {"KEY"}),
    "held": ({"item_ids": json.dumps(["item-000001"])}, {"KEY"}),
    "settle": ({"changes": json.dumps([SETTLEMENT])}, {"KEY"}),
    "overdue": ({"now": NOW, "after_until": 0, "after_item_id": "", "limit": 9}, {"queue_items_leased"}),
    "cancel_waiting": ({"group_key": "g7", "now": NOW}, {"queue_items_group"}),
    "cancel_leased": ({"group_key": "g7"}, {"queue_items_group"}),
    "prune": ({"before": NOW, "limit": 9}, {"queue_items_settled", "KEY"}),
    "dead": ({"after": "", "limit": 9}, {"queue_items_dead"}),
    "oldest": ({"kind": "k"}, {"queue_items_ready"}),
}


@pytest.mark.parametrize("known", [False, True], ids=["before statistics", "with statistics"])
async def test_each_hot_statement_searches_by_its_index(database: Database, known: bool) -> None:
    """On both databases, and whether the planner knows the table or not."""
    for first in range(0, 5_000, 1_000):
        await database.transact(store.enqueue, made(first), NOW)
    if known:
        await database.transact(lambda tx: tx.run(Query("analyze", "ANALYZE", "ANALYZE")))

    sqlite = isinstance(database, SqliteDatabase)
    plans = {
        name: await database.read(plan, sqlite, SQL[name], params) for name, (params, _) in STATEMENTS.items()
    }

    for hopping in ("pairs", "oldest"):
        plans[hopping][0].discard("KEY")  # one database looks up the rest of each row that it comes to

    assert plans == {name: (indexes, []) for name, (_, indexes) in STATEMENTS.items()}


def made(first: int) -> list[NewItem]:
    """Make a thousand items, each of a group of its own."""
    return [item(number, group=f"g{number}") for number in range(first, first + 1_000)]


def plan(tx: Tx, sqlite: bool, query: Query, params: dict[str, Any]) -> tuple[set[str], list[str]]:
    """Return the indexes that a statement uses, and the lines of its plan that read the whole table."""
    head = Query("plan", f"EXPLAIN QUERY PLAN {query.sqlite}", f"EXPLAIN {query.postgres}")
    lines = [str(row[-1]) for row in tx.all(head, params)]
    key = "sqlite_autoindex_queue_items_1" if sqlite else "queue_items_pkey"
    used = set(re.findall(rf"{key}|queue_items_[a-z]+", "\n".join(lines)))
    scanned = [
        line for line in lines if re.search(r"SCAN (?!l\b)\w*queue_items|Seq Scan on queue_items", line)
    ]
    return {"KEY" if name == key else name for name in used}, scanned
