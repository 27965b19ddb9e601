"""One suite for both databases: whatever a store relies on is proved on each."""

import asyncio
import re
from importlib import resources
from pathlib import Path

import pytest
from tests.postgres_server import PostgresServer

from heliograph.storage.database import Database, DatabaseUnavailable, Query, Tx, Value
from heliograph.storage.migrations.runner import known_migrations, migrate, plan
from heliograph.storage.postgres import PostgresDatabase
from heliograph.storage.queries import load_queries
from heliograph.storage.sqlite import AlreadyOpen, SqliteDatabase


def query(name: str, text: str) -> Query:
    """Spell a test's own statement."""
    return Query(name, text, text.replace(":value", "%(value)s").replace(":name", "%(name)s"))


CREATE = query("create", "CREATE TABLE things (name TEXT NOT NULL PRIMARY KEY, value BIGINT)")
PUT = query("put", "INSERT INTO things (name, value) VALUES (:name, :value)")
GET = query("get", "SELECT value FROM things WHERE name = :name")
SET = query("set", "UPDATE things SET value = :value WHERE name = :name")
COUNT = query("count", "SELECT COUNT(*) FROM things")

pytestmark = pytest.mark.anyio


class OopsError(Exception):
    """A caller's own failure."""


def put(tx: Tx, name: str, value: int = 0) -> None:
    tx.run(PUT, {"name": name, "value": value})


def count(tx: Tx) -> int:
    row = tx.one(COUNT)
    assert row is not None
    return int(row[0])


@pytest.fixture
async def things(database: Database) -> Database:
    """A database with a table to play with."""
    await database.transact(lambda tx: tx.run(CREATE))
    return database


async def test_a_function_that_raises_leaves_nothing_and_spares_the_others(things: Database) -> None:
    """Twenty share a commit; the odd ones raise behind their write and roll back alone."""

    def write(tx: Tx, number: int) -> int:
        put(tx, f"n{number}")
        if number % 2:
            raise OopsError(number)
        return number

    results = await asyncio.gather(*(things.transact(write, n) for n in range(20)), return_exceptions=True)

    assert [n for n, result in enumerate(results) if isinstance(result, OopsError)] == list(range(1, 20, 2))
    assert await things.read(count) == 10


async def test_a_callback_runs_after_its_commit_and_not_without_one(things: Database) -> None:
    """Doorbells ring for what is on disk."""
    rung: list[str] = []

    def write(tx: Tx, name: str, fails: bool) -> None:
        put(tx, name)
        tx.after_commit(lambda: rung.append(name))
        if fails:
            raise OopsError

    await things.transact(write, "kept", fails=False)
    with pytest.raises(OopsError):
        await things.transact(write, "lost", fails=True)

    assert rung == ["kept"]


async def test_concurrent_increments_lose_nothing(things: Database) -> None:
    """Each transaction behaves as if it ran alone: read, add, write, a hundred times at once."""
    await things.transact(put, "n", 0)

    def increment(tx: Tx) -> None:
        row = tx.one(GET, {"name": "n"})
        assert row is not None
        tx.run(SET, {"name": "n", "value": row[0] + 1})

    await asyncio.gather(*(things.transact(increment) for _ in range(100)))

    assert await things.read(lambda tx: tx.one(GET, {"name": "n"})) == (100,)


async def test_a_cancelled_caller_breaks_nobody_elses_transaction(things: Database) -> None:
    """Its own goes on to its end; it is only not told."""
    tasks = [asyncio.create_task(things.transact(put, f"n{n}")) for n in range(10)]
    await asyncio.sleep(0)
    tasks[3].cancel()

    await asyncio.gather(*tasks, return_exceptions=True)

    assert await things.read(count) in {9, 10}
    assert [task.cancelled() for task in tasks].count(True) == 1


async def test_values_come_back_as_they_went(database: Database) -> None:
    """Large integers, octets, truth values and every plane of Unicode."""
    await database.transact(
        lambda tx: tx.run(query("t", "CREATE TABLE t (a BIGINT, b BYTEA, c BOOLEAN, d TEXT, e TEXT)"))
    )
    put_all = Query(
        "p",
        "INSERT INTO t VALUES (:a, :b, :c, :d, :e)",
        "INSERT INTO t VALUES (%(a)s, %(b)s, %(c)s, %(d)s, %(e)s)",
    )
    values: dict[str, Value] = {"a": 2**62, "b": b"\x00\xff", "c": True, "d": "ä\U0001f4a1%:x", "e": None}
    await database.transact(lambda tx: tx.run(put_all, values))

    row = await database.read(lambda tx: tx.one(query("g", "SELECT a, b, c, d, e FROM t")))

    assert row is not None
    assert (row[0], bytes(row[1]), bool(row[2]), row[3], row[4]) == (
        2**62,
        b"\x00\xff",
        True,
        values["d"],
        None,
    )


async def test_a_closed_database_takes_nothing(things: Database) -> None:
    """It says so instead of hanging."""
    await things.close()

    with pytest.raises(DatabaseUnavailable):
        await things.transact(put, "late")


async def test_the_schema_is_applied_once_and_knows_it(database: Database) -> None:
    """A second run finds nothing to do."""
    assert (await plan(database)).pending == ()
    assert (await migrate(database, now=1)).pending == ()
    assert (await plan(database)).current == len(known_migrations())


async def test_every_statement_prepares(database: Database) -> None:
    """A statement with a wrong column would otherwise fail on the day it is first needed."""
    package = resources.files("heliograph")
    root = Path(str(package))
    sqlite = isinstance(database, SqliteDatabase)
    explained = 0
    for path in statement_files(root):
        name = ".".join(("heliograph", *path.parent.relative_to(root).parts))
        for statement in load_queries(name, path.name).values():
            await database.read(_explain, statement, sqlite)
            explained += 1

    assert explained >= 5


def statement_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.sql") if path.parent.name != "migrations")


def _explain(tx: Tx, statement: Query, sqlite: bool) -> None:
    if sqlite:
        names = re.findall(r"(?<!:):([a-z_]+)", statement.sqlite)
        tx.all(Query("e", f"EXPLAIN {statement.sqlite}", ""), dict.fromkeys(names))
    else:
        text = re.sub(r"%\([a-z_]+\)s", "NULL", statement.postgres)
        tx.all(Query("e", "", f"EXPLAIN {text}"))


class TestSqlite:
    async def test_a_second_process_may_not_write_to_the_same_file(self, tmp_path: Path) -> None:
        """Two writers would starve each other; the second is told at once."""
        first = await SqliteDatabase.open(tmp_path / "a.sqlite")

        with pytest.raises(AlreadyOpen):
            await SqliteDatabase.open(tmp_path / "a.sqlite")
        await first.close()
        await (await SqliteDatabase.open(tmp_path / "a.sqlite")).close()

    async def test_a_full_disk_accepts_nothing_and_recovers(self, tmp_path: Path) -> None:
        """Nothing is acknowledged while it is full; once there is room it goes on without a restart."""
        database = await SqliteDatabase.open(tmp_path / "a.sqlite")
        await database.transact(lambda tx: tx.run(CREATE))
        pages = "SELECT page_count FROM pragma_page_count"
        size = (await database.read(lambda tx: tx.all(query("size", pages))))[0][0]
        await database.transact(lambda tx: tx.all(query("full", f"PRAGMA max_page_count = {size}")))

        fates = await asyncio.gather(
            *(database.transact(put, f"{number}-" + "x" * 1_000) for number in range(1_000)),
            return_exceptions=True,
        )
        assert any(isinstance(fate, DatabaseUnavailable) for fate in fates)
        accepted = await database.read(count)
        assert accepted == sum(fate is None for fate in fates)
        # The limit belongs to the connection that was given up, so the next one has room again.
        await database.transact(put, "after")

        assert await database.read(count) == accepted + 1
        await database.close()

    async def test_what_was_committed_is_there_after_reopening(self, tmp_path: Path) -> None:
        """Durable means on disk."""
        database = await SqliteDatabase.open(tmp_path / "a.sqlite")
        await database.transact(lambda tx: tx.run(CREATE))
        await database.transact(put, "kept")
        await database.close()

        again = await SqliteDatabase.open(tmp_path / "a.sqlite")

        assert await again.read(count) == 1
        await again.close()


@pytest.mark.service
class TestPostgres:
    async def test_a_server_that_went_away_is_unavailable_and_comes_back(
        self, postgres: PostgresServer, postgres_url: str
    ) -> None:
        """Every call says so meanwhile; nothing needs a restart afterwards."""
        database = await PostgresDatabase.open(postgres_url)
        await database.transact(lambda tx: tx.run(CREATE))
        postgres.stop("immediate")
        try:
            with pytest.raises(DatabaseUnavailable):
                await database.transact(put, "while away")
            with pytest.raises(DatabaseUnavailable):
                await database.read(count)
            with pytest.raises(DatabaseUnavailable):
                await database.ping()
        finally:
            postgres.start()

        await database.transact(put, "back again")
        assert await database.read(count) == 1
        await database.close()

    async def test_two_processes_that_migrate_at_once_apply_each_step_once(self, postgres_url: str) -> None:
        """One applies, the other finds it done."""
        first, second = await PostgresDatabase.open(postgres_url), await PostgresDatabase.open(postgres_url)

        await asyncio.gather(migrate(first, now=0), migrate(second, now=0))

        assert (await plan(first)).pending == ()
        await first.close()
        await second.close()
