"""Routes that a provider doubts or calls dead: kept for an undo, never revived against a Station's will."""

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.hygiene import store as hygiene
from heliograph.arkret.gateway.hygiene.store import ENDED_KEPT_MS, Undoable
from heliograph.arkret.gateway.model import InstallationState, RouteEnd
from heliograph.arkret.gateway.service.office import Office
from heliograph.delivery.hygiene.decide import STRIKE_SPACING_MS, SUSPICION_KEPT_MS, Freeze, Tally
from heliograph.delivery.hygiene.store import freeze
from heliograph.lab.receiver import Reply
from heliograph.storage.database import Database, Query, Tx
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.sqlite import SqliteDatabase
from tests.arkret import make
from tests.arkret.gateway.house import NOW
from tests.arkret.gateway.test_deliver import Works, works
from tests.arkret.gateway.test_notify import statuses
from tests.secrets import planted

HOUR = 3_600_000


def both(text: str) -> Query:
    return Query("tests.hygiene", text, text)


KEPT = both("SELECT registration_id, route FROM arkret_ended_routes ORDER BY registration_id")
DOUBTED = both("SELECT registration_id, strikes FROM arkret_suspicions ORDER BY registration_id")
ROUTES = both("SELECT registration_id, state, route_end, route FROM arkret_installations")


async def kept(database: Database) -> list[str]:
    return [row[0] for row in await database.read(lambda tx: tx.all(KEPT))]


async def doubted(database: Database) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in await database.read(lambda tx: tx.all(DOUBTED))]


async def push(at: Works, key: str, answer: Reply | None = None, device: str = make.DEVICE) -> list[str]:
    """Notify one device, deliver with this answer, and return what the notify was told."""
    if answer is not None:
        at.receiver.answers.append(answer)
    told = statuses(await at.there.notify(make.notify_body(device), key=key))
    await at.runner.turn()
    return told


@pytest.mark.anyio
async def test_a_route_that_its_provider_called_dead_can_be_brought_back(database: Database) -> None:
    """Sealed as it was; the next wakeup goes to the same device."""
    async with works(database) as at:
        await at.there.apply(make.active_body(push_key=planted("undone-push-key")))
        await push(at, "key-1", Reply(410))
        office = Office(database)
        gone = await push(at, "key-2")
        shown = await office.undoable("stub", NOW - HOUR, NOW)
        others = await office.undoable("another", NOW - HOUR, NOW)
        before = await office.undo("stub", NOW + 1, NOW)
        revived = await office.undo("stub", NOW - HOUR, NOW)
        again = await office.undo("stub", NOW - HOUR, NOW)
        back = await push(at, "key-3")

    assert gone == ["rejected/push_token_invalid"]
    assert shown == [Undoable("stub_token_gone", 1, 1)]
    assert others == []
    assert (before, revived, again) == (0, 1, 0)
    assert back == ["accepted"]
    assert len(at.receiver.wakeups) == 1


@pytest.mark.anyio
@pytest.mark.clause("R098", "R126")
async def test_what_was_revoked_since_is_erased_and_not_brought_back(database: Database) -> None:
    """The kept copy goes with the registration."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await push(at, "key-1", Reply(410))
        before = await kept(database)
        await at.there.apply(make.revoked_body())
        revived = await Office(database).undo("stub", 0, NOW)
        row = await database.read(store.installation, make.STATION, make.REGISTRATION)

    assert before == [make.REGISTRATION]
    assert await kept(database) == []
    assert revived == 0
    assert row is not None
    assert row.state is InstallationState.REVOKED


@pytest.mark.anyio
async def test_what_was_registered_again_since_is_not_disturbed(database: Database) -> None:
    """W5: the device has a newer route."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await push(at, "key-1", Reply(410))
        await at.there.apply(
            make.active_body(
                registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION, push_key="new"
            )
        )
        revived = await Office(database).undo("stub", 0, NOW)
        told = await push(at, "key-2")
        old = await database.read(store.installation, make.STATION, make.REGISTRATION)

    assert revived == 0
    assert told == ["accepted"]
    assert old is not None
    assert old.successor_id == make.SUCCESSOR


@pytest.mark.anyio
async def test_ends_are_kept_for_a_day(database: Database) -> None:
    """And no longer: a device that is gone is forgotten."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await push(at, "key-1", Reply(410))
        await database.transact(hygiene.prune, NOW + ENDED_KEPT_MS)
        before = await kept(database)
        await database.transact(hygiene.prune, NOW + ENDED_KEPT_MS + 1)

    assert before == [make.REGISTRATION]
    assert await kept(database) == []


@pytest.mark.anyio
async def test_a_credential_that_another_process_has_frozen_ends_no_route(database: Database) -> None:
    """The settlement looks itself: this process did not know yet."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await database.transact(freeze, Freeze("stub", NOW, Tally(10, 10)))
        await push(at, "key-1", Reply(410))
        told = await push(at, "key-2")

    assert told == ["accepted"]
    assert await kept(database) == []


@pytest.mark.anyio
async def test_a_route_that_is_doubted_again_and_again_ends(database: Database) -> None:
    """Three times over time, while another device with the same credential is reached."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await at.there.apply(
            make.active_body(registration_id=make.SUCCESSOR, device_id=make.OTHER_DEVICE, push_key="other")
        )
        told, held = [], []
        for number in range(4):
            told += await push(at, f"key-{number}", Reply(404) if number < 3 else None)
            held.append(await doubted(database))
            await push(at, f"other-{number}", device=make.OTHER_DEVICE)
            at.there.clock.at += STRIKE_SPACING_MS

    assert told == ["accepted"] * 3 + ["rejected/push_token_invalid"]
    assert held == [[(make.REGISTRATION, 1)], [(make.REGISTRATION, 2)], [], []]
    assert await kept(database) == [make.REGISTRATION]


@pytest.mark.anyio
async def test_a_success_clears_a_suspected_route(database: Database) -> None:
    """Whatever was held against it."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await push(at, "key-1", Reply(404))
        before = await doubted(database)
        await push(at, "key-2")

    assert before == [(make.REGISTRATION, 1)]
    assert await doubted(database) == []


@pytest.mark.anyio
async def test_a_burst_of_doubts_is_one_and_ends_nothing(database: Database) -> None:
    """A bad minute of a provider."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        for number in range(9):
            await push(at, f"key-{number}", Reply(404))
        held = await doubted(database)
        await database.transact(hygiene.prune, NOW + SUSPICION_KEPT_MS + 1)

    assert held == [(make.REGISTRATION, 1)]
    assert await doubted(database) == []


@dataclass(frozen=True)
class Known:
    """What should be true of one registration."""

    state: str
    route_end: str | None
    has_route: bool
    ended_at: int | None = None
    expires_at: int | None = None


class Registrations(RuleBasedStateMachine):
    """One device registers, dies, is revoked, replaced, outlived and undone in any order."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="heliograph-hygiene-"))
        self.database = self.loop.run(SqliteDatabase.open(self.folder / "h.sqlite"))
        self.loop.run(migrate(self.database, now=0))
        self.now = NOW
        self.known: dict[str, Known] = {}
        self.current: str | None = None

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.loop.run(self.database.close())
            self.loop.close()
            shutil.rmtree(self.folder)

    def transact(self, fn: Any, *args: Any, **named: Any) -> Any:
        return self.loop.run(self.database.transact(fn, *args, **named))

    @rule(expires=st.booleans())
    def register(self, expires: bool) -> None:
        """For the first time after a revocation, or in place of the current one."""
        name = f"registration_{len(self.known):016}"
        expires_at = self.now + HOUR if expires else None
        old = self.current

        def apply(tx: Tx) -> None:
            if old is not None:
                store.installation_supersede(tx, make.STATION, old, name)
            new = make.installation(registration_id=name, expires_at=expires_at)
            store.installation_insert(tx, new, name.encode(), 1, self.now)

        self.transact(apply)
        if old is not None:
            self.known[old] = Known("revoked", self.known[old].route_end, has_route=False)
        self.known[name] = Known("active", None, has_route=True, expires_at=expires_at)
        self.current = name

    @precondition(lambda self: self.current)
    @rule()
    def revoke(self) -> None:
        name = self.current or ""
        self.transact(
            store.installation_tombstone,
            make.STATION,
            name,
            request_digest="d",
            receipt=b"r",
            stored_at=self.now,
        )
        self.known[name] = Known("revoked", self.known[name].route_end, has_route=False)
        self.current = None

    @precondition(lambda self: self.current)
    @rule(why=st.sampled_from(RouteEnd))
    def end(self, why: RouteEnd) -> None:
        name = self.current or ""

        def die(tx: Tx) -> None:
            if why is RouteEnd.PROVIDER:
                hygiene.keep(tx, make.STATION, name, credential="c", reason="gone", now=self.now)
            store.route_end(tx, make.STATION, name, why)

        self.transact(die)
        known = self.known[name]
        if known.route_end is None:
            ended_at = self.now if why is RouteEnd.PROVIDER else None
            self.known[name] = replace(known, route_end=why.value, has_route=False, ended_at=ended_at)

    @rule(span=st.sampled_from([1, HOUR, ENDED_KEPT_MS]))
    def undo(self, span: int) -> None:
        expected = {
            name
            for name, known in self.known.items()
            if known.state == "active"
            and known.route_end == "provider"
            and known.ended_at is not None
            and known.ended_at >= self.now - span
            and (known.expires_at is None or known.expires_at > self.now)
        }
        shown = self.transact(hygiene.undoable, "c", self.now - span, self.now)

        revived = self.transact(hygiene.undo, "c", self.now - span, self.now)

        assert sum(each.routes for each in shown) == revived == len(expected)
        for name, known in self.known.items():
            if name in expected:
                self.known[name] = replace(known, route_end=None, has_route=True, ended_at=None)
            elif known.ended_at is not None and known.ended_at >= self.now - span:
                self.known[name] = replace(known, ended_at=None)

    @rule(ms=st.sampled_from([1_000, HOUR, ENDED_KEPT_MS]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule()
    def prune(self) -> None:
        self.transact(hygiene.prune, self.now)
        for name, known in self.known.items():
            if known.ended_at is not None and known.ended_at < self.now - ENDED_KEPT_MS:
                self.known[name] = replace(known, ended_at=None)

    @invariant()
    def only_what_its_station_wants_has_a_route_or_a_kept_copy(self) -> None:
        if not hasattr(self, "database"):
            return
        rows = self.loop.run(self.database.read(lambda tx: tx.all(ROUTES)))
        copies = self.loop.run(self.database.read(lambda tx: tx.all(KEPT)))

        assert {
            name: (state, end, None if route is None else bytes(route)) for name, state, end, route in rows
        } == {
            name: (known.state, known.route_end, name.encode() if known.has_route else None)
            for name, known in self.known.items()
        }
        assert {name: bytes(route) for name, route in copies} == {
            name: name.encode() for name, known in self.known.items() if known.ended_at is not None
        }


Registrations.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
test_an_undo_never_brings_back_what_a_station_ended = Registrations.TestCase
