"""The carrier over real connections to servers on this machine."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import pytest

from heliograph.ambient.clock import SystemClock
from heliograph.delivery.address import Refusal
from heliograph.delivery.carrier import ASKS_PER_EXCHANGE_MAX, AskSeen, Carrier
from heliograph.delivery.client import UnsendableError
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.exchange import Answer, Ask, Exchange, Loss, Lost
from heliograph.delivery.model import Outcome, Verdict
from heliograph.lab.certificates import Authority
from heliograph.lab.http2 import Http2Receiver
from heliograph.lab.receiver import Heard, Misbehaviour, Reaction, Receiver, Reply, Spoiled
from heliograph.wire.secret import Secret

CLOCK = SystemClock()
AUTHORITY = Authority.make(CLOCK.now())
NAME = "push.example.org"
MARK = "m4rk-of-a-capability"
LIFE_MS = 30_000


class OneAddress:
    """A resolver that sends every name to the addresses it was given."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        return self.addresses


class Recorder:
    """Collects telemetry."""

    def __init__(self) -> None:
        self.seen: list[AskSeen] = []

    def __call__(self, seen: AskSeen) -> None:
        self.seen.append(seen)


@contextlib.asynccontextmanager
async def carrier(
    *, port: int = 0, addresses: Sequence[str] = ("127.0.0.1",), **more: object
) -> AsyncIterator[Carrier]:
    rules = EgressRules(allow_loopback=True, extra_ports=(port,))
    built = Carrier(
        clock=CLOCK,
        guard=EgressGuard(rules, OneAddress(*addresses)),
        extra_ca_pem=AUTHORITY.ca_pem,
        **more,  # type: ignore[arg-type] # each test names real arguments
    )
    try:
        yield built
    finally:
        await built.close()


def asking(ask: Ask, heard: list[Answer | Lost]) -> Exchange:
    """An exchange that asks once and keeps what it heard."""
    heard.append((yield ask))
    return Verdict(Outcome.ACCEPTED, "test")


async def ask_once(by: Carrier, ask: Ask, life_ms: int = LIFE_MS) -> Answer | Lost:
    heard: list[Answer | Lost] = []
    await by.carry(asking(ask, heard), provider="test", until=CLOCK.now() + life_ms)
    return heard[0]


def trusted(url: str, *, timeout_ms: int = 5_000, body_limit: int = 4_096, body: bytes = b"{}") -> Ask:
    return Ask("POST", Secret(url), {"ttl": "5"}, body, timeout_ms=timeout_ms, body_limit=body_limit)


def untrusted(url: str, *, timeout_ms: int = 5_000) -> Ask:
    return Ask("POST", Secret(url), {"ttl": "5"}, b"{}", untrusted_host=True, timeout_ms=timeout_ms)


def always(reaction: Reaction, heard: list[Heard] | None = None) -> Callable[[Heard], Reaction]:
    def react(request: Heard) -> Reaction:
        if heard is not None:
            heard.append(request)
        return reaction

    return react


def in_turn(reactions: Sequence[Reaction]) -> Callable[[Heard], Reaction]:
    left = list(reactions)
    return lambda _: left.pop(0)


def tls(*names: str) -> ssl.SSLContext:
    return AUTHORITY.server_context(CLOCK.now(), names)


@pytest.mark.anyio
async def test_an_answer_comes_back_with_lower_case_headers_and_its_body() -> None:
    """What the exchange sees is what the provider said."""
    heard: list[Heard] = []
    reply = Reply(429, {"Retry-After": "7"}, b"slow down")
    async with Receiver.start(always(reply, heard)) as server, carrier() as by:
        answer = await ask_once(by, trusted(f"http://127.0.0.1:{server.port}/a/b?c=d", body=b"octets \x00"))

    assert isinstance(answer, Answer)
    assert (answer.status, answer.headers["retry-after"], answer.body) == (429, "7", b"slow down")
    assert (heard[0].method, heard[0].target, heard[0].body) == ("POST", "/a/b?c=d", b"octets \x00")
    assert heard[0].headers["ttl"] == "5"
    assert heard[0].headers["user-agent"] == "heliograph"


@pytest.mark.anyio
async def test_a_name_is_reached_at_its_checked_address_under_its_own_name() -> None:
    """The address is pinned; SNI, certificate and Host are still the name's."""
    heard: list[Heard] = []
    async with (
        Receiver.start(always(Reply(201), heard), tls(NAME)) as server,
        carrier(port=server.port) as by,
    ):
        answer = await ask_once(by, untrusted(f"https://{NAME}:{server.port}/x"))

    assert isinstance(answer, Answer)
    assert heard[0].headers["host"] == f"{NAME}:{server.port}"


@pytest.mark.anyio
async def test_a_certificate_for_another_name_ends_it_before_anything_is_sent() -> None:
    """S10: the name is checked although the connection goes to an address."""
    heard: list[Heard] = []
    async with (
        Receiver.start(always(Reply(201), heard), tls("other.example.org")) as server,
        carrier(port=server.port) as by,
    ):
        answer = await ask_once(by, untrusted(f"https://{NAME}:{server.port}/x"))

    assert answer == Lost(Loss.NOT_SENT)
    assert heard == []


@pytest.mark.anyio
async def test_a_certificate_of_an_unknown_authority_ends_it_too() -> None:
    """Only the machine's authorities and the configured ones count."""
    stranger = Authority.make(CLOCK.now()).server_context(CLOCK.now(), (NAME,))
    async with Receiver.start(always(Reply(201)), stranger) as server, carrier(port=server.port) as by:
        assert await ask_once(by, untrusted(f"https://{NAME}:{server.port}/x")) == Lost(Loss.NOT_SENT)


@pytest.mark.anyio
async def test_the_next_checked_address_is_tried_when_nothing_was_sent() -> None:
    """A host with one dead address is still reached, and only through checked ones."""
    async with (
        Receiver.start(always(Reply(201)), tls(NAME)) as server,
        carrier(port=server.port, addresses=("127.0.0.2", "127.0.0.1")) as by,
    ):
        answer = await ask_once(by, untrusted(f"https://{NAME}:{server.port}/x"))

    assert isinstance(answer, Answer)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("https://10.0.0.1/x", Refusal.IP_LITERAL),
        ("http://push.example.org/x", Refusal.NOT_HTTPS),
        ("https://push.example.org:22/x", Refusal.PORT),
        ("nonsense", Refusal.NOT_A_URL),
    ],
)
async def test_the_guard_speaks_before_any_connection(url: str, refusal: Refusal) -> None:
    """An endpoint that may not be called is not called, and telemetry says why without naming it."""
    recorder = Recorder()
    async with carrier(observe=recorder) as by:
        assert await ask_once(by, untrusted(url)) == Lost(Loss.REFUSED_EGRESS)

    assert [(seen.loss, seen.refusal) for seen in recorder.seen] == [(Loss.REFUSED_EGRESS, refusal)]


@pytest.mark.anyio
async def test_a_name_that_leads_inside_is_refused() -> None:
    """The resolver's answer is judged, not only the spelling."""
    async with carrier(addresses=("169.254.169.254",)) as by:
        assert await ask_once(by, untrusted("https://push.example.org/x")) == Lost(Loss.REFUSED_EGRESS)


@pytest.mark.anyio
async def test_a_name_without_an_address_is_not_sent() -> None:
    """It may have one later."""
    async with carrier(addresses=()) as by:
        assert await ask_once(by, untrusted("https://push.example.org/x")) == Lost(Loss.NOT_SENT)


@pytest.mark.anyio
async def test_a_name_that_takes_too_long_to_look_up_is_not_sent() -> None:
    """Resolving is part of the ask's time."""

    class Silent:
        async def resolve(self, host: str, port: int) -> Sequence[str]:
            await asyncio.Event().wait()
            raise OSError

    by = Carrier(clock=CLOCK, guard=EgressGuard(EgressRules(), Silent()))
    assert await ask_once(by, untrusted("https://push.example.org/x", timeout_ms=50)) == Lost(Loss.NOT_SENT)
    await by.close()


@pytest.mark.anyio
async def test_a_name_that_the_client_reads_differently_is_refused() -> None:
    """What two readers of a URL disagree about is called by neither, and is no error of ours."""
    recorder = Recorder()
    async with carrier(observe=recorder) as by:
        assert await ask_once(by, untrusted("https://xn--a.example.org/x")) == Lost(Loss.REFUSED_EGRESS)

    assert recorder.seen[0].refusal is Refusal.NOT_A_URL


@pytest.mark.anyio
async def test_asks_of_different_owners_never_share_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services may tie a connection to the credential that they first saw; owners are forgotten in turn."""
    monkeypatch.setattr("heliograph.delivery.carrier.TRUSTED_CLIENTS_MAX", 2)
    async with Receiver.start(always(Reply(200))) as server, carrier() as by:
        ask = trusted(f"http://127.0.0.1:{server.port}/")
        for owner in ("a", "a", "b", "a", "c", "a"):
            assert isinstance(await ask_once(by, replace(ask, connections=owner)), Answer)

        assert server.connections == 3
        assert [owner for owner, _ in by._trusted] == ["c", "a"]


@pytest.mark.anyio
async def test_what_is_remembered_of_hosts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users may name any number of hosts; the least recently used makes room."""
    monkeypatch.setattr("heliograph.delivery.carrier.PINNED_CLIENTS_MAX", 2)
    monkeypatch.setattr("heliograph.delivery.carrier.ORIGINS_KEPT_MAX", 2)
    names = [f"h{number}.example.org" for number in range(4)]
    async with Receiver.start(always(Reply(201)), tls(*names)) as server, carrier(port=server.port) as by:
        for name in (*names, names[0]):
            assert isinstance(await ask_once(by, untrusted(f"https://{name}:{server.port}/x")), Answer)

        assert [host for host, _ in by._pinned] == [names[3], names[0]]
        assert len(by._lanes) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status: int) -> None:
    """The answer is the redirect itself; the place it names hears nothing."""
    elsewhere: list[Heard] = []
    async with Receiver.start(always(Reply(200), elsewhere)) as other:
        redirect = Reply(status, {"location": f"http://127.0.0.1:{other.port}/"})
        async with Receiver.start(always(redirect)) as server, carrier() as by:
            answer = await ask_once(by, trusted(f"http://127.0.0.1:{server.port}/x"))

    assert isinstance(answer, Answer)
    assert answer.status == status
    assert elsewhere == []


@pytest.mark.anyio
async def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """No surprise hop between us and a checked address."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with Receiver.start(always(Reply(201)), tls(NAME)) as server, carrier(port=server.port) as by:
        assert isinstance(await ask_once(by, untrusted(f"https://{NAME}:{server.port}/x")), Answer)
        assert isinstance(await ask_once(by, trusted(f"https://localhost:{server.port}/x")), Lost)


@pytest.mark.anyio
async def test_an_answer_is_cut_at_the_asks_limit() -> None:
    """A megabyte of error page costs us a few octets."""
    async with Receiver.start(always(Reply(500, {}, b"x" * 1_000_000))) as server, carrier() as by:
        answer = await ask_once(by, trusted(f"http://127.0.0.1:{server.port}/x", body_limit=100))

    assert isinstance(answer, Answer)
    assert answer.body == b"x" * 100


@pytest.mark.anyio
async def test_a_compressed_answer_is_not_unpacked() -> None:
    """So that no answer can grow beyond what was read."""
    async with (
        Receiver.start(always(Reply(500, {"content-encoding": "gzip"}, b"abc"))) as server,
        carrier() as by,
    ):
        answer = await ask_once(by, trusted(f"http://127.0.0.1:{server.port}/x"))

    assert isinstance(answer, Answer)
    assert answer.body == b"abc"


LOSSES = {
    "hang": (Spoiled(Misbehaviour.HANG), Lost(Loss.TIMED_OUT)),
    "slow headers": (Spoiled(Misbehaviour.SLOW_HEADERS), Lost(Loss.TIMED_OUT)),
    "cut": (Spoiled(Misbehaviour.CUT), Lost(Loss.CUT)),
    "cut in the headers": (Spoiled(Misbehaviour.CUT_MID_HEADERS), Lost(Loss.CUT)),
    "not HTTP": (Spoiled(Misbehaviour.NOT_HTTP), Lost(Loss.CUT)),
    "truncated refusal": (Spoiled(Misbehaviour.TRUNCATED, Reply(400, {}, b"vap")), Lost(Loss.CUT)),
    "truncated success": (Spoiled(Misbehaviour.TRUNCATED, Reply(201, {}, b"tak")), 201),
}


@pytest.mark.anyio
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(("reaction", "expected"), LOSSES.values(), ids=LOSSES)
async def test_a_request_that_may_have_arrived_is_never_called_unsent(
    reaction: Reaction, expected: Lost | int, secure: bool
) -> None:
    """Cut and timed out are ambiguous; only a success that broke off still counts as an answer."""
    context = tls("localhost") if secure else None
    heard: list[Heard] = []
    async with Receiver.start(always(reaction, heard), context) as server, carrier() as by:
        url = f"{'https' if secure else 'http'}://localhost:{server.port}/x"
        answer = await ask_once(by, trusted(url, timeout_ms=400))

    assert len(heard) == 1
    assert expected == (answer.status if isinstance(answer, Answer) else answer)


@pytest.mark.anyio
async def test_a_refused_connection_is_unsent() -> None:
    """Nobody listens."""
    async with Receiver.start(always(Reply(201))) as server:
        port = server.port
    async with carrier() as by:
        assert await ask_once(by, trusted(f"http://127.0.0.1:{port}/x")) == Lost(Loss.NOT_SENT)


@pytest.mark.anyio
async def test_a_failed_handshake_is_unsent() -> None:
    """A server that speaks no TLS got nothing of the request."""
    heard: list[Heard] = []
    async with Receiver.start(always(Reply(201), heard)) as server, carrier(connect_ms=300) as by:
        answer = await ask_once(by, trusted(f"https://127.0.0.1:{server.port}/x"))

    assert answer == Lost(Loss.NOT_SENT)
    assert heard == []


REACTIONS: list[Reaction] = [Reply(201), Spoiled(Misbehaviour.CUT), Reply(202)]


@pytest.mark.anyio
async def test_a_connection_that_was_closed_while_idle_costs_nothing() -> None:
    """The next ask opens a new one instead of failing on the old."""
    async with Receiver.start(in_turn(REACTIONS)) as server, carrier() as by:
        url = f"http://127.0.0.1:{server.port}/x"
        heard = [await ask_once(by, trusted(url)) for _ in range(3)]

    assert [one.status if isinstance(one, Answer) else one for one in heard] == [201, Lost(Loss.CUT), 202]


@pytest.mark.anyio
async def test_nothing_is_sent_once_the_delivery_is_worth_nothing() -> None:
    """The deadline of the delivery outranks the patience of the ask."""
    heard: list[Heard] = []
    async with Receiver.start(always(Reply(201), heard)) as server, carrier() as by:
        answer = await ask_once(by, trusted(f"http://127.0.0.1:{server.port}/x"), life_ms=0)

    assert answer == Lost(Loss.NOT_SENT)
    assert heard == []


@pytest.mark.anyio
async def test_no_ask_lasts_beyond_the_delivery() -> None:
    """A patient ask of an urgent delivery ends with the delivery."""
    recorder = Recorder()
    async with Receiver.start(always(Spoiled(Misbehaviour.HANG))) as server, carrier(observe=recorder) as by:
        answer = await ask_once(
            by, trusted(f"http://127.0.0.1:{server.port}/x", timeout_ms=60_000), life_ms=300
        )

    assert answer == Lost(Loss.TIMED_OUT)
    assert recorder.seen[0].duration_ms < 5_000


@pytest.mark.anyio
async def test_an_origin_gets_no_more_at_a_time_than_its_places() -> None:
    """What waits for a place in vain was never sent."""
    reactions = iter([Reply(201)])
    heard: list[Heard] = []

    def react(request: Heard) -> Reaction:
        heard.append(request)
        return next(reactions, Spoiled(Misbehaviour.HANG))

    gate = Gate(opened=False)
    async with Receiver.start(react) as server, carrier(in_flight_per_origin=2, breaker=gate) as by:
        url = f"http://127.0.0.1:{server.port}/x"
        await ask_once(by, trusted(url))
        # Those that wait give up long before a place is free.
        patience_ms = (1_500, 1_500, 300, 300, 300)
        ends = await asyncio.gather(*(ask_once(by, trusted(url, timeout_ms=ms)) for ms in patience_ms))

    assert ends == [Lost(Loss.TIMED_OUT)] * 2 + [Lost(Loss.NOT_SENT)] * 3
    assert len(heard) == 3
    assert [end for _, end in gate.told].count(Lost(Loss.NOT_SENT)) == 0


@pytest.mark.anyio
async def test_an_origin_that_never_answered_is_asked_by_one_at_a_time() -> None:
    """A fan-out does not open a hundred connections to a host that may be dead."""
    heard: list[Heard] = []
    async with Receiver.start(always(Spoiled(Misbehaviour.HANG), heard)) as server, carrier() as by:
        url = f"http://127.0.0.1:{server.port}/x"
        first = asyncio.create_task(ask_once(by, trusted(url, timeout_ms=1_500)))
        ends = await asyncio.gather(*(ask_once(by, trusted(url, timeout_ms=300)) for _ in range(4)))
        heard_meanwhile = len(heard)
        first_end = await first

    assert heard_meanwhile == 1
    assert ends == [Lost(Loss.NOT_SENT)] * 4
    assert first_end == Lost(Loss.TIMED_OUT)


@pytest.mark.anyio
async def test_http2_is_spoken_where_it_is_offered_over_one_connection() -> None:
    """Many asks at once share one connection to an HTTP/2 provider."""
    context = AUTHORITY.server_context(CLOCK.now(), (NAME,), ("h2",))
    async with Http2Receiver.start(always(Reply(201)), context) as server, carrier(port=server.port) as by:
        url = f"https://{NAME}:{server.port}/x"
        answers = await asyncio.gather(*(ask_once(by, untrusted(url)) for _ in range(50)))

    assert [answer.status for answer in answers if isinstance(answer, Answer)] == [201] * 50
    assert server.connections == 1


@pytest.mark.anyio
async def test_streams_that_a_goaway_left_unprocessed_are_sent_again() -> None:
    """P5: the provider says which it took; the client repeats the others on a new connection, once."""
    context = AUTHORITY.server_context(CLOCK.now(), (NAME,), ("h2",))
    leaving: list[Reaction] = [*[Reply(201)] * 10, Spoiled(Misbehaviour.GO_AWAY), *[Reply(201)] * 30]
    async with Http2Receiver.start(in_turn(leaving), context) as server, carrier(port=server.port) as by:
        url = f"https://{NAME}:{server.port}/x"
        answers = await asyncio.gather(*(ask_once(by, untrusted(url)) for _ in range(40)))

    assert [answer.status for answer in answers if isinstance(answer, Answer)] == [201] * 40
    assert server.answered == 40


class Gate:
    """A breaker that is told what to say."""

    def __init__(self, *, opened: bool) -> None:
        self.opened = opened
        self.told: list[tuple[str, Answer | Lost]] = []

    def wait_ms(self, lane: str, now: int) -> int:
        return 30_000 if self.opened else 0

    def heard(self, lane: str, provider: str, heard: Answer | Lost, now: int) -> None:
        self.told.append((lane, heard))


@pytest.mark.anyio
async def test_an_open_breaker_keeps_asks_at_home() -> None:
    """Nothing is sent, and the breaker is not told of its own refusal."""
    gate = Gate(opened=True)
    heard: list[Heard] = []
    async with Receiver.start(always(Reply(201), heard)) as server, carrier(breaker=gate) as by:
        answer = await ask_once(by, trusted(f"http://127.0.0.1:{server.port}/x"))

    assert answer == Lost(Loss.NOT_SENT)
    assert (heard, gate.told) == ([], [])


@pytest.mark.anyio
async def test_the_breaker_hears_every_end_by_origin() -> None:
    """It never learns a path."""
    gate = Gate(opened=False)
    async with Receiver.start(always(Reply(503))) as server, carrier(breaker=gate) as by:
        await ask_once(by, trusted(f"http://127.0.0.1:{server.port}/{MARK}?{MARK}"))

    assert [lane for lane, _ in gate.told] == [f"http://127.0.0.1:{server.port}"]


MARKED: list[Reaction] = [
    Reply(400, {}, MARK.encode()),
    Spoiled(Misbehaviour.CUT),
    Spoiled(Misbehaviour.NOT_HTTP),
]


@pytest.mark.anyio
async def test_no_log_line_and_no_telemetry_knows_an_address_or_a_body(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S4: at the most talkative level, on good and bad paths alike."""
    caplog.set_level(logging.DEBUG)
    recorder = Recorder()
    async with (
        Receiver.start(in_turn(MARKED), tls(NAME)) as server,
        carrier(port=server.port, observe=recorder) as by,
    ):
        ask = Ask(
            "POST",
            Secret(f"https://{NAME}:{server.port}/{MARK}"),
            {"authorization": MARK},
            MARK.encode(),
            untrusted_host=True,
        )
        for _ in range(3):
            await ask_once(by, ask)
        await ask_once(by, untrusted(f"https://10.0.0.1/{MARK}"))

    assert len(recorder.seen) == 4
    assert MARK not in caplog.text
    assert MARK not in repr(recorder.seen)
    assert NAME not in repr(recorder.seen)


@pytest.mark.anyio
async def test_an_ask_that_cannot_be_sent_is_a_bug_that_names_nothing() -> None:
    """An operator's URL is checked when settings are read; here its text must not escape."""
    async with carrier() as by:
        with pytest.raises(UnsendableError) as caught:
            await ask_once(by, trusted(f"ht!tp://{MARK}/"))

    assert MARK not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.anyio
async def test_an_exchange_that_never_ends_is_stopped_and_closed() -> None:
    """A loop in an adapter is a bug, not a flood."""
    closed: list[bool] = []

    def endless(ask: Ask) -> Exchange:
        try:
            while True:
                yield ask
        finally:
            closed.append(True)

    heard: list[Heard] = []
    async with Receiver.start(always(Reply(500), heard)) as server, carrier() as by:
        ask = trusted(f"http://127.0.0.1:{server.port}/x")
        with pytest.raises(RuntimeError, match="asked more than"):
            await by.carry(endless(ask), provider="test", until=CLOCK.now() + LIFE_MS)

    assert closed == [True]
    assert len(heard) == ASKS_PER_EXCHANGE_MAX


@pytest.mark.anyio
async def test_a_canceled_carry_closes_its_exchange() -> None:
    """Shutdown leaves no generator behind."""
    closed: list[bool] = []

    def waiting(ask: Ask) -> Exchange:
        try:
            yield ask
        finally:
            closed.append(True)
        return Verdict(Outcome.ACCEPTED, "test")

    arrived = asyncio.Event()

    def react(_: Heard) -> Reaction:
        arrived.set()
        return Spoiled(Misbehaviour.HANG)

    async with Receiver.start(react) as server, carrier() as by:
        ask = trusted(f"http://127.0.0.1:{server.port}/x")
        task = asyncio.create_task(by.carry(waiting(ask), provider="test", until=CLOCK.now() + LIFE_MS))
        await arrived.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    assert closed == [True]


@pytest.mark.anyio
async def test_a_closed_carrier_carries_nothing() -> None:
    """Using it then is a bug."""
    async with carrier() as by:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        await ask_once(by, trusted("http://127.0.0.1:1/x"))


def test_extra_authorities_are_checked_at_start() -> None:
    """Not at the first send, hours later."""
    with pytest.raises(ValueError, match="PEM"):
        Carrier(
            clock=CLOCK,
            guard=EgressGuard(EgressRules(), OneAddress("8.8.8.8")),
            extra_ca_pem=b"not a certificate",
        )
