"""Memory while a backlog drains: ``python -m bench.drain --deliveries 1000000``.

So many accepted deliveries wait in SQLite, each for another device. The real program is started on them and
delivers over real sockets to a receiver in a process of its own. Printed: the rate, the CPU time for each
delivery, and the most memory that the program held.
"""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop
from tests.whole.process import free_port

from bench.population import populate, write_settings
from bench.watched import Watched, heliograph, pin, program
from heliograph.lab.receiver import Receiver, Reply

LOOK_S = 1.0
PATIENCE_S = 900
LEFT = "SELECT count(*) FROM queue_items WHERE state IN ('ready', 'leased')"


async def receive() -> None:
    """Answer every delivery with 201 until interrupted; print the port."""
    async with Receiver.start(lambda _: Reply(201)) as receiver:
        print(receiver.port, flush=True)
        await asyncio.Event().wait()


async def drain(folder: Path, deliveries: int) -> None:
    """Fill the database, start the program and watch it until nothing is left."""
    async with program(("bench.drain", "--receive"), 0, folder, 1) as receiver:
        config = write_settings(folder, f"http://127.0.0.1:{receiver.said}/wakeups")
        began = time.perf_counter()
        await populate(config, deliveries, deliveries)
        print(f"{deliveries:,} deliveries written in {time.perf_counter() - began:.0f} s", flush=True)
        async with heliograph(config, free_port(), roles="gateway,worker", core=0) as watched:
            await watch(watched, folder / "data" / "heliograph.sqlite3", deliveries)


async def watch(watched: Watched, file: Path, deliveries: int) -> None:
    """Look until nothing is left, and tell what it took."""
    began, cpu_s, most_mb, left = time.perf_counter(), watched.cpu_s, 0.0, deliveries
    while left and time.perf_counter() - began < PATIENCE_S:
        await asyncio.sleep(LOOK_S)
        most_mb = max(most_mb, watched.resident_mb)
        left = await asyncio.to_thread(count, file)
        if int(time.perf_counter() - began) % 20 == 0:
            print(f"  {left:,} left, {watched.resident_mb:.0f} MB", flush=True)
    seconds, done = time.perf_counter() - began, deliveries - left
    each_us = (watched.cpu_s - cpu_s) / max(1, done) * 1e6
    print(
        f"{done:,} delivered, {done / seconds:.0f}/s, {each_us:.0f} us CPU each = "
        f"{1e6 / each_us:.0f}/s per core; at most {most_mb:.0f} MB resident"
    )
    if left:
        sys.exit(f"{left:,} deliveries were left after {PATIENCE_S} s")


def count(file: Path) -> int:
    """Count what is not settled, beside the running program."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        (left,) = connection.execute(LEFT).fetchone()
    connection.close()
    return int(left)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deliveries", type=int, default=1_000_000)
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.receive:
        uvloop.run(receive())
        return
    pin(0, 1)
    with tempfile.TemporaryDirectory(prefix="heliograph-bench-") as name:
        uvloop.run(drain(Path(name), options.deliveries))


if __name__ == "__main__":
    main()
