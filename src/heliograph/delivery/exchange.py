"""A conversation with a provider, without a socket.

An exchange is a generator: it yields ``Ask`` values, is sent ``Answer`` values and returns a
``Verdict``. The carrier drives it over a real connection, tests drive it by hand. When no answer can
come the carrier sends a ``Lost`` instead, so every exchange says in one place what each loss means.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from heliograph.delivery.model import Verdict
from heliograph.wire.instant import Instant
from heliograph.wire.secret import Secret


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP request to make. Its repr shows no header, URL or body.

    Attributes:
        method: Upper-case method.
        url: Absolute URL; a capability for some providers, so a secret.
        headers: Lower-case names. Values may be credentials.
        body: The exact octets to send.
        untrusted_host: The host came from a user: the carrier applies the egress guard to it.
        timeout_ms: The longest wait for the whole answer.
        body_limit: How many octets of the answer's body the exchange wants to see at most.
        connections: Whose connections it goes over: asks of different names never share one. For services
            that tie a connection to the credential that it first saw. The egress guard's pinned connections
            have no owner, so it says nothing where the host is untrusted.
        http2_only: The service speaks nothing but HTTP/2. Then one connection is opened however many asks
            wait for it; where that is not known, each that waits opens one. Only for trusted hosts.
    """

    method: str
    url: Secret
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    untrusted_host: bool = False
    timeout_ms: int = 10_000
    body_limit: int = 4_096
    connections: str = ""
    http2_only: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Header names are lower-case; the body is cut at the ask's limit."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Loss(StrEnum):
    """Why no answer came."""

    NOT_SENT = "not_sent"
    """Nothing was processed: resolution, connection or TLS failed, or HTTP/2 proves that nobody looked."""
    CUT = "cut"
    """The request may have arrived; the connection ended before an answer (ambiguous)."""
    TIMED_OUT = "timed_out"
    """The request may have arrived; no answer within the time (ambiguous)."""
    REFUSED_EGRESS = "refused_egress"
    """The egress guard forbids this address."""


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer will come, and why."""

    loss: Loss


@dataclass(frozen=True, slots=True)
class Moment:
    """What an exchange may know of the world: the time and some random octets.

    Attributes:
        now: When the exchange begins.
        octets: At least 64 random octets, fresh for each exchange.
    """

    now: Instant
    octets: bytes = field(repr=False)


Exchange: TypeAlias = Generator[Ask, Answer | Lost, Verdict]
