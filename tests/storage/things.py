"""A table to play with, its statements, and a second process that writes to it until it is killed."""

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

from heliograph.storage.database import Database, Tx
from heliograph.storage.postgres import PostgresDatabase
from heliograph.storage.queries import parse_queries
from heliograph.storage.sqlite import SqliteDatabase

SQL = parse_queries(
    """
-- name: create
CREATE TABLE things (name TEXT NOT NULL PRIMARY KEY, value BIGINT NOT NULL CHECK (value < 1000000000000));

-- name: create_halves
CREATE TABLE halves (number BIGINT NOT NULL, half BIGINT NOT NULL, PRIMARY KEY (number, half));

-- name: put
INSERT INTO things (name, value) VALUES (:name, :value);

-- name: set
UPDATE things SET value = :value WHERE name = :name;

-- name: increment
UPDATE things SET value = value + 1 WHERE name = :name;

-- name: get
SELECT value FROM things WHERE name = :name;

-- name: names
SELECT name FROM things ORDER BY name;

-- name: count
SELECT count(*) FROM things;

-- name: clear
DELETE FROM things;

-- name: wrong
SELECT value FROM things WHERE no_such_column = :name;

-- name: put_half
INSERT INTO halves (number, half) VALUES (:number, :half);

-- name: halves
SELECT number, half FROM halves ORDER BY number, half;
""",
    "things.sql",
)


def put(tx: Tx, name: str, value: int = 0) -> None:
    tx.run(SQL["put"], {"name": name, "value": value})


def get(tx: Tx, name: str) -> int | None:
    row = tx.one(SQL["get"], {"name": name})
    return None if row is None else row[0]


def add(tx: Tx, name: str, amount: int = 1) -> int:
    """Read, add, write: what loses updates where transactions are not alone."""
    value = (get(tx, name) or 0) + amount
    tx.run(SQL["set"], {"name": name, "value": value})
    return value


def names(tx: Tx) -> list[str]:
    return [row[0] for row in tx.all(SQL["names"])]


def total(tx: Tx) -> int:
    row = tx.one(SQL["count"])
    assert row is not None
    return int(row[0])


def create(tx: Tx) -> None:
    tx.run(SQL["create"])
    tx.run(SQL["create_halves"])


def put_halves(tx: Tx, number: int) -> None:
    """Two rows that belong together."""
    tx.run(SQL["put_half"], {"number": number, "half": 1})
    tx.run(SQL["put_half"], {"number": number, "half": 2})


def halves(tx: Tx) -> list[tuple[int, int]]:
    return [(number, half) for number, half in tx.all(SQL["halves"])]


async def opened(where: str) -> Database:
    """Open what a URL or a path names."""
    if "://" in where:
        return await PostgresDatabase.open(where)
    return await SqliteDatabase.open(Path(where))


async def write_until_killed(where: str) -> None:
    """Write pairs from many tasks, and say of each when it was acknowledged. Never returns."""
    database = await opened(where)
    numbers = count()

    async def writer() -> None:
        for number in numbers:
            await database.transact(put_halves, number)
            os.write(1, b"%d\n" % number)

    await asyncio.gather(*(writer() for _ in range(32)))


if __name__ == "__main__":
    asyncio.run(write_until_killed(sys.argv[1]))
