"""Text that people read, and text that must merely be there."""

import re
import unicodedata
from typing import Final

from heliograph.wire.malformed import Malformed

DISPLAY_TEXT_256_CHARACTERS_MAX: Final = 256
DISPLAY_TEXT_512_CHARACTERS_MAX: Final = 512

# C0 and C1 controls, bidirectional embeddings, overrides and isolates, the byte order mark.
_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_VISIBLE: Final = re.compile(r"\S")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse_display_text(text: str, field: str, characters_max: int) -> str:
    """Check one line of display text, such as a sender's name or a title.

    The octet limit of the profile is four times the character limit, which UTF-8 can reach but never
    pass; so the character limit alone decides.

    Args:
        text: The text as it came over the wire.
        field: Where it stood, for the error.
        characters_max: Most Unicode code points.

    Returns:
        The text, unchanged.

    Raises:
        Malformed: It is blank, too long, not NFC, or holds a control, bidirectional control or byte order
            mark.
    """
    # Length first, so that the checks below read a bounded text.
    if len(text) > characters_max:
        raise Malformed(field, f"must be at most {characters_max} characters")
    if _SURROGATE.search(text):
        raise Malformed(field, "must not hold lone surrogates")
    if _FORBIDDEN.search(text):
        raise Malformed(field, "must be one line without control characters or bidirectional controls")
    if not _VISIBLE.search(text):
        raise Malformed(field, "must hold at least one visible character")
    if not unicodedata.is_normalized("NFC", text):
        raise Malformed(field, "must be in Unicode normalization form C")
    return text


def parse_display_text_256(text: str, field: str) -> str:
    """Check display text of at most 256 code points and 1024 octets."""
    return parse_display_text(text, field, DISPLAY_TEXT_256_CHARACTERS_MAX)


def parse_display_text_512(text: str, field: str) -> str:
    """Check display text of at most 512 code points and 2048 octets."""
    return parse_display_text(text, field, DISPLAY_TEXT_512_CHARACTERS_MAX)


def parse_non_empty(text: str, field: str, characters_max: int) -> str:
    """Check a text that must be there and about whose content the schema says nothing.

    Args:
        text: The text as it came over the wire.
        field: Where it stood, for the error.
        characters_max: Our own bound; the schema has none.

    Returns:
        The text, unchanged.

    Raises:
        Malformed: It is empty, too long, or holds U+0000, which PostgreSQL cannot store as text.
    """
    if not text:
        raise Malformed(field, "must not be empty")
    if len(text) > characters_max:
        raise Malformed(field, f"must be at most {characters_max} characters")
    if "\0" in text:
        raise Malformed(field, "must not hold U+0000")
    return text


def parse_untyped(text: str, field: str, characters_max: int) -> str:
    """Check a non-empty text that must not pass for a typed identifier, such as an application id.

    Raises:
        Malformed: As ``parse_non_empty``, or it begins with ``ak:``.
    """
    if text.startswith("ak:"):
        raise Malformed(field, "must not begin with ak:")
    return parse_non_empty(text, field, characters_max)
