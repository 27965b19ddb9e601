"""Content-Digest (RFC 9530), in the one form that Arkret admits.

Exactly one member, keyed ``sha-256``, without parameters, over the exact octets of the content. Whatever
else RFC 9530 allows (further members, aliases, parameters) would be a second thing to believe.
"""

import base64
import hashlib
import re
from enum import StrEnum
from typing import Final

_FORM: Final = re.compile(r"sha-256=:[A-Za-z0-9+/]{42}[048AEIMQUYcgkosw]=:")


class DigestFault(StrEnum):
    """Why a Content-Digest was refused; a closed set."""

    MALFORMED = "malformed"
    MISMATCH = "mismatch"


class DigestRefused(ValueError):  # noqa: N818 - a refusal
    """A Content-Digest does not vouch for the content.

    Attributes:
        fault: Whether its form or its value is wrong.
    """

    def __init__(self, fault: DigestFault) -> None:
        self.fault = fault
        super().__init__(f"content digest: {fault}")


def content_digest(body: bytes) -> str:
    """Spell the Content-Digest of some content.

    Args:
        body: The exact octets that travel.

    Returns:
        For example ``sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:``.
    """
    return digest_field(hashlib.sha256(body).digest())


def digest_field(sha256: bytes) -> str:
    """Spell the Content-Digest of content whose SHA-256 is known."""
    return f"sha-256=:{base64.b64encode(sha256).decode('ascii')}:"


def check_content_digest(header: str, body: bytes) -> bytes:
    """Check that a Content-Digest header vouches for the content.

    Args:
        header: The field's value; several fields of that name joined with a comma are refused.
        body: The exact octets that travelled.

    Returns:
        The SHA-256 of the content, 32 octets.

    Raises:
        DigestRefused: The header has another form, or another value than the content.
    """
    sha256 = hashlib.sha256(body).digest()
    given = header.strip(" \t")
    if given != digest_field(sha256):
        raise DigestRefused(DigestFault.MISMATCH if _FORM.fullmatch(given) else DigestFault.MALFORMED)
    return sha256
