"""What quiet hours are: read from a document, valid as a whole or refused, and never repaired.

Two devices of a person have to be quiet at the same minutes. So there is one spelling of every schedule and
one release of the time zone data; whatever is spelled otherwise, or means another release, is refused by
both.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from heliograph.pushrules import document
from heliograph.pushrules.document import DocumentRefused, Fault, within
from heliograph.wire.zones import TZDB_VERSION, ZONES

PERIODS_MAX: Final = 32
"""Periods in a schedule at most; from the published schema."""

EXCEPTIONS_MAX: Final = 64
"""Exceptions at most; from the published schema."""

RULE_ID_MAX_CHARACTERS: Final = 128
"""Longest rule id that an exception can name; from the published schema."""

MINUTES_OF_DAY: Final = 1_440

_MINUTE: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_ZONE: Final = re.compile(r"Etc/UTC|[A-Za-z][A-Za-z0-9._+-]*/[A-Za-z][A-Za-z0-9._+/-]*")
_ZONE_MIN_CHARACTERS: Final = 3
_ZONE_MAX_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True)
class Period:
    """A part of every day, by the clock on the wall.

    Attributes:
        start: The first quiet minute of the day, from 0 to 1439.
        end: The first minute that is not quiet any more. One before the start is on the next day.
    """

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Dnd:
    """Valid quiet hours.

    Attributes:
        enabled: Whether they count at all.
        timezone: The canonical name of the zone whose clock counts.
        all_day: Whether every minute is quiet; then there are no periods.
        periods: In order, without touching one another.
        exceptions: Ids of the rules that may disturb even so.
    """

    enabled: bool
    timezone: str
    all_day: bool = False
    periods: tuple[Period, ...] = ()
    exceptions: frozenset[str] = frozenset()


def read_dnd(value: object) -> Dnd:
    """Read a decrypted ``ak.dnd_schedule`` (R329, R330).

    Args:
        value: Any JSON value.

    Raises:
        DocumentRefused: A member is missing, unknown or wrong, the zone is no canonical one, the release of
            the data is another one, or periods or exceptions are not in their one canonical order.
    """
    root = document.members(value, "", ("dnd",), clause="R330")
    given = document.members(root["dnd"], "dnd", ("enabled", "schedule", "exceptions"), clause="R330")
    place = "dnd.schedule"
    schedule = document.members(
        given["schedule"], place, ("timezone", "tzdb_version", "all_day", "periods"), clause="R330"
    )
    enabled = document.boolean(given["enabled"], "dnd.enabled", clause="R330")
    if schedule["tzdb_version"] != TZDB_VERSION:
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION, "R333", within(place, "tzdb_version"), f"must be {TZDB_VERSION}"
        )
    timezone = _read_zone(schedule["timezone"], within(place, "timezone"))
    all_day = document.boolean(schedule["all_day"], within(place, "all_day"), clause="R336")
    periods = _read_periods(schedule["periods"], within(place, "periods"))
    if all_day and periods:
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION, "R336", within(place, "periods"), "must be empty where all_day is true"
        )
    exceptions = _read_exceptions(given["exceptions"], "dnd.exceptions")
    return Dnd(enabled, timezone, all_day, periods, exceptions)


def check_zone(name: str, field: str) -> str:
    """Check that a name is the canonical one of a zone of the pinned release (R332).

    Raises:
        DocumentRefused: It is an alias, an abbreviation, spelled in another case, or nothing at all.
    """
    if name not in ZONES:
        raise DocumentRefused(
            Fault.PARAM_INVALID, "R332", field, f"must be the canonical name of a zone of {TZDB_VERSION}"
        )
    return name


def _read_zone(value: object, field: str) -> str:
    if (
        not isinstance(value, str)
        or not _ZONE_MIN_CHARACTERS <= len(value) <= _ZONE_MAX_CHARACTERS
        or not _ZONE.fullmatch(value)
    ):
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION, "R332", field, "must be the name of a zone like Asia/Shanghai"
        )
    return check_zone(value, field)


def _read_periods(value: object, field: str) -> tuple[Period, ...]:
    listed = document.items(value, field, PERIODS_MAX, clause="R329")
    periods = []
    for number, item in enumerate(listed):
        place = f"{field}[{number}]"
        given = document.members(item, place, ("start", "end"), clause="R330")
        period = Period(
            _read_minute(given["start"], within(place, "start")),
            _read_minute(given["end"], within(place, "end")),
        )
        if period.start == period.end:
            raise DocumentRefused(
                Fault.PARAM_INVALID, "R335", within(place, "end"), "must differ from the start"
            )
        periods.append(period)
    _check_canonical(periods, field)
    return tuple(periods)


def _check_canonical(periods: list[Period], field: str) -> None:
    """Refuse periods that are out of order, or that meet (R337, R339, R340)."""
    for number, (one, two) in enumerate(pairwise(periods), start=1):
        place = f"{field}[{number}].start"
        if two.start <= one.start:
            raise DocumentRefused(Fault.PARAM_INVALID, "R337", place, "must be later than the one before")
        # One that ends on the next day covers every later minute of this one, so nothing may follow it.
        if one.end < one.start or two.start <= one.end:
            raise DocumentRefused(
                Fault.PARAM_INVALID, "R337", place, "must leave a minute free after the period before"
            )
    # The day is a circle: the last period may reach over midnight to the first, or end where it begins.
    if len(periods) > 1 and periods[-1].end < periods[-1].start and periods[0].start <= periods[-1].end:
        raise DocumentRefused(
            Fault.PARAM_INVALID,
            "R337",
            f"{field}[{len(periods) - 1}].end",
            "must leave a minute free before the first period of the next day",
        )


def _read_minute(value: object, field: str) -> int:
    match = _MINUTE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, "R335", field, "must be a minute of the day like 08:00")
    return int(match[1]) * 60 + int(match[2])


def _read_exceptions(value: object, field: str) -> frozenset[str]:
    listed = document.items(value, field, EXCEPTIONS_MAX, clause="R329")
    names = [
        document.text(item, f"{field}[{number}]", RULE_ID_MAX_CHARACTERS, clause="R345")
        for number, item in enumerate(listed)
    ]
    for number, (one, two) in enumerate(pairwise(names), start=1):
        # Python compares texts by code point, which is the order that is asked for.
        if two <= one:
            raise DocumentRefused(
                Fault.PARAM_INVALID,
                "R345",
                f"{field}[{number}]",
                "must be after the one before by code point",
            )
    return frozenset(names)
