"""How much at once and how often. Pure: the instant is an argument, so tests need no clock."""

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

from heliograph.wire.instant import Instant

K = TypeVar("K", bound=Hashable)

KEYS_MAX_DEFAULT: Final = 10_000
"""Buckets remembered at once. A forgotten one is full again, so forgetting is never unfair to its owner."""

_ROUNDING: Final = 1e-6
"""A millionth of a token or a millisecond is an error of floating point, not a debt."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast a bucket fills and how much it holds.

    Attributes:
        per_second: Tokens that flow in each second.
        burst: Tokens that it holds when full.
    """

    per_second: float
    burst: int

    def __post_init__(self) -> None:
        if self.per_second <= 0 or self.burst < 1:
            raise ValueError("a rate must let something through")


@final
class TokenBucket:
    """A bucket that fills evenly and is emptied by what passes.

    Args:
        rate: How it fills.
        now: When it begins, full.
    """

    __slots__ = ("_at", "_rate", "_tokens")

    def __init__(self, rate: Rate, now: Instant) -> None:
        self._rate = rate
        self._tokens = float(rate.burst)
        self._at = now

    def _fill(self, now: Instant) -> None:
        # A clock that steps back must not drain the bucket, nor fill it twice when it catches up.
        if now > self._at:
            self._tokens = min(
                float(self._rate.burst), self._tokens + (now - self._at) * self._rate.per_second / 1000
            )
            self._at = now

    def take(self, count: int, now: Instant) -> int:
        """Take as many tokens as there are, up to a count.

        Args:
            count: How many are wanted.
            now: The present instant.

        Returns:
            How many were taken.
        """
        self._fill(now)
        taken = min(count, int(self._tokens + _ROUNDING))
        self._tokens = max(0.0, self._tokens - taken)
        return taken

    def admit(self, count: int, now: Instant) -> int:
        """Take a number of tokens or none.

        Args:
            count: How many are wanted.
            now: The present instant.

        Returns:
            0 when they were taken; otherwise the milliseconds after which asking again can succeed. More
            than the bucket ever holds is admitted when it is full and leaves it in debt, so that one large
            request is slowed and never starved.
        """
        self._fill(now)
        needed = min(count, self._rate.burst)
        if self._tokens + _ROUNDING >= needed:
            self._tokens -= count
            return 0
        return max(1, math.ceil((needed - self._tokens) * 1000 / self._rate.per_second - _ROUNDING))


@final
class Buckets(Generic[K]):
    """One bucket for each key, the least recently used forgotten first.

    Args:
        rate: How each fills.
        keys_max: How many are remembered.
    """

    def __init__(self, rate: Rate, keys_max: int = KEYS_MAX_DEFAULT) -> None:
        self._rate = rate
        self._keys_max = keys_max
        self._buckets: OrderedDict[K, TokenBucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def bucket(self, key: K, now: Instant) -> TokenBucket:
        """Return the bucket of a key.

        Args:
            key: Whose bucket. It must be a name that the caller proved, or a stranger could forget others.
            now: The present instant.
        """
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(self._rate, now)
            if len(self._buckets) > self._keys_max:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        return bucket


@final
class Gate:
    """Lets at most so many in at once. For one event loop; it never waits.

    Args:
        inside_max: How many.
    """

    __slots__ = ("inside", "inside_max")

    def __init__(self, inside_max: int) -> None:
        self.inside_max = inside_max
        self.inside = 0

    def full(self) -> bool:
        """Say whether there is no room now."""
        return self.inside >= self.inside_max

    def enter(self) -> bool:
        """Go in if there is room, and say whether there was. Who entered must leave."""
        if self.inside >= self.inside_max:
            return False
        self.inside += 1
        return True

    def leave(self) -> None:
        """Go out."""
        self.inside -= 1
