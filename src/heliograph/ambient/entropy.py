"""The only source of randomness."""

import os
import random
from collections import deque
from typing import Final, Protocol, final

from heliograph.wire.instant import Instant

_VARIANT: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""The digit that holds the variant's two fixed bits and two drawn ones."""


_POOL_OCTETS: Final = 4096
_ID_OCTETS: Final = 16

# Drawn ahead, for ids alone: a request draws three, and each call of the system costs as much as the rest of
# an id. Taking from the left is one step of the interpreter, so threads never get the same octets.
_pool: deque[str] = deque()
os.register_at_fork(after_in_child=_pool.clear)


def _pooled() -> str:
    """Return 16 random octets, in hexadecimal, that nobody else gets."""
    while True:
        try:
            return _pool.popleft()
        except IndexError:
            drawn = os.urandom(_POOL_OCTETS).hex()
            _pool.extend(drawn[at : at + 2 * _ID_OCTETS] for at in range(0, len(drawn), 2 * _ID_OCTETS))


class Entropy(Protocol):
    """Draws random values. Pure code gets the drawn values as arguments."""

    def octets(self, count: int) -> bytes:
        """Return so many octets fit for keys, salts and nonces."""
        ...

    def uuid7(self, now: Instant) -> str:
        """Return a time-ordered UUID in lower-case canonical form, for ids that sort by age."""
        ...

    def uuid4(self) -> str:
        """Return a random UUID in lower-case canonical form, for ids that tell nothing."""
        ...

    def fraction(self) -> float:
        """Return a number in [0, 1) for jitter; not for secrets."""
        ...


@final
class SystemEntropy:
    """The operating system's randomness."""

    def octets(self, count: int) -> bytes:
        """Return so many octets fit for keys, salts and nonces."""
        return os.urandom(count)

    def uuid7(self, now: Instant) -> str:
        """Return a time-ordered UUID: 48 bits of milliseconds, 74 random bits (RFC 9562)."""
        # Spelled from hexadecimal text: twice as fast as by way of a number, and every request draws one.
        age, drawn = f"{now & 0xFFFFFFFFFFFF:012x}", _pooled()
        return f"{age[:8]}-{age[8:]}-7{drawn[:3]}-{_VARIANT[drawn[3]]}{drawn[4:7]}-{drawn[7:19]}"

    def uuid4(self) -> str:
        """Return a random UUID: 122 random bits (RFC 9562)."""
        drawn = _pooled()
        return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-{_VARIANT[drawn[16]]}{drawn[17:20]}-{drawn[20:]}"

    def fraction(self) -> float:
        """Return a number in [0, 1) for jitter."""
        return random.random()  # noqa: S311 - spreads retries; guards nothing
