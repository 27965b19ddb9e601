r"""Typed identifiers: their patterns, and the functions that turn a text into one or refuse it.

A ``NewType`` is a promise that the text went through its ``parse_`` function. The ``…Text`` annotations
carry the same pattern into msgspec types, for closed wire bodies; where a pattern alone cannot tell
(octets behind base64url), the ``parse_`` function still has to be called.

Patterns end in ``\Z``: ``$`` would let a trailing newline through. Identifiers are compared octet by
octet; nothing here normalizes, lower-cases or decodes percent signs.
"""

import re
from typing import Annotated, Final, NewType

from msgspec import Meta

from heliograph.wire import base64url
from heliograph.wire.malformed import Malformed

DidCoreId = NewType("DidCoreId", str)
"""The stable core of a DID; what services and principals are called."""

Did = NewType("Did", str)
"""A bare DID: no path, query or fragment."""

VerificationMethod = NewType("VerificationMethod", str)
"""A DID URL that names one key of a DID."""

DeviceId = NewType("DeviceId", str)
PushTargetId = NewType("PushTargetId", str)
RegistrationId = NewType("RegistrationId", str)
RouteToken = NewType("RouteToken", str)
EventId = NewType("EventId", str)
RealmId = NewType("RealmId", str)
StrandId = NewType("StrandId", str)
MessageId = NewType("MessageId", str)

# The published patterns exclude white space; controls go too, since they cannot travel in a header, and
# U+0000 separates what is sealed together.
_OPAQUE: Final = r"[^\s\x00-\x1f\x7f-\x9f\ufeff/?#]+"
_UUID7: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

DID_CORE_ID_PATTERN: Final = rf"^ak:did_core:[a-z0-9]+:{_OPAQUE}\Z"
DID_CORE_ID_CHARACTERS_MAX: Final = 512

DID_PATTERN: Final = rf"^did:[a-z0-9]+:{_OPAQUE}\Z"
DID_CHARACTERS_MAX: Final = 2048

VERIFICATION_METHOD_PATTERN: Final = r"^did:[a-z0-9]+:[^\s\x00-\x1f\x7f-\x9f\ufeff#?]+#[A-Za-z0-9._:-]+\Z"
VERIFICATION_METHOD_CHARACTERS_MAX: Final = DID_CHARACTERS_MAX + 256
"""A DID, the ``#`` and a fragment; the text sets no limit of its own."""

DEVICE_ID_PATTERN: Final = rf"^ak:device:{_UUID7}\Z"
PUSH_TARGET_ID_PATTERN: Final = r"^ak:pseudonym:push:[A-Za-z0-9_-]{42}[048AEIMQUYcgkosw]\Z"
REGISTRATION_ID_PATTERN: Final = r"^(?!ak:)[A-Za-z0-9._~-]{22,128}\Z"
ROUTE_TOKEN_PATTERN: Final = r"^[A-Za-z0-9._~-]{22,512}\Z"  # noqa: S105 - a pattern
EVENT_ID_PATTERN: Final = r"^ak:event:[A-Za-z0-9_-]{44}\Z"
REALM_ID_PATTERN: Final = r"^ak:realm:[A-Za-z0-9_-]{44}\Z"
STRAND_ID_PATTERN: Final = r"^ak:strand:[A-Za-z0-9_-]{44}\Z"
MESSAGE_ID_PATTERN: Final = r"^ak:message:[A-Za-z0-9_-]{44}\Z"
DIGEST_PATTERN: Final = r"^sha256:[0-9a-f]{64}\Z"

DidCoreIdText = Annotated[str, Meta(pattern=DID_CORE_ID_PATTERN, max_length=DID_CORE_ID_CHARACTERS_MAX)]
DidText = Annotated[str, Meta(pattern=DID_PATTERN, max_length=DID_CHARACTERS_MAX)]
VerificationMethodText = Annotated[
    str, Meta(pattern=VERIFICATION_METHOD_PATTERN, max_length=VERIFICATION_METHOD_CHARACTERS_MAX)
]
DeviceIdText = Annotated[str, Meta(pattern=DEVICE_ID_PATTERN)]
PushTargetIdText = Annotated[str, Meta(pattern=PUSH_TARGET_ID_PATTERN)]
RegistrationIdText = Annotated[str, Meta(pattern=REGISTRATION_ID_PATTERN)]
RouteTokenText = Annotated[str, Meta(pattern=ROUTE_TOKEN_PATTERN)]
EventIdText = Annotated[str, Meta(pattern=EVENT_ID_PATTERN)]
RealmIdText = Annotated[str, Meta(pattern=REALM_ID_PATTERN)]
StrandIdText = Annotated[str, Meta(pattern=STRAND_ID_PATTERN)]
MessageIdText = Annotated[str, Meta(pattern=MESSAGE_ID_PATTERN)]
DigestText = Annotated[str, Meta(pattern=DIGEST_PATTERN)]

_PUSH_TARGET_PREFIX: Final = "ak:pseudonym:push:"
_PUSH_TARGET_OCTETS: Final = 32
_CONTENT_ADDRESS_OCTETS: Final = 33
_SUITE_SHA256: Final = 0x01
"""The only registered digest suite of version 1; the first octet of a content address."""

_DID_CORE_ID: Final = re.compile(DID_CORE_ID_PATTERN)
_DID: Final = re.compile(DID_PATTERN)
_VERIFICATION_METHOD: Final = re.compile(VERIFICATION_METHOD_PATTERN)
_DEVICE_ID: Final = re.compile(DEVICE_ID_PATTERN)
_REGISTRATION_ID: Final = re.compile(REGISTRATION_ID_PATTERN)
_ROUTE_TOKEN: Final = re.compile(ROUTE_TOKEN_PATTERN)
_DIGEST: Final = re.compile(DIGEST_PATTERN)
_KEY_MSI: Final = re.compile(r"z[1-9A-HJ-NP-Za-km-z]+\Z")
_WEBVH_MSI: Final = re.compile(r"([^:]+):.+\Z")


def parse_did_core_id(text: str, field: str) -> DidCoreId:
    """Read a ``ak:did_core:<method>:<core>``.

    Raises:
        Malformed: It is not one, or longer than 512 characters.
    """
    if len(text) > DID_CORE_ID_CHARACTERS_MAX or not _DID_CORE_ID.match(text):
        raise Malformed(field, "must be a did_core_id like ak:did_core:web:station.example")
    return DidCoreId(text)


def parse_did(text: str, field: str) -> Did:
    """Read a bare DID.

    Raises:
        Malformed: It is not one, or longer than 2048 characters.
    """
    if len(text) > DID_CHARACTERS_MAX or not _DID.match(text):
        raise Malformed(field, "must be a bare DID like did:web:station.example")
    return Did(text)


def parse_verification_method(text: str, field: str) -> VerificationMethod:
    """Read a verification method: a DID, ``#`` and a fragment.

    Raises:
        Malformed: It is not one, carries a query, or is longer than a DID and a fragment can be.
    """
    if len(text) > VERIFICATION_METHOD_CHARACTERS_MAX or not _VERIFICATION_METHOD.match(text):
        raise Malformed(field, "must be a verification method like did:web:station.example#push")
    return VerificationMethod(text)


def did_core_id_of(did: Did, field: str = "did") -> DidCoreId:
    """Project a DID to the stable identity it belongs to.

    ``did:web`` keeps its whole method-specific id, ``did:webvh`` its self-certifying first part, ``did:key``
    its key.

    Args:
        did: A bare DID.
        field: Where it stood, for the error.

    Raises:
        Malformed: The method has no registered projection, or the DID lacks what its method requires.
    """
    _, method, rest = did.split(":", 2)
    match method:
        case "web":
            core = rest
        case "webvh":
            found = _WEBVH_MSI.match(rest)
            if found is None:
                raise Malformed(field, "must name a host after the self-certifying identifier")
            core = found[1]
        case "key":
            if not _KEY_MSI.match(rest):
                raise Malformed(field, "must be a multibase key after did:key")
            core = rest
        case _:
            raise Malformed(field, "must use a DID method that projects to an identity: web, webvh or key")
    return parse_did_core_id(f"ak:did_core:{method}:{core}", field)


def service_of(verification_method: VerificationMethod, field: str = "verification_method") -> DidCoreId:
    """Project a verification method to the identity that controls it.

    Args:
        verification_method: A verification method, already parsed.
        field: Where it stood, for the error.

    Raises:
        Malformed: What stands before ``#`` is not a bare DID or has no projection.
    """
    return did_core_id_of(parse_did(verification_method.partition("#")[0], field), field)


def parse_device_id(text: str, field: str) -> DeviceId:
    """Read a ``ak:device:`` and a lower-case UUID of version 7.

    Raises:
        Malformed: It is not one.
    """
    if not _DEVICE_ID.match(text):
        raise Malformed(field, "must be a device id: ak:device: and a lower-case UUIDv7")
    return DeviceId(text)


def parse_push_target_id(text: str, field: str) -> PushTargetId:
    """Read a push target id: a pseudonym of exactly 32 octets in canonical base64url (R018, R019).

    Raises:
        Malformed: It is not one, or its octets are spelled in a form that is not canonical.
    """
    prefix, tag = text[: len(_PUSH_TARGET_PREFIX)], text[len(_PUSH_TARGET_PREFIX) :]
    if prefix != _PUSH_TARGET_PREFIX:
        raise Malformed(field, "must begin with ak:pseudonym:push:")
    base64url.decode_exactly(tag, _PUSH_TARGET_OCTETS, field)
    return PushTargetId(text)


def format_push_target_id(tag: bytes) -> PushTargetId:
    """Spell the whole 32-octet tag of a push target (R015, R017).

    Raises:
        ValueError: The tag has another length; our own mistake.
    """
    if len(tag) != _PUSH_TARGET_OCTETS:
        raise ValueError("a push target's tag is never shortened")
    return PushTargetId(_PUSH_TARGET_PREFIX + base64url.encode(tag))


def parse_registration_id(text: str, field: str) -> RegistrationId:
    """Read a registration id: 22 to 128 unreserved characters, opaque to everyone (R057, R058).

    Raises:
        Malformed: It is not one.
    """
    if not _REGISTRATION_ID.match(text):
        raise Malformed(field, "must be 22 to 128 characters of A-Z a-z 0-9 . _ ~ -")
    return RegistrationId(text)


def parse_route_token(text: str, field: str) -> RouteToken:
    """Read a route token: 22 to 512 unreserved characters, opaque to everyone.

    Raises:
        Malformed: It is not one.
    """
    if not _ROUTE_TOKEN.match(text):
        raise Malformed(field, "must be 22 to 512 characters of A-Z a-z 0-9 . _ ~ -")
    return RouteToken(text)


def parse_event_id(text: str, field: str) -> EventId:
    """Read an Event's content address.

    Raises:
        Malformed: It is not one, or names an unknown digest suite.
    """
    return EventId(_content_address(text, "ak:event:", field))


def parse_realm_id(text: str, field: str) -> RealmId:
    """Read a Realm's content address.

    Raises:
        Malformed: It is not one, or names an unknown digest suite.
    """
    return RealmId(_content_address(text, "ak:realm:", field))


def parse_strand_id(text: str, field: str) -> StrandId:
    """Read a Strand's content address.

    Raises:
        Malformed: It is not one, or names an unknown digest suite.
    """
    return StrandId(_content_address(text, "ak:strand:", field))


def parse_message_id(text: str, field: str) -> MessageId:
    """Read a Message's content address.

    Raises:
        Malformed: It is not one, or names an unknown digest suite.
    """
    return MessageId(_content_address(text, "ak:message:", field))


def _content_address(text: str, prefix: str, field: str) -> str:
    if not text.startswith(prefix):
        raise Malformed(field, f"must begin with {prefix}")
    octets = base64url.decode_exactly(text[len(prefix) :], _CONTENT_ADDRESS_OCTETS, field)
    if octets[0] != _SUITE_SHA256:
        raise Malformed(field, "must name the SHA-256 digest suite")
    return text


def parse_digest(text: str, field: str) -> str:
    """Read a ``sha256:`` digest in lower-case hexadecimal.

    Raises:
        Malformed: It is not one.
    """
    if not _DIGEST.match(text):
        raise Malformed(field, "must be sha256: and 64 lower-case hexadecimal digits")
    return text
