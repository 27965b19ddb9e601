"""On the wire: partial requests, lying lengths, impatient callers and noise; nothing is half-done."""

import asyncio
import contextlib
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.ambient.telemetry import Telemetry
from heliograph.edge.request import Reply, Request
from heliograph.edge.server import Listen, bound, serve, serving
from tests.edge.house import LIMIT, NAME, PATH, Seen, Wire, echoing, edge, post, system, wired

pytestmark = pytest.mark.anyio


async def settled(telemetry: Telemetry, metric: str, **labels: str) -> None:
    """Let the loop run until a metric has moved; the suite's time limit bounds it."""
    while not telemetry.value(metric, **labels):  # noqa: ASYNC110 - a metric rings no bell
        await asyncio.sleep(0)


async def test_a_body_cut_short_does_nothing() -> None:
    """The caller goes away after half of what it promised; the handler never hears of it."""
    seen, telemetry = Seen([]), Telemetry()

    async with wired(edge(system(echoing(seen)), telemetry=telemetry)) as opened:
        for _ in range(2):
            wire = await opened()
            await wire.send(post(b"x" * 100)[:-50])
            await wire.close()
        await settled(telemetry, "heliograph_requests_abandoned_total", operation=NAME, why="disconnected")
        wire = await opened()
        await wire.send(post())
        answer = await wire.answer()

    assert answer.status == 200
    assert [request.body for request in seen.requests] == [b"{}"]


async def test_a_chunked_body_that_breaks_off_does_nothing() -> None:
    """A chunk that is not one ends the connection, not the house."""
    seen = Seen([])
    octets = post(b"", "transfer-encoding: chunked").replace(b"content-length: 0\r\n", b"")

    async with wired(edge(system(echoing(seen)))) as opened:
        wire = await opened()
        await wire.send(octets + b"5\r\nhello\r\nZZ\r\n")

        assert await wire.ended()
    assert seen.requests == []


async def test_bodies_that_dawdle_hold_no_place() -> None:
    """Only whole requests count against those worked on at once."""
    async with wired(edge(system(echoing(Seen([]))), in_flight_max=1)) as opened:
        dawdling, prompt = await opened(), await opened()
        await dawdling.send(post(b"x" * 100)[:-1])
        await prompt.send(post())
        answer = await prompt.answer()
        await dawdling.send(b"x")
        late = await dawdling.answer()

    assert (answer.status, late.status) == (200, 200)


async def test_a_request_may_arrive_octet_by_octet() -> None:
    """How it was cut into packets means nothing."""
    seen = Seen([])

    async with wired(edge(system(echoing(seen)))) as opened:
        wire = await opened()
        for octet in post(b'{"name":"slow"}'):
            await wire.send(bytes([octet]))
        answer = await wire.answer()

    assert (answer.status, answer.body) == (200, b'{"name":"slow"}')


async def test_pipelined_requests_are_answered_in_order() -> None:
    """Three in one packet, three answers, each with its own body."""
    async with wired(edge(system(echoing(Seen([]))))) as opened:
        wire = await opened()
        await wire.send(b"".join(post(b"%d" % number) for number in range(3)))
        answers = [await wire.answer() for _ in range(3)]

    assert [answer.body for answer in answers] == [b"0", b"1", b"2"]


async def test_a_refused_body_is_thrown_away_and_the_connection_goes_on() -> None:
    """The caller sees why, and its next request is understood."""
    async with wired(edge(system(echoing(Seen([]))))) as opened:
        wire = await opened()
        await wire.send(post(b"x" * 100_000))
        refused = await wire.answer()
        await wire.send(post(b"next"))
        served = await wire.answer()

    assert (refused.status, refused.all("connection")) == (413, [])
    assert served.body == b"next"


@pytest.mark.parametrize(
    "lines",
    [
        ("content-length: 999999999",),
        ("transfer-encoding: chunked",),
        ("content-length: 2000", "expect: 100-continue"),
    ],
)
async def test_a_body_that_is_not_worth_reading_ends_the_connection(lines: tuple[str, ...]) -> None:
    """Too large, unmeasured, or still waiting for leave to be sent: what follows could be anything."""
    octets = post(b"", *lines, selector=None).replace(b"content-length: 0\r\n", b"")

    async with wired(edge(system(echoing(Seen([]))))) as opened:
        wire = await opened()
        await wire.send(octets)
        answer = await wire.answer()

        assert (answer.status, answer.all("connection")) == (400, ["close"])
        assert await wire.ended()


async def test_leave_to_send_a_body_comes_after_the_checks() -> None:
    """100 Continue only once the head has passed."""
    async with wired(edge(system(echoing(Seen([]))))) as opened:
        wire = await opened()
        whole = post(b"{}", "expect: 100-continue")
        await wire.send(whole[:-2])
        leave = await wire.reader.readuntil(b"\r\n\r\n")
        await wire.send(whole[-2:])
        answer = await wire.answer()

    assert leave.startswith(b"HTTP/1.1 100")
    assert answer.status == 200


@pytest.mark.parametrize("name", ["x-a", "x-b"])
async def test_a_head_without_end_is_cut_off(name: str) -> None:
    """One header that never ends, or headers without end: memory is bounded before there is a request."""
    telemetry = Telemetry()
    piece = b"v" * 4_096 if name == "x-a" else f"{name}: v\r\n".encode() * 400

    async with serving(edge(system(echoing(Seen([])))), Listen(), telemetry) as port:
        wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
        await wire.send(f"POST {PATH} HTTP/1.1\r\nhost: x\r\n{name}: ".encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(500):
                await wire.send(piece)
                await asyncio.sleep(0)
        await settled(telemetry, "heliograph_connections_refused_total", why="head_too_large")
        await wire.close()

    assert telemetry.value("heliograph_connections_refused_total", why="head_too_large") == 1


async def test_a_request_that_dawdles_is_cut_off() -> None:
    """However steadily it drips: whole in time or not at all. Idle and busy connections are left alone."""
    telemetry = Telemetry()
    release, entered = asyncio.Event(), asyncio.Event()

    async def slow(_request: Request) -> Reply:
        entered.set()
        await release.wait()
        return Reply(204)

    app = edge(system(slow), telemetry=telemetry)
    async with serving(app, Listen(receive_seconds_max=0.0), telemetry) as port:
        dripping = Wire(*await asyncio.open_connection("127.0.0.1", port))
        await dripping.send(post()[:40])
        stalled = Wire(*await asyncio.open_connection("127.0.0.1", port))
        await stalled.send(post(b"x" * 100)[:-1])
        busy = Wire(*await asyncio.open_connection("127.0.0.1", port))
        await busy.send(post())
        await entered.wait()

        answer = await dripping.answer()
        assert answer.status == 408
        assert await dripping.ended()
        assert await stalled.ended()
        release.set()
        assert (await busy.answer()).status == 204
        for wire in (dripping, stalled, busy):
            await wire.close()
    assert telemetry.value("heliograph_connections_refused_total", why="late") == 2


@pytest.mark.parametrize(
    "octets",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nna me: v\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: x\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nhost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused_and_closed(octets: bytes) -> None:
    """Among it what request smuggling is made of."""
    telemetry = Telemetry()

    async with serving(edge(system(echoing(Seen([])))), Listen(), telemetry) as port:
        wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
        await wire.send(octets)
        answer = await wire.answer()

        assert (answer.status, answer.body) == (400, b"")
        assert await wire.ended()
        await wire.close()


@pytest.mark.parametrize(
    "path", ["/_test/\x80", "/_test/%zz", "/_test/%00", "/_test/..", "*", "/?" + "%" * 50]
)
async def test_a_strange_path_is_no_fault_of_ours(path: str) -> None:
    """Unknown or refused, never 500."""
    async with wired(edge(system(echoing(Seen([]))))) as opened:
        wire = await opened()
        await wire.send(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode("latin-1"))
        answer = await wire.answer()

    assert answer.status in {400, 404}


PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            post(),
            post()[:-30],
            f"POST {PATH} HTTP/1.1\r\n".encode(),
            b"GET /_test/thing HTTP/1.1\r\n",
            b"host: x\r\n",
            f"arkret-operation: {NAME}\r\n".encode(),
            b"content-length: 5\r\n",
            b"transfer-encoding: chunked\r\n",
            b"expect: 100-continue\r\n",
            b"content-encoding: \xff\r\n",
            b"connection: upgrade\r\nupgrade: websocket\r\n",
            b"\r\n",
            b"5\r\nhello\r\n",
            b"0\r\n\r\n",
            b"\x00",
        ]
    ),
)


async def thrown(port: int, soup: bytes) -> bytes:
    """Send noise, say that nothing more comes, and return what came back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(soup)
        writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_no_noise_makes_a_fault() -> None:
    """Whatever arrives: no 500, no remark of the library, no unforeseen exception, and the house stands."""
    telemetry = Telemetry()
    app = edge(system(echoing(Seen([]))), telemetry=telemetry)

    with asyncio.Runner() as runner:
        server = serving(app, Listen(), telemetry)
        port = runner.run(server.__aenter__())

        async def storm(soups: list[bytes]) -> None:
            for answered in await asyncio.gather(*(thrown(port, soup) for soup in soups)):
                assert b"HTTP/1.1 5" not in answered
            assert (await thrown(port, post(b"still here"))).endswith(b"still here")

        @settings(max_examples=60)
        @given(st.lists(st.lists(PIECES, max_size=8).map(b"".join), min_size=12, max_size=12))
        def weather(soups: list[bytes]) -> None:
            runner.run(storm(soups))

        weather()
        runner.run(server.__aexit__(None, None, None))

    assert telemetry.value("heliograph_request_failures_total", operation=NAME) == 0
    assert telemetry.value("heliograph_server_notes_total") == 0


async def test_stopping_answers_what_was_begun() -> None:
    """The request in progress ends well, idle connections end, and the port is free again."""
    telemetry = Telemetry()
    release, entered, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ports: asyncio.Queue[int] = asyncio.Queue()

    async def slow(_request: Request) -> Reply:
        entered.set()
        await release.wait()
        return Reply(200, b"whole")

    serving_task = asyncio.create_task(serve(edge(system(slow)), Listen(), telemetry, stop, ports.put_nowait))
    port = await ports.get()
    idle = Wire(*await asyncio.open_connection("127.0.0.1", port))
    busy = Wire(*await asyncio.open_connection("127.0.0.1", port))
    await busy.send(post())
    await entered.wait()
    stop.set()
    assert await idle.ended()
    release.set()
    answer = await busy.answer()
    await serving_task

    assert (answer.body, answer.all("connection")) == (b"whole", ["close"])
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    for wire in (idle, busy):
        await wire.close()


async def test_the_port_can_be_known_before_the_application_is_built() -> None:
    """A service whose name holds its port needs it first; callers who come early wait."""
    listen = Listen()
    opened = bound(listen)
    port = opened.getsockname()[1]
    early = Wire(*await asyncio.open_connection("127.0.0.1", port))
    await early.send(post())

    async with serving(edge(system(echoing(Seen([])))), listen, Telemetry(), opened) as served:
        answer = await early.answer()
        await early.close()

    assert (served, answer.status) == (port, 200)


async def test_a_taken_port_is_an_error_of_its_own() -> None:
    """Not an exit of the process from inside a library."""
    async with serving(edge(system(echoing(Seen([])))), Listen(), Telemetry()) as port:
        with pytest.raises(OSError, match="in use"):
            async with serving(edge(system(echoing(Seen([])))), Listen(port=port), Telemetry()):
                pass


async def test_a_unix_socket_serves_as_well(tmp_path: Path) -> None:
    """For a proxy on the same machine; it is removed at the end."""
    path = tmp_path / "h.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    async with serving(edge(system(echoing(Seen([])))), Listen(socket_path=path), Telemetry()):
        wire = Wire(*await asyncio.open_unix_connection(str(path)))
        await wire.send(post(b"x" * LIMIT))
        answer = await wire.answer()
        await wire.close()

    assert answer.status == 200
    assert not path.exists()


async def test_a_file_that_is_no_socket_is_not_replaced_by_one(tmp_path: Path) -> None:
    """A mistyped setting must not cost somebody a file."""
    path = tmp_path / "precious"
    path.write_text("data")

    with pytest.raises(OSError, match="in use"):
        async with serving(edge(system(echoing(Seen([])))), Listen(socket_path=path), Telemetry()):
            pass
    assert path.read_text() == "data"


async def test_a_header_that_would_break_out_of_its_line_is_a_fault_of_ours() -> None:
    """A handler that lets user text into a header cannot split the answer."""

    async def handle(_request: Request) -> Reply:
        return Reply(200, b"{}", (("x", "a\r\nset-cookie: b"),))

    async with wired(edge(system(handle))) as opened:
        wire = await opened()
        await wire.send(post())
        answer = await wire.answer()

    assert (answer.status, answer.all("set-cookie")) == (500, [])
