"""What an answer of APNs means: its verdict table. Pure.

APNs names its reason in a small JSON body. A reason that nobody has mapped is judged by its status alone,
and never costs a token: only ``Unregistered`` and ``ExpiredToken`` do.
"""

from typing import Any, Final, assert_never

import msgspec

from heliograph.delivery.answer_table import STATUS_MAX, STATUS_MIN, AnswerRow, AnswerTable
from heliograph.delivery.exchange import Answer, Loss, Lost
from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.retry_after import retry_after_ms
from heliograph.wire.instant import Instant

BAD_DEVICE_TOKEN: Final = (400, "BadDeviceToken")
EXPIRED_PROVIDER_TOKEN: Final = (403, "ExpiredProviderToken")
TOO_MANY_UPDATES: Final = (429, "TooManyProviderTokenUpdates")
UNRELATED_KEY: Final = (403, "UnrelatedKeyIdInToken")
BAD_ENVIRONMENT_KEY: Final = (403, "BadEnvironmentKeyIdInToken")
WRONG_KEY_FOR_CONNECTION: Final = frozenset({UNRELATED_KEY, BAD_ENVIRONMENT_KEY})
"""What APNs says of a key that does not go with the connection it came over."""

_OURS: Final = "a mistake of ours: tell an operator"

TABLE: Final = AnswerTable(
    (
        AnswerRow(200, "", Outcome.ACCEPTED, "apns_accepted"),
        AnswerRow(
            *BAD_DEVICE_TOKEN,
            Outcome.TOKEN_SUSPECT,
            "apns_bad_device_token",
            "dead, or of the other environment; where both are configured and neither is known to hold, "
            "the other one is asked once",
        ),
        AnswerRow(
            400,
            "DeviceTokenNotForTopic",
            Outcome.TOKEN_SUSPECT,
            "apns_device_token_not_for_topic",
            "check the topic of the application",
        ),
        AnswerRow(400, "BadCollapseId", Outcome.PAYLOAD_BAD, "apns_bad_collapse_id", _OURS),
        AnswerRow(400, "BadExpirationDate", Outcome.PAYLOAD_BAD, "apns_bad_expiration_date", _OURS),
        AnswerRow(400, "BadMessageId", Outcome.PAYLOAD_BAD, "apns_bad_message_id", _OURS),
        AnswerRow(400, "BadPriority", Outcome.PAYLOAD_BAD, "apns_bad_priority", _OURS),
        AnswerRow(400, "DuplicateHeaders", Outcome.PAYLOAD_BAD, "apns_duplicate_headers", _OURS),
        AnswerRow(400, "InvalidPushType", Outcome.PAYLOAD_BAD, "apns_invalid_push_type", _OURS),
        AnswerRow(400, "PayloadEmpty", Outcome.PAYLOAD_BAD, "apns_payload_empty", _OURS),
        AnswerRow(400, "MissingDeviceToken", Outcome.PAYLOAD_BAD, "apns_missing_device_token", _OURS),
        AnswerRow(400, "BadTopic", Outcome.CONFIG_BAD, "apns_bad_topic"),
        AnswerRow(400, "MissingTopic", Outcome.CONFIG_BAD, "apns_missing_topic"),
        AnswerRow(400, "TopicDisallowed", Outcome.CONFIG_BAD, "apns_topic_disallowed"),
        AnswerRow(400, "IdleTimeout", Outcome.TRANSIENT, "apns_idle_timeout", "over a new connection"),
        AnswerRow(400, "", Outcome.UNKNOWN, "apns_unmapped_reason"),
        AnswerRow(
            *EXPIRED_PROVIDER_TOKEN,
            Outcome.CONFIG_BAD,
            "apns_expired_provider_token",
            "first signed anew and tried again at once; if that does not help our clock is wrong",
        ),
        AnswerRow(403, "InvalidProviderToken", Outcome.CONFIG_BAD, "apns_invalid_provider_token"),
        AnswerRow(403, "MissingProviderToken", Outcome.CONFIG_BAD, "apns_missing_provider_token"),
        AnswerRow(403, "Forbidden", Outcome.CONFIG_BAD, "apns_forbidden"),
        AnswerRow(403, "BadCertificate", Outcome.CONFIG_BAD, "apns_bad_certificate"),
        AnswerRow(403, "BadCertificateEnvironment", Outcome.CONFIG_BAD, "apns_bad_certificate_environment"),
        AnswerRow(
            *UNRELATED_KEY,
            Outcome.CONFIG_BAD,
            "apns_unrelated_key_id",
            "another key than the one that the connection began with; tried again once over a new one",
        ),
        AnswerRow(
            *BAD_ENVIRONMENT_KEY,
            Outcome.CONFIG_BAD,
            "apns_bad_environment_key_id",
            "the key is for the other environment; tried again once over a new connection",
        ),
        AnswerRow(403, "", Outcome.CONFIG_BAD, "apns_forbidden_unmapped"),
        AnswerRow(404, "", Outcome.PAYLOAD_BAD, "apns_bad_path", _OURS),
        AnswerRow(405, "", Outcome.PAYLOAD_BAD, "apns_method_not_allowed", _OURS),
        AnswerRow(
            410,
            "Unregistered",
            Outcome.TOKEN_DEAD,
            "apns_unregistered",
            "since the timestamp, which is in milliseconds",
        ),
        AnswerRow(410, "ExpiredToken", Outcome.TOKEN_DEAD, "apns_expired_token"),
        AnswerRow(410, "", Outcome.TOKEN_SUSPECT, "apns_gone_unmapped"),
        AnswerRow(413, "", Outcome.PAYLOAD_BAD, "apns_payload_too_large"),
        AnswerRow(
            *TOO_MANY_UPDATES,
            Outcome.CONFIG_BAD,
            "apns_too_many_provider_token_updates",
            "nothing is signed for 20 minutes, and the token before serves while it is young enough",
        ),
        AnswerRow(429, "", Outcome.THROTTLED_TARGET, "apns_too_many_requests"),
        AnswerRow(500, "", Outcome.TRANSIENT, "apns_internal_server_error"),
        AnswerRow(503, "Shutdown", Outcome.TRANSIENT, "apns_shutdown", "over a new connection"),
        AnswerRow(503, "", Outcome.TRANSIENT, "apns_service_unavailable"),
        AnswerRow(500, "", Outcome.TRANSIENT, "apns_server_error", last=599),
        AnswerRow(STATUS_MIN, "", Outcome.UNKNOWN, "apns_unmapped_status", last=STATUS_MAX),
    )
)
"""Every answer of APNs that is known, and what is made of the others."""

REASON_CHARACTERS_MAX: Final = 64
"""The longest reason of APNs has half of it; what is longer is none."""

TIMESTAMP_MS_MIN: Final = 1_230_768_000_000
"""2009, when APNs began: a smaller timestamp is in another unit or none at all."""

TIMESTAMP_MS_MAX: Final = 253_402_300_799_999
"""The end of year 9999: later is not a time."""

_RETRIABLE: Final = frozenset({Outcome.THROTTLED_TARGET, Outcome.TRANSIENT})


def said(heard: Answer | Lost) -> tuple[int, str]:
    """Return the status of an answer and the reason that it names, or an empty text."""
    if isinstance(heard, Lost):
        return 0, ""
    reason = _detail(heard).get("reason")
    return heard.status, reason if isinstance(reason, str) and len(reason) <= REASON_CHARACTERS_MAX else ""


def verdict_of(answer: Answer, now: Instant) -> Verdict:
    """Judge an answer.

    Args:
        answer: What APNs said.
        now: When the exchange began, for a ``Retry-After`` that is a date.
    """
    row = TABLE.find(*said(answer))
    if row.outcome is Outcome.TOKEN_DEAD:
        return Verdict(row.outcome, row.reason, dead_since=_timestamp(answer))
    pause = retry_after_ms(answer.headers.get("retry-after"), now) if row.outcome in _RETRIABLE else None
    return Verdict(row.outcome, row.reason, retry_after_ms=pause)


def verdict_of_loss(loss: Loss) -> Verdict:
    """Judge an ask that got no answer."""
    match loss:
        case Loss.NOT_SENT:
            return Verdict(Outcome.TRANSIENT, "apns_not_sent")
        case Loss.CUT:
            return Verdict(Outcome.TRANSIENT, "apns_cut", ambiguous=True)
        case Loss.TIMED_OUT:
            return Verdict(Outcome.TRANSIENT, "apns_timed_out", ambiguous=True)
        case Loss.REFUSED_EGRESS:
            return Verdict(Outcome.CONFIG_BAD, "apns_egress_refused")
        case _:
            assert_never(loss)


def _detail(answer: Answer) -> dict[str, Any]:
    """Read the members of an error body, if it has any."""
    if not answer.body:
        return {}
    try:
        detail = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return detail if isinstance(detail, dict) else {}


def _timestamp(answer: Answer) -> Instant | None:
    """Return since when the token is dead; None for what cannot be a time in milliseconds."""
    at = _detail(answer).get("timestamp")
    return at if type(at) is int and TIMESTAMP_MS_MIN <= at <= TIMESTAMP_MS_MAX else None
