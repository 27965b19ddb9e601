"""The page of every error: written from the tables, so that it cannot say anything else."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from heliograph.arkret.errors import CODES, PROBLEM_PREFIX
from heliograph.arkret.schema import CALLER_RETRYABLE, RejectReason
from heliograph.edge.problem import Code

REASONS: Final[Mapping[RejectReason, tuple[str, str]]] = MappingProxyType(
    {
        RejectReason.PUSH_TARGET_UNKNOWN: (
            "This Station never installed the target here.",
            "Hand the registration off first.",
        ),
        RejectReason.PUSH_TOKEN_UNKNOWN: (
            "The target is known; this device has no live registration: never made, ended or expired.",
            "Hand a registration off; stop notifying until then.",
        ),
        RejectReason.PUSH_TOKEN_INVALID: (
            "The push service said that the device's address is dead; its route is erased.",
            "Ask the device for a new push key and supersede the registration.",
        ),
        RejectReason.UNSUPPORTED_PROFILE: (
            "The body is a visible one; this Gateway is blind.",
            "Send the blind form under a new key.",
        ),
        RejectReason.PUSH_PAYLOAD_TOO_LARGE: (
            "The wakeup is larger than the push service takes. Not given here: a blind one fits them all.",
            "Leave optional members out.",
        ),
        RejectReason.PUSH_GATEWAY_UNREACHABLE: (
            "The wakeup cannot be taken over now: the backlog is full or the application is not configured.",
            "Ask for this device again under a new key, after `retry_after_ms`.",
        ),
        RejectReason.RATE_LIMITED: (
            "This Station notifies more devices than it may.",
            "As above.",
        ),
    }
)
"""When each per-device reason is given, and what the Station should do."""


def errors_page(house: Iterable[Code]) -> str:
    """Write the page of every stable code, in Markdown.

    Args:
        house: The codes of the operations that belong to no system: health and metrics.
    """
    lines = [
        "# Errors",
        "",
        "Generated from `heliograph.arkret.errors` and `.schema` by `make docs`; do not edit.",
        "",
        "A refused request changed nothing. Branch on the code, never on the number or the words around it.",
        "",
        "## Refusals of Arkret operations",
        "",
        f"The body is an RFC 9457 problem document whose `type` is `{PROBLEM_PREFIX}` and the code.",
        "`instance` is the request's id in our log. `detail` names the member at fault, never its value.",
        "",
        "| code | status | when | the same request later | what to do | clause |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{code.code}` | {code.status} | {code.title}. | {'yes' if code.retry else 'no'} | {code.advice} "
        f"| {code.clause} |"
        for code in sorted(CODES, key=lambda code: (code.status, code.code))
    ]
    lines += [
        "",
        "## Reasons of one device",
        "",
        "They stand in the 200 answer of a notify, beside `gateway_status` `rejected`. Only those marked may",
        "carry `retry_after_ms` (R300, R301). The answer is frozen under its key: what is to be",
        "tried again is asked under a new one.",
        "",
        "| reason | when | again later | what to do |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{reason}` | {when} | {'yes' if reason in CALLER_RETRYABLE else 'no'} | {what} |"
        for reason, (when, what) in REASONS.items()
    ]
    lines += [
        "",
        "## Refusals of health and metrics",
        "",
        "`/healthz`, `/readyz` and `/metrics` belong to the house and have words of their own.",
        "",
        "| code | status | when |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{code.code}` | {code.status} | {code.title} |" for code in sorted(house, key=lambda c: c.status)
    ]
    return "\n".join(lines) + "\n"
