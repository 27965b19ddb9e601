"""The applications that an operator configured, and the provider each delivers through. Pure.

An id that is written out is compared exactly: a dot is a dot (S9). A glob, which the operator writes on
purpose, stands for every id that it matches and that has no entry of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from heliograph.delivery.model import Route
from heliograph.delivery.provider import Provider
from heliograph.delivery.signal import CONFIG_HOLD_MS
from heliograph.pushrules.glob import Glob
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed

T = TypeVar("T")

APP_ID_CHARACTERS_MAX: Final = 255
"""No store takes a longer id."""

GLOBS_MAX: Final = 256
"""Every look-up of an id without an entry of its own tries all of them, and every pair is compared once."""

HELD_MS: Final = 2 * CONFIG_HOLD_MS
"""Whoever is held is tried again within this time, or is over."""

_WILDCARDS: Final = frozenset("*?")


@final
class AppTable(Generic[T]):
    """Finds what belongs to an application id: an exact entry before globs, the most literal glob first.

    Args:
        entries: What belongs to each id or glob.

    Raises:
        Malformed: A key is too long, there are too many globs, or two of them could both claim an id.
    """

    __slots__ = ("_exact", "_globs")

    def __init__(self, entries: Mapping[str, T]) -> None:
        for key in entries:
            if not 1 <= len(key) <= APP_ID_CHARACTERS_MAX:
                raise Malformed(f"apps.{key}", f"must have 1 to {APP_ID_CHARACTERS_MAX} characters")
        patterns = sorted((key for key in entries if is_glob(key)), key=_literal_characters, reverse=True)
        if len(patterns) > GLOBS_MAX:
            raise Malformed("apps", f"must have at most {GLOBS_MAX} globs")
        _refuse_doubt(patterns)
        self._exact = {key: entry for key, entry in entries.items() if not is_glob(key)}
        self._globs = [(Glob(pattern), entries[pattern]) for pattern in patterns]

    def find(self, app_id: str) -> T | None:
        """Return what belongs to an id, or None."""
        if (exact := self._exact.get(app_id)) is not None or not self._globs:
            return exact
        return next((entry for glob, entry in self._globs if glob.matches(app_id)), None)


@dataclass(frozen=True, slots=True)
class Application:
    """An application id and the provider credential it delivers through."""

    app_id: str
    provider: Provider


@final
class Applications:
    """The applications as they are now; ``replace`` puts others in their place between two look-ups.

    Args:
        providers: The provider of each application id or glob.
        default_app: The application of whoever names none.

    Raises:
        Malformed: As for ``AppTable``.
    """

    def __init__(self, providers: Mapping[str, Provider], default_app: str | None = None) -> None:
        self._table = AppTable(providers)
        self._default = default_app
        self._held_at: Instant | None = None

    def resolve(self, app_id: str | None) -> Application | None:
        """Return the application that a registration names, or the default where it names none."""
        wanted = self._default if app_id is None else app_id
        if wanted is None:
            return None
        provider = self._table.find(wanted)
        return None if provider is None else Application(wanted, provider)

    def provider_of(self, route: Route, now: Instant) -> Provider | None:
        """Return the provider of a route as applications are now.

        Args:
            route: Where a delivery goes.
            now: When that is asked.

        Returns:
            None where the delivery has to be held: nobody has configured the application, or it has moved to
            an adapter that cannot know what the device registered.
        """
        application = self.resolve(route.app_id)
        if application is None or application.provider.name != route.provider:
            self._held_at = now
            return None
        return application.provider

    def holds(self, now: Instant) -> bool:
        """Tell whether deliveries are being held for want of a provider: each is tried once a minute."""
        return self._held_at is not None and now - self._held_at <= HELD_MS

    def exists(self, app_id: str) -> bool:
        """Tell whether an application is configured now."""
        return self._table.find(app_id) is not None

    def replace(self, providers: Mapping[str, Provider]) -> None:
        """Deliver through other providers from now on. Who holds one of the old ones may finish with it.

        Raises:
            Malformed: As for ``AppTable``; then nothing has changed.
        """
        self._table = AppTable(providers)


def is_glob(key: str) -> bool:
    """Tell whether a key of the table of applications stands for many ids."""
    return not _WILDCARDS.isdisjoint(key)


def overlap(one: str, other: str) -> bool:
    """Tell whether some text matches both globs."""
    # Row i, column j: do the rest of one from i and the rest of the other from j have a text in common?
    below = [False] * (len(other) + 1)
    for i in range(len(one), -1, -1):
        row = [False] * (len(other) + 1)
        for j in range(len(other), -1, -1):
            row[j] = _rests_meet(one[i : i + 1], other[j : j + 1], row, below, j)
        below = row
    return below[0]


def _rests_meet(a: str, b: str, row: Sequence[bool], below: Sequence[bool], j: int) -> bool:
    if not a and not b:
        return True
    if a == "*" and (below[j] or (b and row[j + 1])):
        return True
    if b == "*" and (row[j + 1] or (a and below[j])):
        return True
    return bool(a and b and "*" not in (a, b) and (a == b or "?" in (a, b)) and below[j + 1])


def _literal_characters(pattern: str) -> int:
    return sum(character not in _WILDCARDS for character in pattern)


def _refuse_doubt(patterns: Sequence[str]) -> None:
    """Refuse two globs of equal rank that could claim one id."""
    for place, pattern in enumerate(patterns):
        for other in patterns[place + 1 :]:
            if _literal_characters(other) != _literal_characters(pattern):
                break
            if overlap(pattern, other):
                raise Malformed(
                    f"apps.{pattern}", f"and apps.{other} could both claim an id, and neither goes first"
                )
