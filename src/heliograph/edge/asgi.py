"""The one ASGI callable: operations by exact path first, everything else to a mounted application.

The order of checks is fixed, so that the same wrong request always gets the same answer: size of the
head, path and method, operation selector, authentication from the head, content encoding, declared
length, room for one more request, the body, counted as it streams, and room again. Nothing before the handler
changes anything. A body that never becomes whole does nothing at all.

There is no middleware: a request to an operation meets one dictionary look-up, one pass over its headers
and its handler.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias, final

import msgspec

from heliograph.ambient.clock import Clock
from heliograph.ambient.entropy import Entropy
from heliograph.ambient.telemetry import Event, Gauge, Telemetry, locations, watched
from heliograph.edge.head import Head, too_large
from heliograph.edge.limits import Gate
from heliograph.edge.problem import Refused
from heliograph.edge.request import NO_PARAMETERS, Reply, Request
from heliograph.edge.routes import Endpoint, Place, Routes
from heliograph.edge.system import System
from heliograph.wire.instant import Instant

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

IN_FLIGHT_MAX_DEFAULT: Final = 512
"""Requests worked on at once. Each waits for one commit; more would only wait longer."""

RETRY_AFTER_MS_DEFAULT: Final = 1000
"""What a 429 or 503 advises when its refusal names no time: the callers' own least backoff."""

WHOLE: Final = "heliograph.whole"
"""The ASGI extension of our own server: a function that writes status, headers and body in one piece."""

_Found: TypeAlias = tuple[System, Place | None, Mapping[str, str]]

_NO_ENDPOINT: Final = "none"
_BODILESS: Final = frozenset({204, 304})
_RETRY_STATUSES: Final = frozenset({429, 503})
_FAILURE: Final = 400
_CLOSE: Final = (b"connection", b"close")
_NO_STORE: Final = ("cache-control", "no-store")


class _Abandoned(Exception):  # noqa: N818 - the caller went away; there is nobody to answer
    """The body will never be whole."""


@final
class _Arrival:
    """A request while it is being checked."""

    __slots__ = ("_found", "head", "method", "now", "path", "place", "query", "request_id", "scope", "system")

    def __init__(self, scope: Scope, path: bytes, found: _Found, request_id: str, now: Instant) -> None:
        query: bytes = scope["query_string"]
        self.scope = scope
        self.method: str = scope["method"]
        self.path = path
        self.query = query
        self._found = found
        self.system, self.place, _ = found
        self.request_id = request_id
        self.now = now
        target_octets = len(path) + len(query) + 1 if query else len(path)
        self.head = Head(scope["headers"], target_octets, self.system.selector_octets)

    def request(self, body: bytes, authority: object) -> Request:
        """Make the value that leaves the edge."""
        client = self.scope.get("client")
        return Request(
            self.method,
            str(self.path, "latin-1"),
            str(self.query, "latin-1"),
            self.head.fields(),
            body,
            self.request_id,
            self.now,
            client[0] if client else "",
            self._found[2],
            authority,
        )


@final
class Edge:
    """Serves operations, and hands every other path to a mounted application.

    Args:
        systems: Whose operations, prefixes and error words.
        telemetry: Told of every answer.
        clock: Dates requests.
        entropy: Draws request ids.
        rest: The application for paths that no system owns; without one they are unknown paths of the
            last system.
        in_flight_max: How many gated requests are worked on at once.

    Raises:
        ValueError: The rows contradict one another.
    """

    def __init__(
        self,
        systems: tuple[System, ...],
        telemetry: Telemetry,
        clock: Clock,
        entropy: Entropy,
        *,
        rest: App | None = None,
        in_flight_max: int = IN_FLIGHT_MAX_DEFAULT,
    ) -> None:
        if not systems:
            raise ValueError("an edge serves at least one system")
        self._routes = Routes(systems)
        self._exact = self._routes.exact
        self._telemetry = telemetry
        self._clock = clock
        self._entropy = entropy
        self._rest = rest
        self._gate = Gate(in_flight_max)
        telemetry.gauge(Gauge.REQUESTS_IN_FLIGHT, lambda: self._gate.inside)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one scope, as ASGI asks."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        place = self._exact.get(path)
        found = self._found(path) if place is None else (place.system, place, NO_PARAMETERS)
        if found is None:
            assert self._rest is not None  # noqa: S101 - otherwise every path is somebody's
            await self._rest(scope, receive, send)
            return
        now = self._clock.now()
        request_id = found[0].request_id_prefix + self._entropy.uuid7(now)
        await self._serve(_Arrival(scope, path, found, request_id, now), receive, send)

    def _found(self, path: bytes) -> _Found | None:
        """Say whose a path is that no operation has exactly; None when the mounted application gets it."""
        matched = self._routes.template(path)
        if matched is not None:
            return matched[0].system, matched[0], matched[1]
        owner = self._routes.owner(path)
        if owner is None and self._rest is None:
            owner = self._routes.systems[-1]
        return None if owner is None else (owner, None, NO_PARAMETERS)

    async def _serve(self, arrival: _Arrival, receive: Receive, send: Send) -> None:
        """Answer a request whose path a system owns."""
        began = self._clock.monotonic()
        system, place, head, request_id = arrival.system, arrival.place, arrival.head, arrival.request_id
        endpoint = None if place is None else place.methods.get(arrival.method)
        name = _NO_ENDPOINT if endpoint is None else endpoint.operation.operation_id
        extra: tuple[tuple[bytes, bytes], ...] = ()
        try:
            head.check_size(system)
            if endpoint is None:
                reply = _no_endpoint(system, place, arrival.method)
            else:
                selected = head.check_selector(endpoint)
                reply = await self._handled(endpoint, arrival, receive)
                if selected and reply.status < _FAILURE:
                    extra = endpoint.echo
        except _Abandoned:
            self._telemetry.event(
                Event.REQUEST_ABANDONED, operation=name, why="disconnected", request_id=request_id
            )
            return
        except Refused as refused:
            reply = _spelled(system, refused, request_id)
            self._telemetry.event(
                Event.REQUEST_REFUSED,
                operation=name,
                code=refused.code.code,
                status=refused.code.status,
                request_id=request_id,
            )
        except Exception as bug:  # noqa: BLE001 - the one place where a bug becomes a 500
            reply = _spelled(system, Refused(system.codes.internal), request_id)
            self._telemetry.event(
                Event.REQUEST_FAILED,
                operation=name,
                exception=bug,
                where=locations(bug),
                request_id=request_id,
            )
        if head.closing():
            extra = (_CLOSE, *extra)
        await _respond(arrival.scope, send, reply, extra)
        self._telemetry.event(
            Event.REQUEST_ANSWERED,
            operation=name,
            status=reply.status,
            seconds=self._clock.monotonic() - began,
            request_id=request_id,
        )

    async def _handled(self, endpoint: Endpoint, arrival: _Arrival, receive: Receive) -> Reply:
        """Take a request with a good selector through the rest of the checks to its handler."""
        operation, head = endpoint.operation, arrival.head
        authority: object = None
        if operation.authorize_head is not None:
            authority = await operation.authorize_head(arrival.request(b"", None))
        head.check_content(endpoint)
        # Looked at before the body so that a full house reads none; entered after it, or callers that
        # dawdle with their bodies would hold every place.
        if operation.gated and self._gate.full():
            raise _overloaded(endpoint)
        if head.bodiless():
            head.unread = False
            body = b""
        else:
            body = await _body(endpoint, head, receive)
        request = arrival.request(body, authority)
        if not operation.gated:
            return await operation.handle(request)
        if not self._gate.enter():
            raise _overloaded(endpoint)
        try:
            return await operation.handle(request)
        finally:
            self._gate.leave()

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the scopes that are not requests: the lifespan, and sockets that we do not speak."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] != "lifespan":
            raise NotImplementedError(scope["type"])
        elif self._rest is not None:
            await self._rest(scope, receive, send)
        else:
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})


def _overloaded(endpoint: Endpoint) -> Refused:
    """Return the refusal of a full house."""
    return Refused(endpoint.system.codes.overloaded, "too many requests are being worked on")


async def _body(endpoint: Endpoint, head: Head, receive: Receive) -> bytes:
    """Read the whole body.

    Raises:
        Refused: It grew over the operation's limit.
        _Abandoned: The caller went away first.
    """
    limit = endpoint.operation.body_limit_octets
    message = await receive()
    if message["type"] != "http.request":
        raise _Abandoned
    body: bytes = message.get("body", b"")
    if message.get("more_body", False) and len(body) <= limit:
        parts, size = [body], len(body)
        while message.get("more_body", False) and size <= limit:
            message = await receive()
            if message["type"] != "http.request":
                raise _Abandoned
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        body = b"".join(parts)
    if len(body) > limit:
        raise too_large(endpoint)
    head.unread = False
    return body


def _no_endpoint(system: System, place: Place | None, method: str) -> Reply:
    """Answer a path or method that has no operation."""
    if place is None:
        raise Refused(system.codes.unknown_endpoint)
    if method == "OPTIONS":
        return Reply(204, headers=(("allow", place.allow),))
    raise Refused(system.codes.wrong_method, headers=(("allow", place.allow),))


def _spelled(system: System, refused: Refused, request_id: str) -> Reply:
    """Spell a refusal as its system does, with the advice when to come back."""
    reply = system.spell(refused, request_id)
    watched(reply.body.decode("utf-8", "replace"))
    headers = [*reply.headers, _NO_STORE]
    retry_after_ms = refused.retry_after_ms
    if retry_after_ms is None and refused.code.status in _RETRY_STATUSES:
        retry_after_ms = RETRY_AFTER_MS_DEFAULT
    if retry_after_ms is not None:
        # The header counts whole seconds; rounding down would invite the caller too early.
        headers.append(("retry-after", str(max(1, -(-retry_after_ms // 1000)))))
    return msgspec.structs.replace(reply, headers=tuple(headers))


async def _respond(scope: Scope, send: Send, reply: Reply, extra: tuple[tuple[bytes, bytes], ...]) -> None:
    """Send an answer."""
    headers = [*extra]
    body = b"" if reply.status in _BODILESS else reply.body
    if reply.status not in _BODILESS:
        if body:
            headers.append((b"content-type", reply.content_type.encode()))
        headers.append((b"content-length", b"%d" % len(body)))
    for name, value in reply.headers:
        headers.append((name.encode("latin-1"), value.encode("latin-1")))
    extensions = scope.get("extensions")
    whole = None if extensions is None else extensions.get(WHOLE)
    if whole is not None:
        whole(reply.status, headers, body)
        return
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
