"""Measure the queue: ``python -m bench.queue``.

Three figures: items claimed, performed (by a handler that does nothing) and settled per second by one
runner; the raw limit, which is the same rows through the same statements without a runner; and the time
of one claim while one lane holds very many waiting items and another holds one.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Level, Telemetry
from heliograph.doorbell.local import LocalDoorbell
from heliograph.queue import store
from heliograph.queue.machine import Change, Delivered, Policy, Signal
from heliograph.queue.model import Claim, Ending, NewItem
from heliograph.queue.pace import Pace
from heliograph.queue.runner import Runner
from heliograph.storage.database import Database, Tx
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.postgres import PostgresDatabase
from heliograph.storage.sqlite import SqliteDatabase

CLOCK = SystemClock()
ENTROPY = SystemEntropy()
PAGE = 1_000


class NoWork:
    """Delivers at once."""

    kind = "bench.nothing"
    policy = Policy()

    def __init__(self, total: int) -> None:
        self.left = total
        self.finished = asyncio.Event()

    def load(self, _tx: Tx, claims: Sequence[Claim], /) -> Sequence[None]:
        """Read nothing."""
        return [None] * len(claims)

    async def perform(self, _claim: Claim, _loaded: None, /) -> Signal:
        """Do nothing."""
        return Delivered()

    def settled(self, tx: Tx, _claim: Claim, _change: Change, /) -> None:
        """Count."""
        tx.after_commit(self.one_less)

    def one_less(self) -> None:
        """Count what is on disk."""
        self.left -= 1
        if not self.left:
            self.finished.set()


def items(count: int, lane: str = "", first: int = 0, *, fold: bool = True) -> list[NewItem]:
    """Make items as they would have come at 10,000 a second."""
    begun = CLOCK.now() - 1_000_000
    made = [(at, ENTROPY.uuid7(at)) for at in (begun + (first + n) // 10 for n in range(count))]
    return [
        NewItem(
            item_id, NoWork.kind, lane or f"station-{n % 5}", item_id, at, fold_key=item_id if fold else None
        )
        for n, (at, item_id) in enumerate(made)
    ]


async def fill(database: Database, count: int, lane: str = "", *, fold: bool = True) -> float:
    """Enqueue, and return items per second."""
    begun = time.perf_counter()
    for done in range(0, count, PAGE):
        page = items(min(PAGE, count - done), lane, done, fold=fold)
        await database.transact(store.enqueue, page, CLOCK.now())
    return count / (time.perf_counter() - begun)


async def through_a_runner(database: Database, count: int, pace: Pace) -> float:
    handler = NoWork(count)
    runner = Runner(
        database, CLOCK, ENTROPY, LocalDoorbell(), [handler], telemetry=Telemetry(Level.ERROR), pace=pace
    )
    stop = asyncio.Event()
    begun = time.perf_counter()
    running = asyncio.create_task(runner.run(stop))
    await handler.finished.wait()
    rate = count / (time.perf_counter() - begun)
    stop.set()
    await running
    return rate


async def without_a_runner(database: Database, count: int, batch: int) -> float:
    begun, policy, done = time.perf_counter(), Policy(), 0
    while done < count:
        claims = await database.claim(store.claim, [NoWork.kind], batch, CLOCK.now(), 60_000)
        endings = [Ending(claim, Delivered(), policy) for claim in claims]
        await database.transact(store.settle_all, endings, CLOCK.now())
        done += len(claims)
    return count / (time.perf_counter() - begun)


async def claims_beside_a_giant(database: Database, giant: int) -> list[float]:
    """Fill one lane, put one item into another, and time claims of 100 in milliseconds."""
    print(f"  enqueued {await fill(database, giant, 'giant', fold=False):,.0f} items/s")
    times = []
    for _ in range(30):
        await database.transact(store.enqueue, items(1, "small"), CLOCK.now())
        begun = time.perf_counter()
        claims = await database.claim(store.claim, [NoWork.kind], 100, CLOCK.now(), 60_000)
        times.append((time.perf_counter() - begun) * 1_000)
        if len(claims) != 100 or "small" not in {claim.lane for claim in claims}:
            raise RuntimeError("the small lane had to wait")
    return times


async def measure(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database: Database
        if options.postgres:
            database = await PostgresDatabase.open(options.postgres)
        else:
            database = await SqliteDatabase.open(Path(folder) / "bench.sqlite")
        await migrate(database, CLOCK.now())
        pace = Pace(concurrency=options.concurrency)
        for _ in range(options.rounds):
            enqueued = await fill(database, options.items)
            raw = await without_a_runner(database, options.items, pace.batch)
            await fill(database, options.items)
            run = await through_a_runner(database, options.items, pace)
            print(f"enqueue {enqueued:,.0f}  claim+settle raw {raw:,.0f}  by a runner {run:,.0f} items/s")
        if options.giant:
            times = sorted(await claims_beside_a_giant(database, options.giant))
            print(
                f"claim 100 beside {options.giant:,} in one lane: median {statistics.median(times):.1f} ms, "
                f"slowest {times[-1]:.1f} ms"
            )
        await database.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=512)
    parser.add_argument("--giant", type=int, default=0, help="waiting items in one lane")
    parser.add_argument("--postgres", help="a PostgreSQL URL instead of a SQLite file")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
