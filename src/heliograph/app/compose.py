"""Builds everything, once, and runs it in one event loop. The only place that knows every room."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Event, Gauge, Telemetry, locations
from heliograph.app.identity import gateway_identity
from heliograph.app.opening import (
    bind_applications,
    build_credentials,
    build_telemetry,
    open_keyring,
    ready_database,
    tenant_keys,
)
from heliograph.app.reloading import Cause, Reloaded, Reloader, Source, watching
from heliograph.app.renewal import reopen
from heliograph.app.settings import Settings
from heliograph.app.working import open_doorbell, tell_frozen, working
from heliograph.arkret.gateway.describe import Identity
from heliograph.arkret.gateway.http import gateway_system
from heliograph.arkret.gateway.service.admission import Doorkeeper
from heliograph.arkret.gateway.service.gateway import Gateway
from heliograph.arkret.gateway.service.handoff import HandoffDesk
from heliograph.arkret.gateway.service.notify import NotifyDesk
from heliograph.arkret.gateway.service.reseal import Resealer
from heliograph.arkret.gateway.service.takeover import KIND, KIND_HARDENED
from heliograph.arkret.gateway.service.trust import TrustBook
from heliograph.arkret.gateway.service.upkeep import Upkeep
from heliograph.delivery.applications import Applications
from heliograph.delivery.gates import KnownGates
from heliograph.delivery.hygiene.health import Health
from heliograph.delivery.hygiene.service import Watch
from heliograph.edge.asgi import Edge
from heliograph.edge.health import Notice, Probe, health_system
from heliograph.edge.server import Listen, bound, serving
from heliograph.edge.system import System
from heliograph.signing.ed25519 import SigningKey, VerifyKey
from heliograph.storage.database import Database

UPKEEP_EVERY_S: Final = 0.5
"""How often upkeep looks whether anything is due; looking costs nothing."""


class Role(StrEnum):
    """What a process does."""

    GATEWAY = "gateway"
    WORKER = "worker"


ALL_ROLES: Final = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Running:
    """A process at work.

    Attributes:
        identity: Who the Gateway is.
        receipt_key: What its receipts are verified with.
        database: The database.
        telemetry: Its telemetry.
        port: Where it listens; 0 when it does not.
        local_url: The origin to reach it at from this machine.
        refresh_trust: Read the trusted Stations now instead of at the next turn of upkeep.
        reload: Read the settings again and put their credentials and applications in force.
    """

    identity: Identity
    receipt_key: VerifyKey
    database: Database
    telemetry: Telemetry
    port: int
    local_url: str
    refresh_trust: Callable[[], Awaitable[None]]
    reload: Callable[[Cause], Awaitable[Reloaded]]


@asynccontextmanager
async def running(
    settings: Settings,
    roles: frozenset[Role] = ALL_ROLES,
    telemetry: Telemetry | None = None,
    source: Source | None = None,
) -> AsyncIterator[Running]:
    """Run the roles while the context lasts: serve, work, keep up. Everything ends in order behind it.

    Args:
        settings: The settings.
        roles: What to run.
        telemetry: Where to tell; built from the settings by default.
        source: Where the settings came from; without one a reload only reads secrets again.

    Raises:
        Malformed: A setting could never work.
        OSError: The address cannot be listened on.
        DatabaseUnavailable: The database cannot be reached.
    """
    clock, entropy = SystemClock(), SystemEntropy()
    telemetry = telemetry or build_telemetry(settings)
    ring = open_keyring(settings)
    keys, receipt_key = tenant_keys(ring), SigningKey(ring.current("service").reveal())
    credentials = build_credentials(settings, ring)
    applications = Applications(
        bind_applications(settings, credentials), settings.gateway.default_app or None
    )
    async with AsyncExitStack() as stack:
        database = await ready_database(settings, telemetry, clock.now())
        stack.push_async_callback(database.close)
        doorbell = await open_doorbell(settings, stack, clock, entropy)
        trust = TrustBook(database)
        await trust.refresh()
        listen, opened, port = _listen(settings), None, settings.server.port
        if Role.GATEWAY in roles:
            opened = bound(listen)  # before there is an identity, which may name the port
            stack.callback(opened.close)
            port = 0 if listen.socket_path is not None else opened.getsockname()[1]
        listening_at = f"http://{listen.host}:{port}"
        identity = gateway_identity(settings.gateway, listening_at)
        doorkeeper = Doorkeeper(identity, trust, telemetry)
        notifies = NotifyDesk(
            database=database,
            doorkeeper=doorkeeper,
            applications=applications,
            settings=settings.gateway,
            keys=keys,
            entropy=entropy,
            doorbell=doorbell,
            telemetry=telemetry,
        )
        handoffs = HandoffDesk(
            database=database,
            doorkeeper=doorkeeper,
            identity=identity,
            applications=applications,
            keys=keys,
            receipt_key=receipt_key,
            entropy=entropy,
            telemetry=telemetry,
        )
        gates, health = KnownGates(), Health()
        telemetry.gauge(Gauge.CREDENTIALS_RESTING, lambda: gates.resting)
        telemetry.gauge(Gauge.CREDENTIALS_FROZEN, lambda: health.freezes)
        systems: tuple[System, ...] = (
            health_system(
                telemetry,
                [Probe("database", database.ping)],
                [
                    Notice("deliveries_without_provider", lambda: applications.holds(clock.now())),
                    Notice("credentials_resting", lambda: gates.resting > 0),
                    Notice("credentials_frozen", lambda: health.freezes > 0),
                ],
                metrics=settings.server.metrics,
            ),
            gateway_system(Gateway(identity, handoffs, notifies)),
        )
        if Role.GATEWAY in roles:
            edge = Edge(systems, telemetry, clock, entropy, in_flight_max=settings.server.in_flight_max)
            await stack.enter_async_context(serving(edge, listen, telemetry, opened))
        if Role.WORKER in roles:
            await stack.enter_async_context(
                working(
                    settings,
                    database=database,
                    doorbell=doorbell,
                    applications=applications,
                    keys=keys,
                    gates=gates,
                    health=health,
                    telemetry=telemetry,
                )
            )
        reloader = Reloader(
            read=(lambda: settings) if source is None else source.read,
            settings=settings,
            credentials=credentials,
            applications=applications,
            telemetry=telemetry,
            told=None if source is None else source.told,
            renewed=lambda names: reopen(names, database, doorbell, (KIND, KIND_HARDENED)),
        )
        if source is not None and source.told is not None:
            source.told(reloader.in_force, None)
        await stack.enter_async_context(watching(reloader, source, clock))
        upkeep = Upkeep(
            database=database,
            clock=clock,
            trust=trust,
            notifies=notifies,
            resealer=Resealer(database, keys, entropy),
            settings=settings.gateway,
        )
        await stack.enter_async_context(_background(_forever(upkeep.turn, clock, telemetry)))
        watch = Watch(
            database,
            clock,
            gates=gates,
            health=health,
            worker=entropy.uuid7(clock.now()),
            froze=partial(tell_frozen, telemetry),
        )
        await stack.enter_async_context(_background(_forever(watch.turn, clock, telemetry)))
        yield Running(
            identity=identity,
            receipt_key=receipt_key.verify_key,
            database=database,
            telemetry=telemetry,
            port=port,
            local_url=listening_at,
            refresh_trust=trust.refresh,
            reload=reloader.reload,
        )


def _listen(settings: Settings) -> Listen:
    """Return where to listen."""
    server = settings.server
    return Listen(
        host=server.host,
        port=server.port,
        socket_path=server.socket,
        backlog=server.backlog,
        connections_max=server.connections_max,
        keep_alive_seconds=server.keep_alive_s,
        receive_seconds_max=server.receive_s_max,
        stop_seconds_max=server.stop_s_max,
    )


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Let something go on while the context lasts."""
    task = asyncio.create_task(work, name="upkeep")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _forever(turn: Callable[[], Awaitable[None]], clock: SystemClock, telemetry: Telemetry) -> None:
    """Repeat upkeep. A bug in one turn is told and does not end it."""
    while True:
        try:
            await turn()
        except Exception as bug:  # noqa: BLE001 - upkeep must go on
            telemetry.event(Event.HANDLER_FAILED, kind="upkeep", exception=bug, where=locations(bug))
        await clock.sleep(UPKEEP_EVERY_S)
