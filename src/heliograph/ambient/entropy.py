"""The only source of randomness."""

import os
import random
from typing import Protocol, final

from heliograph.wire.instant import Instant


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
        drawn = int.from_bytes(os.urandom(10), "big")
        value = (now & 0xFFFFFFFFFFFF) << 80 | 0x7 << 76 | (drawn >> 62 & 0xFFF) << 64
        text = f"{value | 0b10 << 62 | drawn & 0x3FFFFFFFFFFFFFFF:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def fraction(self) -> float:
        """Return a number in [0, 1) for jitter."""
        return random.random()  # noqa: S311 - spreads retries; guards nothing
