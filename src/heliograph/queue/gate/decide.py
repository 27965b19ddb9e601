"""When a gate closes, for how long, and who may try it. Pure.

Items may wait behind a gate: one name for something that all of them need and that can fail or be exhausted
for all of them at once. A gate without a record is open. Words:

- **closed**: nothing behind it is claimed, in any process.
- **ajar**: its pause is over. One item is claimed, the **probe**, and the gate is closed again meanwhile;
  what becomes of the probe decides. Should its holder crash, the gate is ajar again when the lease ends.
- Each closing that a probe suffers is a **step**; pauses grow with the steps. Only the probe moves the steps
  or opens the gate: whatever was claimed before the gate closed speaks of the time before.
"""

from dataclasses import dataclass, replace
from typing import Final

from heliograph.queue.machine import check_reason
from heliograph.wire.instant import Instant

PAUSE_MS_MAX: Final = 86_400_000
"""The longest pause. After a day it does no harm to ask once more."""

DOUBLINGS_MAX: Final = 30
"""Doubling stops here; the number stays small, and every ceiling is lower."""

SPREAD: Final = 0.1
"""By up to this part of it a pause is longer, so that gates that closed together do not open together."""

UNDECIDED_MS: Final = 5_000
"""How long a gate stays closed after a probe that said nothing of it."""


@dataclass(frozen=True, slots=True)
class Closing:
    """Why a gate should close, and how patiently.

    Attributes:
        reason: A stable code, for operators.
        first_ms: The pause at the first step; it doubles with each further step.
        longest_ms: Where the doubling stops.
        at_least_ms: What the far side asked for.
        fraction: A random number in [0, 1) that spreads the pause.
    """

    reason: str
    first_ms: int
    longest_ms: int
    at_least_ms: int = 0
    fraction: float = 0.0

    def __post_init__(self) -> None:
        check_reason(self.reason)
        if not 1 <= self.first_ms <= self.longest_ms <= PAUSE_MS_MAX:
            raise ValueError(f"pauses must be from 1 ms to {PAUSE_MS_MAX} ms, the first the shortest")

    def pause_ms(self, step: int) -> int:
        """Tell how long a gate stays closed at a step, from 1."""
        own = min(self.first_ms << min(step - 1, DOUBLINGS_MAX), self.longest_ms)
        return int(min(max(own, self.at_least_ms), PAUSE_MS_MAX) * (1 + SPREAD * self.fraction))


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate that is not simply open.

    Attributes:
        name: What it stands for.
        closed_until: From this instant on it is ajar.
        closed_at: When it closed, from being open.
        reason: Why it closed last.
        step: How many closings in a row, from 1.
        probe: The item that tries it now.
    """

    name: str
    closed_until: Instant
    closed_at: Instant
    reason: str
    step: int
    probe: str | None = None


def shut(gate: Gate | None, name: str, closing: Closing, item_id: str, now: Instant) -> Gate:
    """Decide what a failure behind a gate makes of it.

    Args:
        gate: Its record; None when it is open.
        name: Its name.
        closing: What the failure asks for.
        item_id: Whose attempt failed.
        now: The present instant.

    Returns:
        The record to keep.
    """
    if gate is None:
        return Gate(name, now + closing.pause_ms(1), now, closing.reason, 1)
    if gate.probe == item_id:
        step = gate.step + 1
        until = now + closing.pause_ms(step)
        return replace(gate, closed_until=until, reason=closing.reason, step=step, probe=None)
    # Claimed before it closed. What the far side asks for holds all the same; it is no further step.
    return replace(gate, closed_until=max(gate.closed_until, now + min(closing.at_least_ms, PAUSE_MS_MAX)))


def undecided(gate: Gate, item_id: str, now: Instant) -> Gate:
    """Decide what becomes of a gate whose probe ended without a word on it."""
    return replace(gate, closed_until=now + UNDECIDED_MS, probe=None) if gate.probe == item_id else gate
