"""The provider token of APNs: when one is signed, which one is used, and for how long. Pure.

APNs refuses a token that was issued over an hour ago, and it refuses a connection whose token changes more
often than every 20 minutes. So one token serves every delivery of a process, it is renewed at 45 minutes
give or take five, and however clocks step, answers come or exchanges interleave, two signings are never
less than 20 minutes apart on the clock that we are given. The token before is kept: after a clock that
stepped forward and back again, or after APNs has said that the change came too soon, it serves on.

What APNs limits belongs to a connection, and so does the key: the first one that a connection sees is the
only one it takes. So a minter names the connections of its tokens, and no other minter has the same name.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Final, final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from heliograph.wire import base64url
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

BACKDATED_MS: Final = 30_000
"""A token says that it was issued so long ago: a clock that is a little ahead of Apple's does no harm."""

RENEWED_AFTER_MS: Final = 45 * 60_000
"""A token is renewed well before the hour that it lives."""

RENEWED_JITTER_MS: Final = 5 * 60_000
"""Up to so much sooner or later, so that processes that began together do not renew together."""

UNCHANGED_MS: Final = 20 * 60_000
"""Sooner than this APNs takes no other token on a connection."""

USABLE_MS: Final = 59 * 60_000
"""How old a token may be that is kept because APNs took no newer one: a minute less than its life."""

_COORDINATE_OCTETS: Final = 32
_JITTER_OCTETS: Final = 4


@dataclass(frozen=True, slots=True)
class ProviderToken:
    """A signed token.

    Attributes:
        authorization: The header that carries it.
        signed_at: When it was signed; what it says itself is 30 seconds earlier.
        renewed_after_ms: The age at which another one takes its place.
        connections: The name of the connections that it may go over.
    """

    authorization: str = field(repr=False)
    signed_at: Instant
    renewed_after_ms: int
    connections: str

    def is_young(self, now: Instant, limit_ms: int) -> bool:
        """Tell whether it is at most so old, and not from a future that APNs would refuse."""
        return -BACKDATED_MS <= now - self.signed_at < limit_ms


@final
class TokenMinter:
    """Signs provider tokens and keeps two: the one in use and the one before.

    Args:
        team_id: The team that the key belongs to.
        key_id: The key's id.
        key: The private key as PEM, on P-256. Never printed.

    Raises:
        Malformed: It is no such key.
    """

    __slots__ = (
        "_before",
        "_connections",
        "_current",
        "_head",
        "_held_at",
        "_key",
        "_key_id",
        "_opened",
        "_reopened_at",
        "_signed_at",
        "_team_id",
    )

    def __init__(self, team_id: str, key_id: str, key: Secret) -> None:
        self._team_id = team_id
        self._key_id = key_id
        self._head = _part({"alg": "ES256", "kid": key_id})
        self._key = _read_key(key)
        self._current: ProviderToken | None = None
        self._before: ProviderToken | None = None
        self._signed_at: Instant | None = None
        self._held_at: Instant | None = None
        self._reopened_at: Instant | None = None
        self._connections = ""
        self._opened = 0

    def __repr__(self) -> str:
        return "TokenMinter(‹secret›)"

    def token(self, now: Instant, octets: bytes) -> ProviderToken:
        """Return the token to use now; signs one only when none will do and one may be signed.

        Args:
            now: The time.
            octets: Random octets; they say how long a new token is used.
        """
        current, before = self._current, self._before
        if current is None:
            self._open(now)
            return self._sign(now, octets)
        limit_ms = USABLE_MS if self._is_held(now) else current.renewed_after_ms
        if current.is_young(now, limit_ms):
            return current
        if before is not None and before.is_young(now, before.renewed_after_ms):
            self._current, self._before = before, current
            return before
        # What is too old is refused for certain, so then a new one is tried though we were told to wait.
        is_due = self._may_sign(now) or not current.is_young(now, USABLE_MS)
        return self._sign(now, octets) if is_due and self._is_unchanged(now) else current

    def after_expiry(self, refused: ProviderToken, now: Instant, octets: bytes) -> ProviderToken | None:
        """Return another token than one that APNs called expired, or None if there can be none now.

        Args:
            refused: The token that was sent.
            now: The time.
            octets: Random octets, as for ``token``.
        """
        token = self.token(now, octets)
        if token is not refused:
            return token  # another exchange has seen to it
        return self._sign(now, octets) if self._may_sign(now) else None

    def after_wrong_key(self, refused: ProviderToken, now: Instant) -> ProviderToken | None:
        """Return the token to ask with over a new connection, or None if a new one was tried just now.

        Args:
            refused: The token that was sent, over a connection that began with another key.
            now: The time.
        """
        current = self._current
        if current is None or current.connections != refused.connections:
            return current  # another exchange has seen to it
        if self._reopened_at is not None and abs(now - self._reopened_at) < UNCHANGED_MS:
            return None
        self._reopened_at = now
        self._open(now)
        self._current = replace(current, connections=self._connections)
        self._before = None
        return self._current

    def too_many_updates(self, refused: ProviderToken, now: Instant) -> None:
        """Sign nothing for 20 minutes, and go back to the token before while it is young enough.

        Args:
            refused: The token that was sent and that came too soon.
            now: The time.
        """
        if refused is not self._current:
            return  # another exchange has seen to it
        self._held_at = now
        if self._before is not None and self._before.is_young(now, USABLE_MS):
            self._current, self._before = self._before, self._current

    def _open(self, now: Instant) -> None:
        """Name connections that nobody has used: by the key, and by when this minter came to need them."""
        self._opened += 1
        self._connections = f"apns {self._team_id} {self._key_id} {now}-{self._opened}"

    def _is_held(self, now: Instant) -> bool:
        return self._held_at is not None and abs(now - self._held_at) < UNCHANGED_MS

    def _is_unchanged(self, now: Instant) -> bool:
        return self._signed_at is None or abs(now - self._signed_at) >= UNCHANGED_MS

    def _may_sign(self, now: Instant) -> bool:
        return not self._is_held(now) and self._is_unchanged(now)

    def _sign(self, now: Instant, octets: bytes) -> ProviderToken:
        """Sign a compact ES256 token: the raw pair r and s, not DER (RFC 7518 3.4)."""
        claims = _part({"iss": self._team_id, "iat": (now - BACKDATED_MS) // 1_000})
        signed = f"{self._head}.{claims}"
        # Deterministic (RFC 6979): no randomness is read here, and a weak source could not reveal the key.
        der = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        r, s = decode_dss_signature(der)
        raw = r.to_bytes(_COORDINATE_OCTETS, "big") + s.to_bytes(_COORDINATE_OCTETS, "big")
        drawn = int.from_bytes(octets[:_JITTER_OCTETS], "big") % (2 * RENEWED_JITTER_MS + 1)
        token = ProviderToken(
            f"bearer {signed}.{base64url.encode(raw)}",
            now,
            RENEWED_AFTER_MS - RENEWED_JITTER_MS + drawn,
            self._connections,
        )
        self._before, self._current, self._signed_at = self._current, token, now
        return token


def _part(members: dict[str, str | int]) -> str:
    return base64url.encode(json.dumps(members, separators=(",", ":")).encode())


def _read_key(text: Secret) -> ec.EllipticCurvePrivateKey:
    problem = "must be the private key that Apple issued: PEM, on P-256"
    try:
        key = serialization.load_pem_private_key(text.reveal().strip().encode("ascii"), password=None)
    except (ValueError, TypeError):
        raise Malformed("key", problem) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise Malformed("key", problem)
    return key
