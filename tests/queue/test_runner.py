"""The runner: turns, crashes, stops, and what a handler may do wrong."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.work import (
    LEASE_MS,
    NOW,
    DeafDoorbell,
    Performer,
    SeededEntropy,
    ToldClock,
    item,
    items,
    runner,
    show,
    states,
)

from heliograph.ambient.telemetry import Telemetry
from heliograph.doorbell.local import LocalDoorbell
from heliograph.queue import store
from heliograph.queue.machine import Delivered, Later, Refused, RouteGone, Signal, State
from heliograph.queue.model import Claim
from heliograph.queue.pace import Pace
from heliograph.queue.runner import Runner
from heliograph.storage.database import Database, DatabaseUnavailable
from heliograph.wire.malformed import Malformed

pytestmark = pytest.mark.anyio


async def enqueue(database: Database, *new: Any) -> None:
    await database.transact(store.enqueue, list(new), NOW)


async def stopped(running: asyncio.Task[None], stop: asyncio.Event) -> None:
    stop.set()
    await running


def performed(count: int) -> Callable[[Performer], bool]:
    """Say whether so many performances have begun."""
    return lambda handler: len(handler.performed) == count


class TestTurn:
    async def test_a_turn_claims_performs_and_settles(self, database: Database) -> None:
        """And reports how each item ended."""
        answers: dict[str, Signal] = {
            "ref-0": Delivered(),
            "ref-1": RouteGone("token_dead"),
            "ref-2": Refused("payload_bad"),
            "ref-3": Later("busy"),
        }
        handler = Performer(lambda claim: answers[claim.reference])
        await enqueue(database, *items(4))

        turn = await runner(database, handler).turn()

        assert (turn.claimed, turn.fenced, turn.more) == (4, 0, False)
        assert turn.settled == {State.DONE: 1, State.FAILED: 2, State.READY: 1}
        assert sorted(handler.notes)[1][1].reason == "token_dead"
        assert sorted(handler.notes)[1][1].signal == RouteGone("token_dead")

    async def test_a_turn_without_work_does_nothing(self, database: Database) -> None:
        """Nor does it raise."""
        assert (await runner(database, Performer()).turn()).claimed == 0

    async def test_each_kind_goes_to_its_handler(self, database: Database) -> None:
        """And a kind without one is left to others."""
        one, two = Performer(kind="one"), Performer(kind="two")
        await enqueue(database, item(1, kind="one"), item(2, kind="two"), item(3, kind="three"))

        await runner(database, one, two).turn()

        assert ([c.item_id[-1] for c in one.performed], [c.item_id[-1] for c in two.performed]) == (
            ["1"],
            ["2"],
        )
        assert await states(database) == {State.DONE: 2, State.READY: 1}

    async def test_what_is_expired_is_not_performed(self, database: Database) -> None:
        """It is worth nothing by now; its handler is told that it died."""
        handler, clock = Performer(), ToldClock(NOW + 5)
        await enqueue(database, item(1, expires_at=NOW + 5), item(2))

        await runner(database, handler, clock=clock).turn()

        assert [claim.item_id for claim in handler.performed] == ["item-000002"]
        assert [(name, change.state, change.reason) for name, change in handler.notes if name[-1] == "1"] == [
            ("item-000001", State.DEAD, "expired")
        ]

    async def test_a_second_worker_takes_over_and_the_first_is_refused(self, database: Database) -> None:
        """J1: the work outlasts its lease; exactly one settlement is written, on the second attempt."""
        held = asyncio.Event()

        async def slow(claim: Claim) -> Signal:
            if claim.attempt == 1:
                await held.wait()
            return Delivered()

        handler, clock = Performer(slow), ToldClock()
        first, second = runner(database, handler, clock=clock), runner(database, handler, clock=clock)
        await enqueue(database, item(1))
        late = asyncio.create_task(first.turn())
        await handler.until(lambda h: len(h.performed) == 1)
        clock.at += LEASE_MS

        assert await second.sweep() == 1
        assert (await second.turn()).settled == {State.DONE: 1}
        held.set()
        assert (await late).fenced == 1

        assert handler.ends == [State.READY, State.DONE]
        assert await show(database, 1) == (State.DONE, 2, 2, None)

    async def test_what_a_killed_worker_held_is_delivered(self, database: Database) -> None:
        """J4: five hundred leases without a holder; none fails for the crash alone."""
        await enqueue(database, *items(500))
        await database.claim(store.claim, ["k"], 500, NOW, LEASE_MS)  # and it is gone
        handler, clock = Performer(), ToldClock(NOW + LEASE_MS)
        survivor = runner(database, handler, clock=clock, batch=500, concurrency=500)

        assert (await survivor.turn()).claimed == 0
        assert await survivor.sweep() == 500
        assert (await survivor.turn()).settled == {State.DONE: 500}
        assert {claim.attempt for claim in handler.performed} == {2}


class TestMistakes:
    async def test_a_handler_that_raises_hurts_only_that_item(self, database: Database) -> None:
        """It is tried again, and its error text is told to nobody."""

        def play(claim: Claim) -> Signal:
            if claim.reference == "ref-1":
                raise RuntimeError("a secret")
            return Delivered()

        await enqueue(database, *items(3))

        assert (await runner(database, Performer(play)).turn()).settled == {State.DONE: 2, State.READY: 1}
        assert await show(database, 1) == (State.READY, 1, 1, "internal")

    async def test_an_answer_that_is_none_of_the_four_is_a_mistake(self, database: Database) -> None:
        """A handler that forgets to answer has not delivered."""
        nothing: Any = None
        await enqueue(database, item(1))

        await runner(database, Performer(lambda _: nothing)).turn()

        assert (await show(database, 1))[3] == "internal"

    async def test_a_cancellation_that_leaks_into_a_handler_is_a_mistake(self, database: Database) -> None:
        """It stops neither the runner nor the count of attempts."""

        def play(claim: Claim) -> Signal:
            raise asyncio.CancelledError

        await enqueue(database, item(1))

        assert (await runner(database, Performer(play)).turn()).settled == {State.READY: 1}
        assert await show(database, 1) == (State.READY, 1, 1, "internal")

    async def test_a_performance_without_an_end_is_cut_off(self, database: Database) -> None:
        """Before its lease ends, so that it can still be settled."""

        async def forever(claim: Claim) -> Signal:
            await asyncio.Event().wait()
            return Delivered()

        await enqueue(database, item(1))

        await runner(database, Performer(forever), lease_ms=1_000).turn()

        assert await show(database, 1) == (State.READY, 1, 1, "timed_out")

    async def test_a_damaged_detail_hurts_only_its_item_and_not_for_ever(self, database: Database) -> None:
        """J14: the others are delivered at once; the damaged one ends after its attempts."""
        handler, clock = Performer(), ToldClock()
        handler.unreadable = {"item-000001"}
        worker = runner(database, handler, clock=clock)
        await enqueue(database, *items(4), item(9, expires_at=NOW + 1))
        clock.at += 1

        first = await worker.turn()
        for _ in range(4):
            clock.at += 60_000
            await worker.turn()

        assert first.settled == {State.DONE: 3, State.DEAD: 1, State.READY: 1}
        assert await show(database, 1) == (State.DEAD, 5, 5, "attempts_exhausted")

    async def test_a_settlement_that_raises_hurts_only_its_item_and_not_for_ever(
        self, database: Database
    ) -> None:
        """J14: the batch is taken apart; the broken one ends after its attempts, without its handler."""
        handler, clock = Performer(), ToldClock()
        handler.unsettleable = {"item-000001"}
        worker = runner(database, handler, clock=clock)
        await enqueue(database, *items(4))

        first = await worker.turn()
        for _ in range(4):
            clock.at += 60_000
            await worker.turn()

        assert first.settled == {State.DONE: 3, State.READY: 1}
        assert await show(database, 1) == (State.DEAD, 5, 5, "attempts_exhausted")

    async def test_a_settlement_that_raises_does_not_stop_a_sweep(self, database: Database) -> None:
        """Every ended lease is taken over, that one without its handler."""
        handler, clock = Performer(), ToldClock(NOW + LEASE_MS)
        handler.unsettleable = {"item-000001"}
        await enqueue(database, *items(4))
        await database.claim(store.claim, ["k"], 9, NOW, LEASE_MS)

        assert await runner(database, handler, clock=clock).sweep() == 4
        assert await states(database) == {State.READY: 4}

    def test_a_kind_with_two_handlers_or_none_is_refused(self) -> None:
        """Nobody could say which one performs it."""
        nowhere: Any = None
        for handlers in ([], [Performer(), Performer()]):
            with pytest.raises(ValueError, match="each for a kind of its own"):
                Runner(
                    nowhere, ToldClock(), SeededEntropy(), LocalDoorbell(), handlers, telemetry=Telemetry()
                )

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("lease_ms", 0),
            ("lease_ms", -1),
            ("lease_ms", 86_400_000),
            ("concurrency", 0),
            ("batch", 1_001),
            ("poll_ms", 0),
            ("sweep_ms", 3_600_001),
            ("grace_ms", -1),
            ("keep_ms", -1),
        ],
    )
    def test_a_senseless_pace_is_refused_at_the_start(self, field: str, value: int) -> None:
        """J7: with the name of the setting, and never taken for "at once" or "never"."""
        with pytest.raises(Malformed, match=f"^{field}: must be from"):
            Pace(**{field: value})


class TestRun:
    async def test_work_is_done_as_it_comes(self, database: Database) -> None:
        """Far more than fits in flight, then some more after a ring."""
        handler, doorbell, stop = Performer(), LocalDoorbell(), asyncio.Event()
        worker = runner(database, handler, doorbell=doorbell, concurrency=8, poll_ms=3_600_000)
        await enqueue(database, *items(100))
        running = asyncio.create_task(worker.run(stop))
        await handler.until(lambda h: len(h.ends) == 100)

        await enqueue(database, *items(5, first=200))
        doorbell.ring("k")
        await handler.until(lambda h: len(h.ends) == 105)
        await stopped(running, stop)

        assert len({claim.item_id for claim in handler.performed}) == 105
        assert await states(database) == {State.DONE: 105}
        assert worker.in_flight == 0

    async def test_a_lost_ring_costs_a_poll_interval_and_nothing_else(self, database: Database) -> None:
        """C3: nobody rings; new work is found, and what was canceled meanwhile is not performed."""
        handler, doorbell, stop = Performer(), DeafDoorbell(), asyncio.Event()
        running = asyncio.create_task(runner(database, handler, doorbell=doorbell).run(stop))
        await enqueue(database, item(1, group="g", due_at=NOW + 1), item(2))
        await handler.until(lambda h: len(h.ends) == 1)
        await database.transact(store.cancel, "g", NOW)
        await enqueue(database, item(3))
        await handler.until(lambda h: len(h.ends) == 2)
        await stopped(running, stop)

        assert [claim.item_id for claim in handler.performed] == ["item-000002", "item-000003"]
        # H5: with jitter, so that many nodes do not look at the same moment.
        assert len(set(doorbell.waits)) == len(doorbell.waits)
        assert all(0.005 <= wait <= 0.010 for wait in doorbell.waits)

    async def test_no_more_is_claimed_than_is_performed(self, database: Database) -> None:
        """B2: a provider that never answers holds eight items, and the other ninety-two stay in the table."""
        never, stop = asyncio.Event(), asyncio.Event()

        async def stall(claim: Claim) -> Signal:
            await never.wait()
            return Delivered()

        handler = Performer(stall)
        worker = runner(database, handler, concurrency=8, batch=5)
        await enqueue(database, *(item(number, lane=f"lane-{number}") for number in range(100)))
        running = asyncio.create_task(worker.run(stop))
        await handler.until(lambda h: len(h.performed) == 8)

        assert worker.in_flight == 8
        assert await states(database) == {State.READY: 92, State.LEASED: 8}
        never.set()
        await handler.until(lambda h: len(h.ends) == 100)
        await stopped(running, stop)

    async def test_six_stops_in_a_row_burn_no_attempt(self, database: Database) -> None:
        """J8: each time the item is handed back, at once and whole; then it is delivered on attempt one."""
        block = True

        async def play(claim: Claim) -> Signal:
            if block:
                await asyncio.Event().wait()
            return Delivered()

        handler = Performer(play)
        await enqueue(database, item(1))
        for number in range(6):
            stop = asyncio.Event()
            running = asyncio.create_task(runner(database, handler).run(stop))
            await handler.until(performed(number + 1))
            await stopped(running, stop)
            assert await show(database, 1) == (State.READY, 0, number + 1, "released")
        block = False
        await runner(database, handler).turn()

        assert [claim.attempt for claim in handler.performed] == [1] * 7
        assert handler.ends == [State.READY] * 6 + [State.DONE]

    async def test_a_stopping_runner_lets_what_is_in_flight_finish(self, database: Database) -> None:
        """Within its grace; and takes nothing new."""
        go, stop = asyncio.Event(), asyncio.Event()

        async def play(claim: Claim) -> Signal:
            await go.wait()
            return Delivered()

        handler = Performer(play)
        await enqueue(database, *(item(number, lane=f"lane-{number}") for number in range(3)))
        running = asyncio.create_task(runner(database, handler, concurrency=2, grace_ms=60_000).run(stop))
        await handler.until(lambda h: len(h.performed) == 2)
        stop.set()
        await asyncio.sleep(0)
        go.set()
        await running

        assert await states(database) == {State.DONE: 2, State.READY: 1}

    async def test_a_performance_that_ignores_its_end_is_handed_back_all_the_same(
        self, database: Database
    ) -> None:
        """The runner stops; whatever the performance says later is fenced or unheard."""
        free, stop = asyncio.Event(), asyncio.Event()

        async def stubborn(claim: Claim) -> Signal:
            while not free.is_set():
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    continue
            return Delivered()

        handler = Performer(stubborn)
        await enqueue(database, item(1))
        running = asyncio.create_task(runner(database, handler).run(stop))
        await handler.until(lambda h: len(h.performed) == 1)
        await stopped(running, stop)

        assert await show(database, 1) == (State.READY, 0, 1, "released")
        free.set()

    async def test_leases_of_the_dead_are_swept_while_running(self, database: Database) -> None:
        """J4, J5: another worker's rows come back by themselves."""
        await enqueue(database, *items(3))
        await database.claim(store.claim, ["k"], 9, NOW, LEASE_MS)
        handler, stop = Performer(), asyncio.Event()
        running = asyncio.create_task(runner(database, handler, clock=ToldClock(NOW + LEASE_MS)).run(stop))
        await handler.until(lambda h: h.ends.count(State.DONE) == 3)
        await stopped(running, stop)

        assert await states(database) == {State.DONE: 3}

    async def test_old_rows_are_pruned_while_running(self, database: Database) -> None:
        """Even if nothing else happens."""
        await enqueue(database, *items(3))
        worker = runner(database, Performer(), clock=(clock := ToldClock()), prune_ms=1, keep_ms=5)
        await worker.turn()
        clock.at += 6

        assert await worker.prune() == 3
        assert await states(database) == {}

    async def test_a_broken_handler_does_not_end_the_run(self, database: Database) -> None:
        """Not by its details, not by its settlement, not by its work: the others go on."""

        def play(claim: Claim) -> Signal:
            if claim.reference == "ref-3":
                raise RuntimeError
            return Delivered()

        handler, stop = Performer(play), asyncio.Event()
        handler.unreadable, handler.unsettleable = {"item-000001"}, {"item-000002"}
        await enqueue(database, *items(10))
        running = asyncio.create_task(runner(database, handler, concurrency=2).run(stop))
        await handler.until(lambda h: h.ends.count(State.DONE) == 7)
        await stopped(running, stop)

        assert await states(database) == {State.DONE: 7, State.READY: 3}


class Outage:
    """A database that is away when the test says so, for some calls or for good."""

    def __init__(self, database: Database, refusals: int = 1_000_000) -> None:
        self.database = database
        self.away: set[str] = set()
        self.refusals = refusals

    def _check(self, name: str) -> None:
        if name in self.away and self.refusals:
            self.refusals -= 1
            raise DatabaseUnavailable("away")

    async def claim(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self._check("claim")
        return await self.database.claim(fn, *args, **kwargs)

    async def transact(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self._check("transact")
        return await self.database.transact(fn, *args, **kwargs)

    async def read(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return await self.database.read(fn, *args, **kwargs)

    async def ping(self) -> None:
        await self.database.ping()

    async def close(self) -> None:
        await self.database.close()


class TestOutage:
    async def test_a_runner_outlives_an_outage(self, database: Database) -> None:
        """O3: while it lasts nothing is claimed or lost; what was performed is settled after it, once."""
        outage = Outage(database, refusals=3)
        handler, stop = Performer(), asyncio.Event()

        def play(claim: Claim) -> Signal:
            outage.away = {"claim", "transact"}
            return Delivered()

        handler.play = play
        running = asyncio.create_task(runner(outage, handler).run(stop))
        await enqueue(database, *items(20))
        await handler.until(lambda h: len(h.ends) == 20)
        await stopped(running, stop)

        assert len(handler.performed) == 20
        assert await states(database) == {State.DONE: 20}

    async def test_a_runner_can_stop_during_an_outage(self, database: Database) -> None:
        """It does not wait for the database for ever; the sweep of another takes over its leases."""
        outage = Outage(database)
        handler, stop = Performer(), asyncio.Event()

        def play(claim: Claim) -> Signal:
            outage.away = {"transact"}
            return Delivered()

        handler.play = play
        await enqueue(database, item(1))
        running = asyncio.create_task(runner(outage, handler).run(stop))
        await handler.until(lambda h: len(h.performed) == 1)
        await stopped(running, stop)

        assert (await show(database, 1))[0] is State.LEASED

    async def test_a_detail_that_cannot_be_read_because_of_an_outage_is_no_failure(
        self, database: Database
    ) -> None:
        """The item is handed back whole."""
        outage = Outage(database)
        handler = Performer()
        handler.unreadable = {"item-000001"}
        read = handler.load

        def load(tx: Any, claims: Any) -> Any:
            if [claim.item_id for claim in claims] == ["item-000000"]:
                raise DatabaseUnavailable
            return read(tx, claims)

        handler.load = load  # type: ignore[method-assign]  # the outage strikes in the middle
        await enqueue(database, *items(3))

        await runner(outage, handler).turn()

        assert await show(database, 0) == (State.READY, 0, 1, "released")
        assert (await show(database, 1))[3] == "internal"
        assert (await show(database, 2))[0] is State.DONE
