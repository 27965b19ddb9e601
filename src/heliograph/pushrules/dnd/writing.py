"""Makes the documents of quiet hours from what a person chose, in their one canonical spelling (R338)."""

from collections.abc import Iterable
from typing import Any

from heliograph.pushrules.dnd.schedule import MINUTES_OF_DAY, Dnd, Period, read_dnd
from heliograph.wire.zones import TZDB_VERSION


def merge(periods: Iterable[Period]) -> tuple[tuple[Period, ...], bool]:
    """Join what overlaps or touches, also across midnight.

    Args:
        periods: In any order. One that ends where it starts lasts a whole day.

    Returns:
        The canonical periods, and whether they cover the whole day; then there are none.
    """
    quiet = bytearray(MINUTES_OF_DAY)
    for period in periods:
        last = period.end if period.end > period.start else period.end + MINUTES_OF_DAY
        for minute in range(period.start, last):
            quiet[minute % MINUTES_OF_DAY] = True
    if all(quiet):
        return (), True
    starts = [minute for minute in range(MINUTES_OF_DAY) if quiet[minute] and not quiet[minute - 1]]
    merged = []
    for start in starts:
        end = start
        while quiet[end % MINUTES_OF_DAY]:
            end += 1
        merged.append(Period(start, end % MINUTES_OF_DAY))
    return tuple(merged), False


def write_dnd(
    timezone: str,
    periods: Iterable[Period],
    *,
    enabled: bool = True,
    all_day: bool = False,
    exceptions: Iterable[str] = (),
) -> dict[str, Any]:
    """Write quiet hours from a person's choice.

    Args:
        timezone: The canonical name of a zone.
        periods: In any order, overlapping or not; ignored for a whole day.
        enabled: Whether they count.
        all_day: Whether every minute is quiet.
        exceptions: Ids of rules that may disturb even so, in any order.

    Returns:
        The document to encrypt.

    Raises:
        DocumentRefused: The zone is no canonical one, or there are too many periods or exceptions.
    """
    merged, whole = merge(() if all_day else periods)
    return written(
        Dnd(
            enabled=enabled,
            timezone=timezone,
            all_day=all_day or whole,
            periods=merged,
            exceptions=frozenset(exceptions),
        )
    )


def written(dnd: Dnd) -> dict[str, Any]:
    """Spell quiet hours as a document, and check it as every reader will.

    Raises:
        DocumentRefused: They are not valid.
    """
    schedule = {
        "timezone": dnd.timezone,
        "tzdb_version": TZDB_VERSION,
        "all_day": dnd.all_day,
        "periods": [{"start": _clock(period.start), "end": _clock(period.end)} for period in dnd.periods],
    }
    value = {"dnd": {"enabled": dnd.enabled, "schedule": schedule, "exceptions": sorted(dnd.exceptions)}}
    read_dnd(value)
    return value


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
