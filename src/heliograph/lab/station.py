"""A Station's pen: signs handoffs and notifies as a trusted Station would, for rehearsals and demos."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from heliograph.signing.ed25519 import SigningKey
from heliograph.signing.http_signature import RequestHead, sign
from heliograph.wire import canonical
from heliograph.wire.ids import VerificationMethod
from heliograph.wire.instant import Instant

APPLY_PATH: Final = "/_arkret/edge/push/registrations:apply"
NOTIFY_PATH: Final = "/_arkret/edge/push/notify"

_OPERATIONS: Final = {
    APPLY_PATH: "ak.edge.push.command.apply_registration.v1",
    NOTIFY_PATH: "ak.edge.push.command.notify.v1",
}


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request ready to be sent: nothing may be changed without breaking its signature."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class StationPen:
    """Signs for one Station towards one Gateway.

    Attributes:
        service_id: The Station's did_core_id.
        keyid: The DID URL of its signing key.
        key: That key.
        gateway_id: The did_core_id of the Gateway it writes to.
        gateway_url: The Gateway's public origin.
    """

    service_id: str
    keyid: VerificationMethod
    key: SigningKey
    gateway_id: str
    gateway_url: str

    def handoff(self, body: Mapping[str, Any], now: Instant, lifetime_s: int = 120) -> SignedRequest:
        """Sign a registration handoff.

        Args:
            body: The desired state.
            now: The time to sign at.
            lifetime_s: From ``created`` to ``expires``. Signing is deterministic, so two signings within one
                second differ only by this (A20).
        """
        return self._signed(APPLY_PATH, canonical.encode(body), {}, now, lifetime_s)

    def notify(
        self, body: Mapping[str, Any], idempotency_key: str, now: Instant, lifetime_s: int = 120
    ) -> SignedRequest:
        """Sign a notify; the arguments are those of ``handoff``, and the key its answer is kept under."""
        return self._signed(
            NOTIFY_PATH, canonical.encode(body), {"idempotency-key": idempotency_key}, now, lifetime_s
        )

    def sign_octets(self, path: str, body: bytes, now: Instant, lifetime_s: int = 120) -> SignedRequest:
        """Sign any octets for a path without a key, for rehearsing what must be refused."""
        return self._signed(path, body, {}, now, lifetime_s)

    def _signed(
        self, path: str, body: bytes, extra: Mapping[str, str], now: Instant, lifetime_s: int
    ) -> SignedRequest:
        fields = {
            "arkret-operation": _OPERATIONS[path],
            "source-service-id": self.service_id,
            "destination-service-id": self.gateway_id,
            **extra,
        }
        head = RequestHead(
            method="POST",
            target_uri=self.gateway_url + path,
            authority=self.gateway_url.partition("://")[2],
            fields=fields,
        )
        created = now // 1000
        proof = sign(head, body, self.key, self.keyid, created, created + lifetime_s)
        return SignedRequest(path, {**fields, "content-type": "application/json", **proof}, body)
