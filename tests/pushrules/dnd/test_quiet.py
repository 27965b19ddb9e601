"""Which instants are quiet: by the derived cases, and by counting out every minute of odd days."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.ambient.tzdb import open_tzdb
from heliograph.pushrules.dnd.quiet import QuietHours
from heliograph.pushrules.dnd.schedule import MINUTES_OF_DAY, Dnd, Period, read_dnd
from heliograph.pushrules.dnd.writing import merge
from heliograph.wire.instant import parse_instant
from heliograph.wire.zones import ZONES
from tests.shared import SHARED, shared_json

FIXTURE = "spec/arkret/fixtures/dnd-boundary.DERIVED.json"
DERIVED = shared_json(FIXTURE) if (SHARED / FIXTURE).is_file() else {}
EVALUATIONS = DERIVED.get("evaluation_cases", [])
EXCEPTIONS = DERIVED.get("exception_cases", [])
TZDB = open_tzdb()

# Gaps and folds north and south, by half an hour, across midnight, and a day that was left out.
ODD_DAYS = [
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Africa/Casablanca", "2026-02-15"),
    ("America/Santiago", "2026-04-05"),
    ("America/Santiago", "2026-09-06"),
    ("Europe/Dublin", "2026-10-25"),
    ("Pacific/Apia", "2011-12-30"),
    ("Asia/Kathmandu", "2026-06-01"),
]


def quiet(dnd: Dnd) -> QuietHours:
    return QuietHours(dnd, TZDB.clock(dnd.timezone))


def at(text: str) -> int:
    return parse_instant(text, "at")


@pytest.mark.parametrize("case", EVALUATIONS, ids=[case["name"] for case in EVALUATIONS])
@pytest.mark.clause("R328", "R335", "R336", "R341")
def test_the_derived_instants_are_quiet_or_not_as_derived(case: dict[str, Any]) -> None:
    """Half-open minutes, midnight, whole days, gaps and folds."""
    assert quiet(read_dnd(case["value"])).cover(at(case["instant"])) is case["expected_quiet"]


@pytest.mark.parametrize("case", EXCEPTIONS, ids=[case["name"] for case in EXCEPTIONS])
@pytest.mark.clause("R328", "R346")
def test_only_the_very_rule_that_matched_is_an_exception(case: dict[str, Any]) -> None:
    """Neither a prefix of its name nor the lack of a rule."""
    dnd = Dnd(enabled=True, timezone="Etc/UTC", all_day=True, exceptions=frozenset(case["exceptions"]))
    waits = quiet(dnd).suppress(0, case["matched_rule_id"])

    assert waits is case["expected_suppressed"]


@pytest.mark.clause("R341")
def test_summer_time_is_that_of_the_day_and_not_of_january() -> None:
    """Seven in the evening in New York is quiet in July as in January."""
    evening = Dnd(enabled=True, timezone="America/New_York", periods=(Period(19 * 60, 23 * 60),))

    assert quiet(evening).cover(at("2026-07-15T23:00:00.000Z"))
    assert not quiet(evening).cover(at("2026-07-16T03:00:00.000Z"))
    assert quiet(evening).cover(at("2026-01-16T03:59:59.999Z"))
    assert not quiet(evening).cover(at("2026-01-15T23:59:59.999Z"))


def wall_minute(zone: str, instant: datetime) -> int:
    """Read the clock on the wall."""
    shown = instant.astimezone(TZDB.clock(zone))
    return shown.hour * 60 + shown.minute


@pytest.mark.parametrize(("zone", "day"), ODD_DAYS)
@pytest.mark.clause("R335", "R341")
def test_on_odd_days_every_minute_is_as_the_clock_on_the_wall_says(zone: str, day: str) -> None:
    """Counted out for two days, for every period of 37 minutes that begins on a quarter of an hour."""
    noon = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=TZDB.clock(zone))
    begin = noon.astimezone(UTC) - timedelta(days=1)
    shown = [
        (int(instant.timestamp() * 1000), wall_minute(zone, instant))
        for instant in (begin + timedelta(minutes=number) for number in range(2 * MINUTES_OF_DAY))
    ]
    for start in range(0, MINUTES_OF_DAY, 15 * 7):
        period = Period(start, (start + 37) % MINUTES_OF_DAY)
        hours = quiet(Dnd(enabled=True, timezone=zone, periods=(period,)))
        wanted = {(start + number) % MINUTES_OF_DAY for number in range(37)}

        assert all(hours.cover(instant) is (minute in wanted) for instant, minute in shown)


@given(
    st.sampled_from(sorted(zone for zone in ZONES if "/" in zone)),
    st.lists(st.builds(Period, st.integers(0, 1439), st.integers(0, 1439)), max_size=4),
    st.integers(at("1890-01-01T00:00:00.000Z"), at("2200-01-01T00:00:00.000Z")),
)
@settings(max_examples=300)
@pytest.mark.clause("R335", "R341")
def test_any_instant_of_any_zone_is_as_the_clock_on_the_wall_says(
    zone: str, periods: list[Period], instant: int
) -> None:
    """A period holds its first minute, not its last, and goes on over midnight."""
    merged, whole = merge(periods)
    minute = wall_minute(zone, datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=instant))
    inside = any(
        one.start <= minute < one.end if one.start < one.end else minute >= one.start or minute < one.end
        for one in periods
    )

    assert quiet(Dnd(enabled=True, timezone=zone, all_day=whole, periods=merged)).cover(instant) is inside


def test_quiet_hours_that_are_off_cover_nothing() -> None:
    """Not even a whole day."""
    assert not quiet(Dnd(enabled=False, timezone="Etc/UTC", all_day=True)).cover(0)
