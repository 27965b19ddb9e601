"""FCM on loopback: a token endpoint that verifies its callers, and a project that judges each message.

It issues a service account, takes signed assertions for it alone, gives bearer tokens that run out,
checks every member of a message as Google does, folds by collapse key as a device would, and gives every
answer that FCM gives, on demand: per token, from a queue, or by a script.
"""

import contextlib
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qs

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.lab.certificates import Authority
from heliograph.lab.receiver import (
    OVERSIZED_OCTETS,
    Captured,
    Heard,
    Misbehaviour,
    Reaction,
    Receiver,
    Reply,
    Spoiled,
    capture,
)
from heliograph.lab.script import Observe, Script
from heliograph.wire import base64url
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

TOKEN_PATH: Final = "/token"  # noqa: S105 - an address
PROJECT: Final = "lab-project"
EMAIL: Final = "push@lab-project.iam.example.com"
SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"

ASSERTION_LIFE_SECONDS_MAX: Final = 3_600
CLOCK_SKEW_SECONDS: Final = 60
BEARER_SECONDS: Final = 3_600
DATA_OCTETS_MAX: Final = 4_096
TTL_SECONDS_MAX: Final = 2_419_200

_TYPES: Final = "type.googleapis.com/"
_RESERVED: Final = ("google.", "gcm.")
_RESERVED_NAMES: Final = frozenset({"from", "message_type"})
_TTL: Final = re.compile(r"(\d{1,7})s", re.ASCII)
_ANDROID: Final = frozenset(
    {"collapse_key", "priority", "ttl", "restricted_package_name", "direct_boot_ok", "notification", "data"}
)


def _error(
    status: int, *details: Mapping[str, object], headers: Mapping[str, str] = MappingProxyType({})
) -> Reply:
    """Answer with a ``google.rpc.Status``."""
    error = {"code": status, "message": "for people", "status": "FOR_PEOPLE", "details": details}
    return Reply(
        status, {"content-type": "application/json; charset=UTF-8", **headers}, _json({"error": error})
    )


def _code(word: str) -> Mapping[str, object]:
    return {"@type": f"{_TYPES}google.firebase.fcm.v1.FcmError", "errorCode": word}


def _fields(*names: str) -> Mapping[str, object]:
    violations = [{"field": name, "description": "Invalid"} for name in names]
    return {"@type": f"{_TYPES}google.rpc.BadRequest", "fieldViolations": violations}


def _quota(subject: str) -> Mapping[str, object]:
    violation = {"subject": subject, "description": "Quota exceeded"}
    return {"@type": f"{_TYPES}google.rpc.QuotaFailure", "violations": [violation]}


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


_QUOTA_EXCEEDED: Final = _code("QUOTA_EXCEEDED")

ANSWERS: Final[Mapping[str, Reaction]] = MappingProxyType(
    {
        "accepted": Reply(
            200, {"content-type": "application/json"}, _json({"name": "projects/x/messages/1"})
        ),
        "token_invalid": _error(400, _code("INVALID_ARGUMENT"), _fields("message.token")),
        "invalid_argument": _error(400, _code("INVALID_ARGUMENT")),
        "data_invalid": _error(400, _code("INVALID_ARGUMENT"), _fields("message.data[0]")),
        "token_and_data_invalid": _error(400, _fields("message.token", "message.data[0]")),
        "third_party_auth_error": _error(401, _code("THIRD_PARTY_AUTH_ERROR")),
        "unauthenticated": _error(401),
        "sender_id_mismatch": _error(403, _code("SENDER_ID_MISMATCH")),
        "permission_denied": _error(403),
        "unregistered": _error(404, _code("UNREGISTERED")),
        "project_unknown": _error(404),
        "not_found_page": Reply(404, {"content-type": "text/html"}, b"<html><title>404</title></html>"),
        "too_large": Reply(413),
        "quota_exceeded": _error(429, _QUOTA_EXCEEDED),
        "quota_exceeded_54_seconds": _error(429, _QUOTA_EXCEEDED, headers={"retry-after": "54"}),
        "quota_exceeded_until_a_date": _error(
            429, _QUOTA_EXCEEDED, headers={"retry-after": "Wed, 21 Oct 2037 07:28:00 GMT"}
        ),
        "device_rate_exceeded": _error(429, _QUOTA_EXCEEDED, _quota("device:token")),
        "internal": _error(500, _code("INTERNAL")),
        "bad_gateway": Reply(502, {"content-type": "text/html"}, b"<html>Bad Gateway</html>"),
        "unavailable": _error(503, _code("UNAVAILABLE")),
        "unavailable_20_seconds": _error(503, _code("UNAVAILABLE"), headers={"retry-after": "20"}),
        "teapot": Reply(418),
        "oversized_body": Reply(500, {}, b"x" * OVERSIZED_OCTETS),
        "hang": Spoiled(Misbehaviour.HANG),
        "slow_headers": Spoiled(Misbehaviour.SLOW_HEADERS),
        "cut": Spoiled(Misbehaviour.CUT),
        "cut_mid_headers": Spoiled(Misbehaviour.CUT_MID_HEADERS),
        "truncated": Spoiled(Misbehaviour.TRUNCATED, Reply(404, {}, b'{"error":')),
        "truncated_accepted": Spoiled(Misbehaviour.TRUNCATED, Reply(200)),
        "not_http": Spoiled(Misbehaviour.NOT_HTTP),
    }
)
"""Every answer to a message by name: each row of the verdict table, and each way to give none."""

GRANTS: Final[Mapping[str, Reaction]] = MappingProxyType(
    {
        "invalid_grant": Reply(400, {"content-type": "application/json"}, b'{"error":"invalid_grant"}'),
        "unauthorized": Reply(401),
        "forbidden": Reply(403),
        "unknown": Reply(404),
        "throttled": Reply(429, {"retry-after": "30"}),
        "server_error": Reply(500),
        "unavailable": Reply(503),
        "no_token": Reply(200, {"content-type": "application/json"}, b'{"token_type":"Bearer"}'),
        "not_json": Reply(200, {}, b"<html>"),
        "hang": Spoiled(Misbehaviour.HANG),
        "cut": Spoiled(Misbehaviour.CUT),
    }
)
"""Every answer of the token endpoint by name, besides the usual one."""


@dataclass(frozen=True, slots=True)
class FcmMessage:
    """A message that was taken.

    Attributes:
        token: The registration token it went to.
        data: What the application gets.
        android: How it is to be treated.
        validate_only: It was judged and went nowhere.
    """

    token: str
    data: Mapping[str, str]
    android: Mapping[str, Any]
    validate_only: bool


class FcmService:
    """FCM: ``async with FcmService.start() as service``.

    Attributes:
        origin: Scheme, host and port; also of the token endpoint.
        ca_pem: The authority to trust.
        account: The JSON key of the only service account.
        messages: What was taken, in order, repeats included.
        refusals: Why requests were refused by the service's own rules.
        answers: Queued answers to messages; each takes one before anything else is looked at.
        grants: Queued answers of the token endpoint.
        granted: How many bearer tokens were issued.
        bearer_seconds: How long a bearer token lives.
        port: Where it listens.
        script: What is answered on demand, before anything else is looked at.
        observe: Told of every answer to a message.
    """

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._entropy = SystemEntropy()
        self._key = rsa.generate_private_key(65_537, 2_048)
        self._bearers: dict[str, int] = {}
        self._standing: dict[str, str] = {}
        self._registered: set[str] = set()
        self._receiver: Receiver | None = None
        self.origin = ""
        self.ca_pem = b""
        self.port = 0
        self.account = Secret("")
        self.messages: list[FcmMessage] = []
        self.heard: list[Heard] = []
        self.refusals: list[str] = []
        self.answers: deque[str | Reaction] = deque()
        self.grants: deque[str] = deque()
        self.granted = 0
        self.bearer_seconds = BEARER_SECONDS
        self.script: Script | None = None
        self.observe: Observe | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls,
        *,
        now: Callable[[], Instant] | None = None,
        authority: Authority | None = None,
        port: int = 0,
    ) -> AsyncIterator["FcmService"]:
        """Listen on 127.0.0.1 with TLS until the block ends.

        Args:
            now: The service's clock; the machine's own by default.
            authority: Who issues its certificate; a new one by default.
            port: Where to listen; 0 lets the system choose.
        """
        system = SystemClock()
        service = cls(now or system.now)
        authority = authority or Authority.make(system.now())
        service.ca_pem = authority.ca_pem
        context = authority.server_context(system.now(), ("localhost", "127.0.0.1"))
        async with Receiver.start(service._react, context, port) as receiver:
            service._receiver = receiver
            service.port = receiver.port
            service.origin = f"https://localhost:{receiver.port}"
            service.account = service._issue_account()
            yield service

    @property
    def token_url(self) -> str:
        """Where bearer tokens are granted."""
        return self.origin + TOKEN_PATH

    @property
    def connections(self) -> int:
        """How many connections were ever opened."""
        return 0 if self._receiver is None else self._receiver.connections

    def register(self, answer: str | None = None) -> Secret:
        """Register a device, as its SDK does, and return the push key to register it with.

        Args:
            answer: The name of an answer that every message to it gets, instead of being judged.
        """
        token = f"{self._entropy.octets(8).hex()}:APA91b{self._entropy.octets(24).hex()}"
        self._registered.add(token)
        if answer is not None:
            self._standing[token] = _known(answer)
        return Secret(f"fcm:{token}")

    def shown(self, push_key: Secret) -> list[FcmMessage]:
        """Return what the device gets: of the messages with one collapse key, the last."""
        token = push_key.reveal().removeprefix("fcm:")
        kept = {
            message.android.get("collapse_key", number): message
            for number, message in enumerate(self.messages)
            if message.token == token and not message.validate_only
        }
        return list(kept.values())

    def forget_bearers(self) -> None:
        """Take no bearer token any more that was issued so far."""
        self._bearers.clear()

    def _issue_account(self) -> Secret:
        pem = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        document = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "lab-key-1",
            "private_key": pem.decode(),
            "client_email": EMAIL,
            "token_uri": self.token_url,
        }
        return Secret(json.dumps(document))

    def _react(self, heard: Heard) -> Reaction:
        self.heard.append(heard)
        if heard.target == TOKEN_PATH:
            return self._grant(heard)
        document = _document(heard.body)
        message = document.get("message")
        token = message.get("token", "") if isinstance(message, dict) else ""
        capture(Captured("fcm", heard, heard.body))
        scripted = None if self.script is None else self.script.reaction("fcm", token)
        taken = len(self.messages)
        reaction = self._own(heard, token, document) if scripted is None else scripted
        if self.observe is not None:
            told = self.messages[-1].data if len(self.messages) > taken else None
            self.observe(token, reaction, told, by_script=scripted is not None)
        return reaction

    def _own(self, heard: Heard, token: str, document: Mapping[str, Any]) -> Reaction:
        """Answer from the queue, as the token was told to, or by the service's own rules."""
        queued = self.answers.popleft() if self.answers else self._standing.get(token)
        if queued is not None:
            return ANSWERS[_known(queued)] if isinstance(queued, str) else queued
        return self._judged(heard, token, document)

    def _judged(self, heard: Heard, token: str, document: Mapping[str, Any]) -> Reaction:
        """Apply the rules of the reference."""
        bearer = heard.headers.get("authorization", "").removeprefix("Bearer ")
        if not self._now() // 1_000 < self._bearers.get(bearer, 0):
            return self._refused("the bearer token is unknown or has run out", "unauthenticated")
        if (heard.method, heard.target) != ("POST", f"/v1/projects/{PROJECT}/messages:send"):
            return self._refused("there is no such project", "project_unknown")
        if not heard.headers.get("content-type", "").startswith("application/json"):
            return self._refused("the body is not said to be JSON", "invalid_argument")
        problem = _problem(document)
        if problem is not None:
            return self._refused(problem, "invalid_argument")
        validate_only = bool(document.get("validate_only"))
        if token not in self._registered:
            return self._refused("the token is nobody's", "token_invalid")
        message = document["message"]
        self.messages.append(
            FcmMessage(token, message.get("data", {}), message.get("android", {}), validate_only)
        )
        name = f"projects/{PROJECT}/messages/{len(self.messages)}"
        return Reply(200, {"content-type": "application/json"}, _json({"name": name}))

    def _grant(self, heard: Heard) -> Reaction:
        """Grant a bearer token to whoever proves to be the account (RFC 7523)."""
        if self.grants:
            return GRANTS[self.grants.popleft()]
        try:
            self._check_assertion(heard)
        except (_RefusedError, ValueError, Malformed) as problem:
            self.refusals.append(str(problem))
            return GRANTS["invalid_grant"]
        bearer = f"lab.{self._entropy.octets(24).hex()}"
        self._bearers[bearer] = self._now() // 1_000 + self.bearer_seconds
        self.granted += 1
        members = {"access_token": bearer, "expires_in": self.bearer_seconds, "token_type": "Bearer"}
        return Reply(200, {"content-type": "application/json"}, _json(members))

    def _check_assertion(self, heard: Heard) -> None:
        if heard.method != "POST" or heard.headers.get("content-type") != "application/x-www-form-urlencoded":
            raise _RefusedError("a grant is a posted form")
        form = parse_qs(heard.body.decode("ascii"), strict_parsing=True)
        if form.get("grant_type") != [GRANT_TYPE]:
            raise _RefusedError("the grant type is another")
        head, claims, signature = form["assertion"][0].split(".")
        try:
            self._key.public_key().verify(
                base64url.decode(signature, "signature"),
                f"{head}.{claims}".encode(),
                padding.PKCS1v15(),
                hashes.SHA256(),
            )
        except InvalidSignature:
            raise _RefusedError("the assertion's signature does not verify") from None
        if json.loads(base64url.decode(head, "head")).get("alg") != "RS256":
            raise _RefusedError("the assertion is not RS256")
        said, seconds = json.loads(base64url.decode(claims, "claims")), self._now() // 1_000
        if (said.get("iss"), said.get("aud"), said.get("scope")) != (EMAIL, self.token_url, SCOPE):
            raise _RefusedError("the assertion is of another account, for another endpoint or scope")
        if not seconds - ASSERTION_LIFE_SECONDS_MAX < said["iat"] <= seconds + CLOCK_SKEW_SECONDS:
            raise _RefusedError("the assertion was not made now")
        if not seconds < said["exp"] <= said["iat"] + ASSERTION_LIFE_SECONDS_MAX:
            raise _RefusedError("the assertion has run out or lives too long")

    def _refused(self, why: str, answer: str) -> Reaction:
        self.refusals.append(why)
        return ANSWERS[answer]


class _RefusedError(Exception):
    """The caller did not prove who it is."""


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _problem(document: Mapping[str, Any]) -> str | None:
    """Say what the reference does not allow in a request, or None."""
    message = document.get("message")
    if not document.keys() <= {"message", "validate_only"} or not isinstance(message, dict):
        return "a request has a message and perhaps validate_only"
    if not message.keys() <= {"token", "data", "android", "fcm_options"} or "token" not in message:
        return "a message of ours has a token, data, android and fcm_options"
    data, android = message.get("data", {}), message.get("android", {})
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        return "data are texts by name"
    if any(name in _RESERVED_NAMES or name.startswith(_RESERVED) for name in data):
        return "a name of the data is reserved"
    if sum(len(name.encode()) + len(value.encode()) for name, value in data.items()) > DATA_OCTETS_MAX:
        return "the data are too large"
    if not isinstance(android, dict) or not android.keys() <= _ANDROID:
        return "android has a member that the reference does not know"
    if android.get("priority", "NORMAL") not in {"NORMAL", "HIGH"}:
        return "the priority is NORMAL or HIGH"
    ttl = _TTL.fullmatch(str(android.get("ttl", "0s")))
    if ttl is None or int(ttl[1]) > TTL_SECONDS_MAX:
        return "the ttl is a number of seconds up to four weeks, and an s"
    return None


def _known(answer: str) -> str:
    if answer not in ANSWERS:
        raise KeyError(f"there is no answer {answer!r}")
    return answer
