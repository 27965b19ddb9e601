"""The worker: claims accepted work and carries it to its provider."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Event, Gauge, Telemetry
from heliograph.app.opening import database_secret_url, egress_rules
from heliograph.app.settings import Settings
from heliograph.arkret.gateway.service.deliver import WakeupSource
from heliograph.arkret.gateway.service.takeover import KIND, KIND_HARDENED
from heliograph.delivery.applications import Applications
from heliograph.delivery.breaker import BreakerPace, BreakerState, HostBreaker
from heliograph.delivery.carrier import AskSeen, Carrier
from heliograph.delivery.egress import EgressGuard
from heliograph.delivery.gates import KnownGates, credential_of
from heliograph.delivery.handler import DeliveryHandler
from heliograph.delivery.hygiene.decide import Freeze
from heliograph.delivery.hygiene.health import Health
from heliograph.delivery.model import ProviderName, Route, Verdict
from heliograph.delivery.provider import Provider
from heliograph.delivery.resolver import SystemResolver
from heliograph.doorbell.local import LocalDoorbell
from heliograph.doorbell.port import Doorbell
from heliograph.providers import ADAPTERS
from heliograph.queue.gate.decide import Gate
from heliograph.queue.machine import Policy
from heliograph.queue.model import CLAIM_ITEMS_MAX
from heliograph.queue.pace import Pace
from heliograph.queue.runner.loop import Runner
from heliograph.signing.seal import TenantKeys
from heliograph.storage.database import Database

POLICY: Final = Policy(max_attempts=12, first_backoff_ms=1_000, max_backoff_ms=600_000)
"""Twelve attempts with doubling pauses span over an hour; each wakeup's own life ends it sooner."""

POLICY_HARDENED: Final = Policy(
    max_attempts=12, first_backoff_ms=1_000, max_backoff_ms=600_000, align_ms=300_000
)
"""As above, and every attempt leaves at a five-minute mark (R358)."""


SWEEP_MS: Final = 3_000
"""How often leases that ran out are taken over; a look costs one step into an index."""


async def open_doorbell(
    settings: Settings, stack: AsyncExitStack, clock: SystemClock, entropy: SystemEntropy
) -> Doorbell:
    """Open the doorbell that fits the database: within this process, or between all that share a server."""
    if settings.database_url().startswith("sqlite"):
        return LocalDoorbell()
    from heliograph.doorbell.postgres import PostgresDoorbell  # noqa: PLC0415 - the driver is an extra

    doorbell = await PostgresDoorbell.open(database_secret_url(settings), clock, entropy)
    stack.push_async_callback(doorbell.close)
    return doorbell


@asynccontextmanager
async def working(
    settings: Settings,
    *,
    database: Database,
    doorbell: Doorbell,
    applications: Applications,
    keys: TenantKeys,
    gates: KnownGates,
    health: Health,
    telemetry: Telemetry,
) -> AsyncIterator[None]:
    """Deliver while the context lasts; then finish what is in flight and hand the rest back."""
    clock, entropy = SystemClock(), SystemEntropy()

    def seen(ask: AskSeen) -> None:
        telemetry.event(
            Event.PROVIDER_ANSWERED,
            provider=ask.provider,
            status=str(ask.status) if ask.loss is None else ask.loss.value,
            seconds=ask.duration_ms / 1000,
        )

    def heard(provider: ProviderName, verdict: Verdict) -> None:
        telemetry.event(
            Event.DELIVERY_ENDED, provider=provider, outcome=verdict.outcome, reason=verdict.reason
        )

    def broke(provider: ProviderName, state: BreakerState) -> None:
        telemetry.event(Event.BREAKER_CHANGED, provider=provider, state=state)

    outgoing = settings.delivery
    breaker = HostBreaker(
        entropy.fraction,
        BreakerPace(
            failures_min=outgoing.breaker_failures,
            pause_ms_first=outgoing.breaker_pause_s * 1_000,
            pause_ms_longest=outgoing.breaker_pause_s_max * 1_000,
        ),
        broke,
    )
    for name in ADAPTERS:
        telemetry.gauge(Gauge.BREAKER_OPEN, partial(_opened, breaker, name), provider=name)

    def turned(name: str, gate: Gate | None) -> None:
        credential = credential_of(name)
        if gate is None:
            telemetry.event(Event.CREDENTIAL_WORKS, credential=credential)
            for kind in (KIND, KIND_HARDENED):
                doorbell.ring(kind)
        else:
            telemetry.event(
                Event.CREDENTIAL_RESTS,
                credential=credential,
                reason=gate.reason,
                step=gate.step,
                pause_ms=max(0, gate.closed_until - clock.now()),
            )

    def provider_of(route: Route) -> Provider | None:
        return applications.provider_of(route, clock.now())

    ca_file = settings.egress.ca_file
    carrier = Carrier(
        clock=clock,
        guard=EgressGuard(egress_rules(settings), SystemResolver()),
        observe=seen,
        breaker=breaker,
        extra_ca_pem=None if ca_file is None else ca_file.read_bytes(),
    )
    handlers = [
        DeliveryHandler(
            WakeupSource(kind, keys),
            provider_of=provider_of,
            carrier=carrier,
            clock=clock,
            entropy=entropy,
            policy=policy,
            heard=heard,
            gates=gates,
            turned=turned,
            health=health,
            froze=partial(tell_frozen, telemetry),
        )
        for kind, policy in ((KIND, POLICY), (KIND_HARDENED, POLICY_HARDENED))
    ]
    worker = settings.worker
    runner = Runner(
        database,
        clock,
        entropy,
        doorbell,
        handlers,
        telemetry=telemetry,
        pace=Pace(
            concurrency=worker.concurrency,
            batch=min(worker.batch, CLAIM_ITEMS_MAX),
            lease_ms=worker.lease_ms,
            poll_ms=worker.poll_ms,
            # Whoever chose a short lease wants what a crash left behind to be taken over as soon.
            sweep_ms=min(SWEEP_MS, worker.lease_ms),
            grace_ms=worker.grace_ms,
            keep_ms=worker.keep_ms,
            keep_dead_ms=worker.keep_dead_ms,
        ),
    )
    stop = asyncio.Event()
    task = asyncio.create_task(runner.run(stop), name="runner")
    try:
        yield
    finally:
        stop.set()
        await task
        await carrier.close()


def tell_frozen(telemetry: Telemetry, freeze: Freeze) -> None:
    """Raise the alarm: a provider called too many routes dead at once."""
    telemetry.event(
        Event.MASS_TOKEN_DEATH,
        credential=freeze.credential,
        sends=freeze.tally.sends,
        bad=freeze.tally.bad,
    )


def _opened(breaker: HostBreaker, provider: ProviderName) -> float:
    return breaker.opened()[provider]
