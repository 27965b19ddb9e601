"""Who may come in: the checks that every signed request passes before its body is looked at."""

import re
from collections.abc import Sequence
from typing import Final, final

import msgspec

from heliograph.ambient.telemetry import Event, Telemetry
from heliograph.arkret.errors import (
    CAPABILITY_DENIED,
    HTTP_SIGNATURE_INVALID,
    HTTP_SIGNATURE_REQUIRED,
    PARAM_INVALID,
    SIGNATURE_WINDOW_INVALID,
    TEMPORARILY_UNAVAILABLE,
    ArkretRefused,
)
from heliograph.arkret.gateway.describe import Identity
from heliograph.arkret.gateway.service.trust import TrustBook
from heliograph.arkret.gateway.store import TrustedStation
from heliograph.edge.problem import Code
from heliograph.edge.request import Request
from heliograph.signing.http_signature import Fault, RequestHead, SignatureRefused, verify

_IDEMPOTENCY_KEY: Final = re.compile(r"[A-Za-z0-9._~-]{1,128}", re.ASCII)

RETRY_AFTER_MS: Final = 1_000
"""What a caller waits while the database is away: the shortest backoff the protocol knows."""

_CODES: Final[dict[Fault, Code]] = {
    Fault.REQUIRED: HTTP_SIGNATURE_REQUIRED,
    Fault.INVALID: HTTP_SIGNATURE_INVALID,
    Fault.WINDOW: SIGNATURE_WINDOW_INVALID,
}


class Admitted(msgspec.Struct, frozen=True):
    """An authenticated caller.

    Attributes:
        station: The trusted Station; its id is the tenant of all that follows (R115).
        proof: The signature's octets: a proof admits one request (replays are refused by them).
        proof_expires_at: When the proof can no longer pass the time window, in milliseconds.
        hardened: Its provider-bound pushes must not tell the time of its events.
    """

    station: TrustedStation
    proof: bytes
    proof_expires_at: int
    hardened: bool

    @property
    def tenant(self) -> str:
        """The partition everything of this caller lives in."""
        return self.station.service_id


@final
class Doorkeeper:
    """Verifies signatures against the trust book and this Gateway's own identity."""

    def __init__(self, identity: Identity, trust: TrustBook, telemetry: Telemetry) -> None:
        self._identity = identity
        self._trust = trust
        self._telemetry = telemetry
        self._authority = identity.base_url.partition("://")[2]

    def admit(self, request: Request) -> Admitted:
        """Authenticate a signed request.

        Who is not trusted learns no more than who signed wrongly (A4): nobody can ask who is onboarded.

        Raises:
            ArkretRefused: With the code that the fault maps to; nothing was looked up or changed.
        """
        head = RequestHead(
            method=request.method,
            target_uri=self._identity.base_url
            + (f"{request.path}?{request.query}" if request.query else request.path),
            authority=self._authority,
            fields=_fields(request.headers),
        )
        try:
            verified = verify(head, request.body, self._trust.key_for, request.received_at)
        except SignatureRefused as refused:
            self._telemetry.event(
                Event.SIGNATURE_REFUSED,
                why=refused.why,
                operation=request.path,
                request_id=request.request_id,
            )
            raise ArkretRefused(_CODES[refused.fault]) from None
        station = self._trust.station(verified.source_id)
        if station is None:
            raise ArkretRefused(HTTP_SIGNATURE_INVALID)
        if verified.destination_id != self._identity.service_id:
            raise ArkretRefused(CAPABILITY_DENIED, "the request is addressed to another service")
        return Admitted(
            station=station,
            proof=verified.signature,
            proof_expires_at=verified.expires * 1000,
            hardened=self._trust.hardened(verified.source_id),
        )


def _fields(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Join repeated header fields, as a signature sees them."""
    fields: dict[str, str] = {}
    for name, value in headers:
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def unavailable() -> ArkretRefused:
    """Say that the database cannot take this now; nothing was committed and nobody was told otherwise."""
    return ArkretRefused(TEMPORARILY_UNAVAILABLE, retry_after_ms=RETRY_AFTER_MS)


def idempotency_key(values: Sequence[str]) -> str:
    """Return the one well-formed ``Idempotency-Key`` of a request (A24).

    Raises:
        ArkretRefused: ``param_invalid``: it is missing, repeated or malformed.
    """
    if len(values) != 1 or _IDEMPOTENCY_KEY.fullmatch(values[0]) is None:
        raise ArkretRefused(
            PARAM_INVALID,
            "must be given once, as 1 to 128 characters of A-Z a-z 0-9 . _ ~ -",
            field="Idempotency-Key",
        )
    return values[0]
