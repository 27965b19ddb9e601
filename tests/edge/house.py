"""A small system to try the edge with, and a client that speaks in octets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Telemetry
from heliograph.edge.asgi import App, Edge
from heliograph.edge.operation import AuthorizeHead, Operation, Query
from heliograph.edge.problem import Code, Refused
from heliograph.edge.request import Reply, Request
from heliograph.edge.server import Listen, serving
from heliograph.edge.system import EdgeCodes, System, rfc9457
from tests.secrets import inspect

LIMIT = 1000
NAME = "ak.test.command.echo.v1"
PATH = "/_test/edge/things:echo"

CODES = EdgeCodes(
    head_too_large=Code("too_large", 413, "Too large."),
    unknown_endpoint=Code("unrecognized_endpoint", 404, "No such endpoint."),
    wrong_method=Code("method_not_allowed", 405, "No such method."),
    content_encoding=Code("unsupported_content_encoding", 415, "No encodings."),
    body_too_large=Code("payload_too_large", 413, "Too much."),
    overloaded=Code("temporarily_unavailable", 503, "Busy.", retry=True),
    internal=Code("internal_error", 500, "Our fault."),
    selector_required=Code("operation_selector_required", 400, "Name the operation."),
    selector_unsupported=Code("unsupported_operation_version", 422, "Not here."),
)
TAKEN = Code("duplicate_conflict", 409, "Taken.")
LIMITED = Code("rate_limited", 429, "Slow down.", retry=True)


class Thing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body to describe."""

    name: str


@dataclass
class Seen:
    """What reached the handler."""

    requests: list[Request]


def system(
    handle: Callable[[Request], Awaitable[Reply]],
    authorize_head: AuthorizeHead | None = None,
    body_limit_octets: int = LIMIT,
) -> System:
    """Return a system with an echo that needs a selector, a read that does not, and a path parameter."""

    async def read(request: Request) -> Reply:
        return Reply(200, msgspec.json.encode({"query": request.query, **request.parameters}))

    rows = (
        Operation(
            operation_id=NAME,
            method="POST",
            path=PATH,
            summary="Give the thing back.",
            handle=handle,
            request_type=Thing,
            reply_type=Thing,
            codes=(TAKEN, LIMITED),
            body_limit_octets=body_limit_octets,
            authorize_head=authorize_head,
        ),
        Operation(
            operation_id="ak.test.read.thing.v1",
            method="GET",
            path="/_test/thing",
            summary="Read a thing.",
            handle=read,
            selector=False,
            parameters=(Query("kind", "Which kind."),),
        ),
        Operation(
            operation_id="ak.test.read.named.v1",
            method="GET",
            path="/_test/rooms/{room}/things/{thing}",
            summary="Read a thing in a room.",
            handle=read,
            selector=False,
        ),
    )
    return System(
        "test",
        "/_test/",
        rows,
        CODES,
        rfc9457("https://test.example/problems/"),
        request_id_prefix="ak:request:",
        selector_header="arkret-operation",
    )


def echoing(seen: Seen) -> Callable[[Request], Awaitable[Reply]]:
    """Return a handler that remembers what it got and gives the body back."""

    async def handle(request: Request) -> Reply:
        seen.requests.append(request)
        return Reply(200, request.body)

    return handle


def edge(*systems: System, telemetry: Telemetry | None = None, **more: Any) -> Edge:
    """Return an edge with the machine's own clock and randomness."""
    return Edge(systems, telemetry or Telemetry(), SystemClock(), SystemEntropy(), **more)


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        """Return every value of a header."""
        return [value for found, value in self.headers if found == name]

    def code(self) -> str:
        """Return the stable code of a problem document."""
        return str(msgspec.json.decode(self.body)["type"]).rpartition("/")[2]


class Wire:
    """One connection, spoken to in octets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, octets: bytes) -> None:
        """Send octets as they are."""
        self.writer.write(octets)
        await self.writer.drain()

    async def answer(self, *, bodiless: bool = False) -> Answer:
        """Read one answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        headers = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]
        length = next((int(value) for name, value in headers if name == "content-length"), 0)
        body = b"" if bodiless else await self.reader.readexactly(length)
        inspect(head + body.decode("utf-8", "replace"))
        return Answer(int(first.split(" ")[1]), headers, body)

    async def ended(self) -> bool:
        """Say whether the server sends nothing more and closes."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        """Go away."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


@asynccontextmanager
async def wired(app: App, **listen: Any) -> AsyncIterator[Callable[[], Awaitable[Wire]]]:
    """Serve an application on loopback, and open connections to it."""
    wires: list[Wire] = []
    async with serving(app, Listen(**listen), Telemetry()) as port:

        async def opened() -> Wire:
            wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
            wires.append(wire)
            return wire

        yield opened
        for wire in wires:
            await wire.close()


def post(body: bytes = b"{}", *headers: str, path: str = PATH, selector: str | None = NAME) -> bytes:
    """Spell a POST with its length."""
    lines = [f"POST {path} HTTP/1.1", "host: test.example", f"content-length: {len(body)}", *headers]
    if selector is not None:
        lines.append(f"arkret-operation: {selector}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


async def asked(app: App, octets: bytes) -> Answer:
    """Send one request over a real socket and return the answer."""
    async with wired(app) as opened:
        wire = await opened()
        await wire.send(octets)
        return await wire.answer()


def refusing(refused: Refused) -> Callable[[Request], Awaitable[Reply]]:
    """Return a handler that refuses."""

    async def handle(_request: Request) -> Reply:
        raise refused

    return handle
