"""Databases for tests: migrated, empty, and gone when the test is over."""

import itertools
from collections.abc import AsyncIterator, Iterator
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


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield postgres.url(name)
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database with every schema step applied; each test that asks for it runs on both kinds."""
    opened: Database
    if request.param == "sqlite":
        opened = await SqliteDatabase.open(tmp_path / "test.sqlite")
    else:
        opened = await PostgresDatabase.open(request.getfixturevalue("postgres_url"))
    await migrate(opened, now=0)
    yield opened
    await opened.close()
