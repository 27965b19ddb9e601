"""A small HTTP/1.1 server that answers as it is told, well or badly.

The provider servers stand on it. It keeps connections alive as real services do, and it can misbehave in
every way that a carrier must survive.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

HEAD_OCTETS_MAX: Final = 65_536
BODY_OCTETS_MAX: Final = 1_048_576
"""Far more than any provider takes, so that the provider's own limit is what refuses."""

OVERSIZED_OCTETS: Final = 1_048_576
"""The body of an answer that no client should read to its end."""

MISSING_OCTETS: Final = 64
"""What a truncated answer promises and never sends."""


class Misbehaviour(StrEnum):
    """Ways not to answer."""

    HANG = "hang"
    """Read the request and say nothing."""
    SLOW_HEADERS = "slow_headers"
    """Begin an answer and stop in the middle of its headers."""
    CUT = "cut"
    """Read the request and drop the connection."""
    CUT_MID_HEADERS = "cut_mid_headers"
    TRUNCATED = "truncated"
    """Promise a body and drop the connection within it."""
    NOT_HTTP = "not_http"
    SILENT = "silent"
    """Say nothing any more on this connection, to HTTP/2's pings neither: a peer that vanished."""
    RESET = "reset"
    """Give the stream up in the middle of the work; without streams, drop the connection."""
    REFUSED = "refused"
    """Refuse the stream before any work; without streams, drop the connection."""
    GO_AWAY = "go_away"
    """Leave, and say that neither this request nor a later one is processed; without streams, drop the
    connection."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    Attributes:
        status: Its status.
        headers: Its fields.
        body: Its body.
        after_ms: How long the server takes over it, for those who look at what happens meanwhile.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    after_ms: int = 0


@dataclass(frozen=True, slots=True)
class Spoiled:
    """An answer that goes wrong on its way."""

    how: Misbehaviour
    reply: Reply = field(default_factory=lambda: Reply(500))


Reaction: TypeAlias = Reply | Spoiled


@dataclass(frozen=True, slots=True)
class Heard:
    """One request as it arrived.

    Attributes:
        method: As spelled.
        target: Path and query.
        headers: Lower-case names; a repeated one is joined with a comma.
        body: All of it.
        connection: A number for the connection it came on.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


@dataclass(frozen=True, slots=True)
class Captured:
    """What left the building, for whoever listens.

    Attributes:
        provider: Which provider's server heard it.
        heard: The request.
        plaintext: What the device would read of it, where the server could tell.
    """

    provider: str
    heard: Heard
    plaintext: bytes | None


LISTENERS: Final[list[Callable[[Captured], None]]] = []
"""Called with everything that any provider server of this process hears."""


def capture(captured: Captured) -> None:
    """Tell every listener."""
    for listener in LISTENERS:
        listener(captured)


class Receiver:
    """A listening server. Use ``async with Receiver.start(react) as receiver``.

    Attributes:
        port: Where it listens on 127.0.0.1.
        connections: How many connections were ever opened.
    """

    def __init__(self, react: Callable[[Heard], Reaction]) -> None:
        self._react = react
        self._open: set[asyncio.StreamWriter] = set()
        self._busy: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls, react: Callable[[Heard], Reaction], tls: ssl.SSLContext | None = None, port: int = 0
    ) -> AsyncIterator["Receiver"]:
        """Listen on a port of 127.0.0.1 until the block ends, then drop every connection.

        Port 0 lets the system choose.
        """
        receiver = cls(react)
        server = await asyncio.start_server(
            receiver._connected, "127.0.0.1", port, ssl=tls, limit=HEAD_OCTETS_MAX
        )
        receiver.port = server.sockets[0].getsockname()[1]
        try:
            yield receiver
        finally:
            server.close()
            for writer in list(receiver._open):
                writer.transport.abort()
            for task in list(receiver._busy):
                task.cancel()
            await asyncio.gather(*receiver._busy, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._converse(reader, writer, self.connections))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        self._open.add(writer)
        try:
            while (heard := await _read(reader, number)) is not None:
                if not await _write(writer, self._react(heard)):
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client went away, or sent what no client sends
        finally:
            self._open.discard(writer)
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader, number: int) -> Heard | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *fields = head[:-4].decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ", 2)
    headers: dict[str, str] = {}
    for text in fields:
        name, _, value = text.partition(":")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    length = int(headers.get("content-length", "0"))
    if length > BODY_OCTETS_MAX:
        return None
    return Heard(method, target, headers, await reader.readexactly(length), number)


async def _write(writer: asyncio.StreamWriter, reaction: Reaction) -> bool:
    """Write a reaction and tell whether the connection may be used again."""
    match reaction:
        case Reply():
            if reaction.after_ms:
                await asyncio.sleep(reaction.after_ms / 1_000)
            writer.write(_spelled(reaction))
            await writer.drain()
            return True
        case Spoiled():
            await _spoil(writer, reaction)
            return False
        case _:
            assert_never(reaction)


async def _spoil(writer: asyncio.StreamWriter, spoiled: Spoiled) -> None:
    """Misbehave; the caller drops the connection afterwards."""
    begun = b"HTTP/1.1 201 Created\r\nttl: "
    match spoiled.how:
        case Misbehaviour.HANG | Misbehaviour.SILENT:
            await asyncio.Event().wait()
        case Misbehaviour.SLOW_HEADERS:
            writer.write(begun)
            await asyncio.Event().wait()
        case Misbehaviour.CUT | Misbehaviour.RESET | Misbehaviour.REFUSED | Misbehaviour.GO_AWAY:
            pass
        case Misbehaviour.CUT_MID_HEADERS:
            writer.write(begun)
            await writer.drain()
        case Misbehaviour.TRUNCATED:
            reply = spoiled.reply
            writer.write(
                _spelled(Reply(reply.status, reply.headers, reply.body + bytes(MISSING_OCTETS)))[
                    :-MISSING_OCTETS
                ]
            )
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        case Misbehaviour.NOT_HTTP:
            writer.write(b"\x15\x03\x01\x00\x02\x02\x0a\r\n\r\n")
            await writer.drain()
        case _:
            assert_never(spoiled.how)


def _spelled(reply: Reply) -> bytes:
    fields = {**reply.headers, "content-length": str(len(reply.body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {reply.status} -\r\n{lines}\r\n".encode("latin-1") + reply.body
