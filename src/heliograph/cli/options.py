"""What many commands share: the settings file, and a database opened for one command."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from heliograph.app.opening import open_database
from heliograph.app.settings import Settings, load
from heliograph.storage.database import Database
from heliograph.storage.migrations.runner import MigrationRefused, plan

Config: TypeAlias = Annotated[
    Path | None, Parameter(name="--config", help="The settings file. Default: what HELIOGRAPH_CONFIG names.")
]
Json: TypeAlias = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON lines.")]


@asynccontextmanager
async def opened(config: Path | None) -> AsyncIterator[tuple[Settings, Database]]:
    """Open the database of the settings for one command.

    Raises:
        MigrationRefused: Its schema is not the one this program works with.
    """
    settings = load(config).settings
    database = await open_database(settings, exclusive=False)
    try:
        if (await plan(database)).pending:
            raise MigrationRefused("the schema is not up to date; run: heliograph migrate")
        yield settings, database
    finally:
        await database.close()
