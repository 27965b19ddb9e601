"""Base64url without padding, in its one canonical spelling.

Every octet string has exactly one spelling here. A text that decodes but would be spelled otherwise
(padding, stray trailing bits, the other alphabet, white space) is refused, so that equal values are
equal texts and a text can be a key.
"""

import base64
import binascii

from heliograph.wire.malformed import Malformed


def encode(octets: bytes) -> str:
    """Spell octets in the canonical unpadded form."""
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")


def decode(text: str, field: str) -> bytes:
    """Read octets from their canonical unpadded form.

    Args:
        text: The text as it came over the wire.
        field: Where it stood, for the error.

    Returns:
        The octets; the empty text spells none.

    Raises:
        Malformed: The text is not base64url or not the canonical spelling of what it decodes to.
    """
    try:
        octets = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise Malformed(field, "must be base64url without padding") from None
    # The decoder skips what is not in its alphabet; only spelling the octets again shows a stray mark.
    if encode(octets) != text:
        raise Malformed(field, "must be canonical base64url without padding")
    return octets


def decode_exactly(text: str, octets: int, field: str) -> bytes:
    """Read a fixed number of octets from their canonical unpadded form.

    Args:
        text: The text as it came over the wire.
        octets: How many octets it must spell.
        field: Where it stood, for the error.

    Returns:
        Exactly so many octets.

    Raises:
        Malformed: The text is not canonical base64url or spells another number of octets.
    """
    # Judge the length first: work must not grow with what a stranger sent.
    if len(text) != (octets * 8 + 5) // 6:
        raise Malformed(field, f"must be the base64url form of exactly {octets} octets")
    return decode(text, field)
