"""The ledger against a model of it: whatever is asked, answered, repeated and forgotten, in any order."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from heliograph.ledger import (
    RETENTION_MS_MIN,
    Asked,
    Clash,
    New,
    Recalled,
    Replay,
    Reused,
    admit,
    answer,
    answer_all,
    prune,
    recall,
    recall_all,
)
from heliograph.storage.database import Database, Query, Tx
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.postgres import PostgresDatabase
from heliograph.storage.sqlite import SqliteDatabase

FRESH_MS = 300_000
"""How long a proof could be accepted, as its signer says."""

SCOPES = st.sampled_from(["notify:a", "notify:b"])
KEYS = st.sampled_from(["k1", "k2"])
DIGESTS = st.sampled_from(["sha256:1", "sha256:2"])
PROOFS = st.integers(0, 5).map(lambda number: b"proof %d" % number)

EMPTY = [
    Query(table, text, text) for table in ("entries", "proofs") if (text := f"DELETE FROM ledger_{table}")
]


class Ledger(RuleBasedStateMachine):
    """Asks as a service does, and remembers what must be known."""

    open: Callable[[], Awaitable[Database]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.now = 1_000_000_000_000
        self.replies = 0
        self.entries: dict[tuple[str, str], tuple[str, bytes, bytes, int]] = {}
        self.retries: dict[tuple[str, str, bytes], int] = {}
        self.admitted: dict[tuple[str, bytes], int] = {}

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize()
    def begin(self) -> None:
        self.database = self.run(self._opened())

    async def _opened(self) -> Database:
        database = await type(self).open()
        await migrate(database, now=0)
        for query in EMPTY:
            await database.transact(_run, query)
        return database

    def serve(self, tx: Tx, where: tuple[str, str], digest: str, proof: bytes, reply: bytes) -> Recalled:
        scope, key = where
        known = recall(tx, scope, key, digest=digest, proof=proof, proof_expires_at=self.now + FRESH_MS)
        if known == New():
            answer(tx, scope, key, digest=digest, proof=proof, reply=reply, now=self.now)
        return known

    def serve_together(
        self, tx: Tx, where: tuple[str, str], digest: str, proof: bytes, reply: bytes
    ) -> Recalled:
        """Do the same by the functions for many requests, beside a key that nobody ever answers."""
        asked = Asked(*where, digest, proof, self.now + FRESH_MS)
        other = Asked("elsewhere", "k1", digest, proof, self.now + FRESH_MS)
        nothing, known = recall_all(tx, [other, asked])
        assert nothing == New()
        if known == New():
            answer_all(tx, [(asked, reply)], self.now)
        return known

    @rule(scope=SCOPES, key=KEYS, digest=DIGESTS, proof=PROOFS, together=st.booleans())
    def ask(self, scope: str, key: str, digest: str, proof: bytes, together: bool) -> None:
        self.replies += 1
        reply = b"reply %d" % self.replies
        serve = self.serve_together if together else self.serve
        known = self.run(self.database.transact(serve, (scope, key), digest, proof, reply))
        expected: Recalled
        entry = self.entries.get((scope, key))
        if entry is None:
            expected = New()
            self.entries[scope, key] = (digest, proof, reply, self.now)
        elif entry[1] == proof:
            expected = Reused()
        elif entry[0] != digest:
            expected = Clash()
        elif (scope, key, proof) in self.retries:
            expected = Reused()
        else:
            expected = Replay(entry[2])
            self.retries[scope, key, proof] = self.now + FRESH_MS

        assert known == expected

    @rule(scope=SCOPES, proof=PROOFS)
    def admit(self, scope: str, proof: bytes) -> None:
        new = self.run(self.database.transact(admit, scope, proof, self.now + FRESH_MS))
        expected = (scope, proof) not in self.admitted
        self.admitted.setdefault((scope, proof), self.now + FRESH_MS)

        assert new is expected

    @rule(ms=st.sampled_from([1, FRESH_MS, FRESH_MS + 1, RETENTION_MS_MIN, RETENTION_MS_MIN + 1]))
    def wait(self, ms: int) -> None:
        self.now += ms

    @rule()
    def prune(self) -> None:
        before = self.now - RETENTION_MS_MIN
        self.run(self.database.transact(prune, self.now, before, 1_000))
        self.entries = {key: entry for key, entry in self.entries.items() if entry[3] >= before}
        self.retries = {key: end for key, end in self.retries.items() if end >= self.now}
        self.admitted = {key: end for key, end in self.admitted.items() if end >= self.now}

    @invariant()
    def nothing_else_is_kept(self) -> None:
        """What is forgotten takes no room, and what is known takes one row."""
        if hasattr(self, "database"):
            rows = self.run(self.database.read(_sizes))
            assert rows == (len(self.entries), len(self.retries) + len(self.admitted))

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.run(self.database.close())
        self.runner.close()


def _run(tx: Tx, query: Query) -> None:
    tx.run(query)


def _sizes(tx: Tx) -> tuple[int, int]:
    text = "SELECT (SELECT count(*) FROM ledger_entries), (SELECT count(*) FROM ledger_proofs)"
    row = tx.one(Query("sizes", text, text))
    assert row is not None
    return row[0], row[1]


def test_whatever_the_order_on_sqlite() -> None:
    """In memory, many times over."""

    class OnSqlite(Ledger):
        open = staticmethod(lambda: SqliteDatabase.open(":memory:"))

    run_state_machine_as_test(OnSqlite, settings=settings(max_examples=60, stateful_step_count=30))


@pytest.mark.service
def test_whatever_the_order_on_postgresql(migrated_postgres_url: str) -> None:
    """A few times: the statements are the same."""

    class OnPostgres(Ledger):
        open = staticmethod(lambda: PostgresDatabase.open(migrated_postgres_url))

    run_state_machine_as_test(OnPostgres, settings=settings(max_examples=10, stateful_step_count=20))
