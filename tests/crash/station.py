"""A Station that repeats what it was not answered, as it must."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, Final

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError

from heliograph.ambient.clock import SystemClock
from heliograph.lab.station import SignedRequest, StationPen
from heliograph.wire.ids import DidCoreId, VerificationMethod
from tests.arkret import make
from tests.arkret.gateway.house import OTHER_KEY, STATION_KEY

ANSWER_S: Final = 5.0
"""How long a Station waits for an answer before it asks again."""

PAUSE_S: Final = 0.03
"""Its pause before that: a run has no time for the pauses of the protocol."""

TRIES_MAX: Final = 600
"""Tries for one answer; a door that stays shut for so long is a finding."""

LIFETIMES: Final = 241
"""Signatures live from 60 to 300 seconds; those of one second must differ (A20)."""

AGAIN: Final = frozenset({429, 502, 503})

Sign = Callable[[int, int], SignedRequest]


@dataclass(frozen=True, slots=True)
class TrustedPen:
    """A Station that the Gateway is told to trust."""

    pen: StationPen

    @property
    def introduction(self) -> tuple[str, ...]:
        """The arguments of ``stations add`` behind its id."""
        return ("--key", self.pen.key.verify_key.multibase(), "--method", str(self.pen.keyid))


def _pen(service_id: str, keyid: str, key: Any) -> TrustedPen:
    return TrustedPen(
        StationPen(
            service_id=service_id,
            keyid=VerificationMethod(keyid),
            key=key,
            gateway_id=DidCoreId("ak:did_core:web:push.example.com"),
            gateway_url="http://push.example.com",
        )
    )


STATIONS: Final = (
    _pen(make.STATION, "did:web:station.example#push", STATION_KEY),
    _pen(make.OTHER_STATION, "did:web:other.example#push", OTHER_KEY),
)


class Postman:
    """Carries signed requests to any of the doors until there is a definite answer.

    Args:
        doors: The ports.
        random: Chooses among them.
        answered: Told of the door of every definite answer, before anybody else.
    """

    def __init__(self, doors: Sequence[int], random: Random, answered: Callable[[int], None]) -> None:
        self._doors = doors
        self._random = random
        self._answered = answered
        self._signed = 0
        self._clients: dict[int, Client] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Postman"]:
        async with AsyncExitStack() as stack:
            for door in self._doors:
                client = ClientBuilder().no_proxy().timeout(timedelta(seconds=ANSWER_S)).build()
                self._clients[door] = await stack.enter_async_context(client)
            yield self

    async def ask(self, sign: Sign, door: int | None = None) -> tuple[int, bytes]:
        """Ask, signed anew each time, until something definite is answered.

        Args:
            sign: Signs at a time, for a lifetime in seconds.
            door: Where to ask first; any other may be next.
        """
        for _ in range(TRIES_MAX):
            at = door or self._random.choice(self._doors)
            door = None
            self._signed += 1
            signed = sign(SystemClock().now(), 60 + self._signed % LIFETIMES)
            try:
                request = self._clients[at].post(f"http://127.0.0.1:{at}{signed.path}")
                response = await request.headers(dict(signed.headers)).body_bytes(signed.body).build().send()
                status, answer = response.status, bytes(await response.bytes())
            except PyreqwestError:
                await asyncio.sleep(PAUSE_S)
                continue
            if status in AGAIN:
                await asyncio.sleep(PAUSE_S)
                continue
            self._answered(at)
            return status, answer
        raise TimeoutError("nothing definite was ever answered")
