"""Databases for tests: migrated, empty, and gone when the test is over."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from heliograph.storage.database import Database
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.postgres import PostgresDatabase
from heliograph.storage.sqlite import SqliteDatabase
from tests.postgres_server import PostgresServer, postgres_server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A private PostgreSQL server."""
    try:
        with postgres_server() as server:
            yield server
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def _create(server: PostgresServer, name: str) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))


def _drop(server: PostgresServer, name: str) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database."""
    name = f"test_{next(_numbers)}"
    _create(postgres, name)
    yield postgres.url(name)
    _drop(postgres, name)


async def _migrate(url: str) -> None:
    database = await PostgresDatabase.open(url)
    await migrate(database, now=0)
    await database.close()


TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
FULL = sql.SQL("SELECT EXISTS (SELECT FROM {})")
EMPTY = sql.SQL("TRUNCATE {}")
REMOVE = sql.SQL("DROP TABLE {} CASCADE")
FORGET = """
DELETE FROM pg_statistic
WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)
"""


class SharedDatabase:
    """A migrated database that many tests use, one after another: making one for each takes far longer."""

    def __init__(self, url: str) -> None:
        self.url = url
        with psycopg.connect(url) as connection:
            self._ours = {row[0] for row in connection.execute(TABLES)}

    def clean(self) -> None:
        """Take away every row, every other table and what the planner learned."""
        with psycopg.connect(self.url) as connection:
            tables = {row[0] for row in connection.execute(TABLES)}
            for table in sorted(tables - self._ours):
                connection.execute(REMOVE.format(sql.Identifier(table)))
            for table in sorted(self._ours - {"schema_migrations"}):
                name = sql.Identifier(table)
                if connection.execute(FULL.format(name)).fetchone() == (True,):
                    connection.execute(EMPTY.format(name))
            connection.execute(FORGET)


@pytest.fixture(scope="session")
def shared_postgres(postgres: PostgresServer) -> SharedDatabase:
    """The database that tests share."""
    _create(postgres, "shared")
    url = postgres.url("shared")
    with ThreadPoolExecutor(1) as another_thread:  # this one may be running a loop already
        another_thread.submit(asyncio.run, _migrate(url)).result()
    return SharedDatabase(url)


@pytest.fixture
def migrated_postgres_url(shared_postgres: SharedDatabase) -> Iterator[str]:
    """The URL of an empty database with every schema step applied."""
    yield shared_postgres.url
    shared_postgres.clean()


BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.service)]
"""The parameters of whatever shall run on both kinds."""


@pytest.fixture(params=BOTH)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database with every schema step applied; each test that asks for it runs on both kinds."""
    opened: Database
    if request.param == "sqlite":
        opened = await SqliteDatabase.open(tmp_path / "test.sqlite")
        await migrate(opened, now=0)
    else:
        opened = await PostgresDatabase.open(request.getfixturevalue("migrated_postgres_url"))
    yield opened
    await opened.close()
