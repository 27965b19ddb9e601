"""When a provider's word on a route is believed. Pure.

A provider calls a route dead when it is, but also when we ask with the wrong key, in the wrong environment
or for the wrong topic, and when it has a bad day. One device that is gone is normal. A fifth of all devices
in one minute is not: then the word is no longer acted upon, for that credential, until a person has looked
(the **freeze**). A route that is only **suspected** is ended when it was suspected several times, for
different deliveries, over some time, while others with the same credential were accepted.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from heliograph.delivery.model import Outcome
from heliograph.wire.instant import Instant

WINDOW_MS: Final = 60_000
"""Shares are taken over the last minute."""

BUCKET_MS: Final = 5_000
"""A minute is forgotten in twelfths."""

BAD_SHARE_MAX: Final = 0.2
"""More than a fifth of a minute's sends called dead or doubted is no coincidence."""

BAD_MIN: Final = 10
"""Fewer are acted upon whatever their share: of three devices one may well be gone. They can be undone."""

STRIKES: Final = 3
"""So many doubts, each of another delivery, end a route. Healthy routes are doubted in bursts, if at all."""

STRIKE_SPACING_MS: Final = 600_000
"""Doubts within ten minutes of the last that counted are one: they have one cause."""

SUSPICION_KEPT_MS: Final = 30 * 86_400_000
"""A doubt that nothing has confirmed in a month is forgotten."""

_JUDGED: Final = frozenset(
    {
        Outcome.ACCEPTED,
        Outcome.ACCEPTED_DEGRADED,
        Outcome.TOKEN_DEAD,
        Outcome.TOKEN_SUSPECT,
        Outcome.PAYLOAD_BAD,
    }
)
_BAD: Final = frozenset({Outcome.TOKEN_DEAD, Outcome.TOKEN_SUSPECT})


@dataclass(frozen=True, slots=True)
class Tally:
    """How many sends were judged, and how many of them badly for the route."""

    sends: int = 0
    bad: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.sends + other.sends, self.bad + other.bad)

    @property
    def mass_death(self) -> bool:
        """Too many at once to be believed."""
        return self.bad >= BAD_MIN and self.bad > BAD_SHARE_MAX * self.sends


def tally_of(outcome: Outcome) -> Tally:
    """Count one outcome. One that does not judge the route counts as no send: an outage dilutes nothing."""
    return Tally(int(outcome in _JUDGED), int(outcome in _BAD))


@dataclass(frozen=True, slots=True)
class Bucket:
    """What was counted within one ``BUCKET_MS``; ``start`` is a multiple of it."""

    start: Instant
    tally: Tally


@final
class Pulse:
    """The last minute of one credential in one process. Bounded: thirteen buckets."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: deque[Bucket] = deque()

    def count(self, tally: Tally, now: Instant) -> None:
        """Add to the present bucket."""
        self._forget(now)
        start = now - now % BUCKET_MS
        if self._buckets and self._buckets[-1].start >= start:
            last = self._buckets[-1]
            self._buckets[-1] = replace(last, tally=last.tally + tally)
        else:
            self._buckets.append(Bucket(start, tally))

    def tally(self, now: Instant) -> Tally:
        """Sum the last minute up."""
        self._forget(now)
        return sum((bucket.tally for bucket in self._buckets), Tally())

    def buckets(self) -> Sequence[Bucket]:
        """Return what is remembered, oldest first."""
        return tuple(self._buckets)

    def _forget(self, now: Instant) -> None:
        while self._buckets and self._buckets[0].start + BUCKET_MS <= now - WINDOW_MS:
            self._buckets.popleft()


@dataclass(frozen=True, slots=True)
class Freeze:
    """A credential whose word on routes is not acted upon.

    Attributes:
        credential: Which.
        frozen_at: Since when.
        tally: The minute that led to it.
    """

    credential: str
    frozen_at: Instant
    tally: Tally


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is held against a route.

    Attributes:
        strikes: Doubts that counted.
        first_at: When the first came.
        last_at: When the last that counted came.
        last_delivery: Which delivery that was about.
    """

    strikes: int
    first_at: Instant
    last_at: Instant
    last_delivery: str


def strike(held: Suspicion | None, delivery_id: str, now: Instant) -> Suspicion:
    """Count a doubt, unless it only repeats the last one.

    Args:
        held: What is held against the route already.
        delivery_id: The delivery that was doubted.
        now: When.
    """
    if held is None or now - held.last_at > SUSPICION_KEPT_MS:
        return Suspicion(1, now, now, delivery_id)
    if delivery_id == held.last_delivery or now - held.last_at < STRIKE_SPACING_MS:
        return held
    return replace(held, strikes=held.strikes + 1, last_at=now, last_delivery=delivery_id)


def condemned(held: Suspicion, accepted_at: Instant | None) -> bool:
    """Tell whether a suspected route should end.

    Args:
        held: What is held against it.
        accepted_at: When something else was last accepted with the same credential; if nothing was since
            the first doubt, the credential itself may be what is wrong.
    """
    return held.strikes >= STRIKES and accepted_at is not None and accepted_at >= held.first_at
