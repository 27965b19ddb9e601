"""What an answer of FCM means, of the sending side and of the token endpoint: two verdict tables. Pure.

The sending side answers with a ``google.rpc.Status``. Its status and message are for people; what decides
are the typed details: the code of an ``FcmError``, the fields of a ``BadRequest``, the subjects of a
``QuotaFailure``. They are boiled down to one word, which the table is looked up with. Without the detail
that says so a 404 is about the project and a 400 about the message, so neither costs a token.
"""

from dataclasses import replace
from typing import Any, Final, assert_never

import msgspec

from heliograph.delivery.answer_table import STATUS_MAX, STATUS_MIN, AnswerRow, AnswerTable
from heliograph.delivery.exchange import Answer, Loss
from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.retry_after import retry_after_ms
from heliograph.wire.instant import Instant

BODY_OCTETS_MAX: Final = 16_384
"""As much of an answer as is read: details come with links and explanations, tokens with many characters."""

TOKEN_FIELD: Final = "message.token"  # noqa: S105 - a word of FCM
DEVICE: Final = "device"
UNAUTHENTICATED: Final = "fcm_unauthenticated"

SENDING: Final = AnswerTable(
    (
        AnswerRow(200, "", Outcome.ACCEPTED, "fcm_accepted"),
        AnswerRow(
            400,
            TOKEN_FIELD,
            Outcome.TOKEN_SUSPECT,
            "fcm_token_invalid",
            "a BadRequest whose every violation is of this field",
        ),
        AnswerRow(400, "", Outcome.PAYLOAD_BAD, "fcm_invalid_argument", "never costs a token"),
        AnswerRow(
            401,
            "THIRD_PARTY_AUTH_ERROR",
            Outcome.CONFIG_BAD,
            "fcm_third_party_auth_error",
            "the APNs or Web Push key inside Firebase",
        ),
        AnswerRow(
            401,
            "",
            Outcome.CONFIG_BAD,
            UNAUTHENTICATED,
            "first a new bearer token is fetched and the same message tried again",
        ),
        AnswerRow(
            403,
            "SENDER_ID_MISMATCH",
            Outcome.TOKEN_SUSPECT,
            "fcm_sender_id_mismatch",
            "the token is of another project: check the project of the application",
        ),
        AnswerRow(
            403,
            "",
            Outcome.CONFIG_BAD,
            "fcm_permission_denied",
            "the API is off, or the service account lacks the role",
        ),
        AnswerRow(404, "UNREGISTERED", Outcome.TOKEN_DEAD, "fcm_unregistered"),
        AnswerRow(404, "", Outcome.CONFIG_BAD, "fcm_project_unknown", "the project id is wrong"),
        AnswerRow(413, "", Outcome.PAYLOAD_BAD, "fcm_payload_too_large"),
        AnswerRow(
            429,
            DEVICE,
            Outcome.THROTTLED_TARGET,
            "fcm_device_rate_exceeded",
            "a QuotaFailure that speaks of the device",
        ),
        AnswerRow(
            429,
            "",
            Outcome.THROTTLED_APP,
            "fcm_quota_exceeded",
            "nothing of the project is sent for `Retry-After`; without one for a minute, then twice as long",
        ),
        AnswerRow(500, "", Outcome.TRANSIENT, "fcm_internal"),
        AnswerRow(503, "", Outcome.TRANSIENT, "fcm_unavailable"),
        AnswerRow(500, "", Outcome.TRANSIENT, "fcm_server_error", last=599),
        AnswerRow(STATUS_MIN, "", Outcome.UNKNOWN, "fcm_unmapped_status", last=STATUS_MAX),
    )
)
"""Every answer to a message that is known, and what is made of the others."""

TOKENS: Final = AnswerTable(
    (
        AnswerRow(
            200, "", Outcome.CONFIG_BAD, "fcm_token_unreadable", "only where it holds no usable bearer token"
        ),
        AnswerRow(
            400,
            "",
            Outcome.CONFIG_BAD,
            "fcm_grant_refused",
            "the key is revoked, the account is gone, or our clock is wrong",
        ),
        AnswerRow(401, "", Outcome.CONFIG_BAD, "fcm_grant_refused"),
        AnswerRow(403, "", Outcome.CONFIG_BAD, "fcm_grant_refused"),
        AnswerRow(404, "", Outcome.CONFIG_BAD, "fcm_token_url_wrong"),
        AnswerRow(429, "", Outcome.THROTTLED_APP, "fcm_token_throttled"),
        AnswerRow(
            500,
            "",
            Outcome.TRANSIENT,
            "fcm_token_unavailable",
            "the credential rests, no attempt burnt",
            last=599,
        ),
        AnswerRow(STATUS_MIN, "", Outcome.CONFIG_BAD, "fcm_token_unmapped_status", last=STATUS_MAX),
    )
)
"""Every answer to a wish for a bearer token that is known, and what is made of the others.

None of them says anything of a message or a device: nothing was sent. So each holds up the credential and
burns no attempt of anything."""

TOKEN_RESTS_MS: Final = 2_000
"""How long nothing is fetched after a failure that may be over soon; whatever fails again waits longer."""

_FCM_ERROR: Final = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
_BAD_REQUEST: Final = "type.googleapis.com/google.rpc.BadRequest"
_QUOTA_FAILURE: Final = "type.googleapis.com/google.rpc.QuotaFailure"

WORD_CHARACTERS_MAX: Final = 64
"""The longest code of FCM has a third of it; what is longer is none."""

BEARER_CHARACTERS_MAX: Final = 8_192
"""Google promises to stay within 2,048 octets; four times that is no token any more."""

BEARER_SECONDS_MAX: Final = 86_400
"""A bearer token lives an hour; one that claims more than a day is believed for a day."""

_RETRIABLE: Final = frozenset({Outcome.THROTTLED_TARGET, Outcome.THROTTLED_APP, Outcome.TRANSIENT})


def said(answer: Answer) -> str:
    """Boil the details of an answer down to the word that decides, or an empty one."""
    if answer.status < 400:  # noqa: PLR2004 - no error
        return ""
    error = _members(answer.body).get("error")
    details = error.get("details") if isinstance(error, dict) else None
    typed = [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []
    match answer.status:
        case 400:
            fields = [violation.get("field") for violation in _listed(typed, _BAD_REQUEST, "fieldViolations")]
            return TOKEN_FIELD if fields and all(field == TOKEN_FIELD for field in fields) else ""
        case 429:
            told = [
                violation.get(part)
                for violation in _listed(typed, _QUOTA_FAILURE, "violations")
                for part in ("subject", "description")
            ]
            return DEVICE if any(isinstance(text, str) and DEVICE in text.lower() for text in told) else ""
        case _:
            codes = (detail.get("errorCode") for detail in typed if detail.get("@type") == _FCM_ERROR)
            code = next((code for code in codes if isinstance(code, str)), "")
            return code if len(code) <= WORD_CHARACTERS_MAX else ""


def verdict_of(answer: Answer, now: Instant) -> Verdict:
    """Judge an answer to a message.

    Args:
        answer: What FCM said.
        now: When the exchange began, for a ``Retry-After`` that is a date.
    """
    return _judged(SENDING, answer, said(answer), now)


def verdict_of_refused_grant(answer: Answer, now: Instant) -> Verdict:
    """Judge an answer of the token endpoint that holds no bearer token. No message was sent.

    Args:
        answer: What the token endpoint said.
        now: When the exchange began, for a ``Retry-After`` that is a date.
    """
    verdict = _judged(TOKENS, answer, "", now)
    if verdict.outcome is not Outcome.TRANSIENT:
        return verdict
    return replace(verdict, retry_after_ms=None, rests_ms=verdict.retry_after_ms or TOKEN_RESTS_MS)


def granted(answer: Answer) -> tuple[str, int] | None:
    """Return the bearer token of an answer and how many seconds it lives; None if there is none."""
    if answer.status != 200:  # noqa: PLR2004 - the only status that grants
        return None
    members = _members(answer.body)
    token, seconds = members.get("access_token"), members.get("expires_in")
    kind = members.get("token_type", "Bearer")
    if not (
        isinstance(token, str)
        and 0 < len(token) <= BEARER_CHARACTERS_MAX
        and token.isascii()
        and token.isprintable()
        and " " not in token
        and type(seconds) is int
        and seconds > 0
        and isinstance(kind, str)
        and kind.lower() == "bearer"
    ):
        return None
    return token, min(seconds, BEARER_SECONDS_MAX)


def verdict_of_loss(loss: Loss) -> Verdict:
    """Judge a message that got no answer."""
    match loss:
        case Loss.NOT_SENT:
            return Verdict(Outcome.TRANSIENT, "fcm_not_sent")
        case Loss.CUT:
            return Verdict(Outcome.TRANSIENT, "fcm_cut", ambiguous=True)
        case Loss.TIMED_OUT:
            return Verdict(Outcome.TRANSIENT, "fcm_timed_out", ambiguous=True)
        case Loss.REFUSED_EGRESS:
            return Verdict(Outcome.CONFIG_BAD, "fcm_egress_refused")
        case _:
            assert_never(loss)


def verdict_of_lost_grant(loss: Loss) -> Verdict:
    """Judge a wish for a bearer token that got no answer. No message was sent, so nothing is ambiguous."""
    match loss:
        case Loss.NOT_SENT | Loss.CUT | Loss.TIMED_OUT:
            return Verdict(Outcome.TRANSIENT, "fcm_token_lost", rests_ms=TOKEN_RESTS_MS)
        case Loss.REFUSED_EGRESS:
            return Verdict(Outcome.CONFIG_BAD, "fcm_egress_refused")
        case _:
            assert_never(loss)


def _judged(table: AnswerTable, answer: Answer, word: str, now: Instant) -> Verdict:
    row = table.find(answer.status, word)
    pause = retry_after_ms(answer.headers.get("retry-after"), now) if row.outcome in _RETRIABLE else None
    return Verdict(row.outcome, row.reason, retry_after_ms=pause)


def _members(body: bytes) -> dict[str, Any]:
    """Read the members of a body, if it has any."""
    if not body:
        return {}
    try:
        members = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _listed(details: list[dict[str, Any]], kind: str, name: str) -> list[dict[str, Any]]:
    """Return the entries of every list of this name in details of this type."""
    lists = (detail.get(name) for detail in details if detail.get("@type") == kind)
    return [entry for each in lists if isinstance(each, list) for entry in each if isinstance(entry, dict)]
