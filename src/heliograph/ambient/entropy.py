"""The only source of randomness."""

import os
import random
from typing import Final, Protocol, final

from heliograph.wire.instant import Instant

_VARIANT: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))
"""The digit that holds the variant's two fixed bits and two drawn ones."""


class Entropy(Protocol):
    """Draws random values. Pure code gets the drawn values as arguments."""

    def octets(self, count: int) -> bytes:
        """Return so many octets fit for keys, salts and nonces."""
        ...

    def uuid7(self, now: Instant) -> str:
        """Return a time-ordered UUID in lower-case canonical form, for ids that sort by age."""
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
        age, drawn = f"{now & 0xFFFFFFFFFFFF:012x}", os.urandom(10).hex()
        return f"{age[:8]}-{age[8:]}-7{drawn[:3]}-{_VARIANT[drawn[3]]}{drawn[4:7]}-{drawn[7:19]}"

    def fraction(self) -> float:
        """Return a number in [0, 1) for jitter."""
        return random.random()  # noqa: S311 - spreads retries; guards nothing
