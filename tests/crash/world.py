"""One life of a database and the processes on it: started, killed, started again."""

import asyncio
import contextlib
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import psycopg
from psycopg import sql
from pyreqwest.client import ClientBuilder

from tests.crash.history import Disruption, History
from tests.crash.nursery import Child, Nursery
from tests.crash.provider import RecordingProvider, now_ms
from tests.crash.rows import Rows
from tests.crash.station import STATIONS
from tests.postgres_server import PostgresServer
from tests.secrets import inspect
from tests.whole.process import free_port

LEASE_MS: Final = 1_500
"""Short, so that what a kill leaves behind is taken over soon; but a busy machine must not outlast it."""

CONCURRENCY: Final = 4
"""Few deliveries at once, so that accepted ones wait: only what waits can be folded, or lose its route."""

SLOW: Final = frozenset({"timed_out", "stub_timed_out", "lease_expired"})
"""Why the program says that it begins an item anew though its provider may have taken it."""

PATIENCE_S: Final = 45.0
"""How long anything may take to come about before the run is called stuck."""

LOOK_S: Final = 0.03
"""How often a condition in another process is looked at."""


class Stuck(Exception):  # noqa: N818 - what the run is
    """Something that must come about did not."""


@dataclass
class Process:
    """One of the program's processes.

    Attributes:
        name: For people.
        arguments: Its command line.
        port: Where it serves; None when it does not.
        delivers: Whether it works off the queue.
        child: The process of the moment.
        gate: Held by whoever is stopping or starting it.
    """

    name: str
    arguments: tuple[str, ...]
    port: int | None
    delivers: bool
    child: Child | None = None
    gate: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.alive


@dataclass
class World:
    """A database, its processes and what is known of them."""

    kind: str
    folder: Path
    config: Path
    nursery: Nursery
    provider: RecordingProvider
    server: PostgresServer | None
    rows: Rows
    processes: list[Process]
    history: History
    read: dict[Path, int] = field(default_factory=dict)
    commands: Iterator[int] = field(default_factory=itertools.count)

    @property
    def doors(self) -> list[int]:
        return [process.port for process in self.processes if process.port is not None]

    async def start(self, process: Process) -> None:
        """Start a process that is not there."""
        async with process.gate:
            if not process.alive:
                process.child = await self.nursery.bear(
                    process.arguments, self.folder / f"{process.name}.log"
                )

    async def kill(self, process: Process, when: str) -> None:
        """Kill a process and wait until it is gone."""
        async with process.gate:
            if process.child is None or not process.child.alive:
                return
            self.strike(process, when)
            await process.child.ended()

    def strike(self, process: Process, when: str) -> None:
        """Kill a process without waiting for its end."""
        if process.child is not None and process.child.alive:
            process.child.kill()
            self._note(f"{process.name} {when}", delivers=process.delivers)

    async def kill_all(self, when: str) -> None:
        await asyncio.gather(*(self.kill(process, when) for process in self.processes))

    async def kill_server(self) -> None:
        """Stop the database server as a crash would, and start it again."""
        assert self.server is not None
        self._note("the database server", delivers=True)
        await asyncio.to_thread(self.server.stop, "immediate")
        await asyncio.to_thread(self.server.start)
        # Who was cut off in the middle of a settlement repeats it only now.
        self._note("", delivers=True)

    def _note(self, what: str, *, delivers: bool) -> None:
        self.history.disruptions.append(Disruption(now_ms(), what, delivers))

    async def command(self, *arguments: str) -> str:
        """Run a command of the program to its end and return what it printed."""
        log = self.folder / f"command-{next(self.commands)}.log"
        child = await self.nursery.bear([*arguments, "--config", str(self.config)], log)
        await child.ended()
        return log.read_text(encoding="utf-8")

    async def up(self) -> None:
        """See to it that every process runs and every door is open."""
        async with asyncio.timeout(PATIENCE_S):
            for process in self.processes:
                await self.start(process)
            async with ClientBuilder().no_proxy().build() as client:
                for process in self.processes:
                    while process.port is not None:
                        with contextlib.suppress(Exception):
                            url = f"http://127.0.0.1:{process.port}/readyz"
                            if (await client.get(url).build().send()).status == 200:
                                break
                        if not process.alive:
                            await self.start(process)  # it fell over a database that was away
                        await asyncio.sleep(LOOK_S)

    async def come_to_rest(self) -> None:
        """Wait until nothing waits, nothing is leased and every route is sealed by the newest key."""
        newest = len(list((self.folder / "data" / "keys").glob("master.v*")))
        left: object = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while left := await asyncio.to_thread(self.rows.restless, newest):
                    await asyncio.sleep(LOOK_S)
                    for process in self.processes:
                        await self.start(process)
        except TimeoutError:
            raise Stuck(f"never came to rest: {left}") from None

    def listen(self) -> None:
        """Note what the processes have said of themselves since the last time."""
        for log in self.folder.glob("*.log"):
            with log.open("rb") as file:
                file.seek(self.read.get(log, 0))
                said = file.read()
            whole = said.rpartition(b"\n")[0]
            self.read[log] = self.read.get(log, 0) + len(whole) + 1
            for line in whole.decode("utf-8").splitlines():
                if '"item_retried"' in line:
                    self.history.slow += json.loads(line)["reason"] in SLOW
                elif '"handler_failed"' in line or '"item_died"' in line or "Traceback" in line:
                    self.history.bugs.append(f"{log.name}: {line}")

    def printed(self) -> str:
        """Return everything that its processes printed."""
        return "".join(log.read_text(encoding="utf-8") for log in sorted(self.folder.glob("*.log")))


def _processes(kind: str, config: Path, ports: list[int]) -> list[Process]:
    at = ("--config", str(config))
    if kind == "sqlite":
        return [Process("one", ("serve", *at, "--port", str(ports[0])), ports[0], delivers=True)]
    doors = [
        Process(name, ("serve", *at, "--roles", "gateway", "--port", str(port)), port, delivers=False)
        for name, port in zip(("one", "two"), ports, strict=True)
    ]
    return [*doors, Process("worker", ("worker", *at), None, delivers=True)]


def _write_settings(folder: Path, stub_url: str, database: str) -> Path:
    config = folder / "heliograph.toml"
    config.write_text(
        f"""
data_dir = "{folder / "data"}"

[database]
url = "{database}"

[gateway]
public_url = "http://push.example.com"

[log]
level = "debug"

[worker]
concurrency = {CONCURRENCY}
lease_ms = {LEASE_MS}
poll_ms = 250

[providers.stub]
url = "{stub_url}"

[apps."com.example.app"]
provider = "stub"
""",
        encoding="utf-8",
    )
    return config


@contextlib.asynccontextmanager
async def life(
    kind: str, folder: Path, nursery: Nursery, server: PostgresServer | None, random: Random
) -> AsyncIterator[World]:
    """A fresh database, migrated under kills, whose Stations are trusted."""
    await asyncio.to_thread(folder.mkdir)
    database = folder.name.replace("-", "_")
    url = "" if server is None else server.url(database)
    if server is not None:
        _administer(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
    ports = [free_port() for _ in range(1 if kind == "sqlite" else 2)]
    async with RecordingProvider.start(random) as provider:
        config = _write_settings(folder, provider.url, url)
        world = World(
            kind=kind,
            folder=folder,
            config=config,
            nursery=nursery,
            provider=provider,
            server=server,
            rows=Rows(url or folder / "data" / "heliograph.sqlite3"),
            processes=_processes(kind, config, ports),
            history=History(lease_ms=LEASE_MS),
        )
        try:
            await _begin(world, random)
            yield world
        finally:
            await world.kill_all("at the end")
            inspect(world.printed())
            if server is not None:
                _administer(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database)))
    await asyncio.to_thread(shutil.rmtree, folder)


async def _begin(world: World, random: Random) -> None:
    """Make keys and schema while being killed, then trust the Stations and start anew."""
    for _ in range(random.randint(1, 3)):
        for process in world.processes:
            await world.start(process)
        await asyncio.sleep(random.uniform(0, 0.4))
        await world.kill(random.choice(world.processes), "while it made the schema")
    await world.up()
    for station in STATIONS:
        said = await world.command("stations", "add", station.pen.service_id, *station.introduction)
        if "trusted" not in said:
            raise Stuck(said)
    await world.kill_all("once the Stations were trusted")
    await world.up()


def _administer(server: PostgresServer, statement: sql.Composed) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(statement)
