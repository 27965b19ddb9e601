"""The pause of a whole project after FCM has said that its quota is used up. Pure."""

from typing import Final, final

from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.retry_after import RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN
from heliograph.wire.instant import Instant

PAUSE_MS: Final = 60_000
"""The first pause where FCM names none: its quotas are counted by the minute."""

JITTER_PARTS: Final = 5
"""A pause is lengthened by up to a fifth, so that processes that were refused together do not come back
together."""

LATE_MS: Final = 10_000
"""How much later than its exchange began an answer may have come: the longest wait for one. A pause is
counted from the beginning, so it is lengthened by this."""

DOUBLED_MAX: Final = 6
"""A minute doubled six times is over an hour, which is the longest pause."""

_JITTER_OCTETS: Final = 4


@final
class QuotaPause:
    """Whether a project may be asked, and how long not.

    While a pause lasts every exchange of the project ends unsent, as throttled. Pauses that FCM does not
    measure itself double until a message is taken.
    """

    __slots__ = ("_begun_at", "_doubled", "_pause_ms")

    def __init__(self) -> None:
        self._begun_at: Instant = 0
        self._pause_ms = 0
        self._doubled = 0

    def verdict(self, now: Instant) -> Verdict | None:
        """Return what an exchange ends with that begins now, or None when it may ask."""
        left_ms = self._left_ms(now)
        if left_ms <= 0:
            return None
        return Verdict(Outcome.THROTTLED_APP, "fcm_quota_paused", retry_after_ms=_clamped(left_ms))

    def begin(self, now: Instant, asked_ms: int | None, octets: bytes) -> int:
        """Note that the quota is used up.

        Args:
            now: When the exchange that heard so began.
            asked_ms: The pause that FCM asks for, if it names one.
            octets: Random octets for the jitter of a pause of our own.

        Returns:
            How long the message itself is to wait.
        """
        left_ms = self._left_ms(now)
        if asked_ms is not None:
            if asked_ms + LATE_MS > left_ms:
                self._begun_at, self._pause_ms = now, asked_ms + LATE_MS
            return asked_ms
        if left_ms > 0:
            return _clamped(left_ms)  # many were under way when the first of them was refused
        own_ms = PAUSE_MS << self._doubled
        drawn = int.from_bytes(octets[:_JITTER_OCTETS], "big") % (own_ms // JITTER_PARTS + 1)
        own_ms = _clamped(own_ms + drawn)
        self._doubled = min(self._doubled + 1, DOUBLED_MAX)
        self._begun_at, self._pause_ms = now, own_ms
        return own_ms

    def taken(self, now: Instant) -> None:
        """Note that a message was taken; one that was under way when a pause began says nothing."""
        if self._left_ms(now) <= 0:
            self._doubled = 0

    def _left_ms(self, now: Instant) -> int:
        """Return what is left of the pause; a clock that stepped back does not lengthen it."""
        passed_ms = abs(now - self._begun_at)
        return self._pause_ms - passed_ms


def _clamped(pause_ms: int) -> int:
    return min(max(pause_ms, RETRY_AFTER_MS_MIN), RETRY_AFTER_MS_MAX)
