"""One instant, one text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire.instant import format_instant, parse_instant
from heliograph.wire.malformed import Malformed

YEAR_1 = -62_135_596_800_000
YEAR_9999_END = 253_402_300_799_999


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_790_000_000_123, "2026-09-21T14:13:20.123Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (YEAR_1, "0001-01-01T00:00:00.000Z"),
        (YEAR_9999_END, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_an_instant_has_one_text(at: int, text: str) -> None:
    """Written and read alike, before the epoch and in leap years too."""
    assert format_instant(at) == text
    assert parse_instant(text, "at") == at


@given(st.integers(YEAR_1, YEAR_9999_END))
def test_every_instant_comes_back(at: int) -> None:
    """Round trip to the millisecond."""
    assert parse_instant(format_instant(at), "at") == at


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-09-20",
        "2026-09-20T12:34:56Z",
        "2026-09-20T12:34:56.0Z",
        "2026-09-20T12:34:56.0000Z",
        "2026-09-20t12:34:56.000Z",
        "2026-09-20T12:34:56.000z",
        "2026-09-20T12:34:56.000+00:00",
        "2026-09-20 12:34:56.000Z",
        "2026-09-20T12:34:56,000Z",
        "2026-09-20T24:00:00.000Z",
        "2026-09-20T12:34:60.000Z",
        "2026-13-01T00:00:00.000Z",
        "2026-02-29T00:00:00.000Z",
        "2026-04-31T00:00:00.000Z",
        "0000-01-01T00:00:00.000Z",
        "2026-09-20T12:34:56.000Z\n",
        "\u0662026-09-20T12:34:56.000Z",
        "+2026-09-20T12:34:56.000Z",
    ],
)
def test_another_spelling_is_refused(text: str) -> None:
    """No other precision, case, zone, digit or date that does not exist."""
    with pytest.raises(Malformed) as caught:
        parse_instant(text, "receipt.stored_at")

    assert caught.value.field == "receipt.stored_at"


@given(st.text(max_size=30))
def test_no_text_makes_the_reader_fail_otherwise(text: str) -> None:
    """Whatever arrives is an instant or refused."""
    try:
        at = parse_instant(text, "at")
    except Malformed:
        return

    assert format_instant(at) == text
