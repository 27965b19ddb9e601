"""``heliograph serve`` and ``heliograph worker``."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from heliograph.app.compose import ALL_ROLES, Role, running
from heliograph.app.settings import load
from heliograph.cli.options import Config
from heliograph.cli.printing import show
from heliograph.edge.server import run


def register(app: App) -> None:
    """Add the commands."""
    app.command(serve)
    app.command(worker)


def serve(
    *,
    config: Config = None,
    host: Annotated[str | None, Parameter(help="Listen here instead of server.host.")] = None,
    port: Annotated[
        int | None, Parameter(help="Listen here instead of server.port; 0: any free one.")
    ] = None,
    database: Annotated[str | None, Parameter(help="Use this URL instead of database.url.")] = None,
    roles: Annotated[str, Parameter(help="Which roles to run, apart by commas.")] = "gateway,worker",
) -> None:
    """Serve requests and deliver, until interrupted.

    Without a settings file everything has a default: one process, SQLite, keys made on the first start.
    """
    given = {"server.host": host, "server.port": port, "database.url": database}
    run(_until_stopped(config, given, _roles(roles)))


def worker(*, config: Config = None) -> None:
    """Deliver accepted work without serving requests. Needs a database that processes can share."""
    run(_until_stopped(config, {}, frozenset({Role.WORKER})))


def _roles(text: str) -> frozenset[Role]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    return frozenset(Role(word) for word in words) or ALL_ROLES


async def _until_stopped(
    config: Path | None, given: dict[str, str | int | None], roles: frozenset[Role]
) -> None:
    command_line = {path: str(value) for path, value in given.items() if value is not None}
    settings = load(config, command_line=command_line).settings
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(settings, roles) as process:
        if Role.GATEWAY in roles:
            show(f"Heliograph serves {process.identity.service_id} on {process.local_url}")
        else:
            show("Heliograph delivers")
        await stop.wait()
        show("stopping: finishing what is in progress")
