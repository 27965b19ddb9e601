"""What can be said of a request before its body: its size, its selector, its length. Pure."""

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
    """What one pass over the headers finds.

    Args:
        raw: Names in lower case and values, as ASGI gives them.
        target_octets: The size of path and query.
        selector_name: The system's selector header, empty when it has none.

    Attributes:
        fields: The headers as text.
        unread: Whether the body is still on its way; whoever reads it says so.
    """

    __slots__ = (
        "_encoded",
        "_expects",
        "_length",
        "_octets",
        "_selectors",
        "_streamed",
        "_target_octets",
        "_value_octets",
        "fields",
        "unread",
    )

    def __init__(self, raw: list[tuple[bytes, bytes]], target_octets: int, selector_name: bytes) -> None:
        octets = largest = 0
        self._selectors: list[bytes] = []
        self._encoded = self._expects = self._streamed = False
        self._length: int | None = None
        fields = []
        for name, value in raw:
            size = len(value)
            octets += len(name) + size
            if size > largest:  # noqa: PLR1730 - max() costs a call for each header of every request
                largest = size
            if name == b"content-length":
                self._length = int(value) if value.isdigit() else None
            elif name == selector_name:
                self._selectors.append(value)
            elif name == b"content-encoding":
                self._encoded = True
            elif name == b"expect":
                self._expects = True
            elif name == b"transfer-encoding":
                self._streamed = True
            fields.append((name.decode("latin-1"), value.decode("latin-1").strip(" \t")))
        self.fields = tuple(fields)
        self.unread = True
        self._octets = octets
        self._value_octets = largest
        self._target_octets = target_octets

    def check_size(self, system: System) -> None:
        """Refuse a head over its limits.

        Raises:
            Refused: With ``head_too_large``.
        """
        if self._target_octets > TARGET_OCTETS_MAX:
            raise Refused(system.codes.head_too_large, f"path and query exceed {TARGET_OCTETS_MAX} octets")
        if self._value_octets > HEADER_VALUE_OCTETS_MAX:
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
        if not self._selectors:
            if endpoint.operation.selector:
                raise Refused(codes.selector_required, f"the {header} header is missing")
            return False
        if len(self._selectors) > 1:
            raise Refused(codes.selector_unsupported, f"the {header} header must be sent once")
        if self._selectors[0] != endpoint.selector:
            raise Refused(codes.selector_unsupported, f"the {header} header names no operation of this path")
        return True

    def check_content(self, endpoint: Endpoint) -> None:
        """Refuse encoded content, and content that says that it is too long.

        Raises:
            Refused: With ``content_encoding`` or ``body_too_large``.
        """
        if self._encoded:
            raise Refused(endpoint.system.codes.content_encoding, "content must be sent without an encoding")
        if self._length is not None and self._length > endpoint.operation.body_limit_octets:
            raise too_large(endpoint)

    def bodiless(self) -> bool:
        """Say whether no body can follow."""
        return not self._length and not self._streamed

    def closing(self) -> bool:
        """Say whether the connection must end because a body that nobody will read is on its way.

        A caller that waits for permission to send its body may send its next request instead, and a large
        or unmeasured body is not worth reading.
        """
        if not self.unread or self.bodiless():
            return False
        return self._expects or self._length is None or self._length > DRAIN_OCTETS_MAX


def too_large(endpoint: Endpoint) -> Refused:
    """Return the refusal of a body over the operation's limit."""
    limit = endpoint.operation.body_limit_octets
    return Refused(
        endpoint.system.codes.body_too_large,
        f"the body exceeds {limit} octets" if limit else "this operation takes no body",
    )
