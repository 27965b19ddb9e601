"""The bearer token: one for all deliveries, and one exchange at a time that fetches the next. Pure.

Hundreds of exchanges go on at once, each a generator that the carrier advances whenever an answer comes.
When the token is due only one of them may fetch: it is handed a *duty*. What the others get depends on
what there is:

- a token that is due but good for a while yet (the last fifth of its life): they use that one;
- none: they end at once and rest for a second, which burns no attempt and sends nothing;
- a fetch that failed a moment ago: its verdict, until its pause is over.

A duty ends in exactly one way: it is fulfilled, it fails, or it is abandoned because its exchange was
closed. One whose exchange hangs lapses after half a minute, and then another exchange may have it; what
the late one brings is still taken if it lives longer than what is there.

A bearer token that FCM refuses is dropped and fetched anew, once a minute at the most: if a token fresh
from the endpoint is refused, no other one will be taken either, and that is an operator's matter.
"""

from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, final

from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.retry_after import RETRY_AFTER_MS_MIN
from heliograph.wire.instant import Instant

DUE_AFTER: Final = (4, 5)
"""A token is renewed at four fifths of its life."""

USABLE_MARGIN_MS: Final = 15_000
"""A token that ends within the time that a request may take is not used any more."""

CLOCK_STEP_MS: Final = 300_000
"""A token that seems to be from further ahead than this was fetched before the clock stepped back."""

DUTY_MS: Final = 30_000
"""How long a fetch may take: three times the longest wait for an answer."""

REFUSAL_MS: Final = 60_000
"""A token that is younger than this is not fetched again because FCM refused it."""

FAILURE_MS: Final = 60_000
"""How long nothing is fetched after a failure that the next try will only repeat."""

AWAITED: Final = Verdict(Outcome.TRANSIENT, "fcm_token_awaited", rests_ms=RETRY_AFTER_MS_MIN)
"""What an exchange ends with while another one fetches the first token: sent nothing, burnt nothing."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """A bearer token.

    Attributes:
        authorization: The header that carries it.
        fetched_at: When the exchange that fetched it began.
        life_ms: How long it lives from then on.
    """

    authorization: str = field(repr=False)
    fetched_at: Instant
    life_ms: int

    def is_usable(self, now: Instant) -> bool:
        """Tell whether FCM should still take it."""
        return now - self.fetched_at < self.life_ms - USABLE_MARGIN_MS

    def is_due(self, now: Instant) -> bool:
        """Tell whether it is time for another one."""
        part, whole = DUE_AFTER
        return not -CLOCK_STEP_MS <= now - self.fetched_at < self.life_ms * part // whole


@dataclass(frozen=True, slots=True)
class TokenDuty:
    """The right, and the duty, to fetch the next token."""

    number: int
    taken_at: Instant


@dataclass(frozen=True, slots=True)
class _Failure:
    verdict: Verdict
    at: Instant
    pause_ms: int


Wanted: TypeAlias = Bearer | TokenDuty | Verdict
"""What an exchange that wants a token gets: one, the duty to fetch one, or the verdict to end with."""


@final
class BearerCache:
    """The one token that there is, and who fetches the next."""

    __slots__ = ("_bearer", "_duty", "_failure", "_handed")

    def __init__(self) -> None:
        self._bearer: Bearer | None = None
        self._duty: TokenDuty | None = None
        self._failure: _Failure | None = None
        self._handed = 0

    def want(self, now: Instant) -> Wanted:
        """Return what an exchange is to do for a token.

        Args:
            now: The time.
        """
        bearer = self._usable(now)
        if bearer is not None and not bearer.is_due(now):
            return bearer
        failed = self._failed(now)
        if failed is not None:
            return failed if bearer is None else bearer
        if self._duty is not None and abs(now - self._duty.taken_at) < DUTY_MS:
            return AWAITED if bearer is None else bearer
        self._handed += 1
        self._duty = TokenDuty(self._handed, now)
        return self._duty

    def after_refusal(self, refused: Bearer, now: Instant) -> Wanted | None:
        """Return what an exchange is to do whose token FCM has refused; None if there is no remedy.

        Args:
            refused: The token that was sent.
            now: The time.
        """
        if self._bearer is refused:
            if abs(now - refused.fetched_at) < REFUSAL_MS:
                return None
            self._bearer = None
        return self.want(now)

    def fulfil(self, duty: TokenDuty, bearer: Bearer) -> None:
        """Take what a duty has brought.

        Args:
            duty: The duty.
            bearer: The token.
        """
        self.abandon(duty)
        self._failure = None
        kept = self._bearer
        if kept is None or bearer.fetched_at + bearer.life_ms >= kept.fetched_at + kept.life_ms:
            self._bearer = bearer

    def fail(self, duty: TokenDuty, verdict: Verdict, now: Instant) -> Bearer | Verdict:
        """Note that a duty has failed, and return what its exchange goes on or ends with.

        Args:
            duty: The duty.
            verdict: How it failed.
            now: The time.
        """
        self.abandon(duty)
        pause_ms = verdict.rests_ms or verdict.retry_after_ms or FAILURE_MS
        self._failure = _Failure(verdict, now, pause_ms)
        bearer = self._usable(now)
        return verdict if bearer is None else bearer

    def abandon(self, duty: TokenDuty) -> None:
        """Give a duty back. Nothing happens if it has lapsed and another exchange has it."""
        if self._duty is duty:
            self._duty = None

    def _usable(self, now: Instant) -> Bearer | None:
        bearer = self._bearer
        return bearer if bearer is not None and bearer.is_usable(now) else None

    def _failed(self, now: Instant) -> Verdict | None:
        """Return how the last fetch failed, while its pause lasts, with what is left of the pause."""
        failure = self._failure
        if failure is None or not abs(now - failure.at) < failure.pause_ms:
            return None
        left_ms = min(max(failure.at + failure.pause_ms - now, RETRY_AFTER_MS_MIN), failure.pause_ms)
        match failure.verdict.outcome:
            case Outcome.TRANSIENT:
                return replace(failure.verdict, rests_ms=left_ms)
            case Outcome.THROTTLED_APP:
                return replace(failure.verdict, retry_after_ms=left_ms)
            case _:
                return failure.verdict
