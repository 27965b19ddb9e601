"""Which quiet hours are valid, in the derived cases and beyond, and how valid ones are made."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from heliograph.pushrules.dnd.schedule import MINUTES_OF_DAY, Period, read_dnd
from heliograph.pushrules.dnd.writing import merge, write_dnd
from heliograph.pushrules.document import DocumentRefused
from heliograph.wire.zones import ZONES
from tests.pushrules.arkret.strategies import JSON
from tests.shared import SHARED, shared_json

FIXTURE = "spec/arkret/fixtures/dnd-boundary.DERIVED.json"
SCHEMA = "spec/arkret/fixtures/dnd-schedule.schema.json"
LISTED = "dnd.schedule.periods"
CASES = shared_json(FIXTURE)["validation_cases"] if (SHARED / FIXTURE).is_file() else []


def dnd(**changes: Any) -> dict[str, Any]:
    """Return the example of the text; members of the schedule and of the whole may be changed."""
    schedule: dict[str, Any] = {
        "timezone": "Asia/Shanghai",
        "tzdb_version": "2025b",
        "all_day": False,
        "periods": [{"start": "22:00", "end": "08:00"}],
    }
    whole: dict[str, Any] = {"enabled": True, "schedule": schedule, "exceptions": ["content.keyword-urgent"]}
    for name, value in changes.items():
        (schedule if name in schedule else whole)[name] = value
    return {"dnd": whole}


def period(start: str, end: object) -> dict[str, object]:
    return {"start": start, "end": end}


def refusal(value: Any) -> tuple[str, str, str]:
    with pytest.raises(DocumentRefused) as refused:
        read_dnd(value)
    return refused.value.fault.value, refused.value.clause, refused.value.field


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
@pytest.mark.clause("R329", "R330", "R331", "R332", "R333", "R335", "R336", "R337", "R339", "R340", "R345")
def test_the_derived_cases_are_valid_or_not_as_derived(case: dict[str, Any]) -> None:
    """Each value is taken or refused as a whole."""
    try:
        read_dnd(case["value"])
    except DocumentRefused as refused:
        found = "invalid"
        assert refused.clause.startswith("R3")  # noqa: PT017 - what is refused is part of the case
    else:
        found = "valid"

    assert found == case["expected"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], ("schema_violation", "R330", "")),
        ({}, ("schema_violation", "R330", "dnd")),
        (dnd()["dnd"], ("schema_violation", "R330", "dnd")),
        (dnd() | {"version": 1}, ("schema_violation", "R330", "version")),
        (dnd(note=1), ("schema_violation", "R330", "dnd.note")),
        (dnd(enabled=1), ("schema_violation", "R330", "dnd.enabled")),
        (dnd(schedule=None), ("schema_violation", "R330", "dnd.schedule")),
        (dnd(all_day=0), ("schema_violation", "R336", "dnd.schedule.all_day")),
        (dnd(all_day=True), ("schema_violation", "R336", "dnd.schedule.periods")),
        (dnd(timezone="local"), ("schema_violation", "R332", "dnd.schedule.timezone")),
        (dnd(timezone="Factory"), ("schema_violation", "R332", "dnd.schedule.timezone")),
        (dnd(timezone="Asia/Shanghai\n"), ("schema_violation", "R332", "dnd.schedule.timezone")),
        (dnd(timezone=["Asia/Shanghai"]), ("schema_violation", "R332", "dnd.schedule.timezone")),
        (dnd(timezone="Asia/Calcutta"), ("param_invalid", "R332", "dnd.schedule.timezone")),
        (dnd(timezone="Asia/../Asia/Tokyo"), ("schema_violation", "R332", "dnd.schedule.timezone")),
        (dnd(tzdb_version="2025c"), ("schema_violation", "R333", "dnd.schedule.tzdb_version")),
        (dnd(tzdb_version=None), ("schema_violation", "R333", "dnd.schedule.tzdb_version")),
        (dnd(periods=None), ("schema_violation", "R329", "dnd.schedule.periods")),
        (dnd(periods=[None]), ("schema_violation", "R330", "dnd.schedule.periods[0]")),
        (dnd(periods=[period("1:00", "02:00")]), ("schema_violation", "R335", f"{LISTED}[0].start")),
        (dnd(periods=[period("01:00", "\u06602:00")]), ("schema_violation", "R335", f"{LISTED}[0].end")),
        (dnd(periods=[period("01:00", 2)]), ("schema_violation", "R335", f"{LISTED}[0].end")),
        (dnd(periods=[period("01:00", "01:00")]), ("param_invalid", "R335", f"{LISTED}[0].end")),
        (
            dnd(periods=[period("03:00", "04:00"), period("01:00", "02:00")]),
            ("param_invalid", "R337", "dnd.schedule.periods[1].start"),
        ),
        (
            dnd(periods=[period("01:00", "02:00"), period("02:00", "03:00")]),
            ("param_invalid", "R337", "dnd.schedule.periods[1].start"),
        ),
        (
            dnd(periods=[period("20:00", "06:00"), period("22:00", "23:00")]),
            ("param_invalid", "R337", "dnd.schedule.periods[1].start"),
        ),
        (
            dnd(periods=[period("00:00", "06:00"), period("22:00", "00:00")]),
            ("param_invalid", "R337", "dnd.schedule.periods[1].end"),
        ),
        (dnd(exceptions=["b", "a"]), ("param_invalid", "R345", "dnd.exceptions[1]")),
        (dnd(exceptions=["a", "a"]), ("param_invalid", "R345", "dnd.exceptions[1]")),
        (dnd(exceptions=[""]), ("schema_violation", "R345", "dnd.exceptions[0]")),
    ],
)
@pytest.mark.clause("R329", "R330", "R331", "R332", "R333", "R335", "R336", "R337", "R345")
def test_a_refusal_names_the_place_and_the_clause(value: Any, expected: tuple[str, str, str]) -> None:
    """So that a person can repair what another device wrote."""
    assert refusal(value) == expected


@pytest.mark.parametrize("zone", sorted(ZONES))
@pytest.mark.clause("R332")
def test_every_canonical_zone_may_be_used(zone: str) -> None:
    """But for the placeholder, which has no slash; Etc/UTC is spelled out by the schema."""
    if "/" in zone:
        assert read_dnd(dnd(timezone=zone)).timezone == zone
    else:
        assert refusal(dnd(timezone=zone))[1] == "R332"


@given(JSON)
@pytest.mark.clause("R329")
def test_whatever_a_value_holds_it_is_read_or_refused(value: Any) -> None:
    """By name, wherever the damage is."""
    for document in (value, {"dnd": value}, dnd(schedule=value), dnd(periods=value), dnd(exceptions=value)):
        try:
            read_dnd(document)
        except DocumentRefused as refused:
            assert refused.clause.startswith("R3")  # noqa: PT017 - any clause will do


PERIODS = st.lists(
    st.builds(Period, st.integers(0, MINUTES_OF_DAY - 1), st.integers(0, MINUTES_OF_DAY - 1)), max_size=8
)


def minutes(periods: tuple[Period, ...] | list[Period]) -> set[int]:
    """List the quiet minutes one by one; a period that ends where it starts lasts a day."""
    quiet = set()
    for period in periods:
        minute = period.start
        while True:
            quiet.add(minute)
            minute = (minute + 1) % MINUTES_OF_DAY
            if minute == period.end:
                break
    return quiet


@given(PERIODS)
@pytest.mark.clause("R338", "R339")
def test_whatever_is_chosen_is_written_so_that_readers_take_it(periods: list[Period]) -> None:
    """The same minutes, joined and in order; a full day becomes all_day."""
    merged, whole = merge(periods)
    read = read_dnd(write_dnd("Asia/Shanghai", periods, exceptions=["b", "a"]))

    assert minutes(merged) == (set() if whole else minutes(periods))
    assert whole == (len(minutes(periods)) == MINUTES_OF_DAY)
    assert (read.periods, read.all_day) == (merged, whole)
    assert read.exceptions == {"a", "b"}


@given(PERIODS)
@pytest.mark.clause("R329", "R337", "R339", "R340")
def test_a_list_is_valid_exactly_when_it_is_its_own_merger(periods: list[Period]) -> None:
    """Nothing else is accepted, and nothing is repaired on reading."""
    spelled = [
        {"start": f"{one.start // 60:02}:{one.start % 60:02}", "end": f"{one.end // 60:02}:{one.end % 60:02}"}
        for one in periods
    ]
    canonical = all(one.start != one.end for one in periods) and merge(periods) == (tuple(periods), False)
    try:
        read_dnd(dnd(periods=spelled))
        found = True
    except DocumentRefused:
        found = False

    assert found is canonical


@given(PERIODS, st.booleans(), st.lists(st.text(max_size=4), max_size=4))
@pytest.mark.clause("R329")
def test_the_published_schema_takes_whatever_is_valid_here(
    periods: list[Period], all_day: Any, exceptions: list[str]
) -> None:
    """And what it refuses is refused here."""
    validator = Draft202012Validator(shared_json(SCHEMA))
    try:
        value = write_dnd("Asia/Shanghai", periods, all_day=all_day, exceptions=exceptions)
    except DocumentRefused:
        assert "" in exceptions
        return

    assert list(validator.iter_errors(value)) == []


def test_more_periods_than_a_schedule_holds_are_refused_when_written() -> None:
    """Thirty-three separate ones cannot be merged into fewer."""
    periods = [Period(40 * number, 40 * number + 20) for number in range(33)]
    with pytest.raises(DocumentRefused, match="at most 32"):
        write_dnd("Asia/Shanghai", periods)

    assert len(read_dnd(write_dnd("Asia/Shanghai", periods[:32])).periods) == 32
