"""The connections of the server: HTTP/1.1 parsing with bounds that the library does not set.

The parser keeps an unfinished header in memory for as long as it grows, and waits for the rest of a
request for as long as the connection lives. Here both end: a head may hold so many octets, and a request
must be whole so many seconds after its first octet.
"""

import asyncio
import logging
from functools import partial
from typing import Any, ClassVar, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from heliograph.ambient.telemetry import Event, Telemetry
from heliograph.edge.asgi import WHOLE

HEAD_OCTETS_MAX: Final = 64 * 1024
"""An unfinished head. Above what operations allow, so that those can answer in their own words."""

# What a stranger sends must not fill the log: the library warns of each malformed request, we count them.
_ERRORS_ONLY: Final = logging.getLogger("uvicorn.error.connection")
_ERRORS_ONLY.setLevel(logging.ERROR)

_REFUSALS: Final = {
    "head_too_large": b"HTTP/1.1 431 Request Header Fields Too Large\r\n",
    "late": b"HTTP/1.1 408 Request Timeout\r\n",
    "malformed": b"HTTP/1.1 400 Bad Request\r\n",
}


def _write_whole(
    cycle: RequestResponseCycle, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    """Write an answer in one piece: one system call where head and body apart take two.

    Args:
        cycle: The library's record of the request that is answered.
        status: The HTTP status.
        headers: Names in lower case; they say the length of the body.
        body: All of it; not written to ``HEAD``.

    Raises:
        ValueError: A header would break out of its line.
    """
    if cycle.disconnected:
        return
    for name, value in headers:
        if name == b"connection" and value == b"close":
            cycle.keep_alive = False
    lines = [b"%b: %b\r\n" % header for header in (*cycle.default_headers, *headers)]
    if not cycle.keep_alive and (b"connection", b"close") not in headers:
        lines.append(b"connection: close\r\n")
    head = STATUS_LINE[status] + b"".join(lines)
    if not head.count(b"\n") == head.count(b"\r") == len(lines) + 1:
        raise ValueError("a header holds a line break")
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(head + b"\r\n" + (b"" if cycle.scope["method"] == "HEAD" else body))
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    cycle.on_response()


class Connection(HttpToolsProtocol):
    """One connection of a client. ``bound_to`` gives it what it needs besides."""

    telemetry: ClassVar[Telemetry]
    receive_seconds_max: ClassVar[float]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.access_log = False
        self.logger = _ERRORS_ONLY
        self._since: float | None = None
        self._in_head = True
        self._begun_here = False
        self._head_octets = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a first request."""
        super().connection_made(transport)
        self._since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Feed the parser, then bound what it still holds back."""
        if self._since is None:
            self._since = self.loop.time()
        self._begun_here = False
        super().data_received(data)
        # Of a head that began inside this packet nobody knows the size yet; a packet is bounded anyway.
        if self._in_head and not self._begun_here:
            self._head_octets += len(data)
            if self._head_octets > HEAD_OCTETS_MAX:
                self._refuse("head_too_large")

    def on_message_begin(self) -> None:
        """Note the beginning of a request, which may share its packet with the end of another."""
        super().on_message_begin()
        self._in_head = self._begun_here = True
        if self._since is None:
            self._since = self.loop.time()

    def on_headers_complete(self) -> None:
        """Note the end of a head."""
        self._in_head = False
        super().on_headers_complete()
        extensions: dict[Any, Any] = {WHOLE: partial(_write_whole, self.cycle)}
        self.scope["extensions"] = extensions

    def on_message_complete(self) -> None:
        """Note the end of a request."""
        super().on_message_complete()
        self._since = None
        self._in_head = True
        self._head_octets = 0

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        del msg
        self._refuse("malformed")

    def sweep(self, now: float) -> None:
        """Close the connection if its request, or its first octet, is overdue.

        A connection that we do not read because we are slow is not late.

        Args:
            now: The loop's present time.
        """
        if self._since is None or self.flow.read_paused or now - self._since <= self.receive_seconds_max:
            return
        self._refuse("late")

    def _refuse(self, why: str) -> None:
        """Say why once, unless an answer is already under way, and close."""
        if self.transport.is_closing():
            return
        self.telemetry.event(Event.CONNECTION_REFUSED, why=why)
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_REFUSALS[why] + b"connection: close\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()


def bound_to(telemetry: Telemetry, receive_seconds_max: float) -> type[Connection]:
    """Return the kind of connection that a server opens.

    Args:
        telemetry: Told of connections that are closed early.
        receive_seconds_max: How long a request may take to arrive whole.
    """

    class Bound(Connection):
        pass

    Bound.telemetry = telemetry
    Bound.receive_seconds_max = receive_seconds_max
    return Bound
