"""The only HTTP client on the way out: drives an exchange over real connections.

Everything that is the same for every provider happens here, once: deadlines, the cap on answers, pinning
of checked addresses, limits per origin, the breaker and one telemetry call per ask. What an answer means
is the exchange's business. Nothing here is ever logged.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from pyreqwest.client import Client

from heliograph.ambient.clock import Clock
from heliograph.delivery.address import Refusal
from heliograph.delivery.client import CONNECT_MS, UnsendableError, build, checked_pem, send
from heliograph.delivery.egress import Admitted, EgressGuard
from heliograph.delivery.exchange import Answer, Ask, Exchange, Loss, Lost
from heliograph.delivery.model import Outcome, ProviderName, Verdict
from heliograph.wire.instant import Instant

ASKS_PER_EXCHANGE_MAX: Final = 8
"""A token, a request, a fallback: an exchange that asks more often than this does not end."""

IN_FLIGHT_PER_ORIGIN_MAX: Final = 100
"""What HTTP/2 servers commonly allow on one connection; more would only queue inside the client."""

ORIGINS_KEPT_MAX: Final = 1_024
"""Idle origins whose state is kept. Origins with work in flight are never forgotten."""

PINNED_CLIENTS_MAX: Final = 256
"""Connection pools for checked addresses; the least recently used makes room."""

TRUSTED_CLIENTS_MAX: Final = 64
"""Connection pools to operators' hosts by their owner's name; the least recently used makes room. There are
as many as credentials that must not share connections, and for a while those before a reload."""

ADDRESSES_TRIED_MAX: Final = 3
"""How many checked addresses one ask tries before it is lost."""

Lane: TypeAlias = str
"""What shares limits and a breaker: the origin of a checked endpoint; or that of a trusted URL, and whose
connections go there."""


@dataclass(frozen=True, slots=True)
class AskSeen:
    """What telemetry may know of one ask: no URL, no header, no body, no host.

    Attributes:
        provider: Which adapter asked.
        status: The status of the answer, if one came.
        loss: Why none came.
        refusal: What the egress guard objected to.
        duration_ms: From the ask to its end, waiting for a free place included.
    """

    provider: ProviderName
    status: int | None
    loss: Loss | None
    refusal: Refusal | None
    duration_ms: int


class Breaker(Protocol):
    """Decides per lane whether asking makes sense now. It hears the end of every ask."""

    def wait_ms(self, lane: Lane, now: Instant) -> int:
        """Tell how long nothing should be sent; 0 when an ask may go out now. Otherwise it is lost unsent."""
        ...

    def heard(self, lane: Lane, provider: ProviderName, heard: Answer | Lost, now: Instant) -> None:
        """Learn how an ask on this lane ended."""
        ...


@dataclass(slots=True)
class _Errand:
    """One ask on its way: for whom, until when, and what kept it at home."""

    ask: Ask
    provider: ProviderName
    deadline: float = 0.0
    rests_ms: int = 0


class _Lane:
    """The state of one origin: free places, and whether a connection is known to work."""

    __slots__ = ("opening", "places", "users", "warm")

    def __init__(self, places: int) -> None:
        self.places = asyncio.Semaphore(places)
        self.opening = asyncio.Lock()
        self.users = 0
        self.warm = False


class Carrier:
    """Carries exchanges. Build one per process and close it at the end.

    Args:
        clock: Tells the time.
        guard: Judges endpoints that users supply.
        observe: Called once for every ask, on the event loop; must be quick and must not raise.
        breaker: Asked before and told after every ask; none means that every lane is open.
        extra_ca_pem: More certificate authorities to trust, for labs and private services.
        in_flight_per_origin: At most so many asks to one origin at a time.
        connect_ms: The longest wait for a connection with TLS.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        guard: EgressGuard,
        observe: Callable[[AskSeen], None] | None = None,
        breaker: Breaker | None = None,
        extra_ca_pem: bytes | None = None,
        in_flight_per_origin: int = IN_FLIGHT_PER_ORIGIN_MAX,
        connect_ms: int = CONNECT_MS,
    ) -> None:
        self._clock = clock
        self._guard = guard
        self._observe = observe
        self._breaker = breaker
        self._extra_ca_pem = checked_pem(extra_ca_pem)
        self._in_flight = in_flight_per_origin
        self._connect_ms = connect_ms
        self._trusted: dict[tuple[str, bool], Client] = {}
        self._pinned: dict[tuple[str, str], asyncio.Task[Client]] = {}
        self._lanes: dict[Lane, _Lane] = {}
        self._closed = False

    async def carry(self, exchange: Exchange, *, provider: ProviderName, until: Instant) -> Verdict:
        """Drive an exchange to its verdict.

        Args:
            exchange: A fresh exchange.
            provider: The adapter's name, for telemetry.
            until: When the delivery is worth nothing any more; no ask begins or lasts beyond it.

        Returns:
            What the exchange returned; where nothing was sent because the breaker is open, with the time
            that is left of its pause.

        Raises:
            RuntimeError: The exchange asked too often, or the carrier is closed: a bug.
            UnsendableError: An ask to an operator's host has a URL or a header that is none: a bug.
        """
        rests_ms = 0
        try:
            ask = next(exchange)
            for _ in range(ASKS_PER_EXCHANGE_MAX):
                errand = _Errand(ask, provider)
                heard = await self._ask(errand, until)
                rests_ms = errand.rests_ms
                ask = exchange.send(heard)
        except StopIteration as end:
            verdict = end.value
            assert isinstance(verdict, Verdict)  # noqa: S101 - the type of Exchange, which a generator erases
            if rests_ms and verdict.outcome is Outcome.TRANSIENT:
                return replace(verdict, rests_ms=rests_ms)
            return verdict
        finally:
            exchange.close()
        raise RuntimeError(f"an exchange of {provider} asked more than {ASKS_PER_EXCHANGE_MAX} times")

    async def close(self) -> None:
        """Close every connection. Asks still under way are lost."""
        self._closed = True
        clients = list(self._trusted.values())
        for building in self._pinned.values():
            if building.done() and not building.cancelled() and building.exception() is None:
                clients.append(building.result())
            else:
                building.cancel()
        self._pinned.clear()
        self._trusted.clear()
        for client in clients:
            await client.close()

    async def _ask(self, errand: _Errand, until: Instant) -> Answer | Lost:
        if self._closed:
            raise RuntimeError("the carrier is closed")
        begun = self._clock.monotonic()
        patience_ms = min(errand.ask.timeout_ms, until - self._clock.now())
        refusal: Refusal | None = None
        heard: Answer | Lost = Lost(Loss.NOT_SENT)
        if patience_ms > 0:
            errand.deadline = begun + patience_ms / 1_000
            sent, refusal = await self._guarded(errand)
            heard = sent
        if self._observe is not None:
            self._observe(
                AskSeen(
                    provider=errand.provider,
                    status=heard.status if isinstance(heard, Answer) else None,
                    loss=heard.loss if isinstance(heard, Lost) else None,
                    refusal=refusal,
                    duration_ms=int((self._clock.monotonic() - begun) * 1_000),
                )
            )
        return heard

    async def _guarded(self, errand: _Errand) -> tuple[Answer | Lost, Refusal | None]:
        """Let the guard judge an endpoint that a user supplied, then send."""
        url = errand.ask.url.reveal()
        if not errand.ask.untrusted_host:
            lane = f"{_origin(url)} {errand.ask.connections}".rstrip()
            return await self._in_lane(lane, errand, [(url, None)]), None
        admitted = self._guard.admit_at_once(url, self._clock.now())
        if admitted is None:
            try:
                async with asyncio.timeout(errand.deadline - self._clock.monotonic()):
                    admitted = await self._guard.admit(url, self._clock.now())
            except TimeoutError:
                return Lost(Loss.NOT_SENT), None
        if admitted is Refusal.UNRESOLVED:
            return Lost(Loss.NOT_SENT), admitted
        if isinstance(admitted, Refusal):
            return Lost(Loss.REFUSED_EGRESS), admitted
        try:
            heard = await self._in_lane(admitted.endpoint.origin, errand, self._targets(admitted))
        except UnsendableError:
            # The guard and the client read this URL differently: neither is to be believed.
            return Lost(Loss.REFUSED_EGRESS), Refusal.NOT_A_URL
        return heard, None

    def _targets(self, admitted: Admitted) -> list[tuple[str, tuple[str, str] | None]]:
        """Order the checked addresses: those with open connections first."""
        host = admitted.endpoint.host
        known = [address for address in admitted.addresses if (host, address) in self._pinned]
        fresh = [address for address in admitted.addresses if (host, address) not in self._pinned]
        return [(admitted.endpoint.url, (host, address)) for address in (known + fresh)[:ADDRESSES_TRIED_MAX]]

    async def _in_lane(
        self, origin: Lane, errand: _Errand, targets: list[tuple[str, tuple[str, str] | None]]
    ) -> Answer | Lost:
        """Wait for a free place at the origin, then send.

        Until an origin has answered once, asks go one at a time: the client would otherwise open a
        connection for each, and some providers allow a single stream until they know us.
        """
        if self._breaker is not None:
            errand.rests_ms = self._breaker.wait_ms(origin, self._clock.now())
            if errand.rests_ms:
                return Lost(Loss.NOT_SENT)
        lane = self._lane(origin)
        lane.users += 1
        heard: Answer | Lost | None
        try:
            if lane.warm and not lane.places.locked():
                async with lane.places:
                    heard = await self._send_to_any(errand, targets)
            else:
                heard = await self._wait_and_send(lane, errand, targets)
        finally:
            lane.users -= 1
        if heard is None and lane.warm:
            return Lost(Loss.NOT_SENT)  # all places were taken, which says nothing about the origin
        if heard is None:
            heard = Lost(Loss.NOT_SENT)  # whoever tried to get a first answer got none in all this time
        lane.warm = isinstance(heard, Answer) or (lane.warm and heard.loss is Loss.TIMED_OUT)
        if self._breaker is not None:
            self._breaker.heard(origin, errand.provider, heard, self._clock.now())
        return heard

    async def _wait_and_send(
        self, lane: _Lane, errand: _Errand, targets: list[tuple[str, tuple[str, str] | None]]
    ) -> Answer | Lost | None:
        """Wait for a place, and while no connection is known to work for being the one that tries.

        None when the wait was in vain.
        """
        try:
            async with asyncio.timeout(errand.deadline - self._clock.monotonic()) as waiting, lane.places:
                if not lane.warm:
                    async with lane.opening:
                        if not lane.warm:
                            waiting.reschedule(None)  # from here on the client keeps the time
                            first = await self._send_to_any(errand, targets)
                            lane.warm = isinstance(first, Answer)
                            return first
                waiting.reschedule(None)
                return await self._send_to_any(errand, targets)
        except TimeoutError:
            return None

    def _lane(self, origin: Lane) -> _Lane:
        lane = self._lanes.pop(origin, None)
        if lane is None:
            if len(self._lanes) >= ORIGINS_KEPT_MAX:
                idle = next((name for name, kept in self._lanes.items() if kept.users == 0), None)
                if idle is not None:
                    del self._lanes[idle]
            lane = _Lane(self._in_flight)
        self._lanes[origin] = lane
        return lane

    async def _send_to_any(
        self, errand: _Errand, targets: list[tuple[str, tuple[str, str] | None]]
    ) -> Answer | Lost:
        heard: Answer | Lost = Lost(Loss.NOT_SENT)
        for url, pin in targets:
            client = self._trusted_client(errand.ask) if pin is None else await self._client(pin)
            left = errand.deadline - self._clock.monotonic()
            if left <= 0:
                return Lost(Loss.NOT_SENT)
            heard = await send(client, errand.ask, url, left)
            if isinstance(heard, Answer) or heard.loss is not Loss.NOT_SENT:
                return heard
        return heard

    def _trusted_client(self, ask: Ask) -> Client:
        """Return the client whose connections belong to this ask's owner alone."""
        owner = (ask.connections, ask.http2_only)
        client = self._trusted.pop(owner, None)
        if client is None:
            while len(self._trusted) >= TRUSTED_CLIENTS_MAX:
                # Dropped, not closed: asks under way keep it alive until they end.
                del self._trusted[next(iter(self._trusted))]
            client = build(self._extra_ca_pem, self._connect_ms, None, http2_only=ask.http2_only)
        self._trusted[owner] = client
        return client

    async def _client(self, pin: tuple[str, str]) -> Client:
        """Return the client whose connections go to this checked address alone."""
        building = self._pinned.pop(pin, None)
        if building is None or (building.done() and building.exception() is not None):
            # Building reads the machine's certificate authorities: tens of milliseconds, off the loop.
            building = asyncio.create_task(
                asyncio.to_thread(build, self._extra_ca_pem, self._connect_ms, pin)
            )
            while len(self._pinned) >= PINNED_CLIENTS_MAX:
                # Dropped, not closed: asks under way keep it alive until they end.
                del self._pinned[next(iter(self._pinned))]
        self._pinned[pin] = building
        return await asyncio.shield(building)


def _origin(url: str) -> Lane:
    """Return scheme, host and port of an operator's URL, as the lane's name."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('/', 1)[0].split('?', 1)[0]}".lower()
