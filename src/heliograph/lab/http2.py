"""A small HTTP/2 server that takes every request, and can leave in the middle as large providers do."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded
from h2.exceptions import ProtocolError


class Http2Receiver:
    """Answers 201 to every request: ``async with Http2Receiver.start(context) as receiver``.

    Attributes:
        port: Where it listens on 127.0.0.1.
        connections: How many connections were ever opened.
        answered: How many requests it answered.
    """

    def __init__(self, go_away_after: int | None) -> None:
        self.go_away_after = go_away_after
        self.port = 0
        self.connections = 0
        self.answered = 0
        self.open: set[asyncio.BaseTransport] = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls, context: ssl.SSLContext, go_away_after: int | None = None
    ) -> AsyncIterator["Http2Receiver"]:
        """Listen on a free port of 127.0.0.1 until the block ends.

        Args:
            context: TLS settings that offer ``h2``.
            go_away_after: After so many answers the first connection says GOAWAY, names the last stream it
                has processed, and closes.
        """
        receiver = cls(go_away_after)
        server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(receiver), "127.0.0.1", 0, ssl=context
        )
        receiver.port = server.sockets[0].getsockname()[1]
        try:
            yield receiver
        finally:
            server.close()
            for transport in list(receiver.open):
                transport.close()


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: Http2Receiver) -> None:
        self._receiver = receiver
        self._h2 = H2Connection(H2Configuration(client_side=False))
        self._transport: asyncio.Transport | None = None
        self._leaves_after: int | None = None
        self._left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(
            "asyncio.Transport", transport
        )  # loops give what asyncio calls so by name only
        self._receiver.open.add(transport)
        self._receiver.connections += 1
        self._leaves_after = self._receiver.go_away_after if self._receiver.connections == 1 else None
        self._h2.initiate_connection()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._transport is not None:
            self._receiver.open.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        try:
            events = self._h2.receive_data(data)
        except ProtocolError:
            self._left = True
            events = []
        for event in events:
            if isinstance(event, DataReceived):
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded) and not self._left:
                self._answer(event.stream_id)
        self._flush()

    def _answer(self, stream_id: int) -> None:
        self._h2.send_headers(stream_id, [(":status", "201")], end_stream=True)
        self._receiver.answered += 1
        if self._leaves_after is None:
            return
        self._leaves_after -= 1
        if self._leaves_after == 0:
            self._left = True
            self._h2.close_connection(last_stream_id=stream_id)

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(self._h2.data_to_send())
            if self._left:
                self._transport.close()
