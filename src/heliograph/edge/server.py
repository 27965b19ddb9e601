"""Listens, and serves an ASGI application inside a running event loop."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, final

import uvicorn
import uvloop

from heliograph.ambient.telemetry import Event, Telemetry
from heliograph.edge.asgi import App
from heliograph.edge.connection import Connection, bound_to

T = TypeVar("T")

TICK_SECONDS: Final = 1.0
"""How often the date header is renewed and overdue connections are looked for."""

SOCKET_MODE: Final = 0o660
"""Of a Unix socket: the proxy connects as a member of our group."""

NOTE_CHARACTERS_MAX: Final = 120
"""Of a remark's template: enough to find it in the library's source."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where and how the server listens.

    Attributes:
        host: A numeric address or a name; ignored with a socket path.
        port: 0 lets the system choose.
        socket_path: A Unix socket to listen on instead.
        backlog: Connections that the system holds until they are accepted.
        connections_max: Open connections; one more is answered 503 and closed.
        keep_alive_seconds: How long an idle connection is kept. Longer than a proxy's own, or the proxy
            meets a closed connection now and then.
        receive_seconds_max: How long a request may take to arrive whole.
        stop_seconds_max: How long requests in progress may take to end when the server stops.
    """

    host: str = "127.0.0.1"
    port: int = 0
    socket_path: Path | None = None
    backlog: int = 2048
    connections_max: int = 4096
    keep_alive_seconds: int = 75
    receive_seconds_max: float = 20.0
    stop_seconds_max: int = 20


@final
class _Server(uvicorn.Server):
    """Uvicorn's server, stopped by an event instead of signals, which belong to whoever owns the loop."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._stop = stop

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the process's signals alone."""
        yield

    async def main_loop(self) -> None:
        """Tick until told to stop."""
        self.listening.set()
        loop = asyncio.get_running_loop()
        while not self._stop.is_set():
            await self.on_tick(0)
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.sweep(loop.time())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), TICK_SECONDS)


@final
class _Notes(logging.Handler):
    """Passes the library's remarks on: their fixed template, never the values put into it."""

    def __init__(self, telemetry: Telemetry) -> None:
        super().__init__(logging.WARNING)
        self._telemetry = telemetry

    def emit(self, record: logging.LogRecord) -> None:
        """Tell of a remark."""
        note = record.msg.strip() if isinstance(record.msg, str) else "an exception"
        fields: dict[str, Any] = {"note": note[:NOTE_CHARACTERS_MAX]}
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else record.msg
        if isinstance(error, BaseException):
            fields["exception"] = error
        self._telemetry.event(Event.SERVER_NOTED, **fields)


def bound(listen: Listen) -> socket.socket:
    """Open the listening socket, for those who must know the port before they can build the application.

    Args:
        listen: Where.

    Returns:
        A socket that connections already queue on; nobody answers them until it is served.

    Raises:
        OSError: The address cannot be listened on.
    """
    if listen.socket_path is not None:
        if listen.socket_path.is_socket():
            # What an earlier process left behind; a living one would have been found by its lock on the data.
            listen.socket_path.unlink()
        opened = socket.socket(socket.AF_UNIX)
        try:
            opened.bind(str(listen.socket_path))
            listen.socket_path.chmod(SOCKET_MODE)
            opened.listen(listen.backlog)
        except OSError:
            opened.close()
            raise
    else:
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        opened = socket.create_server((listen.host, listen.port), family=family, backlog=listen.backlog)
    opened.setblocking(False)
    return opened


@asynccontextmanager
async def serving(
    app: App, listen: Listen, telemetry: Telemetry, opened: socket.socket | None = None
) -> AsyncIterator[int]:
    """Serve an application while the context lasts.

    Args:
        app: The ASGI application. Its lifespan is not run: who composes the process owns its start.
        listen: Where and how.
        telemetry: Told of start, stop and of remarks of the HTTP library.
        opened: What ``bound`` returned; opened here unless given, and closed here in either case.

    Yields:
        The port, or 0 for a Unix socket, once connections are accepted.

    Raises:
        OSError: The address cannot be listened on.
    """
    opened = bound(listen) if opened is None else opened
    port: int = 0 if listen.socket_path is not None else opened.getsockname()[1]
    config = uvicorn.Config(
        app,
        loop="none",
        http=bound_to(telemetry, listen.receive_seconds_max),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=listen.backlog,
        limit_concurrency=listen.connections_max,
        timeout_keep_alive=listen.keep_alive_seconds,
        timeout_graceful_shutdown=listen.stop_seconds_max,
    )
    stop = asyncio.Event()
    server = _Server(config, stop)
    notes = _Notes(telemetry)
    remarks = logging.getLogger("uvicorn.error")
    remarks.addHandler(notes)
    remarks.propagate = False
    running = asyncio.create_task(server.serve(sockets=[opened]))
    try:
        ready = asyncio.create_task(server.listening.wait())
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if running.done():
            await running
        telemetry.event(Event.SERVER_STARTED, host=listen.host, port=port)
        yield port
    finally:
        stop.set()
        await running
        remarks.removeHandler(notes)
        if listen.socket_path is not None:
            listen.socket_path.unlink(missing_ok=True)
        telemetry.event(Event.SERVER_STOPPED, port=port)


async def serve(
    app: App,
    listen: Listen,
    telemetry: Telemetry,
    stop: asyncio.Event,
    started: Callable[[int], None] | None = None,
) -> None:
    """Serve an application until an event is set, then answer what was begun and return.

    Args:
        app: The ASGI application.
        listen: Where and how.
        telemetry: As for ``serving``.
        stop: Set it to stop.
        started: Told the port once connections are accepted.

    Raises:
        OSError: The address cannot be listened on.
    """
    async with serving(app, listen, telemetry) as port:
        if started is not None:
            started(port)
        await stop.wait()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the event loop that we measured: uvloop's.

    Args:
        main: What to run.

    Returns:
        What it returns.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
