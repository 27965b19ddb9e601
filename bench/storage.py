"""Measure durable commits: ``python -m bench.storage``.

Every row is a closed loop: so many callers, each of which writes one row of the ledger's shape and waits
until that is on disk before it writes the next. The raw limit, one ``fdatasync`` for each record and one for
each 64 of them, is measured in the same run on the same disk; ratios mean more than rates. PostgreSQL is a
private server with its ordinary settings, if this machine has one. Takes less than 20 seconds.
"""

import argparse
import asyncio
import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import uvloop
from tests.postgres_server import postgres_server

from heliograph.ledger import New, answer, recall
from heliograph.storage.database import Database, Query, Tx
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.postgres import PostgresDatabase
from heliograph.storage.queries import parse_queries
from heliograph.storage.sqlite import SqliteDatabase

RECORD = b"x" * 400
REPLY = b"r" * 200

PLAIN = "CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY, digest TEXT NOT NULL, body BYTEA NOT NULL)"
DIGEST = (
    "CREATE TABLE digests (id BIGINT NOT NULL PRIMARY KEY, digest TEXT NOT NULL UNIQUE, body BYTEA NOT NULL)"
)
INSERTS = parse_queries(
    """
-- name: plain
INSERT INTO plain (id, digest, body) VALUES (:id, :digest, :body);
-- name: digests
INSERT INTO digests (id, digest, body) VALUES (:id, :digest, :body);
""",
    "bench.sql",
)

Write = Callable[[Tx, int], None]


def digest_of(number: int) -> str:
    """Return what looks random and is not."""
    return hashlib.sha256(number.to_bytes(8, "big")).hexdigest()


def insert(query: Query) -> Write:
    def write(tx: Tx, number: int) -> None:
        tx.run(query, {"id": number, "digest": digest_of(number), "body": RECORD})

    return write


def ask_and_answer(tx: Tx, number: int) -> None:
    """Do what every first request with a key does."""
    key, proof = digest_of(number), number.to_bytes(64, "big")
    if recall(tx, "bench", key, digest=key, proof=proof, proof_expires_at=1) != New():
        raise RuntimeError("nobody asked before")
    answer(tx, "bench", key, digest=key, proof=proof, reply=REPLY, now=number)


def raw(folder: Path, seconds: float, together: int) -> tuple[float, float]:
    """Append records, sync after every so many; return records per second and the 99th percentile in ms."""
    times: list[float] = []
    with (folder / "raw").open("wb", buffering=0) as file:
        ends = time.perf_counter() + seconds
        while (began := time.perf_counter()) < ends:
            file.write(RECORD * together)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return len(times) * together / sum(times), percentile(times)


def percentile(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)] * 1_000


async def closed_loop(
    database: Database, write: Write, callers: int, seconds: float, first: int
) -> list[float]:
    """Return how long each write took."""
    times: list[float] = []
    numbers = iter(range(first, 2**62))
    ends = time.perf_counter() + seconds

    async def caller() -> None:
        while (began := time.perf_counter()) < ends:
            await database.transact(write, next(numbers))
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return times


@contextlib.contextmanager
def private_server() -> Iterator[str | None]:
    try:
        with postgres_server() as server:
            yield server.url()
    except FileNotFoundError:
        print("no PostgreSQL on this machine")
        yield None


async def measure(
    database: Database, name: str, rows: list[tuple[str, Write, int]], seconds: float, single: float
) -> None:
    """Print a line for each row: rate, ratio to the raw rate of one sync each, the slowest in a hundred."""
    await migrate(database, now=0)
    for table in (PLAIN, DIGEST):
        await database.transact(lambda tx, text: tx.run(Query("bench.create", text, text)), table)
    for number, (what, write, callers) in enumerate(rows, 1):
        times = await closed_loop(database, write, callers, seconds, number << 40)
        line(f"{name}, {what}, {callers} waiting", len(times) / seconds, percentile(times), single)
    if isinstance(database, PostgresDatabase):
        print(f"  (run again after collisions: {database.retries})")
    await database.close()


def line(what: str, rate: float, slow_ms: float, single: float) -> None:
    print(f"{what:58} {rate:9,.0f}/s {rate / single:7.2f} x {slow_ms:8.2f} ms")


async def everything(seconds: float, *, only: str) -> None:
    rows = [
        ("one row", insert(INSERTS["plain"]), 1),
        ("one row", insert(INSERTS["plain"]), 64),
        ("one row", insert(INSERTS["plain"]), 256),
        ("one row, a unique random digest", insert(INSERTS["digests"]), 256),
        ("key looked up and answered", ask_and_answer, 1),
        ("key looked up and answered", ask_and_answer, 256),
    ]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        print(f"{'':58} {'rows':>11} {'to raw':>9} {'p99':>11}")
        single, slow_ms = raw(folder, seconds, 1)
        line("raw fdatasync, one record each", single, slow_ms, single)
        line("raw fdatasync, 64 records each", *raw(folder, seconds, 64), single)
        if only != "postgres":
            await measure(await SqliteDatabase.open(folder / "bench.sqlite"), "SQLite", rows, seconds, single)
    if only != "sqlite":
        with private_server() as url:
            if url is not None:
                await measure(
                    await PostgresDatabase.open(url),
                    "PostgreSQL",
                    rows,
                    seconds,
                    single,
                )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--only", choices=["sqlite", "postgres"], default="")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(everything(options.seconds, only=options.only))


if __name__ == "__main__":
    main()
