"""Rings: kept for one who is not waiting yet, heard in other processes, and never needed."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from tests.work import Performer, SeededEntropy, ToldClock, item, runner

from heliograph.doorbell.local import KINDS_MAX, LocalDoorbell
from heliograph.doorbell.postgres import CHANNEL, PostgresDoorbell
from heliograph.queue import store
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.postgres import PostgresDatabase

pytestmark = pytest.mark.anyio

LONG = 3_600.0


class TestLocal:
    async def test_a_ring_wakes_who_waits_for_its_kind(self) -> None:
        """And nobody else."""
        doorbell = LocalDoorbell()
        wanted = asyncio.create_task(doorbell.wait(["a", "b"], LONG))
        other = asyncio.create_task(doorbell.wait(["c"], LONG))
        await asyncio.sleep(0)

        doorbell.ring("b")

        assert await wanted
        assert not other.done()
        other.cancel()

    async def test_a_ring_that_nobody_waits_for_is_kept(self) -> None:
        """It comes between a claim that found nothing and the wait; it is kept once."""
        doorbell = LocalDoorbell()
        doorbell.ring("a")
        doorbell.ring("a")

        assert await doorbell.wait(["a"], LONG)
        assert not await doorbell.wait(["a"], 0)

    async def test_waiting_ends_with_its_time(self) -> None:
        """Then it is time to look anyway."""
        assert not await LocalDoorbell().wait(["a"], 0.001)

    async def test_rings_of_endlessly_many_kinds_are_not_kept(self) -> None:
        """Kinds are words of the code; a flood of others must not fill the memory."""
        doorbell = LocalDoorbell()
        for number in range(KINDS_MAX + 10):
            doorbell.ring(f"k{number}")

        assert await doorbell.wait([f"k{KINDS_MAX - 1}"], 0)
        assert not await doorbell.wait([f"k{KINDS_MAX}"], 0)

    async def test_ringing_twice_at_once_is_ringing_once(self) -> None:
        """The second finds the waiter woken already."""
        doorbell = LocalDoorbell()
        waiting = asyncio.create_task(doorbell.wait(["a"], LONG))
        await asyncio.sleep(0)
        doorbell.ring("a")
        doorbell.ring_all()

        assert await waiting


@pytest.fixture
async def doorbells(postgres_url: str) -> AsyncIterator[tuple[PostgresDoorbell, PostgresDoorbell]]:
    """Two processes, as it were."""
    pair = [await PostgresDoorbell.open(postgres_url, ToldClock(), SeededEntropy()) for _ in range(2)]
    for doorbell in pair:
        await doorbell.listening()
    yield pair[0], pair[1]
    for doorbell in pair:
        await doorbell.close()


async def rings_until_heard(here: PostgresDoorbell, there: PostgresDoorbell) -> None:
    """Ring until the other side hears it: rings are lost while a connection is being sought."""
    while True:
        here.ring("a")
        if await there.wait(["a"], 0.05):
            return


@pytest.mark.service
class TestPostgres:
    async def test_a_ring_is_heard_in_the_other_process(
        self, doorbells: tuple[PostgresDoorbell, PostgresDoorbell]
    ) -> None:
        """And in its own at once."""
        here, there = doorbells
        waiting = asyncio.create_task(there.wait(["a"], LONG))
        await asyncio.sleep(0)

        here.ring("a")

        assert await here.wait(["a"], 0)
        assert await waiting

    async def test_broken_connections_are_made_again(
        self, doorbells: tuple[PostgresDoorbell, PostgresDoorbell], postgres_url: str
    ) -> None:
        """Everybody is woken once, because a ring may have been missed; then rings are heard again."""
        here, there = doorbells
        waiting = asyncio.create_task(there.wait(["nobody rings for this"], LONG))
        await asyncio.sleep(0)
        with psycopg.connect(postgres_url, autocommit=True) as operator:
            operator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'heliograph doorbell' AND datname = current_database()"
            )

        assert await waiting
        await rings_until_heard(here, there)

    async def test_a_notification_from_outside_is_heard(
        self, doorbells: tuple[PostgresDoorbell, PostgresDoorbell], postgres_url: str
    ) -> None:
        """Its payload is the kind, so a person can ring with psql."""
        here, there = doorbells
        waiting = [asyncio.create_task(each.wait(["a"], LONG)) for each in (here, there)]
        await asyncio.sleep(0)
        with psycopg.connect(postgres_url, autocommit=True) as operator:
            operator.execute("SELECT pg_notify(%s, 'a')", (CHANNEL,))

        assert await asyncio.gather(*waiting) == [True, True]

    async def test_a_flood_of_kinds_is_not_gathered(self, postgres_url: str) -> None:
        """What is not told yet is bounded, and ringing never raises, connected or not."""
        doorbell = PostgresDoorbell(
            "postgresql://nobody@/nowhere?host=/nonexistent", ToldClock(), SeededEntropy()
        )
        for number in range(KINDS_MAX + 10):
            doorbell.ring(f"k{number}")

        assert len(doorbell._untold) == KINDS_MAX

    async def test_without_a_server_only_polling_is_left(self, postgres_url: str) -> None:
        """C3: the doorbell is blocked on both sides; new work is found within the poll interval."""
        database = await PostgresDatabase.open(postgres_url)
        await migrate(database, now=0)
        nowhere = "postgresql://nobody@/nowhere?host=/nonexistent"
        blocked = await PostgresDoorbell.open(nowhere, ToldClock(), SeededEntropy())
        handler, stop = Performer(), asyncio.Event()
        running = asyncio.create_task(runner(database, handler, doorbell=blocked).run(stop))
        await database.transact(store.enqueue, [item(1)], 0)
        await handler.until(lambda h: len(h.ends) == 1)
        stop.set()
        await running
        await blocked.close()
        await database.close()

        assert [claim.item_id for claim in handler.performed] == ["item-000001"]
