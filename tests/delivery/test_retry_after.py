"""How long a provider asks us to pause."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.delivery.retry_after import RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN, retry_after_ms

NOW = 784_111_777_000  # Sun, 06 Nov 1994 08:49:37 GMT

READ = {
    "54": 54_000,
    " 54\t": 54_000,
    "1": 1_000,
    "0": 1_000,
    "3600": 3_600_000,
    "3601": 3_600_000,
    "9999999999": 3_600_000,
    "Sun, 06 Nov 1994 08:50:37 GMT": 60_000,
    "Sun, 06 Nov 1994 08:49:37 GMT": 1_000,
    "Sun, 06 Nov 1994 08:00:00 GMT": 1_000,
    "Mon, 07 Nov 1994 08:49:37 GMT": 3_600_000,
    "Sunday, 06-Nov-94 08:50:37 GMT": 60_000,
    "Sun Nov  6 08:50:37 1994": 60_000,
    "Sun, 06 Nov 1994 08:49:60 GMT": 22_000,
}
JUNK = (
    None,
    "",
    "-5",
    "+5",
    "5.0",
    "5s",
    "soon",
    "\u0665",
    "1 2",
    "12345678901",
    "Sun, 06 Nov 1994 08:50:37",
    "Sun, 06 Nov 1994 08:50:37 CET",
    "Sun, 31 Feb 1994 08:50:37 GMT",
    "Sun, 06 nov 1994 08:50:37 GMT",
    "Sun, 06 Nov 1994 25:50:37 GMT",
    "Sun, 6 Nov 1994 08:50:37 GMT",
    "Sun, 06 Nov 0000 08:50:37 GMT",
    "9" * 100,
)


@pytest.mark.parametrize(("header", "pause"), READ.items())
def test_seconds_and_dates_are_read_and_clamped(header: str, pause: int) -> None:
    """Both forms of RFC 9110, from one second to one hour."""
    assert retry_after_ms(header, NOW) == pause


@pytest.mark.parametrize("header", JUNK)
def test_junk_leaves_the_pause_to_us(header: str | None) -> None:
    """A negative number or a date that does not exist is no wish."""
    assert retry_after_ms(header, NOW) is None


def test_a_two_digit_year_far_ahead_was_in_the_century_before() -> None:
    """RFC 9110: more than fifty years ahead means the past."""
    in_2026 = 1_790_000_000_000

    assert retry_after_ms("Sunday, 06-Nov-94 08:50:37 GMT", in_2026) == RETRY_AFTER_MS_MIN
    assert retry_after_ms("Sunday, 06-Nov-75 08:50:37 GMT", in_2026) == RETRY_AFTER_MS_MAX


@given(st.text(max_size=80) | st.integers().map(str))
def test_every_header_gives_a_pause_within_the_bounds_or_none(header: str) -> None:
    """No header of any kind raises."""
    pause = retry_after_ms(header, NOW)

    assert pause is None or RETRY_AFTER_MS_MIN <= pause <= RETRY_AFTER_MS_MAX
