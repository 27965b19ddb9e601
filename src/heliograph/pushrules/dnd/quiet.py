"""Whether an instant is quiet: what the clock on the wall shows, looked up in a table of the day's minutes.

Asking the clock, and not reckoning when a period begins and ends, is what makes the two odd nights of the
year come out right. A minute that the clock leaps over is never shown, so it is never quiet; one that it
shows twice is looked up twice and is the same both times (R341).
"""

from datetime import datetime, tzinfo
from typing import Final

from heliograph.pushrules.dnd.schedule import MINUTES_OF_DAY, Dnd
from heliograph.wire.instant import Instant

_MILLISECONDS: Final = 1_000


class QuietHours:
    """Valid quiet hours, ready to be asked.

    Attributes:
        dnd: What they were made of.
    """

    __slots__ = ("_minutes", "_zone", "dnd")

    def __init__(self, dnd: Dnd, zone: tzinfo) -> None:
        """Lay out the day.

        Args:
            dnd: Valid quiet hours.
            zone: The clock of ``dnd.timezone`` by the pinned data.
        """
        minutes = bytearray(MINUTES_OF_DAY)
        if dnd.enabled:
            for period in dnd.periods:
                last = period.end if period.end > period.start else period.end + MINUTES_OF_DAY
                for minute in range(period.start, last):
                    minutes[minute % MINUTES_OF_DAY] = True
            if dnd.all_day:
                minutes = bytearray(b"\1" * MINUTES_OF_DAY)
        self.dnd: Final = dnd
        self._minutes: Final = bytes(minutes)
        self._zone: Final = zone

    def cover(self, at: Instant) -> bool:
        """Tell whether an instant is quiet.

        Args:
            at: Milliseconds since the epoch, between years 1 and 9999.
        """
        shown = datetime.fromtimestamp(at // _MILLISECONDS, self._zone)
        return self._minutes[shown.hour * 60 + shown.minute] != 0

    def suppress(self, at: Instant, rule_id: str | None) -> bool:
        """Tell whether a notification has to wait (R328).

        Args:
            at: When.
            rule_id: The rule that finally matched; None when none did. Only this very rule can be an
                exception (R346).
        """
        return rule_id not in self.dnd.exceptions and self.cover(at)
