"""One instant type: integer milliseconds since the Unix epoch, and its one text form.

The text form is ``YYYY-MM-DDTHH:MM:SS.sssZ``: UTC, exactly three fraction digits, upper-case ``T``
and ``Z``, a date that exists, no leap second. Anything else is refused, never repaired.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from heliograph.wire.malformed import Malformed

Instant: TypeAlias = int
"""Milliseconds since 1970-01-01T00:00:00Z."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FORM: Final = re.compile(
    r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)\.(\d{3})Z", re.ASCII
)


def format_instant(at: Instant) -> str:
    """Spell an instant in its canonical text form.

    Args:
        at: Milliseconds since the epoch, between years 1 and 9999.

    Returns:
        For example ``2026-09-20T12:34:56.000Z``.
    """
    moment = _EPOCH + timedelta(milliseconds=at)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".rjust(24, "0")


def parse_instant(text: str, field: str) -> Instant:
    """Read an instant from its canonical text form.

    Args:
        text: The text as it came over the wire.
        field: Where it stood, for the error.

    Returns:
        Milliseconds since the epoch.

    Raises:
        Malformed: The text is not canonical or names a date that does not exist.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise Malformed(field, "must be UTC with three fraction digits, like 2026-01-31T08:00:00.000Z")
    year, month, day, hour, minute, second, milli = (int(part) for part in match.groups())
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise Malformed(field, "names a date that does not exist") from None
    return (moment - _EPOCH) // timedelta(milliseconds=1) + milli
