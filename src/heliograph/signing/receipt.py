"""The Gateway's proof that it durably stored an installation or its end: a detached JWS.

The receipt echoes what was asked, the proof names who says so, and the signature covers a third object, the
binding, that repeats both and is never sent: each side builds it for itself, so neither can be led to sign
or believe members that the other did not see. The binding's context is a constant and not on the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from heliograph.signing.ed25519 import SIGNATURE_OCTETS, SigningKey, VerifyKey
from heliograph.wire import base64url, canonical, ids
from heliograph.wire.canonical import Canonical
from heliograph.wire.ids import DeviceId, DidCoreId, PushTargetId, RegistrationId, VerificationMethod
from heliograph.wire.instant import Instant, format_instant, parse_instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.strict_json import JsonValue

CONTEXT: Final = "ak.push_registration_installation_receipt_proof.v1"
_KIND: Final = "detached_jws"
_HEADER: Final = base64url.encode(b'{"alg":"Ed25519"}')

_ECHOED: Final = ("registration_id", "push_target_id", "device_id", "state")
_RECEIPT_TEXTS: Final = (
    *_ECHOED,
    "request_digest",
    "source_station_id",
    "destination_gateway_id",
    "stored_at",
)
_PROOF_TEXTS: Final = frozenset({"kind", "verification_method", "payload_digest", "created_at", "jws"})
_PROOF_REST: Final = frozenset({"audience", "domain", "proof_purpose"})


class ReceiptState(StrEnum):
    """What the Gateway stored; a closed set."""

    ACTIVE = "active"
    REVOKED = "revoked"


class ReceiptFault(StrEnum):
    """Why a receipt was refused, in the order in which the reasons are looked for; a closed set."""

    REQUEST = "request"
    SHAPE = "shape"
    PAYLOAD_DIGEST = "payload_digest"
    CREATED_AT = "created_at"
    DOMAIN = "domain"
    PROOF_PURPOSE = "proof_purpose"
    AUDIENCE = "audience"
    CONTROLLER = "controller"
    ECHO = "echo"
    VERIFICATION_METHOD = "verification_method"
    JWS_FORM = "jws_form"
    JWS_HEADER = "jws_header"
    JWS_SIGNATURE = "jws_signature"


class ReceiptRefused(Exception):  # noqa: N818 - a refusal
    """A receipt does not prove what was asked for.

    Attributes:
        fault: The first reason found.
    """

    def __init__(self, fault: ReceiptFault) -> None:
        self.fault = fault
        super().__init__(f"receipt refused: {fault}")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a Gateway says that it stored (R133). It holds nothing of the provider route (R134).

    Attributes:
        registration_id: Which registration.
        push_target_id: Of which target.
        device_id: For which device.
        state: Installed, or ended for ever.
        request_digest: ``sha256:`` digest of the whole canonical request body.
        source_station_id: Who asked.
        destination_gateway_id: Who stored.
        stored_at: When, in milliseconds.
    """

    registration_id: RegistrationId
    push_target_id: PushTargetId
    device_id: DeviceId
    state: ReceiptState
    request_digest: str
    source_station_id: DidCoreId
    destination_gateway_id: DidCoreId
    stored_at: Instant

    def members(self) -> dict[str, str]:
        """Spell the receipt without its proof, as it travels."""
        return {
            "registration_id": self.registration_id,
            "push_target_id": self.push_target_id,
            "device_id": self.device_id,
            "state": self.state.value,
            "request_digest": self.request_digest,
            "source_station_id": self.source_station_id,
            "destination_gateway_id": self.destination_gateway_id,
            "stored_at": format_instant(self.stored_at),
        }


def sign_receipt(
    receipt: Receipt, verification_method: VerificationMethod, key: SigningKey
) -> dict[str, JsonValue]:
    """Sign a receipt (R133).

    The result is what the Gateway stores and gives again for every replay of the request, octet for octet
    (R123); it must not be signed anew.

    Args:
        receipt: What was stored.
        verification_method: The Gateway's receipt key, by name. Its controller must be the receipt's
            ``destination_gateway_id``, or every Station will refuse the receipt.
        key: The private key of that name.

    Returns:
        The receipt with its proof.

    Raises:
        ValueError: The key belongs to somebody else; our own mistake.
    """
    if ids.service_of(verification_method) != receipt.destination_gateway_id:
        raise ValueError("a receipt is signed by the gateway that it names")
    members = receipt.members()
    payload_digest = canonical.digest(members)
    signing_input = _signing_input(members, payload_digest, verification_method)
    proof: dict[str, JsonValue] = {
        "kind": _KIND,
        "verification_method": verification_method,
        "payload_digest": payload_digest,
        "created_at": members["stored_at"],
        "audience": members["source_station_id"],
        "jws": f"{_HEADER}..{base64url.encode(key.sign(signing_input))}",
    }
    return {**members, "proof": proof}


def verify_receipt(
    document: JsonValue,
    request: Mapping[str, Canonical],
    source: DidCoreId,
    destination: DidCoreId,
    *,
    verification_method: VerificationMethod,
    key: VerifyKey,
) -> Receipt:
    """Verify a receipt against the request that it answers (R135).

    Args:
        document: The receipt as it came, with its proof.
        request: The body that was sent.
        source: The Station that sent it.
        destination: The Gateway that it was sent to.
        verification_method: The receipt key that the Gateway was onboarded with.
        key: That key.

    Returns:
        What is proved.

    Raises:
        ReceiptRefused: The first reason found, in the published order.
    """
    request_digest = _digest_of_request(request)
    members, proof = _shaped(document)
    if proof["payload_digest"] != canonical.digest(members):
        raise ReceiptRefused(ReceiptFault.PAYLOAD_DIGEST)
    stored_at = _check_created_at(members, proof)
    if "domain" in proof:
        raise ReceiptRefused(ReceiptFault.DOMAIN)
    if "proof_purpose" in proof:
        raise ReceiptRefused(ReceiptFault.PROOF_PURPOSE)
    if proof.get("audience") != members["source_station_id"]:
        raise ReceiptRefused(ReceiptFault.AUDIENCE)
    if _controller(str(proof["verification_method"])) != members["destination_gateway_id"]:
        raise ReceiptRefused(ReceiptFault.CONTROLLER)
    expected = {name: request[name] for name in _ECHOED}
    expected |= {
        "request_digest": request_digest,
        "source_station_id": source,
        "destination_gateway_id": destination,
    }
    if any(members[name] != value for name, value in expected.items()):
        raise ReceiptRefused(ReceiptFault.ECHO)
    if proof["verification_method"] != verification_method:
        raise ReceiptRefused(ReceiptFault.VERIFICATION_METHOD)
    signing_input = _signing_input(members, str(proof["payload_digest"]), verification_method)
    _check_jws(str(proof["jws"]), signing_input, key)
    return Receipt(
        registration_id=RegistrationId(members["registration_id"]),
        push_target_id=PushTargetId(members["push_target_id"]),
        device_id=DeviceId(members["device_id"]),
        state=ReceiptState(members["state"]),
        request_digest=request_digest,
        source_station_id=source,
        destination_gateway_id=destination,
        stored_at=stored_at,
    )


def binding(
    members: Mapping[str, str], payload_digest: str, verification_method: VerificationMethod
) -> dict[str, str]:
    """Build the object that the signature covers, from a receipt's members and its proof's.

    Args:
        members: The receipt without its proof.
        payload_digest: The digest of those members.
        verification_method: Whose key signs.

    Returns:
        Twelve members; ``created_at`` and ``audience`` follow from the receipt's own.
    """
    return {
        "context": CONTEXT,
        "payload_digest": payload_digest,
        "registration_id": members["registration_id"],
        "push_target_id": members["push_target_id"],
        "device_id": members["device_id"],
        "state": members["state"],
        "request_digest": members["request_digest"],
        "source_station_id": members["source_station_id"],
        "destination_gateway_id": members["destination_gateway_id"],
        "verification_method": verification_method,
        "created_at": members["stored_at"],
        "audience": members["source_station_id"],
    }


def _signing_input(
    members: Mapping[str, str], payload_digest: str, verification_method: VerificationMethod
) -> bytes:
    bound = canonical.encode(binding(members, payload_digest, verification_method))
    return f"{_HEADER}.{base64url.encode(bound)}".encode("ascii")


def _digest_of_request(request: Mapping[str, Canonical]) -> str:
    """Check the request as far as the receipt speaks of it, and digest it whole."""
    try:
        ids.parse_registration_id(_text_of(request, "registration_id"), "registration_id")
        ids.parse_push_target_id(_text_of(request, "push_target_id"), "push_target_id")
        ids.parse_device_id(_text_of(request, "device_id"), "device_id")
        ReceiptState(_text_of(request, "state"))
        return canonical.digest(request)
    except ValueError:
        raise ReceiptRefused(ReceiptFault.REQUEST) from None


def _text_of(request: Mapping[str, Canonical], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise Malformed(name, "must be a text")
    return value


def _shaped(document: JsonValue) -> tuple[dict[str, str], dict[str, JsonValue]]:
    """Split a receipt of the right shape into its own members and its proof."""
    if not isinstance(document, dict) or document.keys() != {*_RECEIPT_TEXTS, "proof"}:
        raise ReceiptRefused(ReceiptFault.SHAPE)
    proof = document["proof"]
    members = {name: value for name in _RECEIPT_TEXTS if isinstance(value := document[name], str)}
    if len(members) != len(_RECEIPT_TEXTS) or not isinstance(proof, dict):
        raise ReceiptRefused(ReceiptFault.SHAPE)
    if not all(value.isascii() for value in members.values()):
        raise ReceiptRefused(ReceiptFault.SHAPE)
    if not _PROOF_TEXTS <= proof.keys() <= _PROOF_TEXTS | _PROOF_REST:
        raise ReceiptRefused(ReceiptFault.SHAPE)
    if not all(isinstance(proof[name], str) for name in _PROOF_TEXTS) or proof["kind"] != _KIND:
        raise ReceiptRefused(ReceiptFault.SHAPE)
    return members, proof


def _check_created_at(members: Mapping[str, str], proof: Mapping[str, JsonValue]) -> Instant:
    if proof["created_at"] != members["stored_at"]:
        raise ReceiptRefused(ReceiptFault.CREATED_AT)
    try:
        return parse_instant(members["stored_at"], "stored_at")
    except Malformed:
        raise ReceiptRefused(ReceiptFault.CREATED_AT) from None


def _controller(verification_method: str) -> DidCoreId | None:
    try:
        return ids.service_of(ids.parse_verification_method(verification_method, "verification_method"))
    except Malformed:
        return None


def _check_jws(jws: str, signing_input: bytes, key: VerifyKey) -> None:
    header, _, rest = jws.partition(".")
    payload, _, spelled = rest.partition(".")
    if payload:
        raise ReceiptRefused(ReceiptFault.JWS_FORM)
    try:
        signature = base64url.decode_exactly(spelled, SIGNATURE_OCTETS, "jws")
    except Malformed:
        raise ReceiptRefused(ReceiptFault.JWS_FORM) from None
    # The one header there may be, octet for octet: no other algorithm name, no further member. A header that
    # is parsed is a header that can be argued with.
    if header != _HEADER:
        raise ReceiptRefused(ReceiptFault.JWS_HEADER)
    if not key.verify(signing_input, signature):
        raise ReceiptRefused(ReceiptFault.JWS_SIGNATURE)
