"""One tenant's flood, or a provider that hangs, leaves places for everybody else."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import LEASE_MS, NOW, Performer, item, items, runner

from heliograph.queue import store
from heliograph.queue.claiming.rooms import SHARE_OF_FREE, InProgress, Rooms
from heliograph.queue.machine import Delivered, Signal
from heliograph.queue.model import Claim, Round
from heliograph.storage.database import Database

PLACES = 30


def fill(floods: int, places: int = PLACES) -> list[int]:
    """Let lanes take in turn as much as they may, and tell what each has in the end."""
    rooms, held = Rooms(InProgress(places)), [0] * floods
    taken = True
    while taken:
        taken = False
        for lane in range(floods):
            if rooms.of("", f"lane-{lane}"):
                rooms.take("", f"lane-{lane}")
                held[lane] += 1
                taken = True
    return held


def test_a_flood_alone_gets_two_thirds_and_several_leave_places_too() -> None:
    """However many they are, one place more than nothing is free until each lane has one."""
    assert fill(1) == [20]
    assert fill(2) == [12, 12]
    assert [sum(fill(floods)) < PLACES for floods in range(1, 15)] == [True] * 14


def test_whoever_has_nothing_in_progress_may_have_the_last_place() -> None:
    """Even where there is only one."""
    assert Rooms(InProgress(1)).of("g", "a") == 1
    assert Rooms(InProgress(1, {"a": 1})).of("", "b") == 0
    assert Rooms(InProgress(3, {"a": 2})).of("", "b") == 1


def test_a_gate_is_held_to_the_same_share_whichever_lanes_use_it() -> None:
    """Many tenants behind one provider that hangs."""
    rooms = Rooms(InProgress(PLACES, {f"t{number}": 2 for number in range(10)}, {"g": 20}))

    assert rooms.of("g", "another") == 0
    assert rooms.of("h", "another") == 6


def test_nobody_counts_nobody_is_held() -> None:
    """For those who take and end in one go."""
    assert Rooms(None).of("g", "a") is None


@given(
    places=st.integers(1, 200),
    steps=st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(["", "g", "h"])), max_size=300),
)
def test_taking_what_may_be_taken_never_exceeds_the_share(places: int, steps: list[tuple[str, str]]) -> None:
    """Neither by lane nor by gate, unless it is the one place of somebody who has nothing."""
    rooms, lanes, gates, free = Rooms(InProgress(places)), dict[str, int](), dict[str, int](), places
    for lane, gate in steps:
        if not rooms.of(gate, lane):
            continue
        rooms.take(gate, lane)
        free -= 1
        lanes[lane] = lanes.get(lane, 0) + 1
        gates[gate] = gates.get(gate, 0) + 1

        assert free >= 0
        assert lanes[lane] == 1 or lanes[lane] <= SHARE_OF_FREE * free
        assert not gate or gates[gate] == 1 or gates[gate] <= SHARE_OF_FREE * free


@pytest.mark.anyio
async def test_a_claim_leaves_what_has_enough_in_progress(database: Database) -> None:
    """And says so, that it may be claimed when some of it has ended."""
    await database.transact(store.enqueue, items(100, lane="flood"), NOW)
    await database.transact(store.enqueue, [item(500, lane="quiet")], NOW)
    progress = InProgress(PLACES, {"flood": 20})

    claimed = await database.claim(
        store.claim_round, ["k"], 10, NOW, LEASE_MS, place=Round(), progress=progress
    )
    again = await database.claim(
        store.claim_round,
        ["k"],
        9,
        NOW,
        LEASE_MS,
        place=Round(),
        progress=InProgress(PLACES, {"flood": 20, "quiet": 1}),
    )

    assert [claim.lane for claim in claimed.claims] == ["quiet"]
    assert (claimed.crowded, again.crowded) == (True, True)
    assert (again.claims, again.more) == ([], False)


@pytest.mark.anyio
async def test_a_quiet_tenant_does_not_wait_for_a_provider_that_hangs(database: Database) -> None:
    """A thousand deliveries of another tenant hang; each new one of the quiet tenant is performed at once."""
    hanging, hung = asyncio.Event(), 0

    async def play(claim: Claim) -> Signal:
        nonlocal hung
        if claim.lane == "flood":
            hung += 1
            await hanging.wait()
        return Delivered()

    handler, stop = Performer(play), asyncio.Event()
    await database.transact(store.enqueue, items(1_000, lane="flood"), NOW)
    running = asyncio.create_task(runner(database, handler, concurrency=PLACES).run(stop))
    await handler.until(lambda done: hung == 20)
    for number in range(5_000, 5_020):
        await database.transact(store.enqueue, [item(number, lane="quiet")], NOW)
        await handler.until(lambda done: len(done.notes) == number - 4_999)  # noqa: B023 - awaited at once
    still = hung
    stop.set()
    hanging.set()
    await running

    assert still == 20


@pytest.mark.anyio
async def test_a_flood_goes_on_as_its_places_are_freed(database: Database) -> None:
    """Without waiting for a ring or a poll: all of it is done."""
    handler, stop = Performer(), asyncio.Event()
    await database.transact(store.enqueue, items(200, lane="flood"), NOW)
    running = asyncio.create_task(runner(database, handler, concurrency=6, poll_ms=3_600_000).run(stop))
    await handler.until(lambda done: len(done.notes) == 200)
    stop.set()
    await running

    assert len({name for name, _ in handler.notes}) == 200
