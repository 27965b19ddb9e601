"""The signing keys that a lab's APNs has issued, and what it demands of their provider tokens."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from heliograph.lab.apns_answers import reason
from heliograph.lab.receiver import Heard
from heliograph.wire import base64url
from heliograph.wire.instant import Instant
from heliograph.wire.secret import Secret

PRODUCTION: Final = "production"
SANDBOX: Final = "sandbox"
TEAM_ID: Final = "LABTEAM000"

TOKEN_LIFE_MS: Final = 3_600_000
TOKEN_AHEAD_MS: Final = 60_000
"""How far ahead of this server's clock a sender's may be."""

TOKEN_CHANGE_MS: Final = 20 * 60_000
"""Sooner than this no connection may change its token."""

TOKENS_KEPT_MAX: Final = 64
"""Provider tokens whose signature was found good; the oldest makes room."""

CONNECTIONS_KEPT_MAX: Final = 1_024
"""Connections whose first key is remembered; the oldest makes room."""

_JWT: Final = re.compile(r"bearer ([\w-]+)\.([\w-]+)\.([\w-]+)", re.ASCII)
_SIGNATURE_OCTETS: Final = 64


class RefusedError(Exception):
    """A request that APNs does not take."""

    def __init__(self, status: int, word: str, why: str, **more: int) -> None:
        super().__init__(why)
        self.reply = reason(status, word, **more)


@dataclass(frozen=True, slots=True)
class AppleKey:
    """A signing key as Apple issues it.

    Attributes:
        team_id: Whose it is.
        key_id: Its id.
        pem: The private key; a secret.
        environments: Where it may push.
        topics: What it may push to; None for every topic of the team.
    """

    team_id: str
    key_id: str
    pem: Secret = field(repr=False)
    environments: frozenset[str]
    topics: frozenset[str] | None
    public: ec.EllipticCurvePublicKey = field(repr=False)


@dataclass(slots=True)
class _Seen:
    """What a connection began with."""

    key_id: str
    authorization: str
    changed_at: Instant
    before: set[str] = field(default_factory=set)


class AppleKeys:
    """Issues keys, and verifies what they sign and where it is used.

    Attributes:
        changes: When connections changed their provider token, by environment and connection.

    Args:
        now: Tells the time.
    """

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._keys: dict[str, AppleKey] = {}
        self._good: dict[str, tuple[AppleKey, Instant]] = {}
        self._seen: dict[tuple[str, int], _Seen] = {}
        self.changes: list[tuple[str, int, Instant]] = []

    def issue(self, environments: frozenset[str], topics: frozenset[str] | None) -> AppleKey:
        """Issue a key."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        issued = AppleKey(
            team_id=TEAM_ID,
            key_id=f"LABKEY{len(self._keys):04}",
            pem=Secret(pem.decode()),
            environments=environments,
            topics=topics,
            public=key.public_key(),
        )
        self._keys[issued.key_id] = issued
        return issued

    def proved(self, environment: str, heard: Heard) -> AppleKey:
        """Verify the provider token of a request, and that it may be used on its connection now.

        Raises:
            RefusedError: As APNs would refuse it.
        """
        authorization = heard.headers.get("authorization", "")
        if not authorization:
            raise RefusedError(403, "MissingProviderToken", "no authorization")
        if authorization not in self._good:
            while len(self._good) >= TOKENS_KEPT_MAX:
                del self._good[next(iter(self._good))]
            self._good[authorization] = self._verified(authorization)
        key, issued_at = self._good[authorization]
        now = self._now()
        if now - issued_at > TOKEN_LIFE_MS:
            raise RefusedError(403, "ExpiredProviderToken", "iat is over an hour ago")
        if issued_at - now > TOKEN_AHEAD_MS:
            raise RefusedError(403, "InvalidProviderToken", "iat is in the future")
        if environment not in key.environments:
            raise RefusedError(403, "BadEnvironmentKeyIdInToken", "the key is for the other environment")
        self._check_connection((environment, heard.connection), key, authorization, now)
        return key

    def _check_connection(
        self, place: tuple[str, int], key: AppleKey, authorization: str, now: Instant
    ) -> None:
        if place not in self._seen:
            while len(self._seen) >= CONNECTIONS_KEPT_MAX:
                del self._seen[next(iter(self._seen))]
            self._seen[place] = _Seen(key.key_id, authorization, now)
        seen = self._seen[place]
        if seen.key_id != key.key_id:
            raise RefusedError(403, "UnrelatedKeyIdInToken", "another key than the connection began with")
        if authorization != seen.authorization and authorization not in seen.before:
            if now - seen.changed_at < TOKEN_CHANGE_MS:
                raise RefusedError(429, "TooManyProviderTokenUpdates", "the token changed too soon")
            seen.before.add(seen.authorization)
            seen.authorization, seen.changed_at = authorization, now
            self.changes.append((*place, now))

    def _verified(self, authorization: str) -> tuple[AppleKey, Instant]:
        """Return whose a token is and when it says that it was issued."""
        match = _JWT.fullmatch(authorization)
        if match is None:
            raise RefusedError(403, "InvalidProviderToken", "not bearer and a token")
        head_text, claims_text, signature_text = match.groups()
        try:
            head = json.loads(base64url.decode(head_text, "header"))
            claims = json.loads(base64url.decode(claims_text, "claims"))
            raw = base64url.decode(signature_text, "signature")
            key = self._keys[head["kid"]]
            issued_at = int(claims["iat"]) * 1_000
        except (ValueError, KeyError, TypeError):
            raise RefusedError(403, "InvalidProviderToken", "a token that cannot be read") from None
        if head.get("alg") != "ES256" or len(raw) != _SIGNATURE_OCTETS or claims.get("iss") != key.team_id:
            raise RefusedError(403, "InvalidProviderToken", "not ES256 with r and s, or another team's")
        der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        try:
            key.public.verify(der, f"{head_text}.{claims_text}".encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise RefusedError(403, "InvalidProviderToken", "the signature does not verify") from None
        return key, issued_at
