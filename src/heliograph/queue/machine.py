"""The states of a work item and the one table that changes them. Pure.

Two rules for this file: every change of state that can happen to a work item is a row of
``TRANSITIONS``, and nothing here knows what the work is. The statements of ``queue.sql`` that move
many rows at once (claim, cancel, retry) follow the same rows, and a test holds them to it.

Words:

- **ready**: waits for its due time. **leased**: one runner has it until the lease ends.
- **done**: it was delivered. **failed**: somebody said no for good (the route is gone, the request was
  refused). **canceled**: we no longer want it. **dead**: we gave up without an answer, because the
  attempts ran out or the time did. Dead items are the dead-letter list: an operator may retry them.
- Done, failed and canceled never change again; dead changes only by an operator's retry.
- The attempt is counted when an item is *claimed*, so that a crash burns it and a crash loop ends. A
  settlement that must not burn it gives it back.
- Cancelling a leased item only asks: the attempt in progress may still finish, once. If it says
  *later*, crashes or is handed back, the item is canceled instead of waiting again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from heliograph.wire.instant import Instant

_REASON: Final = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)

ATTEMPTS_EXHAUSTED: Final = "attempts_exhausted"
CANCELED: Final = "canceled"
EXPIRED: Final = "expired"
INTERNAL: Final = "internal"
"""The reason of an attempt that ended in a bug of ours."""
LEASE_EXPIRED: Final = "lease_expired"
RELEASED: Final = "released"
RETRIED: Final = "retried"

EXPONENT_MAX: Final = 40
"""Doubling stops here: 2^40 ms is 34 years, more than any ceiling, and the number stays small."""


class State(StrEnum):
    """Where a work item stands; a closed set."""

    READY = "ready"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"
    CANCELED = "canceled"
    DEAD = "dead"

    @property
    def settled(self) -> bool:
        """Nothing more will happen by itself."""
        return self not in (State.READY, State.LEASED)


def check_reason(reason: str) -> None:
    """Refuse a reason that is not a short stable code: it reaches logs, metrics and operators."""
    if _REASON.fullmatch(reason) is None:
        raise ValueError("a reason is a code of at most 64 lower-case letters, digits and underscores")


@dataclass(frozen=True, slots=True)
class Delivered:
    """The work is done."""


@dataclass(frozen=True, slots=True)
class RouteGone:
    """There is nobody to deliver to any more; the reason is a stable code."""

    reason: str

    def __post_init__(self) -> None:
        check_reason(self.reason)


@dataclass(frozen=True, slots=True)
class Refused:
    """This work can never succeed; the reason is a stable code."""

    reason: str

    def __post_init__(self) -> None:
        check_reason(self.reason)


@dataclass(frozen=True, slots=True)
class Later:
    """Not now.

    Attributes:
        reason: A stable code.
        after_ms: The shortest pause that the far side asked for; our own backoff may be longer.
        burns_attempt: False when the attempt says nothing about this item, as when a whole credential
            is throttled; such pauses are bounded by the item's expiry alone.
        gate: The gate that the item waits behind from now on; None leaves it where it is.
    """

    reason: str
    after_ms: int | None = None
    burns_attempt: bool = True
    gate: str | None = None

    def __post_init__(self) -> None:
        check_reason(self.reason)
        if self.after_ms is not None and self.after_ms < 0:
            raise ValueError("after_ms must not be negative")


Signal: TypeAlias = Delivered | RouteGone | Refused | Later
"""How an attempt ended: all that a handler may say."""


@dataclass(frozen=True, slots=True)
class LeaseExpired:
    """Whoever held the lease has not settled in time; it may have crashed."""


@dataclass(frozen=True, slots=True)
class Released:
    """The holder hands the item back untouched, because it is shutting down."""


@dataclass(frozen=True, slots=True)
class FoundExpired:
    """The item was past its expiry when it was claimed; it was not tried."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A runner takes the item."""


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Somebody wants the item's whole group canceled."""


@dataclass(frozen=True, slots=True)
class RetryAsked:
    """An operator wants a dead item tried again, with all its attempts."""


Happening: TypeAlias = Signal | LeaseExpired | Released | FoundExpired | Claimed | CancelAsked | RetryAsked
"""Everything that can happen to an item."""


class Cue(StrEnum):
    """A happening without its details: the second column of the table."""

    CLAIMED = "claimed"
    DELIVERED = "delivered"
    ROUTE_GONE = "route gone"
    REFUSED = "refused"
    LATER = "later"
    LEASE_EXPIRED = "lease expired"
    RELEASED = "released"
    FOUND_EXPIRED = "found expired"
    CANCEL_ASKED = "cancel asked"
    RETRY_ASKED = "retry asked"


class Circumstance(StrEnum):
    """What else holds when it happens: the third column. The first that applies, in this order."""

    CANCEL_REQUESTED = "cancel requested"
    PAST_EXPIRY = "past expiry"
    LAST_ATTEMPT = "last attempt"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a row leads: the next state, and its reason where that outweighs the happening's own."""

    state: State
    reason: str | None = None


_ANY: Final = tuple(Circumstance)
_WAITING: Final = (Circumstance.PAST_EXPIRY, Circumstance.PLAIN)
_READY, _LEASED, _DONE, _FAILED = State.READY, State.LEASED, State.DONE, State.FAILED
_CANCELED: Final = Target(State.CANCELED, CANCELED)
_EXPIRED: Final = Target(State.DEAD, EXPIRED)
_EXHAUSTED: Final = Target(State.DEAD, ATTEMPTS_EXHAUSTED)

TRANSITIONS: Final[Mapping[tuple[State, Cue, Circumstance], Target]] = {
    # A waiting item is either taken or canceled on the spot. Its expiry is looked at once it is taken.
    **{(_READY, Cue.CLAIMED, waiting): Target(_LEASED) for waiting in _WAITING},
    **{(_READY, Cue.CANCEL_ASKED, waiting): _CANCELED for waiting in _WAITING},
    # An attempt that ended for good counts, whatever was asked meanwhile.
    **{(_LEASED, Cue.DELIVERED, any_): Target(_DONE) for any_ in _ANY},
    **{(_LEASED, Cue.ROUTE_GONE, any_): Target(_FAILED) for any_ in _ANY},
    **{(_LEASED, Cue.REFUSED, any_): Target(_FAILED) for any_ in _ANY},
    # Anything else waits again only if it is still wanted, still in time and has attempts left.
    (_LEASED, Cue.LATER, Circumstance.PLAIN): Target(_READY),
    (_LEASED, Cue.LATER, Circumstance.CANCEL_REQUESTED): _CANCELED,
    (_LEASED, Cue.LATER, Circumstance.PAST_EXPIRY): _EXPIRED,
    (_LEASED, Cue.LATER, Circumstance.LAST_ATTEMPT): _EXHAUSTED,
    (_LEASED, Cue.LEASE_EXPIRED, Circumstance.PLAIN): Target(_READY),
    (_LEASED, Cue.LEASE_EXPIRED, Circumstance.CANCEL_REQUESTED): _CANCELED,
    (_LEASED, Cue.LEASE_EXPIRED, Circumstance.PAST_EXPIRY): _EXPIRED,
    (_LEASED, Cue.LEASE_EXPIRED, Circumstance.LAST_ATTEMPT): _EXHAUSTED,
    (_LEASED, Cue.RELEASED, Circumstance.PLAIN): Target(_READY),
    (_LEASED, Cue.RELEASED, Circumstance.CANCEL_REQUESTED): _CANCELED,
    (_LEASED, Cue.RELEASED, Circumstance.PAST_EXPIRY): _EXPIRED,
    # The claim saw it; that the clock has been set back since then changes nothing.
    **{(_LEASED, Cue.FOUND_EXPIRED, waiting): _EXPIRED for waiting in _WAITING},
    (_LEASED, Cue.FOUND_EXPIRED, Circumstance.CANCEL_REQUESTED): _CANCELED,
    # Cancelling a leased item only leaves a note for its end.
    **{(_LEASED, Cue.CANCEL_ASKED, any_): Target(_LEASED) for any_ in _ANY},
    # The dead-letter list: a retry begins anew, but not after the time the item was good for.
    (State.DEAD, Cue.RETRY_ASKED, Circumstance.PLAIN): Target(_READY),
}
"""Every change there is. A combination without a row cannot happen, or changes nothing."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient a kind of work is.

    Attributes:
        max_attempts: How many claims may end in *later* or a crash before the item is dead.
        first_backoff_ms: The ceiling of the first pause; it doubles with each attempt.
        max_backoff_ms: The ceiling that the doubling stops at.
        align_ms: Items of this kind wait until a multiple of this, so that the time of an attempt tells
            nothing of the time that led to it. 1 aligns nothing.
    """

    max_attempts: int = 5
    first_backoff_ms: int = 1_000
    max_backoff_ms: int = 600_000
    align_ms: int = 1

    def __post_init__(self) -> None:
        for name in ("max_attempts", "first_backoff_ms", "align_ms"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.max_backoff_ms < self.first_backoff_ms:
            raise ValueError("max_backoff_ms must not be less than first_backoff_ms")


@dataclass(frozen=True, slots=True)
class Item:
    """What the machine must know of an item.

    Attributes:
        state: Where it stands.
        attempt: How many attempts have been counted, the one in progress included.
        revision: How many times it was ever claimed; it only grows and fences late writers.
        cancel_requested: Somebody asked for its cancellation while it was leased.
        expires_at: From this instant on it is worth nothing, so a retry must be due before it.
    """

    state: State
    attempt: int
    revision: int
    cancel_requested: bool
    expires_at: Instant


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of an item.

    Attributes:
        state: The next state.
        due_at: When a waiting item may be claimed again; otherwise the time of the change.
        reason: Why it is in that state, as a stable code; None for done.
        attempt: The attempts counted after the change.
        cause: What the last attempt said when it was not that which decided, as a stable code: the
            provider's reason behind ``attempts_exhausted``.
        signal: What the handler said, when an attempt ended by its word. A handler may return its own
            subclass of a signal and find it again here, in the settling transaction.
        gate: The gate that the item waits behind from now on; None leaves it where it is.
    """

    state: State
    due_at: Instant
    reason: str | None
    attempt: int
    cause: str | None = None
    signal: Signal | None = field(default=None, compare=False, repr=False)
    gate: str | None = None


class ImpossibleChange(Exception):  # noqa: N818 - a bug, named for what was asked
    """Something was said of an item that cannot happen to it in its state: a bug of the caller."""


def backoff_ms(policy: Policy, tries: int, fraction: float) -> int:
    """Draw a pause with full jitter: evenly between nothing and a doubling ceiling.

    Args:
        policy: The kind's patience.
        tries: How many tries have failed, from 1.
        fraction: A random number in [0, 1).

    Returns:
        Milliseconds.
    """
    doubled = policy.first_backoff_ms << min(tries - 1, EXPONENT_MAX)
    return int(fraction * min(doubled, policy.max_backoff_ms))


def change(item: Item, happening: Happening, policy: Policy, now: Instant, fraction: float) -> Change:
    """Decide what becomes of an item.

    Args:
        item: The item as its row says now.
        happening: What happened to it.
        policy: The kind's patience.
        now: The present instant.
        fraction: A random number in [0, 1) for the pause.

    Returns:
        The change to write.

    Raises:
        ImpossibleChange: The item cannot meet this in its state.
    """
    cue, own_reason = _told(happening)
    due_at, burns = now, cue in (Cue.LATER, Cue.LEASE_EXPIRED)
    if isinstance(happening, Later):
        burns = happening.burns_attempt
        # Where the attempt does not grow, the pause grows with the claims instead.
        pause = backoff_ms(policy, item.attempt if burns else item.revision, fraction)
        due_at += max(pause, happening.after_ms or 0)
    due_at = -(-due_at // policy.align_ms) * policy.align_ms
    circumstance = _circumstance(
        item, over=due_at >= item.expires_at, last=burns and item.attempt >= policy.max_attempts
    )
    target = TRANSITIONS.get((item.state, cue, circumstance))
    if target is None:
        raise ImpossibleChange(f"{cue} cannot happen to an item that is {item.state}")
    return Change(
        state=target.state,
        due_at=due_at if target.state is State.READY else now,
        reason=target.reason or own_reason,
        attempt=_attempt_after(item, cue, gives_back=cue is Cue.LATER and not burns),
        cause=own_reason if target.reason else None,
        signal=happening if isinstance(happening, Delivered | RouteGone | Refused | Later) else None,
        gate=happening.gate if isinstance(happening, Later) else None,
    )


def _told(happening: Happening) -> tuple[Cue, str | None]:
    """Name a happening and the reason that it brings."""
    match happening:
        case Delivered():
            return Cue.DELIVERED, None
        case RouteGone(reason=reason):
            return Cue.ROUTE_GONE, reason
        case Refused(reason=reason):
            return Cue.REFUSED, reason
        case Later(reason=reason):
            return Cue.LATER, reason
        case LeaseExpired():
            return Cue.LEASE_EXPIRED, LEASE_EXPIRED
        case Released():
            return Cue.RELEASED, RELEASED
        case FoundExpired():
            return Cue.FOUND_EXPIRED, None
        case Claimed():
            return Cue.CLAIMED, None
        case CancelAsked():
            return Cue.CANCEL_ASKED, None
        case RetryAsked():
            return Cue.RETRY_ASKED, RETRIED
        case _:
            assert_never(happening)


def _attempt_after(item: Item, cue: Cue, *, gives_back: bool) -> int:
    """Count the attempts: a claim adds one, and an attempt that was none is given back."""
    match cue:
        case Cue.CLAIMED:
            return item.attempt + 1
        case Cue.RETRY_ASKED:
            return 0
        case Cue.RELEASED | Cue.FOUND_EXPIRED:
            return item.attempt - 1
        case _:
            return item.attempt - gives_back


def _circumstance(item: Item, *, over: bool, last: bool) -> Circumstance:
    """Say which circumstance decides."""
    if item.cancel_requested:
        return Circumstance.CANCEL_REQUESTED
    if over:
        return Circumstance.PAST_EXPIRY
    return Circumstance.LAST_ATTEMPT if last else Circumstance.PLAIN
