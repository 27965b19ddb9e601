"""Gates: what waits behind a closed one is not claimed, in any process, and does not stand in the way."""

import pytest
from tests.work import LEASE_MS, NOW, item, items

from heliograph.queue import store
from heliograph.queue.gate import store as gates
from heliograph.queue.gate.decide import PAUSE_MS_MAX, SPREAD, UNDECIDED_MS, Closing, Gate, shut, undecided
from heliograph.queue.machine import Later, Policy
from heliograph.queue.model import Claim, Claimed, Ending, Round
from heliograph.storage.database import Database

CLOSING = Closing("full", 30_000, 900_000)
MINUTE = 60_000


async def claim(database: Database, limit: int = 10, now: int = NOW) -> list[Claim]:
    return await database.claim(store.claim, ["k"], limit, now, LEASE_MS)


async def close(database: Database, gate: str = "g", closing: Closing = CLOSING, now: int = NOW) -> None:
    await database.transact(gates.shut, gate, closing, "somebody", now)


def ids(claims: list[Claim]) -> list[int]:
    return [int(claim.item_id.removeprefix("item-")) for claim in claims]


def test_pauses_double_with_each_probe_that_fails_up_to_their_ceiling() -> None:
    """Half a minute, a minute, … a quarter of an hour."""
    gate = shut(None, "g", CLOSING, "a", NOW)
    pauses = [gate.closed_until - NOW]
    for _ in range(6):
        gate = shut(Gate("g", NOW, NOW, "full", gate.step, "p"), "g", CLOSING, "p", NOW)
        pauses.append(gate.closed_until - NOW)

    assert pauses == [30_000, 60_000, 120_000, 240_000, 480_000, 900_000, 900_000]
    assert gate == Gate("g", NOW + 900_000, NOW, "full", 7)


def test_what_the_far_side_asks_for_outweighs_a_shorter_pause_of_our_own() -> None:
    """But not a day."""
    asked = shut(None, "g", Closing("full", 1_000, 900_000, at_least_ms=54_000), "a", NOW)
    absurd = shut(None, "g", Closing("full", 1_000, 900_000, at_least_ms=10**12), "a", NOW)

    assert asked.closed_until == NOW + 54_000
    assert absurd.closed_until == NOW + PAUSE_MS_MAX


def test_a_spread_pause_is_longer_and_never_shorter() -> None:
    """Gates that closed together do not open together, and nobody comes too soon."""
    spread = shut(None, "g", Closing("full", 30_000, 900_000, fraction=0.5), "a", NOW)

    assert spread.closed_until == NOW + int(30_000 * (1 + SPREAD / 2))


def test_only_the_probe_moves_the_steps() -> None:
    """A hundred attempts that were under way when the gate closed are one failure, not a hundred."""
    closed = shut(None, "g", CLOSING, "a", NOW)
    others = closed
    for number in range(100):
        others = shut(others, "g", CLOSING, f"b{number}", NOW + 100)
    asked = shut(closed, "g", Closing("full", 1, 1, at_least_ms=45_000), "b", NOW + 100)

    assert others == closed
    assert asked == Gate("g", NOW + 45_100, NOW, "full", 1)


def test_a_probe_without_a_word_lets_another_try_soon() -> None:
    """And somebody else's end changes nothing."""
    trying = Gate("g", NOW + LEASE_MS, NOW, "full", 3, "p")

    assert undecided(trying, "p", NOW) == Gate("g", NOW + UNDECIDED_MS, NOW, "full", 3)
    assert undecided(trying, "q", NOW) == trying


@pytest.mark.parametrize(("first_ms", "longest_ms"), [(0, 1), (2, 1), (1, PAUSE_MS_MAX + 1)])
def test_a_closing_without_a_pause_is_a_bug(first_ms: int, longest_ms: int) -> None:
    """It would be a hot loop, or for ever."""
    with pytest.raises(ValueError, match="pauses"):
        Closing("full", first_ms, longest_ms)


@pytest.mark.anyio
async def test_nothing_behind_a_closed_gate_is_claimed_and_all_else_is(database: Database) -> None:
    """A thousand due items of the same lane stand in nobody's way."""
    await database.transact(store.enqueue, items(1_000, gate="g"), NOW)
    await database.transact(store.enqueue, [item(5_000), item(5_001, gate="h"), item(5_002, lane="b")], NOW)
    await close(database)

    assert sorted(ids(await claim(database))) == [5_000, 5_001, 5_002]
    assert await claim(database, now=NOW + 29_999) == []


@pytest.mark.anyio
async def test_through_a_gate_that_is_ajar_comes_one_item_at_a_time(database: Database) -> None:
    """Until it has said how it went, or its lease has ended."""
    await database.transact(store.enqueue, [*items(5, gate="g"), *items(5, first=5, gate="g", lane="b")], NOW)
    await close(database)
    later = NOW + 30_000

    probe = await claim(database, now=later)
    meanwhile = await claim(database, now=later + LEASE_MS - 1)
    second = await claim(database, now=later + LEASE_MS)

    assert (ids(probe), probe[0].probe, probe[0].gate) == ([0], True, "g")
    assert meanwhile == []
    assert (len(second), second[0].probe) == (1, True)


@pytest.mark.anyio
async def test_a_probe_that_works_opens_the_gate_for_all(database: Database) -> None:
    """And only it does."""
    await database.transact(store.enqueue, items(5, gate="g"), NOW)
    await close(database)
    (probe,) = await claim(database, now=NOW + 30_000)

    by_another = await database.transact(gates.passed, "g", "item-000004")
    by_the_probe = await database.transact(gates.passed, "g", probe.item_id)
    rest = await claim(database, now=NOW + 30_000)

    assert (by_another, by_the_probe) == (False, True)
    assert ids(rest) == [1, 2, 3, 4]
    assert not any(claim.probe for claim in rest)


@pytest.mark.anyio
async def test_a_probe_that_fails_closes_the_gate_for_longer(database: Database) -> None:
    """A minute after half a minute."""
    await database.transact(store.enqueue, items(5, gate="g"), NOW)
    await close(database)
    (probe,) = await claim(database, now=NOW + 30_000)

    await database.transact(gates.shut, "g", CLOSING, probe.item_id, NOW + 30_000)

    assert await claim(database, now=NOW + 30_000 + MINUTE - 1) == []
    assert len(await claim(database, now=NOW + 30_000 + MINUTE)) == 1


@pytest.mark.anyio
async def test_what_expires_behind_a_closed_gate_is_taken_to_be_ended(database: Database) -> None:
    """Or a credential that nobody mends would keep dead rows for ever."""
    await database.transact(
        store.enqueue,
        [*items(3, gate="g", expires_at=NOW + 10_000), item(3, gate="g", expires_at=NOW + MINUTE)],
        NOW,
    )
    await close(database)

    assert ids(await claim(database, now=NOW + 10_000)) == [0, 1, 2]


@pytest.mark.anyio
async def test_an_item_can_be_told_which_gate_it_waits_behind(database: Database) -> None:
    """It may not have been known when it was enqueued, or the operator has changed it since."""
    await database.transact(store.enqueue, [item(1), item(2, gate="h")], NOW)
    await close(database)
    claims = await claim(database)
    moved = Later("closed", after_ms=0, burns_attempt=False, gate="g")
    kept = Later("closed", after_ms=0, burns_attempt=False)

    policy = Policy()
    await database.transact(
        store.settle_all, [Ending(claims[0], moved, policy), Ending(claims[1], kept, policy)], NOW
    )

    assert [(claim.item_id, claim.gate) for claim in await claim(database)] == [("item-000002", "h")]


@pytest.mark.anyio
async def test_a_round_with_nothing_but_closed_gates_ends(database: Database) -> None:
    """Nobody spins: the runner waits for a ring or its poll."""
    many = [item(number, lane=f"lane-{number:04}", gate="g") for number in range(600)]
    await database.transact(store.enqueue, many, NOW)
    await close(database)

    place, more, turns = Round(), True, 0
    while more:
        made: Claimed = await database.claim(store.claim_round, ["k"], 10, NOW, LEASE_MS, place=place)
        place, more = made.place, made.more
        turns += 1

    assert turns == 3  # 600 lanes, 256 visited at once


@pytest.mark.anyio
async def test_an_operator_opens_a_gate_and_what_nobody_needs_is_forgotten(database: Database) -> None:
    """Both only remove the record; an open gate has none."""
    await close(database, "g")
    await close(database, "h")

    opened = [await database.transact(gates.open_gate, "g") for _ in range(2)]
    too_soon = await database.transact(gates.forget, NOW + 30_000)
    forgotten = await database.transact(gates.forget, NOW + 30_001)

    assert opened == [True, False]
    assert (too_soon, forgotten) == (0, 1)
    assert await database.read(gates.gates) == []
