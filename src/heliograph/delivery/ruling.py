"""What a handler knows of an attempt beyond its signal, carried along with the signal.

The queue hands the signal of an attempt back in the settling transaction. So whatever the settlement needs
rides on it: nothing has to be remembered beside it, and a lost fence leaves nothing behind.
"""

from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from heliograph.delivery.hygiene.decide import Freeze
from heliograph.delivery.model import Verdict
from heliograph.queue.gate.decide import Closing
from heliograph.queue.machine import Delivered, Later, Refused, RouteGone, Signal
from heliograph.wire.instant import Instant


@dataclass(frozen=True, slots=True)
class Shutting:
    """A gate that should close."""

    gate: str
    closing: Closing


@dataclass(frozen=True, slots=True)
class Ruling:
    """What an attempt means besides what becomes of its item.

    Attributes:
        verdict: What the provider's adapter said; None when it was not asked.
        credential: The credential that it was asked with; empty when it was not.
        shutting: The gate that should close.
        passes: The gate that the item came through has nothing against others any more.
        frozen: The credential's word on routes is not acted upon.
        freeze: The credential's word on routes should not be acted upon from now on.
        accepted_at: When something was last accepted with the credential, as far as is known.
        loaded: What the source loaded for the attempt, still sealed.
    """

    verdict: Verdict | None = None
    credential: str = ""
    shutting: Shutting | None = None
    passes: bool = False
    frozen: bool = False
    freeze: Freeze | None = None
    accepted_at: Instant | None = None
    loaded: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RuledDelivered(Delivered):
    """Delivered, with its ruling."""

    ruling: Ruling = field(default_factory=Ruling)


@dataclass(frozen=True, slots=True)
class RuledGone(RouteGone):
    """Route gone, with its ruling."""

    ruling: Ruling = field(default_factory=Ruling)


@dataclass(frozen=True, slots=True)
class RuledRefused(Refused):
    """Refused, with its ruling."""

    ruling: Ruling = field(default_factory=Ruling)


@dataclass(frozen=True, slots=True)
class RuledLater(Later):
    """Later, with its ruling."""

    ruling: Ruling = field(default_factory=Ruling)


Ruled: TypeAlias = RuledDelivered | RuledGone | RuledRefused | RuledLater


def ruled(signal: Signal, ruling: Ruling) -> Ruled:
    """Let a signal carry a ruling."""
    match signal:
        case Delivered():
            return RuledDelivered(ruling)
        case RouteGone(reason=reason):
            return RuledGone(reason, ruling)
        case Refused(reason=reason):
            return RuledRefused(reason, ruling)
        case Later():
            return RuledLater(signal.reason, signal.after_ms, signal.burns_attempt, signal.gate, ruling)
        case _:
            assert_never(signal)


def ruling_of(signal: Signal | None) -> Ruling:
    """Return the ruling that a signal carries; an empty one when it carries none."""
    return signal.ruling if isinstance(signal, Ruled) else Ruling()
