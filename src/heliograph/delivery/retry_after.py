"""The ``Retry-After`` header: how long a provider asks us to pause. Pure."""

import re
from datetime import UTC, datetime
from typing import Final

from heliograph.wire.instant import Instant

RETRY_AFTER_MS_MIN: Final = 1_000
"""Sooner than this a retry is a hammer."""

RETRY_AFTER_MS_MAX: Final = 3_600_000
"""Later than an hour a provider's wish is more likely a mistake than a plan."""

_HEADER_CHARACTERS_MAX: Final = 64
"""No legal form is longer; what is longer is junk and not worth a look."""

_SECONDS: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = "|".join(_MONTHS)
_TIME: Final = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d|60)"
_DATES: Final = (
    re.compile(
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?P<day>\d\d) (?P<month>{_MONTH}) (?P<year>\d{{4}}) {_TIME} GMT",
        re.ASCII,
    ),
    re.compile(
        r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, "
        rf"(?P<day>\d\d)-(?P<month>{_MONTH})-(?P<year>\d\d) {_TIME} GMT",
        re.ASCII,
    ),
    re.compile(
        rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<month>{_MONTH}) (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})",
        re.ASCII,
    ),
)
"""The three forms that RFC 9110 5.6.7 tells a recipient to read."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CENTURY: Final = 100
_YEARS_AHEAD_MAX: Final = 50


def retry_after_ms(header: str | None, now: Instant) -> int | None:
    """Read a ``Retry-After`` header.

    Args:
        header: The header's value, or None when there was none.
        now: When the answer came; a date is counted from here.

    Returns:
        The pause in milliseconds, clamped to one second to one hour; None for an absent header, a
        negative number and junk, where the caller falls back to its own backoff.
    """
    if header is None or len(header) > _HEADER_CHARACTERS_MAX:
        return None
    text = header.strip(" \t")
    if _SECONDS.fullmatch(text):
        return _clamp(int(text) * 1_000)
    at = _http_date(text, now)
    return None if at is None else _clamp(at - now)


def _clamp(pause_ms: int) -> int:
    return min(max(pause_ms, RETRY_AFTER_MS_MIN), RETRY_AFTER_MS_MAX)


def _http_date(text: str, now: Instant) -> Instant | None:
    for form in _DATES:
        if (match := form.fullmatch(text)) is not None:
            break
    else:
        return None
    year = int(match["year"])
    if len(match["year"]) == len("94"):
        year = _whole_year(year, now)
    second = min(int(match["second"]), 59)  # a leap second has no instant of its own here
    try:
        moment = datetime(
            year,
            _MONTHS.index(match["month"]) + 1,
            int(match["day"]),
            int(match["hour"]),
            int(match["minute"]),
            second,
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return int((moment - _EPOCH).total_seconds()) * 1_000


def _whole_year(two_digits: int, now: Instant) -> int:
    """Read a two-digit year: one that seems over 50 years ahead was in the century before (RFC 9110)."""
    this_year = 1970 + now // 31_556_952_000
    year = this_year - this_year % _CENTURY + two_digits
    return year - _CENTURY if year > this_year + _YEARS_AHEAD_MAX else year
