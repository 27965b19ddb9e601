"""The service account: who asks Google for bearer tokens, and the signed wish for one. Pure."""

import json
from typing import Final, final

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from heliograph.wire import base64url
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"

ASSERTION_LIFE_SECONDS: Final = 3_600
"""The longest that Google takes; what is left of it only has to outlast one request."""

BACKDATED_MS: Final = 30_000
"""An assertion says that it was made so long ago: a clock that is a little ahead of Google's does no harm."""

KEY_BITS_MIN: Final = 2_048
"""What Google issues; less can be broken."""

TEXT_CHARACTERS_MAX: Final = 1_024
"""An address or an id that is longer is none."""


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    """What we read of the JSON key; Google adds members as it likes."""

    type: str
    client_email: str
    private_key: str
    private_key_id: str | None = None


@final
class ServiceAccount:
    """Signs wishes for bearer tokens (RFC 7523).

    Args:
        document: The account's JSON key as Google issued it. Never printed.

    Raises:
        Malformed: It is no such document.
    """

    __slots__ = ("_email", "_head", "_key")

    def __init__(self, document: Secret) -> None:
        problem = "must be the JSON key of a service account, as Google issued it"
        try:
            read = msgspec.json.decode(document.reveal().encode("utf-8", "surrogatepass"), type=_Document)
            key = serialization.load_pem_private_key(read.private_key.encode("ascii"), password=None)
        except (ValueError, TypeError, RecursionError):  # what msgspec raises is a ValueError
            raise Malformed("service_account", problem) from None
        names = (read.client_email, read.private_key_id or "-")
        if (
            read.type != "service_account"
            or not isinstance(key, rsa.RSAPrivateKey)
            or key.key_size < KEY_BITS_MIN
            or not all(0 < len(name) <= TEXT_CHARACTERS_MAX and name.isprintable() for name in names)
        ):
            raise Malformed("service_account", problem)
        self._key = key
        self._email = read.client_email
        head = {"alg": "RS256", "typ": "JWT"}
        self._head = head if read.private_key_id is None else {**head, "kid": read.private_key_id}

    def __repr__(self) -> str:
        return "ServiceAccount(‹secret›)"

    def identity(self) -> dict[str, str]:
        """Return the account's address and its key's id; neither is a secret."""
        kid = self._head.get("kid")
        return {"account": self._email} | ({} if kid is None else {"key_id": kid})

    def assertion(self, audience: str, now: Instant) -> str:
        """Return a signed wish for a bearer token that may send messages.

        Args:
            audience: The token endpoint's URL.
            now: The time.
        """
        issued_at = (now - BACKDATED_MS) // 1_000
        claims = {
            "iss": self._email,
            "scope": SCOPE,
            "aud": audience,
            "iat": issued_at,
            "exp": issued_at + ASSERTION_LIFE_SECONDS,
        }
        signed = ".".join(
            base64url.encode(json.dumps(part, separators=(",", ":")).encode())
            for part in (self._head, claims)
        )
        # PKCS #1 v1.5 is deterministic: no randomness is read here.
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{base64url.encode(signature)}"
