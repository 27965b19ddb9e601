"""What can be said of a request before its body: its size, its selector, its length. Pure."""

from collections.abc import Sequence
from typing import Final, final

from heliograph.edge.problem import Refused
from heliograph.edge.routes import Endpoint
from heliograph.edge.system import System

HEADER_VALUE_OCTETS_MAX: Final = 8 * 1024
"""One header value; the protocol's own limit."""

HEADERS_OCTETS_MAX: Final = 32 * 1024
"""Names and values of all headers; the protocol's own limit."""

TARGET_OCTETS_MAX: Final = 8 * 1024
"""Path and query with the ``?`` between them; the protocol's own limit."""

DRAIN_OCTETS_MAX: Final = 1024 * 1024
"""A refused body up to this size is read and thrown away, so that its sender sees the refusal and keeps
its connection; the connection of a larger or unmeasured one is closed."""


@final
class Head:
    """What the headers say of the request.

    Args:
        raw: Names in lower case and values, in the order sent.
        target_octets: The size of path and query.
        selector_name: The system's selector header, empty when it has none.

    Attributes:
        unread: Whether the body is still on its way; whoever reads it says so.
    """

    __slots__ = ("_found", "_length", "_octets", "_raw", "_selector_name", "_target_octets", "unread")

    def __init__(self, raw: Sequence[tuple[bytes, bytes]], target_octets: int, selector_name: bytes) -> None:
        # On every request: one dictionary and two sums, made without a step of Python for each header.
        self._raw = raw
        self._found = found = dict(raw)
        if len(found) == len(raw):
            self._octets = sum(map(len, found)) + sum(map(len, found.values()))
        else:
            self._octets = sum(len(name) + len(value) for name, value in raw)
        length = found.get(b"content-length")
        self._length = int(length) if length is not None and length.isdigit() else None
        self._selector_name = selector_name
        self._target_octets = target_octets
        self.unread = True

    def fields(self) -> tuple[tuple[str, str], ...]:
        """Return the headers as text, values without surrounding blanks."""
        return tuple(
            [(str(name, "latin-1"), str(value, "latin-1").strip(" \t")) for name, value in self._raw]
        )

    def check_size(self, system: System) -> None:
        """Refuse a head over its limits.

        Raises:
            Refused: With ``head_too_large``.
        """
        if self._target_octets > TARGET_OCTETS_MAX:
            raise Refused(system.codes.head_too_large, f"path and query exceed {TARGET_OCTETS_MAX} octets")
        if self._octets <= HEADER_VALUE_OCTETS_MAX:
            return  # all headers together are no larger than one value may be
        if any(len(value) > HEADER_VALUE_OCTETS_MAX for _, value in self._raw):
            raise Refused(
                system.codes.head_too_large, f"a header value exceeds {HEADER_VALUE_OCTETS_MAX} octets"
            )
        if self._octets > HEADERS_OCTETS_MAX:
            raise Refused(system.codes.head_too_large, f"the headers exceed {HEADERS_OCTETS_MAX} octets")

    def check_selector(self, endpoint: Endpoint) -> bool:
        """Refuse a selector that does not name this operation, once.

        Returns:
            Whether there was one, so that success repeats it.

        Raises:
            Refused: With ``selector_required`` or ``selector_unsupported``.
        """
        codes, header = endpoint.system.codes, endpoint.system.selector_header
        if header is None or codes.selector_required is None or codes.selector_unsupported is None:
            return False
        value = self._found.get(self._selector_name)
        if value is None:
            if endpoint.operation.selector:
                raise Refused(codes.selector_required, f"the {header} header is missing")
            return False
        if len(self._found) != len(self._raw) and sum(n == self._selector_name for n, _ in self._raw) > 1:
            raise Refused(codes.selector_unsupported, f"the {header} header must be sent once")
        if value != endpoint.selector:
            raise Refused(codes.selector_unsupported, f"the {header} header names no operation of this path")
        return True

    def check_content(self, endpoint: Endpoint) -> None:
        """Refuse encoded content, and content that says that it is too long.

        Raises:
            Refused: With ``content_encoding`` or ``body_too_large``.
        """
        if b"content-encoding" in self._found:
            raise Refused(endpoint.system.codes.content_encoding, "content must be sent without an encoding")
        if self._length is not None and self._length > endpoint.operation.body_limit_octets:
            raise too_large(endpoint)

    def bodiless(self) -> bool:
        """Say whether no body can follow."""
        return not self._length and b"transfer-encoding" not in self._found

    def closing(self) -> bool:
        """Say whether the connection must end because a body that nobody will read is on its way.

        A caller that waits for permission to send its body may send its next request instead, and a large
        or unmeasured body is not worth reading.
        """
        if not self.unread or self.bodiless():
            return False
        return b"expect" in self._found or self._length is None or self._length > DRAIN_OCTETS_MAX


def too_large(endpoint: Endpoint) -> Refused:
    """Return the refusal of a body over the operation's limit."""
    limit = endpoint.operation.body_limit_octets
    return Refused(
        endpoint.system.codes.body_too_large,
        f"the body exceeds {limit} octets" if limit else "this operation takes no body",
    )
