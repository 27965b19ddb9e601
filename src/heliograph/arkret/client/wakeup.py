"""The wakeup itself, as it comes out of a provider: a pseudonym, a coarse class, and nothing to show.

What a person sees is made here, from what the device fetches and decrypts (R022, R282). A wakeup therefore
becomes a value that has no place for a text, a sender or a Realm, and whatever else came with it is dropped.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from heliograph.arkret.schema import PushHint
from heliograph.delivery.model import Counts, Wakeup, WakeupKind
from heliograph.pushrules import document
from heliograph.pushrules.document import DocumentRefused, Fault
from heliograph.wire import ids
from heliograph.wire.instant import Instant

COUNT_GRID: Final = frozenset({"1", "2-5", "6-20", "21+"})
"""The published grid of unread counts. A bucket off the grid is dropped, never read as a number."""

UNREAD_INCREMENT_MAX: Final = 99
"""The published bound of an increment."""

L10N_KEY_MAX_CHARACTERS: Final = 128

AGGRESSIVE_WAKEUPS_MAX: Final = 30
AGGRESSIVE_WINDOW_MS: Final = 60_000
"""More than thirty wakeups in a minute cost a battery more than they tell."""

SENDER_HINTS: Final = frozenset({PushHint.NEW_MESSAGE, PushHint.L10N_KEY})
"""What a sender may write into an Event's clear metadata; neither tells who or where (R320)."""


def read_wakeup(value: object) -> Wakeup:
    """Read what a provider delivered.

    Members that are not of a blind wakeup are dropped: providers add their own, and nothing else may be
    believed before it is fetched and decrypted.

    Args:
        value: Any JSON value.

    Raises:
        DocumentRefused: It names no target or no class; there is nothing to wake for.
    """
    if not isinstance(value, Mapping):
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, "R018", "", "must be an object")
    target = document.spelled(
        value.get("push_target_id"), "push_target_id", ids.parse_push_target_id, 64, clause="R018"
    )
    kind: WakeupKind = document.word(value.get("wakeup_kind"), "wakeup_kind", WakeupKind, clause="R026")
    hint = value.get("push_hint")
    l10n_key = value.get("push_hint_l10n_key")
    known = isinstance(hint, str) and hint in PushHint.__members__.values()
    shaped = isinstance(l10n_key, str) and 0 < len(l10n_key) <= L10N_KEY_MAX_CHARACTERS
    return Wakeup(
        push_target_id=target,
        kind=kind,
        push_hint=hint if known else None,
        push_hint_l10n_key=l10n_key if shaped and hint == PushHint.L10N_KEY else None,
        counts=_read_counts(value.get("counts")),
    )


def unread_after(known: int | None, wakeup: Wakeup) -> int | None:
    """Add a wakeup's increment to the count that the device knows (R268).

    Args:
        known: What the device counted itself; None when it does not know.
        wakeup: The wakeup.

    Returns:
        The new count. It is None where none was known: an increment is not a total, whatever it is added to
        nothing.
    """
    increment = wakeup.counts.unread_increment if wakeup.counts is not None else None
    return known if known is None or increment is None else known + increment


def sender_hint(value: object) -> PushHint:
    """Check a hint that a sender is about to write into an Event's clear metadata (R320).

    Raises:
        DocumentRefused: It would tell who is called or who is meant.
    """
    hint: PushHint = document.word(value, "push_hint", PushHint, clause="R320")
    if hint not in SENDER_HINTS:
        raise DocumentRefused(
            Fault.PARAM_INVALID, "R320", "push_hint", "must be " + " or ".join(sorted(SENDER_HINTS))
        )
    return hint


class Disclosure(StrEnum):
    """What a session lets a push service see; a closed set."""

    BLIND = "blind"
    VISIBLE = "visible"

    @property
    def must_be_shown(self) -> bool:
        """Tell whether the app has to show the person which of the two it is (R288)."""
        return self is Disclosure.VISIBLE


def disclosure(
    *, gateway_listed: bool = False, realm_allows_visible: bool = False, opted_in: bool = False
) -> Disclosure:
    """Tell which of the two a session is. Unless everything is said otherwise it is blind (R291).

    Args:
        gateway_listed: The Realm's policy lists the push service among those that may see clear text.
        realm_allows_visible: The Realm's policy allows visible notifications.
        opted_in: The person allowed them on this device.
    """
    return Disclosure.VISIBLE if gateway_listed and realm_allows_visible and opted_in else Disclosure.BLIND


@dataclass(frozen=True, slots=True)
class AggressiveThreshold:
    """How many wakeups a person puts up with before they are to come in batches (R217).

    Attributes:
        wakeups_max: So many.
        window_ms: In so many milliseconds.
    """

    wakeups_max: int = AGGRESSIVE_WAKEUPS_MAX
    window_ms: int = AGGRESSIVE_WINDOW_MS

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            DocumentRefused: One is less than one, or so many wakeups that nobody counts them.
        """
        if not 1 <= self.wakeups_max <= 10_000:  # noqa: PLR2004 - each is remembered
            raise DocumentRefused(Fault.PARAM_INVALID, "R217", "wakeups_max", "must be 1 to 10000")
        if self.window_ms < 1:
            raise DocumentRefused(Fault.PARAM_INVALID, "R217", "window_ms", "must be at least 1")


class WakeupMeter:
    """Counts wakeups against a threshold.

    Attributes:
        threshold: What it counts against.
    """

    __slots__ = ("_seen", "threshold")

    def __init__(self, threshold: AggressiveThreshold | None = None) -> None:
        """Begin to count.

        Args:
            threshold: The person's own; the usual one when None.
        """
        self.threshold: Final = threshold or AggressiveThreshold()
        self._seen: Final[deque[Instant]] = deque(maxlen=self.threshold.wakeups_max + 1)

    def wake(self, now: Instant) -> bool:
        """Count a wakeup, and tell whether they are to come in batches from now on.

        Args:
            now: Milliseconds since the epoch.
        """
        self._seen.append(now)
        full = len(self._seen) > self.threshold.wakeups_max
        return full and now - self._seen[0] < self.threshold.window_ms


def _read_counts(value: object) -> Counts | None:
    if not isinstance(value, Mapping):
        return None
    increment = value.get("unread_increment")
    sound = (
        isinstance(increment, int)
        and not isinstance(increment, bool)
        and 0 <= increment <= UNREAD_INCREMENT_MAX
    )
    return Counts(
        badge=_read_count(value.get("badge")),
        unread_increment=increment if sound else None,
        missed_call=_read_count(value.get("missed_call")),
    )


def _read_count(value: object) -> bool | str | None:
    if isinstance(value, bool):
        return value
    return value if isinstance(value, str) and value in COUNT_GRID else None
