"""What the parts of a notify cost alone, in CPU time: the signature check, JSON, SQL.

Each part is the code that serves, called in this process with requests as a Station sends them. What the
whole program uses beyond them is HTTP: the server, the edge, the event loop and the system's sockets.
"""

import asyncio
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.notify_load import notifies
from bench.population import GATEWAY, METHOD, PUBLIC_URL, STATION, pen, populate, write_settings
from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Level, Telemetry
from heliograph.app.opening import (
    bind_applications,
    build_credentials,
    open_keyring,
    ready_database,
    tenant_keys,
)
from heliograph.app.settings import load
from heliograph.arkret.gateway.describe import Identity
from heliograph.arkret.gateway.service.admission import Doorkeeper
from heliograph.arkret.gateway.service.notify import NotifyDesk
from heliograph.arkret.gateway.service.trust import TrustBook
from heliograph.arkret.reading import read_notify
from heliograph.arkret.schema import DeviceOutcome, GatewayStatus, NotifyOutcome
from heliograph.delivery.applications import Applications
from heliograph.doorbell.local import LocalDoorbell
from heliograph.edge.request import Request
from heliograph.wire.ids import VerificationMethod

CALLS = 6_000
IN_FLIGHT = 64
REGISTRATIONS = 1_000


@dataclass(frozen=True, slots=True)
class Parts:
    """CPU microseconds of one notify.

    Attributes:
        signature: All of the check that it was signed as it must be.
        json: Reading the body and spelling the answer.
        desk: The whole use case from a request in memory to an answer in memory, committed.
    """

    signature: float
    json: float
    desk: float

    def told(self, whole: float) -> str:
        """Say what share of a whole request each part is."""
        sql = self.desk - self.signature - self.json
        shares = {"HTTP": whole - self.desk, "signature": self.signature, "JSON": self.json, "SQL": sql}
        return ", ".join(f"{name} {share:.0f} us ({share / whole:.0%})" for name, share in shares.items())


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def each_us(call: Callable[[Request], object], requests: Sequence[Request]) -> float:
    began = time.thread_time()
    for request in requests:
        call(request)
    return (time.thread_time() - began) / len(requests) * 1e6


async def measure_parts(folder: Path) -> Parts:
    """Return what the parts cost, each called as often as the others."""
    config = write_settings(folder, "http://127.0.0.1:9/nobody")
    await populate(config, REGISTRATIONS)
    settings, clock, telemetry = (
        load(config, environ={}).settings,
        SystemClock(),
        Telemetry(Level.ERROR),
    )
    ring = open_keyring(settings)
    identity = Identity(
        GATEWAY, "did:web:push.example.com", "bench", "", "1", PUBLIC_URL, VerificationMethod(METHOD)
    )
    async with AsyncExitStack() as stack:
        database = await ready_database(settings, telemetry, clock.now())
        stack.push_async_callback(database.close)
        trust = TrustBook(database)
        await trust.refresh()
        doorkeeper = Doorkeeper(identity, trust, telemetry)
        desk = NotifyDesk(
            database=database,
            doorkeeper=doorkeeper,
            applications=Applications(bind_applications(settings, build_credentials(settings, ring))),
            settings=settings.gateway,
            keys=tenant_keys(ring),
            entropy=SystemEntropy(),
            doorbell=LocalDoorbell(),
            telemetry=telemetry,
        )
        now = clock.now()
        requests = [
            Request("POST", one.path, "", tuple(one.headers.items()), one.body, f"bench-{number}", now)
            for number, one in enumerate(notifies(pen(), CALLS, REGISTRATIONS, now, 1))
        ]
        signature = each_us(doorkeeper.admit, requests)
        answer = NotifyOutcome(
            push_target_id=read_notify(requests[0].body).value.notification.push_target_id,
            outcomes=(DeviceOutcome(device_id=STATION, gateway_status=GatewayStatus.ACCEPTED),),
        )
        encode = msgspec.json.Encoder(order="sorted").encode
        json = each_us(lambda one: (read_notify(one.body), encode(answer)), requests)
        left = iter(requests)

        async def caller() -> None:
            for request in left:
                await desk.notify(request)

        before = cpu_s()
        await asyncio.gather(*(caller() for _ in range(IN_FLIGHT)))
        return Parts(signature, json, (cpu_s() - before) / CALLS * 1e6)
