"""The house's own operations, the mounted application, and rows that contradict one another."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from heliograph.ambient.telemetry import Event, Telemetry
from heliograph.edge.health import CODES, Probe, health_system
from heliograph.edge.operation import Operation
from heliograph.edge.problem import Refused
from heliograph.edge.request import Reply, Request
from heliograph.edge.routes import Routes
from heliograph.edge.system import System, rfc9457
from heliograph.wire.malformed import Malformed
from tests.edge.house import NAME, PATH, Seen, asked, echoing, edge, post, system

pytestmark = pytest.mark.anyio


def get(path: str) -> bytes:
    """Spell a GET."""
    return f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode()


async def works() -> None:
    """A probe that passes."""


async def broken() -> None:
    """A probe that fails."""
    raise ConnectionError("postgresql://user:password@host")


async def hangs() -> None:
    """A probe that never answers."""
    await asyncio.Event().wait()


async def test_the_process_is_alive_whatever_it_needs() -> None:
    """Restarting would not bring a database back."""
    answer = await asked(edge(health_system(Telemetry(), [Probe("database", broken)])), get("/healthz"))

    assert (answer.status, msgspec.json.decode(answer.body)) == (200, {"status": "ok"})


async def test_readiness_names_what_is_missing_and_nothing_more() -> None:
    """The probe's name, not its error."""
    telemetry = Telemetry()
    probes = [Probe("database", broken), Probe("keys", works)]

    missing = await asked(edge(health_system(telemetry, probes)), get("/readyz"))
    ready = await asked(edge(health_system(telemetry, probes[1:])), get("/readyz"))

    assert missing.status == 503
    assert msgspec.json.decode(missing.body) == {"status": "unavailable", "failed": ["database"]}
    assert (ready.status, msgspec.json.decode(ready.body)) == (200, {"status": "ok"})
    assert telemetry.value("heliograph_probe_failures_total", kind="database") == 1


async def test_a_probe_that_never_answers_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks gets an answer in bounded time."""
    monkeypatch.setattr("heliograph.edge.health.PROBE_SECONDS_MAX", 0.0)

    answer = await asked(edge(health_system(Telemetry(), [Probe("database", hangs)])), get("/readyz"))

    assert answer.status == 503


async def test_health_is_answered_in_a_full_house() -> None:
    """Or a busy process would be taken for a dead one."""
    app = edge(system(echoing(Seen([]))), health_system(Telemetry(), [Probe("keys", works)]), in_flight_max=0)

    statuses = [(await asked(app, octets)).status for octets in (get("/healthz"), get("/readyz"), post())]

    assert statuses == [200, 200, 503]


async def test_the_metrics_page_is_served_where_it_is_wanted() -> None:
    """And is an unknown path elsewhere."""
    telemetry = Telemetry()
    telemetry.event(Event.CLAIM_FENCED, kind="x")

    shown = await asked(edge(health_system(telemetry, ())), get("/metrics"))
    hidden = await asked(edge(health_system(telemetry, (), metrics=False)), get("/metrics"))

    assert shown.all("content-type") == ["text/plain; version=0.0.4; charset=utf-8"]
    assert b'heliograph_queue_fenced_total{kind="x"} 1.0' in shown.body
    assert hidden.status == 404


async def page(_request: StarletteRequest) -> PlainTextResponse:
    """Answer something that is no operation."""
    return PlainTextResponse("a page")


async def test_paths_that_no_system_owns_go_to_the_mounted_application() -> None:
    """A system's unknown paths do not: they are refused in its own words."""
    app = edge(
        system(echoing(Seen([]))),
        health_system(Telemetry(), ()),
        rest=Starlette(routes=[Route("/console", page)]),
    )

    console, unknown, owned = [
        await asked(app, get(path)) for path in ("/console", "/nowhere", "/_test/console")
    ]

    assert (console.status, console.body) == (200, b"a page")
    assert (unknown.status, unknown.all("content-type")) == (404, ["text/plain; charset=utf-8"])
    assert (owned.status, owned.code()) == (404, "unrecognized_endpoint")


async def test_a_system_spells_its_errors_as_it_likes() -> None:
    """Matrix's form has nothing of a problem document."""

    def matrix(refused: Refused, _request_id: str) -> Reply:
        body = msgspec.json.encode({"errcode": "M_" + refused.code.code.upper(), "error": refused.code.title})
        return Reply(refused.code.status, body)

    other = System("matrix", "/_matrix/", (), CODES, matrix)

    answer = await asked(edge(system(echoing(Seen([]))), other), get("/_matrix/push/v1/absent"))

    assert answer.status == 404
    assert answer.all("content-type") == ["application/json"]
    assert msgspec.json.decode(answer.body) == {
        "errcode": "M_UNKNOWN_ENDPOINT",
        "error": "There is nothing here.",
    }


async def lifespan(app: Any) -> list[str]:
    """Run the lifespan of an application and return what it said."""
    asked_for = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    said: list[str] = []

    async def receive() -> MutableMapping[str, Any]:
        return next(asked_for)

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message["type"])

    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    return said


@pytest.mark.parametrize("rest", [None, Starlette()])
async def test_a_server_that_runs_the_lifespan_is_answered(rest: Starlette | None) -> None:
    """By the mounted application where there is one."""
    said = await lifespan(edge(system(echoing(Seen([]))), rest=rest))

    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_server_without_our_extension_is_served_as_well() -> None:
    """Plain ASGI: a start, a body, and paths only as text."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "query_string": b"",
        "headers": [],
    }
    await edge(health_system(Telemetry(), ()))(scope, receive, send)

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert (sent[0]["status"], sent[1]["body"]) == (200, b'{"status":"ok"}')


@pytest.mark.parametrize(
    ("parts", "statuses", "bodies"),
    [
        ([b"a", b"", b"bc"], [200], [b"abc"]),
        ([b"a" * 600, b"b" * 400], [200], [b"a" * 600 + b"b" * 400]),
        ([b"a" * 600, b"b" * 401, b"never asked for"], [413], []),
        ([b"a", None], [], []),
        ([None], [], []),
    ],
)
async def test_a_body_is_counted_as_it_streams(
    parts: list[bytes | None], statuses: list[int], bodies: list[bytes]
) -> None:
    """In however many parts; None is a caller that went away, who gets no answer."""
    seen = Seen([])
    sent: list[int] = []
    messages: list[MutableMapping[str, Any]] = [
        {"type": "http.disconnect"}
        if part is None
        else {"type": "http.request", "body": part, "more_body": index < len(parts) - 1}
        for index, part in enumerate(parts)
    ]

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop(0)

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            sent.append(message["status"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "query_string": b"",
        "headers": [(b"arkret-operation", NAME.encode()), (b"transfer-encoding", b"chunked")],
    }
    await edge(system(echoing(seen)))(scope, receive, send)

    assert sent == statuses
    assert [request.body for request in seen.requests] == bodies


async def test_a_web_socket_is_closed() -> None:
    """We speak none."""
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    await edge(system(echoing(Seen([]))))({"type": "websocket"}, receive, send)

    assert sent == [{"type": "websocket.close", "code": 1000}]


def row(**changes: Any) -> Operation:
    """Return a row that is right but for the changes."""

    async def handle(_request: Request) -> Reply:
        return Reply(204)

    whole: dict[str, Any] = {
        "operation_id": "a",
        "method": "GET",
        "path": "/a",
        "summary": "A.",
        "handle": handle,
        "selector": False,
    }
    return Operation(**{**whole, **changes})


HOUSE = System("x", "", (), CODES, rfc9457("x:"))


@pytest.mark.parametrize(
    "flawed",
    [
        replace(HOUSE, operations=(row(), row(operation_id="b"))),
        replace(HOUSE, operations=(row(), row(path="/b"))),
        replace(HOUSE, prefix="/_x/", operations=(row(),)),
        replace(HOUSE, operations=(row(selector=True),)),
        replace(HOUSE, selector_header="x-op", operations=(row(),)),
    ],
)
def test_rows_that_contradict_one_another_are_refused_at_the_start(flawed: System) -> None:
    """Two for one path, two of one name, outside the prefix, a selector without its header or its words."""
    with pytest.raises(ValueError, match="two operations|outside|selector"):  # noqa: RUF043 - alternatives
        Routes([flawed])


def test_an_edge_without_a_system_is_refused() -> None:
    """There would be nobody to answer in whose words."""
    with pytest.raises(ValueError, match="at least one"):
        edge()


async def test_a_header_that_may_be_sent_once_is_refused_when_repeated() -> None:
    """The error names the header and not its values."""
    caught: list[Malformed] = []

    async def handle(request: Request) -> Reply:
        try:
            request.one("idempotency-key")
        except Malformed as malformed:
            caught.append(malformed)
        return Reply(204 if request.one("absent") is None and request.joined("absent") is None else 500)

    answer = await asked(edge(system(handle)), post(b"{}", "idempotency-key: one", "Idempotency-Key: two"))

    assert answer.status == 204
    assert str(caught[0]) == "idempotency-key: must be sent once"


async def test_a_request_shows_nothing_of_what_it_carries() -> None:
    """Its repr may stand in a traceback."""
    seen = Seen([])
    handle: Callable[[Request], Awaitable[Reply]] = echoing(seen)

    await asked(edge(system(handle)), post(b'{"push_key":"hush"}', "authorization: hush"))

    assert "hush" not in repr(seen.requests[0])
