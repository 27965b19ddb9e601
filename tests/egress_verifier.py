"""Checks everything that left the building during the suite.

The provider servers of the lab tell it of every request they hear. At the end of the session each one is
held against what a provider may see: only known headers, only allow-listed members, and none of the
identifiers that tests plant where they must not get out.
"""

import contextlib
import json
import re
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Final

from heliograph.lab.receiver import LISTENERS, Captured

MEMBERS: Final = {"push_target_id", "wakeup_kind", "push_hint", "push_hint_l10n_key", "counts"}
COUNTS: Final = {"badge", "unread_increment", "missed_call"}
_CARRIED: Final = {"host", "user-agent", "accept", "content-length", "content-type"}
HEADERS: Final[Mapping[str, set[str]]] = {
    "apns": _CARRIED
    | {
        "apns-collapse-id",
        "apns-expiration",
        "apns-id",
        "apns-priority",
        "apns-push-type",
        "apns-topic",
        "authorization",
    },
    "stub": _CARRIED | {"stub-delivery-id", "stub-route", "stub-collapse-key"},
    "unifiedpush": _CARRIED | {"authorization", "content-encoding", "topic", "ttl", "urgency"},
    "webpush": _CARRIED | {"authorization", "content-encoding", "topic", "ttl", "urgency"},
    "fcm": _CARRIED | {"authorization"},
}
PATHS: Final[Mapping[str, str]] = {
    "apns": r"/3/device/[0-9a-f]+",
    "stub": r"/wakeups",
    "unifiedpush": r"/up[0-9a-f]+\?up=1",
    "webpush": r"/wpush/[0-9a-f]+",
    "fcm": r"/v1/projects/[a-z-]+/messages:send",
}
ENCRYPTED: Final = {"unifiedpush", "webpush"}
"""Whose servers read nothing; the lab's play the device too."""
FCM_DATA: Final = (MEMBERS - {"counts"}) | {f"counts_{name}" for name in COUNTS}
FCM_MESSAGE: Final = {"token", "data", "android"}
FCM_ANDROID: Final = {"collapse_key", "priority", "ttl"}
CLAIMS: Final[Mapping[str, set[str]]] = {
    "apns": {"iat", "iss"},
    "unifiedpush": {"aud", "exp", "sub"},
    "webpush": {"aud", "exp", "sub"},
}
FORMS: Final = (
    {"alert": {"loc-key": "push.wakeup"}, "mutable-content": 1},
    {"content-available": 1},
)
"""What APNs may be told beside the members: the same for every wakeup."""

NEVER: Final = (
    "ak:account",
    "ak:circle",
    "ak:device",
    "ak:did",
    "ak:event",
    "ak:message",
    "ak:principal",
    "ak:realm",
    "ak:strand",
    "did:",
    "audit_envelope",
    "event_kind",
    "reason_code",
    "registration_id",
    "route_token",
    "source_event_digest",
)
"""Forms and members that no provider may ever see (R011, R253, R280)."""

CAPTURED: Final[list[Captured]] = []
PLANTED: Final[set[str]] = set()
_watching = [True]


def plant(identifier: str) -> str:
    """Promise that an identifier must never leave, and return it for use in a test."""
    PLANTED.add(identifier)
    return identifier


@contextlib.contextmanager
def not_ours() -> Iterator[None]:
    """Ignore what is sent inside the block: a test plays a stranger to try a lab server."""
    _watching[0] = False
    try:
        yield
    finally:
        _watching[0] = True


def _listen(captured: Captured) -> None:
    if _watching[0]:
        CAPTURED.append(captured)


LISTENERS.append(_listen)


def verdict() -> set[str]:
    """Return what is wrong with anything that was captured."""
    return {f"{captured.provider}: {problem}" for captured in CAPTURED for problem in problems(captured)}


def problems(captured: Captured, planted: set[str] | None = None) -> list[str]:
    """Return what is wrong with one request; nothing for a clean one."""
    heard, found = captured.heard, []
    found += [f"header {name}" for name in sorted(heard.headers.keys() - HEADERS[captured.provider])]
    if re.fullmatch(PATHS[captured.provider], heard.target) is None:
        found.append("an unexpected path")
    text = "\n".join([heard.target, *heard.headers.values(), *_readings(heard.body)])
    if captured.provider == "fcm":
        found += _fcm_problems(heard.body)
    elif captured.plaintext is not None:
        text += captured.plaintext.decode("utf-8", "replace")
        found += _member_problems(captured.plaintext)
    elif captured.provider in ENCRYPTED:
        found.append("a body that its browser cannot read")
    if captured.provider == "apns" and json.loads(heard.body).get("aps") not in FORMS:
        found.append("a form with content")
    if "authorization" in heard.headers and captured.provider in CLAIMS:
        claims = _claims(heard.headers["authorization"])
        found += [f"claim {name}" for name in sorted(claims.keys() - CLAIMS[captured.provider])]
        text += json.dumps(claims)
    found += [f"the form {form}" for form in NEVER if form in text]
    found += ["a planted identifier" for one in (PLANTED if planted is None else planted) if one in text]
    return found


def _member_problems(plaintext: bytes) -> list[str]:
    members = json.loads(plaintext)
    if not isinstance(members, dict):
        return ["a payload that is no object"]
    found = [f"member {name}" for name in sorted(members.keys() - MEMBERS)]
    counts = members.get("counts", {})
    return found + [f"member counts.{name}" for name in sorted(counts.keys() - COUNTS)]


def _fcm_problems(body: bytes) -> list[str]:
    """Look at all three layers of a message: the request, how it is to be treated, what the device reads."""
    request = json.loads(body)
    message = request.get("message", {})
    layers = (
        ("", request, {"message"}),
        ("message.", message, FCM_MESSAGE),
        ("message.android.", message.get("android", {}), FCM_ANDROID),
        ("message.data.", message.get("data", {}), FCM_DATA),
    )
    return [f"member {at}{name}" for at, found, known in layers for name in sorted(found.keys() - known)]


def _claims(authorization: str) -> dict[str, Any]:
    match = re.search(r"(?:t=|bearer )[^.]*\.([^.]*)\.", authorization)
    if match is None:
        return {"no token": authorization}
    claims = json.loads(urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4)))
    return claims if isinstance(claims, dict) else {"no object": claims}


def _readings(body: bytes) -> list[str]:
    """Return a body as text, and as what it may hide in base64."""
    text = body.decode("latin-1")
    hidden = []
    for run in re.findall(r"[A-Za-z0-9+/_-]{16,}", text):
        with contextlib.suppress(ValueError):
            hidden.append(b64decode(run + "=" * (-len(run) % 4), altchars=b"-_").decode("latin-1"))
    return [text, *hidden]
