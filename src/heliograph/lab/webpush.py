"""A push service on loopback, as strict as the strictest real one.

It hands out subscriptions as a browser would, verifies who sends and how, decrypts with a library that is
not ours, folds messages by topic as a device would show them, and gives every answer that a push service
gives, on demand: per subscription, or from a queue.
"""

import contextlib
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

import http_ece
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

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
from heliograph.wire.secret import Secret

BODY_OCTETS_MAX: Final = 4_096
TTL_SECONDS_MAX: Final = 2_592_000
TOKEN_LIFE_SECONDS_MAX: Final = 86_400
_TOPIC: Final = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
_URGENCIES: Final = frozenset({"very-low", "low", "normal", "high"})


def _errno(status: int, number: int) -> Reply:
    """Answer as Mozilla's push service does."""
    return Reply(
        status, {"content-type": "application/json"}, json.dumps({"code": status, "errno": number}).encode()
    )


def _reason(status: int, reason: str) -> Reply:
    """Answer as Apple's push service does."""
    return Reply(status, {"content-type": "application/json"}, json.dumps({"reason": reason}).encode())


ANSWERS: Final[Mapping[str, Reaction]] = MappingProxyType(
    {
        "accepted_200": Reply(200),
        "accepted_201": Reply(201),
        "accepted_202": Reply(202),
        "ttl_lowered": Reply(201, {"ttl": "0"}),
        "redirect_301": Reply(301, {"location": "http://127.0.0.1:1/"}),
        "redirect_302": Reply(302, {"location": "http://127.0.0.1:1/"}),
        "redirect_307": Reply(307, {"location": "http://127.0.0.1:1/"}),
        "redirect_308": Reply(308, {"location": "http://127.0.0.1:1/"}),
        "bad_request": Reply(400, {}, b"no"),
        "bad_request_errno_104": _errno(400, 104),
        **{f"bad_crypto_errno_{number}": _errno(400, number) for number in (101, 108, 110, 111, 112, 113)},
        "vapid_mismatch": Reply(400, {}, b"the VAPID key differs from the subscription's"),
        "apple_key_mismatch": _reason(400, "VapidPkHashMismatch"),
        "unauthorized": Reply(401),
        "unauthorized_errno_109": _errno(401, 109),
        "forbidden": Reply(403),
        "apple_bad_token": _reason(403, "BadJwtToken"),
        "unknown": Reply(404),
        "unknown_errno_102": _errno(404, 102),
        "channel_throttled": Reply(406),
        "gone": Reply(410),
        "gone_errno_103": _errno(410, 103),
        "gone_errno_105": _errno(410, 105),
        "gone_errno_106": _errno(410, 106),
        "too_large": Reply(413),
        "throttled": Reply(429),
        "throttled_54_seconds": Reply(429, {"retry-after": "54"}),
        "throttled_until_a_date": Reply(429, {"retry-after": "Wed, 21 Oct 2037 07:28:00 GMT"}),
        "apple_throttled_target": Reply(429, {"retry-after": "7"}, b'{"reason":"TooManyRequests"}'),
        "server_error": Reply(500),
        "bad_gateway": Reply(502),
        "unavailable": Reply(503),
        "unavailable_20_seconds": Reply(503, {"retry-after": "20"}),
        "unavailable_errno_201": _errno(503, 201),
        "unavailable_errno_202": _errno(503, 202),
        "bridge_errno_900": _errno(503, 900),
        "gateway_timeout": Reply(504),
        "full": Reply(507),
        "teapot": Reply(418),
        "oversized_body": Reply(500, {}, b"x" * OVERSIZED_OCTETS),
        "oversized_accepted": Reply(201, {}, b"x" * OVERSIZED_OCTETS),
        "hang": Spoiled(Misbehaviour.HANG),
        "slow_headers": Spoiled(Misbehaviour.SLOW_HEADERS),
        "cut": Spoiled(Misbehaviour.CUT),
        "cut_mid_headers": Spoiled(Misbehaviour.CUT_MID_HEADERS),
        "truncated": Spoiled(Misbehaviour.TRUNCATED, Reply(400, {}, b"the beginning")),
        "truncated_accepted": Spoiled(Misbehaviour.TRUNCATED, Reply(201)),
        "not_http": Spoiled(Misbehaviour.NOT_HTTP),
    }
)
"""Every answer by name: each row of the verdict table, and each way to give none."""


@dataclass(frozen=True, slots=True)
class BrowserSubscription:
    """A subscription as a browser makes it.

    Attributes:
        endpoint: The URL to POST to.
        token: The last part of its path.
        push_key: The text to register it with.
        application_server_key: The only public key that may send to it, or None for any.
    """

    endpoint: str
    token: str
    push_key: Secret = field(repr=False)
    application_server_key: str | None
    private_key: ec.EllipticCurvePrivateKey = field(repr=False)
    auth: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PushMessage:
    """A message that the service took and the browser decrypted."""

    token: str
    plaintext: bytes
    body_octets: int
    ttl_seconds: int
    urgency: str
    topic: str | None
    claims: Mapping[str, Any]

    @property
    def members(self) -> dict[str, Any]:
        """The plaintext as the service worker reads it."""
        members = json.loads(self.plaintext)
        assert isinstance(members, dict)  # noqa: S101 - narrows for readers; ours are objects
        return members


class WebPushService:
    """A push service: ``async with WebPushService.start() as service``.

    Attributes:
        origin: Scheme, host and port.
        ca_pem: The authority to trust, or None without TLS.
        messages: What was taken, in order, repeats included.
        refusals: Why requests were refused by the service's own rules.
        answers: Queued answers; each request takes one before anything else is looked at.
        body_octets_max: The largest body it takes.
        port: Where it listens.
        script: What is answered on demand, before anything else is looked at.
        observe: Told of every answer.
        name: Which provider's server this is.
        table: What it answers on demand.
    """

    name: ClassVar[str] = "webpush"
    table: ClassVar[Mapping[str, Reaction]] = ANSWERS

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._entropy = SystemEntropy()
        self._subscriptions: dict[str, BrowserSubscription] = {}
        self._standing: dict[str, str] = {}
        self._ended: set[str] = set()
        self._receiver: Receiver | None = None
        self.origin = ""
        self.ca_pem: bytes | None = None
        self.port = 0
        self.messages: list[PushMessage] = []
        self.heard: list[Heard] = []
        self.refusals: list[str] = []
        self.answers: deque[str | Reaction] = deque()
        self.body_octets_max = BODY_OCTETS_MAX
        self.script: Script | None = None
        self.observe: Observe | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls,
        *,
        now: Callable[[], Instant] | None = None,
        tls: bool = True,
        authority: Authority | None = None,
        host: str = "localhost",
        names: tuple[str, ...] = ("localhost", "127.0.0.1"),
        port: int = 0,
    ) -> AsyncIterator[Self]:
        """Listen on 127.0.0.1 until the block ends.

        Args:
            now: The service's clock; the machine's own by default.
            tls: Whether to speak TLS, with a certificate for the names.
            authority: Who issues it; a new one by default.
            host: The host that endpoints name.
            names: What the certificate is for.
            port: Where to listen; 0 lets the system choose.
        """
        system = SystemClock()
        service = cls(now or system.now)
        context = None
        if tls:
            authority = authority or Authority.make(system.now())
            service.ca_pem = authority.ca_pem
            context = authority.server_context(system.now(), names)
        async with Receiver.start(service._react, context, port) as receiver:
            service._receiver = receiver
            service.port = receiver.port
            service.origin = f"{'https' if tls else 'http'}://{host}:{receiver.port}"
            yield service

    @property
    def connections(self) -> int:
        """How many connections were ever opened."""
        return 0 if self._receiver is None else self._receiver.connections

    def subscribe(
        self, *, application_server_key: str | None = None, answer: str | None = None
    ) -> BrowserSubscription:
        """Subscribe as a browser does.

        Args:
            application_server_key: Only this public key may send to it, if given.
            answer: The name of an answer that every push to it gets, instead of being judged.
        """
        token = self._entropy.octets(18).hex()
        key = ec.generate_private_key(ec.SECP256R1())
        auth = self._entropy.octets(16)
        endpoint = self._endpoint(token)
        keys = {"p256dh": base64url.encode(_point(key.public_key())), "auth": base64url.encode(auth)}
        subscription = BrowserSubscription(
            endpoint=endpoint,
            token=token,
            push_key=self._push_key(endpoint, keys),
            application_server_key=application_server_key,
            private_key=key,
            auth=auth,
        )
        self._subscriptions[token] = subscription
        if answer is not None:
            self._standing[token] = self._known(answer)
        return subscription

    def unsubscribe(self, subscription: BrowserSubscription) -> None:
        """End a subscription: from now on it is gone."""
        self._ended.add(subscription.token)

    def shown(self, subscription: BrowserSubscription) -> list[PushMessage]:
        """Return what the device shows: of the messages with one topic, the last."""
        shown: dict[str, PushMessage] = {}
        for number, message in enumerate(self.messages):
            if message.token == subscription.token:
                shown[message.topic if message.topic is not None else f"#{number}"] = message
        return list(shown.values())

    def _react(self, heard: Heard) -> Reaction:
        self.heard.append(heard)
        token = self._token(heard.target)
        subscription = self._subscriptions.get(token)
        capture(Captured(self.name, heard, None if subscription is None else _decrypted(heard, subscription)))
        scripted = None if self.script is None else self.script.reaction(self.name, token)
        taken = len(self.messages)
        reaction = self._own(heard, token, subscription) if scripted is None else scripted
        if self.observe is not None:
            message = self.messages[-1].members if len(self.messages) > taken else None
            self.observe(token, reaction, message, by_script=scripted is not None)
        return reaction

    def _own(self, heard: Heard, token: str, subscription: BrowserSubscription | None) -> Reaction:
        """Answer from the queue, as the subscription was told to, or by the service's own rules."""
        queued = self.answers.popleft() if self.answers else self._standing.get(token)
        if queued is not None:
            return self.table[self._known(queued)] if isinstance(queued, str) else queued
        if subscription is None:
            return self._refused("no such subscription", _errno(404, 102))
        if token in self._ended:
            return self._refused("the subscription has ended", _errno(410, 106))
        return self._judged(heard, subscription)

    def _endpoint(self, token: str) -> str:
        return f"{self.origin}/wpush/{token}"

    def _push_key(self, endpoint: str, keys: Mapping[str, str]) -> Secret:
        document = {"endpoint": endpoint, "expirationTime": None, "keys": dict(keys)}
        return Secret("webpush:" + json.dumps(document))

    def _token(self, target: str) -> str:
        return target.rpartition("/")[2]

    def _known(self, answer: str) -> str:
        if answer not in self.table:
            raise ValueError(f"no answer is called {answer!r}; there are {', '.join(sorted(self.table))}")
        return answer

    def _judged(self, heard: Heard, subscription: BrowserSubscription) -> Reply:
        """Apply the rules of RFC 8030, 8188, 8291 and 8292."""
        headers, topic = heard.headers, heard.headers.get("topic")
        ttl, urgency = headers.get("ttl", ""), headers.get("urgency", "normal")
        if heard.method != "POST":
            return self._refused("not a POST", Reply(405))
        if not (ttl.isascii() and ttl.isdigit()) or int(ttl) > TTL_SECONDS_MAX:
            return self._refused("TTL is missing or no number of seconds", _errno(400, 111))
        if topic is not None and _TOPIC.fullmatch(topic) is None:
            return self._refused("Topic is not 1 to 32 base64url characters", _errno(400, 113))
        if urgency not in _URGENCIES:
            return self._refused("Urgency is unknown", _errno(400, 111))
        if headers.get("content-encoding") != "aes128gcm":
            return self._refused("Content-Encoding is not aes128gcm", _errno(400, 110))
        if not 0 < len(heard.body) <= self.body_octets_max:
            return self._refused("the body is empty or too large", _errno(413, 104))
        try:
            claims = self._identified(headers.get("authorization", ""), subscription)
        except (_NotIdentifiedError, ValueError) as problem:
            return self._refused(str(problem), _reason(403, "BadJwtToken"))
        plaintext = _decrypted(heard, subscription)
        if plaintext is None:
            return self._refused("the body does not decrypt", _errno(400, 110))
        self.messages.append(
            PushMessage(subscription.token, plaintext, len(heard.body), int(ttl), urgency, topic, claims)
        )
        return Reply(201, {"location": f"{self.origin}/m/{len(self.messages)}", "ttl": ttl})

    def _identified(self, authorization: str, subscription: BrowserSubscription) -> Mapping[str, Any]:
        """Verify a VAPID token (RFC 8292) and return its claims."""
        match = re.fullmatch(r"vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), ?k=([\w-]+)", authorization, re.ASCII)
        if match is None:
            raise _NotIdentifiedError("Authorization is not vapid t=…, k=…")
        head, body, signature, key = match.groups()
        if subscription.application_server_key not in (None, key):
            raise _NotIdentifiedError("another key than the one subscribed with")
        raw = base64url.decode(signature, "signature")
        if len(raw) != 64:  # noqa: PLR2004 - r and s of P-256
            raise _NotIdentifiedError("the signature is not r and s")
        der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), base64url.decode(key, "k"))
        try:
            public.verify(der, f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise _NotIdentifiedError("the signature does not verify") from None
        if json.loads(base64url.decode(head, "header")) != {"typ": "JWT", "alg": "ES256"}:
            raise _NotIdentifiedError("the token's header is not ES256")
        claims = json.loads(base64url.decode(body, "claims"))
        seconds = self._now() // 1_000
        if claims.get("aud") != self.origin:
            raise _NotIdentifiedError("aud is not this origin")
        if not seconds < claims.get("exp", 0) <= seconds + TOKEN_LIFE_SECONDS_MAX:
            raise _NotIdentifiedError("exp is past, or more than a day ahead")
        if (
            re.fullmatch(r"(mailto:[^@\s]+@|https://)[^\s/]+\.[a-z]{2,}(/\S*)?", claims.get("sub", ""))
            is None
        ):
            raise _NotIdentifiedError("sub is nobody who can be reached")
        assert isinstance(claims, dict)  # noqa: S101 - narrows for readers
        return MappingProxyType(claims)

    def _refused(self, why: str, reply: Reply) -> Reply:
        self.refusals.append(why)
        return reply


class _NotIdentifiedError(Exception):
    """The sender did not prove who it is."""


def _decrypted(heard: Heard, subscription: BrowserSubscription) -> bytes | None:
    """Decrypt with a library that is not ours, as the browser would."""
    try:
        plaintext = http_ece.decrypt(
            heard.body,
            private_key=subscription.private_key,
            auth_secret=subscription.auth,
            version="aes128gcm",
        )
    except Exception:  # noqa: BLE001 - the library raises many kinds for what is simply not for this key
        return None
    return bytes(plaintext)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
