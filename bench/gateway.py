"""What a signed, durable notify costs: ``python -m bench.gateway``.

The real program serves in a process on one core; a Station on the other core keeps 64 signed notifies in
flight, each for one device drawn at random, and waits for each answer, which leaves only after the wakeup is
on disk. Printed for each row: requests per second, the median and the slowest in a hundred, the CPU time of
the serving processes for one request and what that makes for a whole core, and memory.

In the same run: how many synced writes a second the disk takes (one at a time, and 64 shared), and what
the parts of a request cost when they are called alone.
"""

import argparse
import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop
from tests.postgres_server import PostgresServer, postgres_server
from tests.whole.process import free_port

from bench.notify_load import Measured, drive, notifies, spelled
from bench.parts import measure_parts
from bench.population import HOST, pen, populate, write_settings
from bench.storage import raw
from bench.watched import children, cpu_seconds, heliograph, pin, program
from heliograph.ambient.clock import SystemClock

NOBODY = "http://127.0.0.1:9/nobody"
IN_FLIGHT = 64
WARM = 2_000
ANSWERED = 300_000


def told(name: str, heard: Measured, cpu_s: float, more: str = "") -> None:
    each_us = cpu_s / heard.requests * 1e6
    print(
        f"{name:38} {heard.rate:7.0f}/s  p50 {heard.p50_ms:5.1f} ms  p99 {heard.p99_ms:5.1f} ms  "
        f"{each_us:4.0f} us CPU each = {1e6 / each_us:6.0f}/s per core  {more}",
        flush=True,
    )


async def measure(
    name: str,
    config: Path,
    registrations: int,
    requests: int,
    *,
    processes: int = 1,
    server: PostgresServer | None = None,
    roles: str = "gateway",
) -> float:
    """Measure one row and return its requests per second of one core."""
    async with contextlib.AsyncExitStack() as stack:
        watched = [
            await stack.enter_async_context(
                heliograph(config, free_port(), roles=roles, core=0 if server is None else None)
            )
            for _ in range(processes)
        ]
        ports = [process.port for process in watched]
        await drive(ports, signed(WARM, registrations, 1), IN_FLIGHT)
        made = signed(requests, registrations, 2)
        before, sql_before = sum(process.cpu_s for process in watched), database_cpu_s(server)
        heard = await drive(ports, made, IN_FLIGHT)
        cpu_s = sum(process.cpu_s for process in watched) - before
        more = f"{watched[0].resident_mb:.0f} MB"
        if server is not None:
            more += (
                f", PostgreSQL {(database_cpu_s(server) - sql_before) / heard.requests * 1e6:.0f} us CPU each"
            )
        told(name, heard, cpu_s, more)
        return heard.requests / cpu_s


def signed(count: int, registrations: int, run: int) -> list[bytes]:
    """Sign requests under keys that no earlier run has used, ready to be written."""
    now = SystemClock().now()
    return [spelled(one, HOST) for one in notifies(pen(), count, registrations, now, now * 10 + run)]


def database_cpu_s(server: PostgresServer | None) -> float:
    """Return the CPU time of PostgreSQL's processes that run now."""
    if server is None:
        return 0.0
    parent = int((server.folder / "data" / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])
    return sum(cpu_seconds(process) for process in (parent, *children(parent)))


async def bare(folder: Path, requests: int) -> float:
    """Measure the peer with the same requests and return its requests per second of one core."""
    port = free_port()
    async with program(("bench.bare", str(port), str(folder / "bare")), port, folder, 0) as watched:
        await drive([port], signed(WARM, 1_000, 1), IN_FLIGHT)
        made = signed(requests, 1_000, 2)
        before = watched.cpu_s
        heard = await drive([port], made, IN_FLIGHT)
        cpu_s = watched.cpu_s - before
        told("a bare pipeline", heard, cpu_s, f"{watched.resident_mb:.0f} MB")
        return heard.requests / cpu_s


async def on_sqlite(folder: Path, sizes: Sequence[int], requests: int) -> None:
    peer = await bare(folder, requests)
    parts = await measure_parts(folder)
    for size in sizes:
        place = folder / f"sqlite-{size}"
        place.mkdir()
        config = write_settings(place, NOBODY)
        await populate(config, size)
        rate = await measure(f"SQLite, {size:,} registrations", config, size, requests)
        print(f"    {rate / peer:.2f} of the bare pipeline; {parts.told(1e6 / rate)}", flush=True)


async def on_postgres(folder: Path, size: int, requests: int) -> None:
    with postgres_server() as server:
        config = write_settings(folder, NOBODY, server.url())
        await populate(config, size, answered=ANSWERED)
        for processes in (1, 2):
            await measure(
                f"PostgreSQL, {processes} serving",
                config,
                size,
                requests,
                processes=processes,
                server=server,
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=30_000)
    parser.add_argument("--registrations", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--no-postgres", action="store_true")
    options = parser.parse_args(arguments)
    pin(0, 1)
    with tempfile.TemporaryDirectory(prefix="heliograph-bench-") as name:
        folder = Path(name)
        single, p99 = raw(folder, 2.0, 1)
        shared, _ = raw(folder, 2.0, IN_FLIGHT)
        print(
            f"disk: {single:.0f} synced writes/s (p99 {p99:.1f} ms), {shared:.0f} records/s in {IN_FLIGHT}s"
        )
        uvloop.run(on_sqlite(folder, options.registrations, options.requests))
        if not options.no_postgres:
            with contextlib.suppress(FileNotFoundError):
                postgres = folder / "postgres"
                postgres.mkdir()
                uvloop.run(on_postgres(postgres, options.registrations[0], options.requests))


if __name__ == "__main__":
    main()
