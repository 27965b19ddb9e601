"""``heliograph serve`` and ``heliograph worker``."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from heliograph.ambient.clock import SystemClock
from heliograph.app.compose import ALL_ROLES, Role, Running, running
from heliograph.app.processes import Notice, posted
from heliograph.app.reloading import Cause, Source
from heliograph.app.settings import Settings, config_file, load
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
    clock = SystemClock()

    def read() -> Settings:
        return load(config, command_line=command_line).settings

    settings, file = read(), config_file(config)
    stop, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, again.set)
    notice = Notice(os.getpid(), str(file or ""), clock.now())
    async with AsyncExitStack() as stack:
        board = stack.enter_context(posted(settings.data_dir, notice))
        source = Source(read, file, lambda works, ended: board.tell(works, ended, clock.now()))
        process = await stack.enter_async_context(running(settings, roles, source=source))
        reloads = asyncio.create_task(_reload_when(again, process), name="reload on signal")
        stack.callback(reloads.cancel)
        if Role.GATEWAY in roles:
            show(f"Heliograph serves {process.identity.service_id} on {process.local_url}")
        else:
            show("Heliograph delivers")
        await stop.wait()
        show("stopping: finishing what is in progress")


async def _reload_when(again: asyncio.Event, process: Running) -> None:
    """Reload at every signal; signals that come while one is under way are one."""
    while True:
        await again.wait()
        again.clear()
        await process.reload(Cause.SIGNAL)
