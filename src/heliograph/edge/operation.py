"""One endpoint as one row: routing, limits, error bodies and the OpenAPI document come from it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from heliograph.edge.problem import Code
from heliograph.edge.request import Reply, Request

Handle: TypeAlias = Callable[[Request], Awaitable[Reply]]
AuthorizeHead: TypeAlias = Callable[[Request], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter, for the documentation.

    Attributes:
        name: As it is sent.
        says: What it is for.
        words: The only values it may have; empty when it may have any.
    """

    name: str
    says: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A header field that a request needs, for the documentation.

    Attributes:
        name: As people write it.
        says: What it is for.
        pattern: What its value looks like, in Python's spelling.
    """

    name: str
    says: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Example:
    """A whole body, for the documentation.

    Attributes:
        name: A short word, different for each example of one body.
        says: What it shows.
        body: The JSON value itself.
    """

    name: str
    says: str
    body: Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint.

    Attributes:
        operation_id: Its stable name; also the value of the operation selector where there is one.
        method: Upper-case. ``HEAD`` is served wherever ``GET`` is.
        path: Matched octet for octet against the path as sent; a ``{name}`` segment takes any one segment.
        summary: One sentence for the documentation.
        handle: Turns a whole request into a reply, or raises a ``Refused`` of its system.
        request_type: The type of the JSON body, several when it may be one of them, None without a body.
        reply_type: The type of the JSON answer, or None when it has no body.
        success: The status of success.
        codes: The refusals of its own that it may answer with; those of the edge come by themselves.
        selector: The request must name the operation in the system's selector header. A system without
            such a header has none to name; where it has one, an operation that does not demand it still
            refuses a wrong one.
        body_limit_octets: The largest body; 0 when it takes none.
        caller: Who may call, in a word, for the documentation.
        reply_media: The media type of success.
        authorize_head: Decides from the head alone who calls, before the body is read; what it returns
            becomes ``Request.authority``. It raises a ``Refused`` to refuse.
        gated: Counts against the limit of requests in flight. Health must answer under load, so it is not.
        parameters: The query parameters, for the documentation.
        fields: The header fields that a request needs besides the selector, for the documentation.
        requests: Bodies that it takes.
        replies: Bodies that it answers success with.
        unready: A status besides success that has the body of success, or 0 for none.
        tag: The heading it stands under in the documentation.
    """

    operation_id: str
    method: str
    path: str
    summary: str
    handle: Handle
    request_type: type[msgspec.Struct] | tuple[type[msgspec.Struct], ...] | None = None
    reply_type: type[msgspec.Struct] | None = None
    success: int = 200
    codes: tuple[Code, ...] = ()
    selector: bool = True
    body_limit_octets: int = 0
    caller: str = "anyone"
    reply_media: str = "application/json"
    authorize_head: AuthorizeHead | None = None
    gated: bool = True
    parameters: tuple[Query, ...] = ()
    fields: tuple[Field, ...] = ()
    requests: tuple[Example, ...] = ()
    replies: tuple[Example, ...] = ()
    unready: int = 0
    tag: str = ""
