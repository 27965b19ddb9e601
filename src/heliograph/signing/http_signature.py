"""HTTP Message Signatures (RFC 9421) between services: sign a request, verify one.

Scenario ``ak.http_signature.scenario.service_to_service.v1``, freshness ``ak.http_signature.freshness.v1``.

A verifier here is stricter than RFC 9421 wherever the RFC leaves room: one signature, Ed25519 only, canonical
spacing in ``Signature-Input`` (so that its text and its re-serialization are the same octets), no component
parameters, every required component covered, every conditional one covered when it is there. The order of
the checks follows the published reading: headers present, parse, algorithm, content digest, coverage,
window, signature. Replays are not seen here: the caller remembers ``VerifiedRequest.signature``.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from heliograph.signing.content_digest import DigestFault, DigestRefused, check_content_digest, content_digest
from heliograph.signing.ed25519 import SigningKey, VerifyKey
from heliograph.signing.signature_base import Fault, RequestHead, SignatureRefused, Why, signature_base
from heliograph.signing.signature_fields import (
    Covered,
    FieldFault,
    FieldRefused,
    parse_covered,
    parse_signature,
    parse_signature_input,
)
from heliograph.wire import ids
from heliograph.wire.ids import DidCoreId, VerificationMethod
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed

__all__ = [
    "ACCEPTANCE_WINDOW_MS",
    "CREATED_SKEW_SECONDS_MAX",
    "LIFETIME_SECONDS_MAX",
    "SERVICE_TO_SERVICE",
    "Fault",
    "KeyFor",
    "Policy",
    "RequestHead",
    "SignatureRefused",
    "VerifiedRequest",
    "Why",
    "sign",
    "verify",
]

LIFETIME_SECONDS_MAX: Final = 300
"""Most seconds between ``created`` and ``expires``; inclusive."""

CREATED_SKEW_SECONDS_MAX: Final = 30
"""Most seconds between ``created`` and our clock, either way; inclusive. ``expires`` gets no grace."""

ACCEPTANCE_WINDOW_MS: Final = (LIFETIME_SECONDS_MAX + CREATED_SKEW_SECONDS_MAX) * 1000
"""How long a replay cache must remember a signature."""

CONTROLLERS_MAX: Final = 1024
"""Projections of key ids remembered, so that a known peer's is not parsed again for every request."""

SOURCE: Final = "source-service-id"
DESTINATION: Final = "destination-service-id"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a signature must cover.

    ``content-digest`` joins the list whenever the request has content.

    Attributes:
        always: Components that must be covered, the two service ids among them.
        when_present: Fields that must be covered if the request carries them.
    """

    always: frozenset[str]
    when_present: frozenset[str]

    def __post_init__(self) -> None:
        if not self.always >= {SOURCE, DESTINATION}:
            raise ValueError("a signature must always say who speaks to whom")


SERVICE_TO_SERVICE: Final = Policy(
    always=frozenset({"@method", "@target-uri", "@authority", "arkret-operation", SOURCE, DESTINATION}),
    when_present=frozenset(
        {"content-digest", "idempotency-key", "source-trust-domain", "destination-trust-domain"}
    ),
)
"""The lower bound of the service-to-service scenario (R106, R270)."""

_FIELD_FAULTS: Final = {
    FieldFault.MALFORMED: Why.UNPARSABLE,
    FieldFault.SEVERAL: Why.MORE_THAN_ONE,
    FieldFault.TWICE: Why.NAMED_TWICE,
}

_SIGNING_ORDER: Final = (
    "@method",
    "@target-uri",
    "@authority",
    "content-digest",
    SOURCE,
    DESTINATION,
    "arkret-operation",
    "idempotency-key",
    "source-trust-domain",
    "destination-trust-domain",
)

# SHA-256 of "heliograph: a key that nobody holds 7", which happens to be a point. Unknown sources are
# verified against it, so that the time an answer takes does not tell who is onboarded.
_NOBODY: Final = VerifyKey(bytes.fromhex("2612e2cdf2ae5e923ec2c5f7e8f96cf8fcea2c674aeecb3e0bfd80fba842b0f8"))

KeyFor = Callable[[DidCoreId, VerificationMethod], VerifyKey | None]
"""Looks up the current key of a source; None when the source or the key is not known."""


class VerifiedRequest(msgspec.Struct, frozen=True):
    """What a verified signature vouches for.

    Attributes:
        source_id: Who signed; the controller of ``keyid`` and the covered ``Source-Service-ID``.
        destination_id: The covered ``Destination-Service-ID``, octet for octet. The caller compares it.
        keyid: Which of the source's keys.
        covered: The covered components, in the signer's order.
        created: Unix seconds.
        expires: Unix seconds.
        signature: The 64 octets, the key of a replay cache.
        content_sha256: The SHA-256 of the content where a Content-Digest vouches for it.
    """

    source_id: DidCoreId
    destination_id: str
    keyid: VerificationMethod
    covered: tuple[str, ...]
    created: int
    expires: int
    signature: bytes
    content_sha256: bytes | None


def sign(  # noqa: PLR0917 - what, by whom, from when till when
    head: RequestHead,
    body: bytes | None,
    key: SigningKey,
    keyid: VerificationMethod,
    created: int,
    expires: int,
    components: Iterable[str] | None = None,
) -> dict[str, str]:
    """Sign a request.

    Args:
        head: What is about to be sent, without the headers that this function returns.
        body: The exact content, already canonical JSON; None or empty where there is none.
        key: The private key behind ``keyid``.
        keyid: The verification method, a DID URL of the source service.
        created: Unix seconds.
        expires: Unix seconds; later than ``created`` by at most 300. Ed25519 is deterministic: draw the
            difference at random, or two signings within a second are one replay.
        components: What to cover, in order; the scenario's whole list by default.

    Returns:
        The headers to add, by lower-case name: ``content-digest`` where there is content,
        ``signature-input`` and ``signature``.

    Raises:
        ValueError: The lifetime is not allowed, or the request lacks a field that must be covered; our own
            mistake.
    """
    if not 0 < expires - created <= LIFETIME_SECONDS_MAX:
        raise ValueError(f"a signature lives between 1 and {LIFETIME_SECONDS_MAX} seconds")
    added: dict[str, str] = {}
    fields = head.fields
    if body:
        added["content-digest"] = content_digest(body)
        fields = {**fields, **added}
    names = components if components is not None else _whole_list(fields)
    listed = "(" + " ".join(f'"{name}"' for name in names) + ")"
    parameters = f'{listed};created={created};expires={expires};keyid="{keyid}";alg="ed25519"'
    try:
        covered = parse_covered(listed)
        _check_coverage(SERVICE_TO_SERVICE, covered, fields, has_content=bool(body))
        base = signature_base(
            RequestHead(head.method, head.target_uri, head.authority, fields), covered, parameters
        )
    except (FieldRefused, SignatureRefused) as refused:
        raise ValueError(f"the request cannot be signed: {refused}") from None
    added["signature-input"] = f"sig1={parameters}"
    added["signature"] = f"sig1=:{b64encode(key.sign(base)).decode('ascii')}:"
    return added


def verify(
    head: RequestHead,
    body: bytes | None,
    key_for: KeyFor,
    now_ms: Instant,
    policy: Policy = SERVICE_TO_SERVICE,
) -> VerifiedRequest:
    """Verify who signed a request, and that nothing that matters was changed since.

    Whether the destination is us, whether the content is canonical and whether the signature was seen
    before are for the caller to ask.

    Args:
        head: The request as it came, under its external URI.
        body: The exact content; None or empty where there was none.
        key_for: Looks up the source's current key.
        now_ms: Now. Compared in whole seconds, in which ``created`` and ``expires`` count.
        policy: What must be covered.

    Raises:
        SignatureRefused: Not signed as it must be; ``fault`` is the wire code.
    """
    fields = head.fields
    given_input, given_signature = fields.get("signature-input"), fields.get("signature")
    if given_input is None or given_signature is None:
        raise SignatureRefused(Why.NO_SIGNATURE)
    try:
        said = parse_signature_input(given_input)
        label, signature = parse_signature(given_signature)
    except FieldRefused as refused:
        raise SignatureRefused(_FIELD_FAULTS[refused.fault]) from None
    if label != said.label:
        raise SignatureRefused(Why.LABELS_DIFFER)
    if said.alg != "ed25519":
        raise SignatureRefused(Why.ALGORITHM)
    content_sha256 = _check_digest(fields.get("content-digest"), body)
    _check_coverage(policy, said.covered, fields, has_content=bool(body))
    created, expires = _check_window(said.created, said.expires, now_ms // 1000)
    base = signature_base(head, said.covered, said.parameters)
    source, keyid = _check_source(fields.get(SOURCE), said.keyid)
    key = key_for(source, keyid)
    verified = (key or _NOBODY).verify(base, signature)
    if key is None:
        raise SignatureRefused(Why.UNKNOWN_KEY)
    if not verified:
        raise SignatureRefused(Why.SIGNATURE)
    return VerifiedRequest(
        source_id=source,
        destination_id=fields[DESTINATION].strip(" \t"),
        keyid=keyid,
        covered=said.covered.names,
        created=created,
        expires=expires,
        signature=signature,
        content_sha256=content_sha256,
    )


def _whole_list(fields: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in _SIGNING_ORDER if name in SERVICE_TO_SERVICE.always or name in fields)


def _check_digest(header: str | None, body: bytes | None) -> bytes | None:
    if header is None:
        if body:
            raise SignatureRefused(Why.DIGEST_ABSENT)
        return None
    try:
        return check_content_digest(header, body or b"")
    except DigestRefused as refused:
        malformed = refused.fault is DigestFault.MALFORMED
        raise SignatureRefused(Why.DIGEST_MALFORMED if malformed else Why.DIGEST_MISMATCH) from None


def _check_coverage(
    policy: Policy, covered: Covered, fields: Mapping[str, str], *, has_content: bool
) -> None:
    """Refuse a signature that leaves out what the policy wants covered."""
    names = covered.name_set
    wanted = policy.always
    if not wanted <= names:
        raise SignatureRefused(Why.NOT_COVERED, min(wanted - names))
    for name in policy.when_present:
        if name not in names and name in fields:
            raise SignatureRefused(Why.NOT_COVERED, name)
    if has_content and "content-digest" not in names:
        raise SignatureRefused(Why.NOT_COVERED, "content-digest")


def _check_window(created: int | None, expires: int | None, now: int) -> tuple[int, int]:
    if created is None or expires is None:
        raise SignatureRefused(Why.WINDOW_MALFORMED)
    if not 0 < expires - created <= LIFETIME_SECONDS_MAX:
        raise SignatureRefused(Why.LIFETIME)
    if abs(created - now) > CREATED_SKEW_SECONDS_MAX:
        raise SignatureRefused(Why.CREATED_SKEW)
    if now >= expires:
        raise SignatureRefused(Why.EXPIRED)
    return created, expires


def _check_source(header: str | None, keyid: str | None) -> tuple[DidCoreId, VerificationMethod]:
    """Check that the source's header and the key's controller are the same service."""
    if keyid is None:
        raise SignatureRefused(Why.KEYID)
    try:
        method, controller = _controller(keyid)
    except Malformed:
        raise SignatureRefused(Why.KEYID) from None
    if header is None or header.strip(" \t") != controller:
        raise SignatureRefused(Why.SOURCE)
    return controller, method


@lru_cache(maxsize=CONTROLLERS_MAX)
def _controller(keyid: str) -> tuple[VerificationMethod, DidCoreId]:
    method = ids.parse_verification_method(keyid, "keyid")
    return method, ids.service_of(method, "keyid")
