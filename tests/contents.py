"""Everything a database holds, row by row: for tests of what is kept, and of what was not changed."""

import re
from pathlib import Path
from typing import Final

from heliograph.storage import migrations
from heliograph.storage.database import Database, Query, Row, Tx

_CREATED: Final = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)

TABLES: Final = tuple(
    sorted(
        name
        for file in Path(next(iter(migrations.__path__))).glob("[0-9]*.sql")
        for name in _CREATED.findall(file.read_text(encoding="utf-8"))
    )
)
"""Every table that a migration makes."""

_ALL: Final = {name: Query(f"tests.all_of_{name}", *[f"SELECT * FROM {name}"] * 2) for name in TABLES}
_COUNT: Final = {
    name: Query(f"tests.count_of_{name}", *[f"SELECT count(*) FROM {name}"] * 2) for name in TABLES
}


def _rows(tx: Tx, query: Query) -> list[Row]:
    return [
        tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
        for row in tx.all(query)
    ]


async def contents(database: Database) -> dict[str, list[Row]]:
    """Read every row of every table, each table in an order of its own values."""
    return {name: sorted(await database.read(_rows, query), key=repr) for name, query in _ALL.items()}


def _counted(tx: Tx) -> dict[str, int]:
    return {name: int(row[0]) for name, query in _COUNT.items() if (row := tx.one(query)) is not None}


async def counts(database: Database) -> dict[str, int]:
    """Count the rows of every table, at one instant."""
    return await database.read(_counted)


async def holds(database: Database, text: str) -> list[str]:
    """Name the tables in which a text stands somewhere, in a text or in octets."""
    octets = text.encode()
    return [
        name
        for name, rows in (await contents(database)).items()
        if any(
            octets in (value if isinstance(value, bytes) else str(value).encode())
            for row in rows
            for value in row
        )
    ]
