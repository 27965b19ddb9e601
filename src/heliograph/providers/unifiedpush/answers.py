"""What a push server's answer means where UnifiedPush says more than Web Push. Pure.

A verdict is first that of Web Push. Then these rows go before it:

| status | body          | outcome          | why                                                |
|--------|---------------|------------------|----------------------------------------------------|
| 429    | code 42901…   | transient        | ntfy: the server's limit for whoever sends         |
| 429    | anything else | throttled_target | the specification counts by endpoint, not by host  |
| 507    | code 50701    | transient        | ntfy: nobody subscribed to the endpoint of late    |

A push server is whoever a user says it is. So none of its answers may slow down or stop what goes to others:
what it refuses concerns its own host at the most.
"""

from dataclasses import replace
from typing import Final

import msgspec

from heliograph.delivery.exchange import Answer, Lost
from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.retry_after import retry_after_ms
from heliograph.wire.instant import Instant

REASONS: Final = "unifiedpush_"
"""How every reason begins."""

_REASONS_OF_WEBPUSH: Final = "webpush_"
_NTFY_LIMITS: Final = range(42_901, 43_000)
_NTFY_NOBODY: Final = 50_701


class _Problem(msgspec.Struct, frozen=True):
    """What we read of ntfy's problems."""

    code: int


_decode: Final = msgspec.json.Decoder(_Problem).decode


def verdict_of(verdict: Verdict, heard: Answer | Lost | None, now: Instant) -> Verdict:
    """Judge how an attempt ended.

    Args:
        verdict: What Web Push makes of it.
        heard: The last answer, or None where nothing was asked.
        now: When the exchange began, for a ``Retry-After`` that is a date.
    """
    if isinstance(heard, Answer):
        pause = retry_after_ms(heard.headers.get("retry-after"), now)
        match heard.status:
            case 429 if _code(heard.body) in _NTFY_LIMITS:
                return Verdict(Outcome.TRANSIENT, f"{REASONS}server_limit", retry_after_ms=pause)
            case 429:
                return Verdict(Outcome.THROTTLED_TARGET, f"{REASONS}throttled", retry_after_ms=pause)
            case 507 if _code(heard.body) == _NTFY_NOBODY:
                return Verdict(Outcome.TRANSIENT, f"{REASONS}nobody_there", retry_after_ms=pause)
    return replace(verdict, reason=REASONS + verdict.reason.removeprefix(_REASONS_OF_WEBPUSH))


def _code(body: bytes) -> int:
    try:
        return _decode(body).code
    except (msgspec.DecodeError, RecursionError):
        return 0
