"""How many asks a second the carrier makes, beside the bare client in the same run.

Run as ``python -m bench.carrier [--asks N]``. The server runs in a process of its own; where there are two
cores each side has one. What counts is the CPU time per ask: requests per second end where the server does.
"""

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import uvloop
from pyreqwest.client import ClientBuilder

from heliograph.ambient.clock import SystemClock
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.exchange import Ask, Exchange
from heliograph.delivery.model import Outcome, Verdict
from heliograph.lab.certificates import Authority
from heliograph.lab.http2 import Http2Receiver
from heliograph.lab.receiver import Receiver, Reply
from heliograph.wire.secret import Secret

NAME = "push.example.org"
BODY = bytes(700)
CLOCK = SystemClock()
AT_ONCE = 100


class Here:
    """A resolver that finds every name on this machine."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return one address."""
        del host, port
        return ("127.0.0.1",)


def pin_to(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


async def serve() -> None:
    pin_to(1)
    authority = Authority.make(CLOCK.now())
    h2 = authority.server_context(CLOCK.now(), (NAME,), ("h2",))
    h1 = authority.server_context(CLOCK.now(), (NAME,))
    async with (
        Http2Receiver.start(lambda _: Reply(201), h2) as two,
        Receiver.start(lambda _: Reply(201), h1) as one,
    ):
        print(two.port, one.port, authority.ca_pem.decode().replace("\n", "|"), flush=True)
        await asyncio.Event().wait()


def once(ask: Ask) -> Exchange:
    yield ask
    return Verdict(Outcome.ACCEPTED, "bench")


async def measure(name: str, asks: int, one: Callable[[], Awaitable[object]]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def placed() -> None:
        async with places:
            await one()

    await one()
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    await asyncio.gather(*(placed() for _ in range(asks)))
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name:34} {asks / seconds:8.0f} asks/s {cpu / asks * 1e6:6.0f} us CPU each")


async def drive(asks: int, ports: tuple[int, int], ca_pem: bytes) -> None:
    pin_to(0)
    rules = EgressRules(allow_loopback=True, extra_ports=ports)
    carrier = Carrier(clock=CLOCK, guard=EgressGuard(rules, Here()), extra_ca_pem=ca_pem)
    bare = (
        ClientBuilder()
        .no_proxy()
        .http2(enable=True)
        .add_root_certificate_pem(ca_pem)
        .resolve(NAME, "127.0.0.1", 0)
        .build()
    )
    for label, port in zip(("HTTP/2", "HTTP/1.1"), ports, strict=True):
        url = f"https://{NAME}:{port}/x"

        async def plain(url: str = url) -> None:
            response = await bare.post(url).body_bytes(BODY).timeout(timedelta(seconds=10)).build().send()
            await response.bytes()

        async def carried(url: str = url) -> None:
            ask = Ask("POST", Secret(url), {"ttl": "60"}, BODY, untrusted_host=True)
            await carrier.carry(once(ask), provider="bench", until=CLOCK.now() + 60_000)

        for _ in range(2):
            await measure(f"{label}, bare client", asks, plain)
            await measure(f"{label}, carrier, guarded and pinned", asks, carried)
    await carrier.close()
    await bare.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--asks", type=int, default=5_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve())
        return
    with subprocess.Popen(
        [sys.executable, "-m", "bench.carrier", "--serve"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            two, one, pem = server.stdout.readline().strip().split(" ", 2)
            uvloop.run(drive(options.asks, (int(two), int(one)), pem.replace("|", "\n").encode()))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
