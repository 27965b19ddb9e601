"""The text that an HTTP message signature covers (RFC 9421, section 2.5), and why it may be refused."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

import msgspec

from heliograph.signing.signature_fields import Covered


class Fault(StrEnum):
    """The wire code that a refusal maps to; a closed set."""

    REQUIRED = "http_signature_required"
    INVALID = "http_signature_invalid"
    WINDOW = "signature_window_invalid"


class Why(StrEnum):
    """What really was wrong, for our logs and never for the caller; a closed set.

    Coverage failures (``NOT_COVERED``) and verification failures (``SIGNATURE``) look alike from outside
    and must be told apart inside.
    """

    NO_SIGNATURE = "no_signature"
    UNPARSABLE = "unparsable"
    MORE_THAN_ONE = "more_than_one"
    NAMED_TWICE = "named_twice"
    LABELS_DIFFER = "labels_differ"
    ALGORITHM = "algorithm"
    KEYID = "keyid"
    DIGEST_ABSENT = "digest_absent"
    DIGEST_MALFORMED = "digest_malformed"
    DIGEST_MISMATCH = "digest_mismatch"
    NOT_COVERED = "not_covered"
    COMPONENT_ABSENT = "component_absent"
    COMPONENT_UNKNOWN = "component_unknown"
    COMPONENT_VALUE = "component_value"
    WINDOW_MALFORMED = "window_malformed"
    LIFETIME = "lifetime"
    CREATED_SKEW = "created_skew"
    EXPIRED = "expired"
    SOURCE = "source"
    UNKNOWN_KEY = "unknown_key"
    SIGNATURE = "signature"


_WINDOW_FAULTS: Final = frozenset({Why.WINDOW_MALFORMED, Why.LIFETIME, Why.CREATED_SKEW, Why.EXPIRED})


class SignatureRefused(Exception):  # noqa: N818 - a refusal, in the caller's blame
    """A request is not signed as it must be. Nothing of the request is repeated here.

    Attributes:
        fault: The wire code it maps to.
        why: What was wrong, safe to log.
        component: For a coverage failure: which component of our own policy was not covered.
    """

    def __init__(self, why: Why, component: str | None = None) -> None:
        self.why = why
        self.component = component
        if why is Why.NO_SIGNATURE:
            self.fault = Fault.REQUIRED
        else:
            self.fault = Fault.WINDOW if why in _WINDOW_FAULTS else Fault.INVALID
        super().__init__(f"{self.fault}: {why}" + (f" ({component})" if component else ""))


class RequestHead(msgspec.Struct, frozen=True):
    """What of a request can be signed, besides its content.

    Attributes:
        method: As sent, for example ``POST``.
        target_uri: The absolute external URI.
        authority: Host, and port if it is not the scheme's own.
        fields: Header values by lower-case name; values of a repeated field joined with ``", "``.
    """

    method: str
    target_uri: str
    authority: str
    fields: Mapping[str, str]


def signature_base(head: RequestHead, covered: Covered, parameters: str) -> bytes:
    """Rebuild what was signed, or is about to be.

    Args:
        head: The request under its external URI.
        covered: Which of its components, in order.
        parameters: The text after ``label=`` in ``Signature-Input``.

    Returns:
        One line for every component and one for the parameters; no line feed at the end.

    Raises:
        SignatureRefused: The request lacks a component, or a value could pose as another.
    """
    fields = head.fields
    lines = []
    for name in covered.names:
        if name[0] == "@":
            value = _derived(name, head)
        elif name in fields:
            value = fields[name].strip(" \t")
        else:
            raise SignatureRefused(Why.COMPONENT_ABSENT)
        lines.append(f'"{name}": {value}')
    lines.append(f'"@signature-params": {parameters}')
    base = "\n".join(lines)
    # A value with a line of its own could pose as another component.
    if base.count("\n") != len(covered.names) or "\r" in base or not base.isascii():
        raise SignatureRefused(Why.COMPONENT_VALUE)
    return base.encode("ascii")


def _derived(name: str, head: RequestHead) -> str:
    match name:
        case "@method":
            return head.method
        case "@target-uri":
            return head.target_uri
        case "@authority":
            return _authority(head)
        case "@scheme" | "@path" | "@query" | "@request-target":
            return _part_of_uri(name, head.target_uri)
        case _:
            raise SignatureRefused(Why.COMPONENT_UNKNOWN)


def _authority(head: RequestHead) -> str:
    authority = head.authority.lower()
    own_port = ":443" if head.target_uri.startswith("https:") else ":80"
    return authority.removesuffix(own_port)


def _part_of_uri(name: str, uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise SignatureRefused(Why.COMPONENT_VALUE) from None
    path = parts.path or "/"
    match name:
        case "@scheme":
            return parts.scheme
        case "@path":
            return path
        case "@query":
            return f"?{parts.query}"
        case _:
            return f"{path}?{parts.query}" if parts.query else path
