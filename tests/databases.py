"""Databases for tests: migrated, empty, and gone when the test is over."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from heliograph.storage.database import Database
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.sqlite import SqliteDatabase


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database with every schema step applied."""
    opened = await SqliteDatabase.open(tmp_path / "test.sqlite")
    await migrate(opened, now=0)
    yield opened
    await opened.close()
