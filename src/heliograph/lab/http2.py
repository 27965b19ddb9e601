"""A small HTTP/2 server that answers as it is told, well or badly.

The servers of providers that speak HTTP/2 stand on it. Beyond answers, it can refuse a stream, leave in the
middle of a burst and say what it has processed, fall silent to pings too, or tell how many streams it takes.

A server that leaves must not simply close its socket: what the client has sent meanwhile is then answered
with a reset, and a client that notices the reset first never reads which streams were processed. So this one
says GOAWAY, goes on reading, and closes when the client has closed or has had time enough.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Final, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes

from heliograph.lab.receiver import BODY_OCTETS_MAX, Heard, Misbehaviour, Reaction, Reply, Spoiled

STREAMS_MAX: Final = 1_000
"""What the large push services allow on one connection."""

LEAVING_S: Final = 5.0
"""How long a server that has said GOAWAY waits for the client to close."""


class Http2Receiver:
    """A listening server: ``async with Http2Receiver.start(react, context) as receiver``.

    Attributes:
        port: Where it listens on 127.0.0.1.
        connections: How many connections were ever opened.
        answered: How many requests it answered.
    """

    def __init__(self, react: Callable[[Heard], Reaction], streams: int) -> None:
        self.react = react
        self.streams = streams
        self.port = 0
        self.connections = 0
        self.answered = 0
        self.open: dict[int, _Connection] = {}

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls,
        react: Callable[[Heard], Reaction],
        context: ssl.SSLContext,
        port: int = 0,
        streams: int = STREAMS_MAX,
    ) -> AsyncIterator["Http2Receiver"]:
        """Listen on a port of 127.0.0.1 until the block ends.

        Args:
            react: Says what a request is answered with.
            context: TLS settings that offer ``h2``.
            port: Where to listen; 0 lets the system choose.
            streams: How many streams a new connection may have open.
        """
        receiver = cls(react, streams)
        server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(receiver), "127.0.0.1", port, ssl=context
        )
        receiver.port = server.sockets[0].getsockname()[1]
        try:
            yield receiver
        finally:
            server.close()
            for connection in list(receiver.open.values()):
                connection.abort()

    def allow(self, connection: int, streams: int) -> None:
        """Let a connection have so many streams open from now on."""
        if (opened := self.open.get(connection)) is not None:
            opened.allow(streams)

    def leave(self) -> None:
        """Say GOAWAY on every connection: what was begun is processed, and nothing that comes later."""
        for connection in list(self.open.values()):
            connection.leave()


class _Request:
    __slots__ = ("body", "headers", "method", "target")

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self.method = self.target = ""
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        for name, value in fields:
            match name:
                case ":method":
                    self.method = value
                case ":path":
                    self.target = value
                case ":authority":
                    self.headers["host"] = value
                case _ if not name.startswith(":"):
                    before = self.headers.get(name)
                    self.headers[name] = value if before is None else f"{before}, {value}"
                case _:
                    pass


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: Http2Receiver) -> None:
        self._receiver = receiver
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._transport: asyncio.Transport | None = None
        self._number = 0
        self._requests: dict[int, _Request] = {}
        self._waiting: dict[int, bytes] = {}
        self._streams = receiver.streams
        self._last_processed = 0
        self._is_leaving = False
        self._is_silent = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Loops give what asyncio calls a transport by name only.
        self._transport = cast("asyncio.Transport", transport)
        self._receiver.connections += 1
        self._number = self._receiver.connections
        self._receiver.open[self._number] = self
        self._h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: self._streams})
        self._h2.initiate_connection()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._receiver.open.pop(self._number, None)

    def allow(self, streams: int) -> None:
        if streams != self._streams:
            self._streams = streams
            self._h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: streams})
            self._flush()

    def leave(self) -> None:
        if self._is_leaving or self._transport is None:
            return
        self._is_leaving = True
        self._h2.close_connection(last_stream_id=self._last_processed)
        self._flush()
        asyncio.get_running_loop().call_later(LEAVING_S, self._transport.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._is_over():
            return  # read, so that nothing is reset, and not looked at
        try:
            events = self._h2.receive_data(data)
        except ProtocolError:
            self._flush()
            self.abort()
            return
        for event in events:
            match event:
                case RequestReceived():
                    self._requests[event.stream_id] = _Request(
                        [(str(name), str(value)) for name, value in event.headers]
                    )
                case DataReceived():
                    self._took(event)
                case StreamEnded():
                    self._react(event.stream_id)
                case StreamReset():
                    self._requests.pop(event.stream_id, None)
                    self._waiting.pop(event.stream_id, None)
                case WindowUpdated():
                    self._send_waiting()
                case _:
                    pass
            if self._is_over():
                return
        self._flush()

    def _is_over(self) -> bool:
        return self._is_leaving or self._is_silent

    def _took(self, event: DataReceived) -> None:
        request = self._requests.get(event.stream_id)
        if request is not None:
            request.body += event.data[: BODY_OCTETS_MAX - len(request.body)]
        self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def _react(self, stream_id: int) -> None:
        request = self._requests.pop(stream_id, None)
        if request is None:
            return
        heard = Heard(request.method, request.target, request.headers, bytes(request.body), self._number)
        reaction = self._receiver.react(heard)
        if isinstance(reaction, Spoiled):
            self._spoil(stream_id, reaction)
        else:
            self._answer(stream_id, reaction, ends=True)
            self._receiver.answered += 1

    def _answer(self, stream_id: int, reply: Reply, *, ends: bool) -> None:
        self._last_processed = max(self._last_processed, stream_id)
        fields = [(":status", str(reply.status)), *reply.headers.items()]
        if not reply.body:
            self._h2.send_headers(stream_id, fields, end_stream=ends)
            return
        self._h2.send_headers(stream_id, fields)
        self._waiting[stream_id] = reply.body
        self._send_waiting(ends=ends)

    def _send_waiting(self, *, ends: bool = True) -> None:
        """Send of the bodies that wait what the client's windows let through."""
        for stream_id, body in list(self._waiting.items()):
            try:
                while body:
                    room = min(
                        self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size
                    )
                    if room <= 0:
                        break
                    self._h2.send_data(stream_id, body[:room], end_stream=ends and len(body) <= room)
                    body = body[room:]  # noqa: PLW2901 - what is left of it
            except ProtocolError:  # the client has lost interest
                body = b""  # noqa: PLW2901 - as above
            if body:
                self._waiting[stream_id] = body
            else:
                del self._waiting[stream_id]

    def _spoil(self, stream_id: int, spoiled: Spoiled) -> None:
        match spoiled.how:
            case Misbehaviour.HANG:
                self._last_processed = max(self._last_processed, stream_id)
            case Misbehaviour.SILENT:
                self._is_silent = True
            case Misbehaviour.SLOW_HEADERS | Misbehaviour.CUT_MID_HEADERS:
                self._flush()
                begun = self._h2.encoder.encode([(":status", "200")])
                # A HEADERS frame (RFC 9113 6.2) without END_HEADERS: the rest never comes.
                self._write(
                    len(begun).to_bytes(3, "big") + b"\x01\x00" + stream_id.to_bytes(4, "big") + begun
                )
                self._is_silent = True
                if spoiled.how is Misbehaviour.CUT_MID_HEADERS:
                    self._close()
            case Misbehaviour.CUT:
                self.abort()
                self._is_silent = True
            case Misbehaviour.TRUNCATED:
                reply = spoiled.reply
                self._answer(stream_id, Reply(reply.status, reply.headers, reply.body or b"{"), ends=False)
                self._h2.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
            case Misbehaviour.RESET:
                self._h2.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
            case Misbehaviour.REFUSED:
                self._h2.reset_stream(stream_id, ErrorCodes.REFUSED_STREAM)
            case Misbehaviour.GO_AWAY:
                self.leave()
            case Misbehaviour.NOT_HTTP:
                self._flush()
                self._write(b"\x15\x03\x01\x00\x02\x02\x0a\r\n\r\n")
                self._close()

    def _flush(self) -> None:
        self._write(self._h2.data_to_send())

    def _write(self, octets: bytes) -> None:
        if octets and self._transport is not None:
            self._transport.write(octets)

    def _close(self) -> None:
        self._is_silent = True
        if self._transport is not None:
            self._transport.close()
