"""What a push service's answer means: the verdict table of Web Push. Pure.

The services share the statuses of RFC 8030 and disagree about the rest, so a few statuses are read
together with the body: Mozilla's ``errno``, Apple's ``reason``, and the words ``vapid`` and ``crypto``.
The body's own text goes no further than this file.
"""

from typing import Any, Final, assert_never

import msgspec

from heliograph.delivery.exchange import Answer, Loss
from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.retry_after import RETRY_AFTER_MS_MIN, retry_after_ms
from heliograph.wire.instant import Instant

_STATUSES: Final = {
    301: (Outcome.CONFIG_BAD, "webpush_redirect"),
    302: (Outcome.CONFIG_BAD, "webpush_redirect"),
    303: (Outcome.CONFIG_BAD, "webpush_redirect"),
    307: (Outcome.CONFIG_BAD, "webpush_redirect"),
    308: (Outcome.CONFIG_BAD, "webpush_redirect"),
    400: (Outcome.PAYLOAD_BAD, "webpush_bad_request"),
    401: (Outcome.CONFIG_BAD, "webpush_unauthorized"),
    403: (Outcome.CONFIG_BAD, "webpush_forbidden"),
    404: (Outcome.TOKEN_DEAD, "webpush_subscription_unknown"),
    406: (Outcome.THROTTLED_TARGET, "webpush_throttled_channel"),
    410: (Outcome.TOKEN_DEAD, "webpush_subscription_gone"),
    413: (Outcome.PAYLOAD_BAD, "webpush_payload_too_large"),
    429: (Outcome.THROTTLED_APP, "webpush_throttled_origin"),
    500: (Outcome.TRANSIENT, "webpush_service_error"),
    502: (Outcome.TRANSIENT, "webpush_service_error"),
    503: (Outcome.TRANSIENT, "webpush_service_unavailable"),
    504: (Outcome.TRANSIENT, "webpush_service_error"),
    507: (Outcome.TRANSIENT, "webpush_service_full"),
}

_OURS_BY_ERRNO: Final = frozenset({101, 108, 110, 111, 112, 113})
"""Mozilla's numbers for a 400 that blames our keys or headers, not the message."""

_RETRY_AT_ONCE_ERRNO: Final = 202
"""Mozilla's number for a 503 that may be tried again at once."""

_OURS_BY_REASON: Final = frozenset(
    {
        "BadAuthorizationHeader",
        "BadJwtToken",
        "ExpiredJwtToken",
        "MissingAuthorizationHeader",
        "VapidPkHashMismatch",
    }
)
"""Apple's reasons that blame our token or key."""

_TARGET_REASON: Final = "TooManyRequests"
"""Apple's reason for too many pushes to one subscription."""

_OURS_BY_WORD: Final = (b"vapid", b"crypto")

_RETRIABLE: Final = frozenset({Outcome.THROTTLED_TARGET, Outcome.THROTTLED_APP, Outcome.TRANSIENT})


def verdict_of(answer: Answer, ttl_seconds: int, now: Instant) -> Verdict:
    """Judge an answer.

    Args:
        answer: What the push service said.
        ttl_seconds: The ``TTL`` that was asked for.
        now: When the exchange began, for a ``Retry-After`` that is a date.
    """
    if 200 <= answer.status < 300:  # noqa: PLR2004 - the success class of HTTP
        if _kept_shorter(answer.headers.get("ttl"), ttl_seconds):
            return Verdict(Outcome.ACCEPTED_DEGRADED, "webpush_ttl_lowered")
        return Verdict(Outcome.ACCEPTED, "webpush_accepted")
    if answer.status not in _STATUSES:
        return Verdict(Outcome.UNKNOWN, "webpush_unmapped_status")
    outcome, reason = _STATUSES[answer.status]
    detail = _detail(answer.body)
    pause = retry_after_ms(answer.headers.get("retry-after"), now) if outcome in _RETRIABLE else None
    match answer.status:
        case 400 if _blames_us(answer.body, detail):
            return Verdict(Outcome.CONFIG_BAD, "webpush_vapid_refused")
        case 429 if detail.get("reason") == _TARGET_REASON:
            return Verdict(Outcome.THROTTLED_TARGET, "webpush_throttled_subscription", retry_after_ms=pause)
        case 503 if detail.get("errno") == _RETRY_AT_ONCE_ERRNO and pause is None:
            return Verdict(outcome, reason, retry_after_ms=RETRY_AFTER_MS_MIN)
        case _:
            return Verdict(outcome, reason, retry_after_ms=pause)


def verdict_of_loss(loss: Loss) -> Verdict:
    """Judge an ask that got no answer."""
    match loss:
        case Loss.NOT_SENT:
            return Verdict(Outcome.TRANSIENT, "webpush_not_sent")
        case Loss.CUT:
            return Verdict(Outcome.TRANSIENT, "webpush_cut", ambiguous=True)
        case Loss.TIMED_OUT:
            return Verdict(Outcome.TRANSIENT, "webpush_timed_out", ambiguous=True)
        case Loss.REFUSED_EGRESS:
            # The name may be hostile, or our rules or our resolver may be at fault: keep the token.
            return Verdict(Outcome.TOKEN_SUSPECT, "webpush_egress_refused")
        case _:
            assert_never(loss)


def _kept_shorter(header: str | None, asked_seconds: int) -> bool:
    return (
        header is not None
        and header.isascii()
        and header.isdigit()
        and len(header) <= len("2592000")
        and int(header) < asked_seconds
    )


def _detail(body: bytes) -> dict[str, Any]:
    """Read the members of an error body, if it has any."""
    try:
        detail = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return detail if isinstance(detail, dict) else {}


def _blames_us(body: bytes, detail: dict[str, Any]) -> bool:
    errno, reason = detail.get("errno"), detail.get("reason")
    if isinstance(errno, int) and errno in _OURS_BY_ERRNO:
        return True
    if isinstance(reason, str) and reason in _OURS_BY_REASON:
        return True
    return any(word in body.lower() for word in _OURS_BY_WORD)
