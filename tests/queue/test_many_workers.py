"""Several workers on one PostgreSQL server, and a server that is restarted under them."""

import asyncio

import pytest
from tests.postgres_server import PostgresServer
from tests.work import LEASE_MS, NOW, Performer, items, runner, states

from heliograph.queue import store
from heliograph.queue.gate import store as gates
from heliograph.queue.gate.decide import Closing
from heliograph.queue.machine import Delivered, Signal, State
from heliograph.queue.model import Claim
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.postgres import PostgresDatabase

pytestmark = [pytest.mark.anyio, pytest.mark.service]


async def test_twenty_claimers_never_share_an_item(postgres_url: str) -> None:
    """Each on a connection of its own, all at once, until nothing is left."""
    first = await PostgresDatabase.open(postgres_url)
    await migrate(first, now=0)
    await first.transact(store.enqueue, items(2_000), NOW)
    others = [await PostgresDatabase.open(postgres_url) for _ in range(19)]

    async def take(database: PostgresDatabase) -> list[str]:
        taken: list[str] = []
        while claims := await database.claim(store.claim, ["k"], 17, NOW, LEASE_MS):
            taken += [claim.item_id for claim in claims]
        return taken

    hauls = await asyncio.gather(*(take(database) for database in [first, *others]))
    taken = [item_id for haul in hauls for item_id in haul]
    left = await first.claim(store.claim, ["k"], 1_000, NOW, LEASE_MS)
    for database in [first, *others]:
        await database.close()

    assert len(set(taken)) == len(taken) == 2_000 - len(left)
    assert sum(bool(haul) for haul in hauls) > 1


async def test_of_twenty_that_try_a_gate_at_once_one_does(postgres_url: str) -> None:
    """They see the same gate ajar at the same moment, and each would take something else."""
    first = await PostgresDatabase.open(postgres_url)
    await migrate(first, now=0)
    await first.transact(store.enqueue, items(100, gate="g"), NOW)
    await first.transact(gates.shut, "g", Closing("full", 1_000, 1_000), "somebody", NOW)
    others = [await PostgresDatabase.open(postgres_url) for _ in range(19)]

    hauls = await asyncio.gather(
        *(database.claim(store.claim, ["k"], 17, NOW + 1_000, LEASE_MS) for database in [first, *others])
    )
    for database in [first, *others]:
        await database.close()

    assert [claim.probe for haul in hauls for claim in haul] == [True]


async def test_two_runners_share_the_work(postgres_url: str) -> None:
    """Two processes, as it were: each item is performed once and settled once."""
    databases = [await PostgresDatabase.open(postgres_url) for _ in range(2)]
    await migrate(databases[0], now=0)
    await databases[0].transact(store.enqueue, items(300), NOW)
    handler, stop = Performer(), asyncio.Event()
    running = [asyncio.create_task(runner(each, handler, concurrency=16).run(stop)) for each in databases]
    await handler.until(lambda h: len(h.ends) == 300)
    stop.set()
    await asyncio.gather(*running)
    ended = await states(databases[0])
    for each in databases:
        await each.close()

    assert len(handler.performed) == 300
    assert ended == {State.DONE: 300}


async def test_leases_outlive_a_restart_of_the_server(postgres: PostgresServer, postgres_url: str) -> None:
    """J3: two hundred are out when the server is killed; leases are rows, so nobody performs one twice."""
    database = await PostgresDatabase.open(postgres_url)
    await migrate(database, now=0)
    await database.transact(store.enqueue, items(200), NOW)
    back, stop = asyncio.Event(), asyncio.Event()

    async def play(claim: Claim) -> Signal:
        await back.wait()
        return Delivered()

    handler = Performer(play)
    running = asyncio.create_task(runner(database, handler, concurrency=300).run(stop))
    await handler.until(lambda h: len(h.performed) == 200)
    await asyncio.to_thread(postgres.stop, "immediate")
    back.set()
    await asyncio.to_thread(postgres.start)
    await handler.until(lambda h: len(h.ends) == 200)
    stop.set()
    await running
    await database.close()
    again = await PostgresDatabase.open(postgres_url)
    ended = await states(again)
    await again.close()

    assert len(handler.performed) == 200
    assert ended == {State.DONE: 200}
