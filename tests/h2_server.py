"""A tiny HTTP/2 server: answers 201 to every request, and can leave in the middle."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded
from h2.exceptions import ProtocolError


class H2Server:
    """Counts what it does over all its connections."""

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
    ) -> AsyncIterator["H2Server"]:
        """Listen until the block ends; the first connection leaves after ``go_away_after`` answers."""
        server = cls(go_away_after)
        listening = await asyncio.get_running_loop().create_server(
            lambda: _Connection(server), "127.0.0.1", 0, ssl=context
        )
        server.port = listening.sockets[0].getsockname()[1]
        try:
            yield server
        finally:
            listening.close()
            for transport in list(server.open):
                transport.close()


class _Connection(asyncio.Protocol):
    def __init__(self, server: H2Server) -> None:
        self.server = server
        self.h2 = H2Connection(H2Configuration(client_side=False))
        self.leaves_after: int | None = None
        self.left = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.open.add(transport)
        self.server.connections += 1
        self.leaves_after = self.server.go_away_after if self.server.connections == 1 else None
        self.h2.initiate_connection()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.open.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        try:
            events = self.h2.receive_data(data)
        except ProtocolError:
            self.transport.close()
            return
        for event in events:
            if isinstance(event, DataReceived):
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded) and not self.left:
                self._answer(event.stream_id)
        self._flush()

    def _answer(self, stream_id: int) -> None:
        self.h2.send_headers(stream_id, [(":status", "201")], end_stream=True)
        self.server.answered += 1
        if self.leaves_after is None:
            return
        self.leaves_after -= 1
        if self.leaves_after == 0:
            self.left = True
            self.h2.close_connection(last_stream_id=stream_id)

    def _flush(self) -> None:
        self.transport.write(self.h2.data_to_send())
        if self.left:
            self.transport.close()
