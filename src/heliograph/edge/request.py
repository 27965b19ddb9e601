"""What a handler gets and what it gives back: values, so that the server can be changed."""

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

import msgspec

from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed

NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})
"""What a path without ``{name}`` parts gives."""


class Request(msgspec.Struct, frozen=True):
    """One request, whole: its head passed every limit and its body arrived to the last octet.

    Attributes:
        method: Upper-case, as sent.
        path: The path as sent, percent-encoding kept, without the query.
        query: The query as sent, without the ``?``; empty when there is none.
        headers: Names in lower case, values without surrounding blanks, in the order sent.
        body: The exact octets of the content.
        request_id: Our id for it, which is also in error bodies and logs.
        received_at: When its head was whole.
        client: The address of the peer, or empty on a Unix socket.
        parameters: The decoded values of the path's ``{name}`` parts.
        authority: What the operation's ``authorize_head`` returned, or None.
    """

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    request_id: str
    received_at: Instant
    client: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    authority: object = None

    def __repr__(self) -> str:
        """Show what may be logged: no header, no query, no body, no path a stranger chose."""
        return f"Request({self.method}, {self.request_id})"

    def all(self, name: str) -> tuple[str, ...]:
        """Return the value of every field of that name, in the order sent.

        Args:
            name: In lower case.
        """
        return tuple([value for found, value in self.headers if found == name])

    def one(self, name: str) -> str | None:
        """Return the value of a field that may be sent once.

        Args:
            name: In lower case.

        Returns:
            Its value, or None when it was not sent.

        Raises:
            Malformed: It was sent more than once.
        """
        values = self.all(name)
        if len(values) > 1:
            raise Malformed(name, "must be sent once")
        return values[0] if values else None

    def joined(self, name: str) -> str | None:
        """Return the fields of a name as one, joined by a comma and a space (RFC 9110 §5.3).

        Args:
            name: In lower case.

        Returns:
            The joined value, or None when it was not sent.
        """
        values = self.all(name)
        return ", ".join(values) if values else None


class Reply(msgspec.Struct, frozen=True):
    """What goes back.

    Attributes:
        status: The HTTP status; 204 and 304 carry no body.
        body: The exact octets.
        headers: Further fields, names in lower case; the edge writes the type and the length.
        content_type: The type of the body; not sent when there is none.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
