"""Claims, gates, crashes, cancels and settlements in any order: nothing lost, nothing settled twice."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.work import ALL, LEASE_MS, NOW, item

from heliograph.queue import store
from heliograph.queue.gate import store as gate_store
from heliograph.queue.gate.decide import Closing, Gate, shut, undecided
from heliograph.queue.machine import (
    CancelAsked,
    Claimed,
    Delivered,
    FoundExpired,
    Happening,
    ImpossibleChange,
    Item,
    Later,
    LeaseExpired,
    Policy,
    Refused,
    Released,
    RetryAsked,
    RouteGone,
    State,
    change,
)
from heliograph.queue.model import Claim, Ending
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.sqlite import SqliteDatabase

POLICY = Policy(max_attempts=3, first_backoff_ms=1_000, max_backoff_ms=8_000)
KINDS = ("k",)
T = TypeVar("T")


class Row:
    """What the table of changes says of one item."""

    def __init__(self, now: int, expires_at: int, group: str, fold_key: str | None, gate: str) -> None:
        self.gate = gate
        self.item = Item(State.READY, 0, 0, cancel_requested=False, expires_at=expires_at)
        self.due_at = now
        self.leased_until: int | None = None
        self.group = group
        self.fold_key = fold_key
        self.ends = 0

    def happens(self, happening: Happening, now: int) -> None:
        """Follow the table."""
        made = change(self.item, happening, POLICY, now, 0.5)
        claimed = isinstance(happening, Claimed)
        asked = isinstance(happening, CancelAsked) and made.state is State.LEASED
        self.item = Item(
            made.state,
            made.attempt,
            self.item.revision + claimed,
            cancel_requested=(self.item.cancel_requested or asked) and made.state is not State.READY,
            expires_at=self.item.expires_at,
        )
        self.gate = made.gate or self.gate
        if made.state is State.READY:
            self.due_at = made.due_at
        self.leased_until = (
            (now + LEASE_MS if claimed else self.leased_until) if made.state is State.LEASED else None
        )
        self.ends += made.state.settled


SIGNALS = st.sampled_from(
    [
        Delivered(),
        RouteGone("gone"),
        Refused("bad"),
        Later("busy"),
        Later("asked", after_ms=5_000),
        Later("throttled", burns_attempt=False),
        Later("elsewhere", burns_attempt=False, gate="q"),
        FoundExpired(),
    ]
)


class Queue(RuleBasedStateMachine):
    """Drives the store and the table side by side."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="heliograph-queue-"))
        self.database = self.loop.run(SqliteDatabase.open(self.folder / "q.sqlite"))
        self.loop.run(migrate(self.database, now=0))
        self.now = NOW
        self.rows: dict[str, Row] = {}
        self.gates: dict[str, Gate] = {}
        self.leases: list[Claim] = []  # every lease ever given out: lost ones try to settle as well
        self.number = 0

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.run(self.database.close())
            self.loop.close()
            shutil.rmtree(self.folder)

    def transact(self, fn: Callable[..., T], *args: Any) -> T:
        return self.loop.run(self.database.transact(fn, *args))

    @rule(
        lane=st.sampled_from("abc"),
        group=st.sampled_from(["g", "h"]),
        fold_key=st.sampled_from([None, "f1", "f2"]),
        life_ms=st.sampled_from([10_000, 100_000, 1_000_000]),
        gate=st.sampled_from(["", "p", "q"]),
    )
    def enqueue(self, lane: str, group: str, fold_key: str | None, life_ms: int, gate: str) -> None:
        self.number += 1
        expires_at = self.now + life_ms
        new = item(
            self.number,
            lane=lane,
            group=group,
            fold_key=fold_key,
            due_at=self.now,
            expires_at=expires_at,
            gate=gate or None,
        )

        added = self.transact(store.enqueue, [new], self.now)

        joined = fold_key is not None and any(
            row.fold_key == fold_key and row.item.state is State.READY and row.item.revision == 0
            for row in self.rows.values()
        )
        assert added == (set() if joined else {new.item_id})
        if not joined:
            self.rows[new.item_id] = Row(self.now, expires_at, group, fold_key, gate)

    @rule(limit=st.integers(1, 6))
    def claim(self, limit: int) -> None:
        due = {
            name
            for name, row in self.rows.items()
            if row.item.state is State.READY and row.due_at <= self.now
        }
        through = {name for name in due if self.rows[name].gate not in self.gates}
        over = {name for name in due - through if self.rows[name].item.expires_at <= self.now}
        ajar = {name for name, gate in self.gates.items() if gate.closed_until <= self.now}

        claims = self.loop.run(self.database.claim(store.claim, KINDS, limit, self.now, LEASE_MS))

        names = {claim.item_id for claim in claims}
        probes = {claim.item_id for claim in claims if claim.probe}
        assert len(names) == len(claims) <= limit
        assert names <= through | over | probes
        assert probes <= due - through - over
        assert {self.rows[name].gate for name in probes} <= ajar
        assert len({self.rows[name].gate for name in probes}) == len(probes)
        assert len(names & through) == min(limit - len(names - through), len(through))
        if not over and len(names) < limit:
            assert {self.rows[name].gate for name in probes} == {
                self.rows[name].gate for name in due - through if self.rows[name].gate in ajar
            }
        for claim in claims:
            row = self.rows[claim.item_id]
            row.happens(Claimed(), self.now)
            assert (claim.attempt, claim.revision) == (row.item.attempt, row.item.revision)
            assert claim.gate == row.gate
            if claim.probe:
                self.gates[row.gate] = replace(
                    self.gates[row.gate], closed_until=self.now + LEASE_MS, probe=claim.item_id
                )
        self.leases += claims

    @rule(data=st.data(), signal=SIGNALS)
    def settle(self, data: st.DataObject, signal: Happening) -> None:
        """By its holder, or by one that has lost it, or again by one that has settled it."""
        if not self.leases:
            return
        claims = data.draw(st.lists(st.sampled_from(self.leases), min_size=1, max_size=4))

        changes = self.transact(
            store.settle_all, [Ending(claim, signal, POLICY, 0.5) for claim in claims], self.now
        )

        for claim, made in zip(claims, changes, strict=True):
            row = self.rows[claim.item_id]
            holds = row.item.state is State.LEASED and row.item.revision == claim.revision
            assert (made is not None) == holds
            if made is not None:
                row.happens(signal, self.now)
                assert made.state is row.item.state

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if not self.leases:
            return
        claim = data.draw(st.sampled_from(self.leases))

        (made,) = self.transact(store.release, [claim], {"k": POLICY}, self.now)

        if made is not None:
            self.rows[claim.item_id].happens(Released(), self.now)

    @rule(data=st.data(), at_least_ms=st.sampled_from([0, 3_000]))
    def shut_gate(self, data: st.DataObject, at_least_ms: int) -> None:
        """By whoever came through it, however long ago."""
        through = [claim for claim in self.leases if claim.gate]
        if not through:
            return
        claim = data.draw(st.sampled_from(through))
        closing = Closing("full", 2_000, 8_000, at_least_ms)

        self.transact(gate_store.shut, claim.gate, closing, claim.item_id, self.now)

        known = self.gates.get(claim.gate)
        self.gates[claim.gate] = shut(known, claim.gate, closing, claim.item_id, self.now)

    @rule(data=st.data(), works=st.booleans())
    def probe_ends(self, data: st.DataObject, works: bool) -> None:
        """Only the probe opens a gate; whoever else says that it works speaks of another time."""
        through = [claim for claim in self.leases if claim.gate]
        if not through:
            return
        claim = data.draw(st.sampled_from(through))
        gate = self.gates.get(claim.gate)
        is_probe = gate is not None and gate.probe == claim.item_id

        if works:
            assert self.transact(gate_store.passed, claim.gate, claim.item_id) == is_probe
        else:
            self.transact(gate_store.undecided, claim.gate, claim.item_id, self.now)

        if gate is not None and is_probe:
            if works:
                del self.gates[claim.gate]
            else:
                self.gates[claim.gate] = undecided(gate, claim.item_id, self.now)

    @rule(ms=st.sampled_from([1, 1_000, 8_000, LEASE_MS]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(limit=st.integers(1, 3))
    def sweep(self, limit: int) -> None:
        """Holders that crashed, or are late: the rows cannot tell."""
        following: tuple[int, str] | None = (0, "")
        swept: list[str] = []
        while following is not None:
            page = self.transact(store.sweep, {"k": POLICY}, self.now, limit, following)
            swept += [claim.item_id for claim, _ in page.settled]
            following = page.following

        ended = [
            name
            for name, row in self.rows.items()
            if row.leased_until is not None and row.leased_until <= self.now
        ]
        assert sorted(swept) == sorted(ended)
        for name in ended:
            self.rows[name].happens(LeaseExpired(), self.now)

    @rule(group=st.sampled_from(["g", "h"]))
    def cancel(self, group: str) -> None:
        canceled = self.transact(store.cancel, group, self.now)

        members = [row for row in self.rows.values() if row.group == group and not row.item.state.settled]
        waiting = [row for row in members if row.item.state is State.READY]
        asked = [row for row in members if row.item.state is State.LEASED and not row.item.cancel_requested]
        assert (canceled.waiting, canceled.leased) == (len(waiting), len(asked))
        for row in members:
            row.happens(CancelAsked(), self.now)

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        if not self.rows:
            return
        name = data.draw(st.sampled_from(sorted(self.rows)))

        retried = self.transact(store.retry, name, self.now)

        try:
            self.rows[name].happens(RetryAsked(), self.now)
        except ImpossibleChange:
            assert not retried
        else:
            assert retried
            self.rows[name].ends = 0

    @invariant()
    def the_rows_are_what_the_table_says(self) -> None:
        """Nothing lost, nothing settled twice, attempts bounded, counts conserved."""
        if not hasattr(self, "database"):
            return
        stored = self.loop.run(self.database.read(lambda tx: tx.all(ALL)))
        gates = self.loop.run(self.database.read(gate_store.gates))

        assert [tuple(row) for row in stored] == [
            (name, row.item.state.value, row.item.attempt, row.item.revision)
            for name, row in sorted(self.rows.items())
        ]
        assert gates == [gate for _, gate in sorted(self.gates.items())]
        assert all(row.item.attempt <= POLICY.max_attempts for row in self.rows.values())
        assert all(row.ends <= 1 for row in self.rows.values())


Queue.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
test_any_order_of_what_can_happen_follows_the_table = Queue.TestCase
