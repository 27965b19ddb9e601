"""Threads that read: bounded, each on its connection, which is replaced when it broke."""

import asyncio
import threading
from typing import Any

import pytest

from heliograph.storage.batching import Work
from heliograph.storage.database import DatabaseUnavailable
from heliograph.storage.reading import Readers

pytestmark = pytest.mark.anyio


class Connection:
    """Breaks when it is told to."""

    def __init__(self) -> None:
        self.open = True
        self.fails = False
        self.usable = False

    def close(self) -> None:
        self.open = False


class World:
    """Counts the connections that were opened."""

    def __init__(self) -> None:
        self.opened: list[Connection] = []
        self.away = False

    def connect(self) -> Connection:
        if self.away:
            raise DatabaseUnavailable("away")
        self.opened.append(Connection())
        return self.opened[-1]

    @staticmethod
    def read(connection: Connection, work: Work) -> Any:
        if connection.fails:
            raise DatabaseUnavailable("broke")
        return work(connection)

    def readers(self, threads: int = 1, waiting_max: int = 10) -> Readers[Connection]:
        return Readers(
            "test-reader",
            threads,
            connect=self.connect,
            read=self.read,
            is_usable=lambda connection: connection.usable,
            waiting_max=waiting_max,
        )


async def test_a_thread_keeps_its_connection_until_it_is_closed() -> None:
    """Opening one takes longer than most reads."""
    world = World()
    readers = world.readers()

    seen = [await readers.run(lambda connection: connection) for _ in range(3)]
    await readers.close()

    assert seen == [world.opened[0]] * 3
    assert [connection.open for connection in world.opened] == [False]


async def test_a_connection_that_broke_while_it_lay_idle_is_replaced() -> None:
    """The read is begun anew on another; its caller notices nothing."""
    world = World()
    readers = world.readers()
    await readers.run(lambda _: None)
    world.opened[0].fails = True

    assert await readers.run(lambda connection: connection) is world.opened[1]
    assert not world.opened[0].open
    await readers.close()


async def test_a_read_that_fails_on_a_sound_connection_is_not_begun_anew() -> None:
    """One that took too long would take as long again."""
    world = World()
    readers = world.readers()
    await readers.run(lambda _: None)
    world.opened[0].fails = world.opened[0].usable = True

    with pytest.raises(DatabaseUnavailable, match="broke"):
        await readers.run(lambda _: None)
    await readers.close()

    assert len(world.opened) == 1


async def test_a_database_that_is_away_is_told_and_found_again() -> None:
    """No restart in between."""
    world = World()
    readers = world.readers()
    world.away = True
    with pytest.raises(DatabaseUnavailable, match="away"):
        await readers.run(lambda _: None)
    world.away = False

    assert await readers.run(lambda _: "back") == "back"
    await readers.close()


async def test_more_than_may_wait_is_refused_at_once() -> None:
    """Reads that wait are bounded as transactions are."""
    may_go = threading.Event()
    readers = World().readers(waiting_max=2)
    tasks = [asyncio.create_task(readers.run(lambda _: may_go.wait())) for _ in range(2)]
    await asyncio.sleep(0)

    with pytest.raises(DatabaseUnavailable, match="too many reads wait"):
        await readers.run(lambda _: None)
    may_go.set()

    assert await asyncio.gather(*tasks) == [True, True]
    await readers.close()


async def test_after_closing_nothing_is_read() -> None:
    """It says so instead of hanging."""
    readers = World().readers()
    await readers.close()

    with pytest.raises(DatabaseUnavailable, match="closed"):
        await readers.run(lambda _: None)
