"""Load as a busy Station makes it: signed notifies, so many in flight, each waited for before the next."""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from bench.population import device
from heliograph.lab.station import SignedRequest, StationPen
from heliograph.wire.instant import Instant

LIFETIME_S = 290
"""Of a signature: they are made before the clock runs, so that the load costs no signing."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run of load saw.

    Attributes:
        requests: How many were answered, each with one device accepted or folded.
        seconds: From the first request to the last answer.
        p50_ms: The middle answer's time.
        p99_ms: The slowest in a hundred, in milliseconds.
    """

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


def notifies(
    pen: StationPen, count: int, registrations: int, now: Instant, seed: int
) -> Iterator[SignedRequest]:
    """Sign notifies for devices drawn at random, each under a key of its own."""
    draw = random.Random(seed)
    for _ in range(count):
        one = device(draw.randrange(registrations))
        body = {
            "notification": {
                "push_target_id": one.target,
                "wakeup_kind": "message",
                "counts": {"badge": "2-5", "unread_increment": 1},
                "devices": [{"device_id": one.device}],
            },
            "event_kind": "ak.message.create",
        }
        yield pen.notify(body, f"{draw.getrandbits(128):032x}", now, LIFETIME_S)


def spelled(signed: SignedRequest, host: str) -> bytes:
    """Spell a request as it goes over a connection."""
    head = "".join(f"{name}: {value}\r\n" for name, value in signed.headers.items())
    length = len(signed.body)
    line = f"POST {signed.path} HTTP/1.1\r\nhost: {host}\r\n{head}content-length: {length}\r\n\r\n"
    return line.encode() + signed.body


class _Caller(asyncio.Protocol):
    """One connection with one request in flight: as little work on the measuring side as can be."""

    def __init__(self, requests: Iterator[bytes], times: list[float]) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests = requests
        self._times = times
        self._heard = b""
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self.done.set_result(None)
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, blank, body = self._heard.partition(b"\r\n\r\n")
        if not blank:
            return
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if len(body) < int(length):
            return
        if not head.startswith(b"HTTP/1.1 200") or b'"accepted"' not in body:
            self.done.set_exception(RuntimeError(f"not taken over: {self._heard!r}"))
            self._transport.close()
            return
        self._times.append(time.perf_counter() - self._began)
        self._heard = b""
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server hung up"))


async def drive(ports: Sequence[int], requests: Sequence[bytes], in_flight: int) -> Measured:
    """Send every request over so many connections, spread evenly over the ports.

    Raises:
        RuntimeError: A request was answered otherwise than ``accepted``.
    """
    loop, left, times = asyncio.get_running_loop(), iter(requests), list[float]()
    began = time.perf_counter()
    callers = [
        (await loop.create_connection(lambda: _Caller(left, times), "127.0.0.1", ports[number % len(ports)]))[
            1
        ]
        for number in range(in_flight)
    ]
    await asyncio.gather(*(caller.done for caller in callers))
    seconds = time.perf_counter() - began
    times.sort()
    return Measured(len(times), seconds, times[len(times) // 2] * 1e3, times[int(len(times) * 0.99)] * 1e3)
