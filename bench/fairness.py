"""Measure what a flood costs a quiet tenant: ``python -m bench.fairness``.

The quiet tenant enqueues one item at a time; its latency is from before the enqueue to its performance. First
it is alone, then beside another tenant whose many items all hang. The ratio of the two is what matters.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Level, Telemetry
from heliograph.doorbell.local import LocalDoorbell
from heliograph.queue import store
from heliograph.queue.machine import Change, Delivered, Later, Policy, Signal
from heliograph.queue.model import Claim, NewItem
from heliograph.queue.pace import Pace
from heliograph.queue.runner import Runner
from heliograph.storage.database import Database, Tx
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.sqlite import SqliteDatabase

CLOCK, ENTROPY = SystemClock(), SystemEntropy()
KIND = "bench.fairness"
PAGE = 1_000


class Tenants:
    """The flood hangs as long as a timeout would; the quiet tenant is served at once."""

    kind = KIND
    policy = Policy()

    def __init__(self, hang_s: float) -> None:
        self.hang_s = hang_s
        self.performed = asyncio.Event()

    def load(self, _tx: Tx, claims: Sequence[Claim], /) -> Sequence[None]:
        """Read nothing."""
        return [None] * len(claims)

    async def perform(self, claim: Claim, _loaded: None, /) -> Signal:
        """Hang, or tell that it came."""
        if claim.lane == "flood":
            await asyncio.sleep(self.hang_s)
            return Later("hung")
        self.performed.set()
        return Delivered()

    def settled(self, _tx: Tx, _claim: Claim, _change: Change, /) -> None:
        """Note nothing."""


def item(lane: str) -> NewItem:
    """Make an item that is due now."""
    now = CLOCK.now()
    name = ENTROPY.uuid7(now)
    return NewItem(name, KIND, lane, name, now)


async def latencies(
    database: Database, hang_s: float, seconds: float, doorbell: LocalDoorbell
) -> list[float]:
    """Send one quiet item after another for some time; return milliseconds, ascending."""
    tenants, stop = Tenants(hang_s), asyncio.Event()
    runner = Runner(
        database, CLOCK, ENTROPY, doorbell, [tenants], telemetry=Telemetry(Level.ERROR), pace=Pace(grace_ms=0)
    )
    running = asyncio.create_task(runner.run(stop))
    await asyncio.sleep(1)
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        tenants.performed.clear()
        begun = time.perf_counter()
        await database.transact(store.enqueue, [item("quiet")], CLOCK.now())
        doorbell.ring(KIND)
        await tenants.performed.wait()
        times.append((time.perf_counter() - begun) * 1_000)
        await asyncio.sleep(0.01)
    stop.set()
    await running
    return sorted(times)


async def measure(options: argparse.Namespace) -> None:
    """Measure alone, then beside the flood."""
    with tempfile.TemporaryDirectory() as folder:
        database = await SqliteDatabase.open(Path(folder) / "bench.sqlite")
        await migrate(database, CLOCK.now())
        p99 = {}
        for name, flood in (("alone", 0), ("beside the flood", options.flood)):
            for _ in range(0, flood, PAGE):
                await database.transact(store.enqueue, [item("flood") for _ in range(PAGE)], CLOCK.now())
            times = await latencies(database, options.hang, options.seconds, LocalDoorbell())
            p99[name] = times[int(len(times) * 0.99)]
            middle = times[len(times) // 2]
            print(f"{name:<17} {len(times)} items, median {middle:.1f} ms, p99 {p99[name]:.1f} ms")
        print(f"ratio of p99: {p99['beside the flood'] / p99['alone']:.2f}")
        await database.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flood", type=int, default=100_000, help="hanging items of the other tenant")
    parser.add_argument("--hang", type=float, default=10.0, help="seconds that each of them hangs")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each part lasts")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
