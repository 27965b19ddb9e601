"""Voluntary identification of the application server: RFC 8292 tokens, one per push service. Pure."""

import json
from dataclasses import dataclass
from typing import Final, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from heliograph.wire import base64url
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

TOKEN_LIFE_MS: Final = 12 * 3_600_000
"""Half of the 24 hours that RFC 8292 allows, so that clocks may differ."""

TOKEN_KEPT_MS: Final = 6 * 3_600_000
"""A token is signed anew at half of its life; what leaves us is always good for hours."""

TOKENS_KEPT_MAX: Final = 1_024
"""Push services whose token is kept; the least recently used makes room."""

_COORDINATE_OCTETS: Final = 32


@dataclass(frozen=True, slots=True)
class _Kept:
    signed_at: Instant
    token: str


@final
class VapidKey:
    """A P-256 key pair that identifies us to push services, with a bounded cache of its tokens.

    Args:
        text: The private key: PEM, or its 32 octets in unpadded base64url. Never printed.
        field: What to call it in a refusal.

    Raises:
        Malformed: It is neither, or not on P-256.
    """

    __slots__ = ("_kept", "_key", "public_key")

    def __init__(self, text: Secret, field: str = "vapid_key") -> None:
        self._key = _read_key(text.reveal().strip(), field)
        self._kept: dict[str, _Kept] = {}
        point = self._key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        self.public_key: str = base64url.encode(point)
        """What a browser needs as ``applicationServerKey``: 87 characters of base64url. Not a secret."""

    def __repr__(self) -> str:
        return "VapidKey(‹secret›)"

    def authorization(self, origin: str, subject: str, now: Instant) -> str:
        """Return the ``Authorization`` header for a push service.

        Args:
            origin: The push service's origin, with a port that is not the default one: the audience.
            subject: Whom it may contact.
            now: The time of signing; the token expires twelve hours after it.
        """
        kept = self._kept.pop(origin, None)
        if kept is None or not 0 <= now - kept.signed_at < TOKEN_KEPT_MS:
            kept = _Kept(
                now, self._sign({"aud": origin, "exp": (now + TOKEN_LIFE_MS) // 1_000, "sub": subject})
            )
            while len(self._kept) >= TOKENS_KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        self._kept[origin] = kept
        return f"vapid t={kept.token}, k={self.public_key}"

    def verifies(self, origin: str, subject: str, now: Instant) -> bool:
        """Tell whether the public key verifies a token that the private key signs."""
        head, _, signature = self._sign(
            {"aud": origin, "exp": (now + TOKEN_LIFE_MS) // 1_000, "sub": subject}
        ).rpartition(".")
        raw = base64url.decode(signature, "signature")
        r, s = raw[:_COORDINATE_OCTETS], raw[_COORDINATE_OCTETS:]
        der = encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
        point = base64url.decode(self.public_key, "public_key")
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        try:
            public.verify(der, head.encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    def _sign(self, claims: dict[str, str | int]) -> str:
        """Sign claims as a compact ES256 token: the raw pair r and s, not DER (RFC 7518 3.4)."""
        signed = ".".join(
            base64url.encode(json.dumps(part, separators=(",", ":")).encode())
            for part in ({"typ": "JWT", "alg": "ES256"}, claims)
        )
        # Deterministic (RFC 6979): no randomness is read here, and a weak source could not reveal the key.
        der = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        r, s = decode_dss_signature(der)
        raw = r.to_bytes(_COORDINATE_OCTETS, "big") + s.to_bytes(_COORDINATE_OCTETS, "big")
        return f"{signed}.{base64url.encode(raw)}"


def _read_key(text: str, field: str) -> ec.EllipticCurvePrivateKey:
    problem = "must be a P-256 private key: PEM, or 32 octets in unpadded base64url"
    try:
        if text.startswith("-----BEGIN "):
            key = serialization.load_pem_private_key(text.encode("ascii"), password=None)
        else:
            octets = base64url.decode_exactly(text, _COORDINATE_OCTETS, field)
            key = ec.derive_private_key(int.from_bytes(octets, "big"), ec.SECP256R1())
    except (ValueError, TypeError):  # Malformed is a ValueError too
        raise Malformed(field, problem) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise Malformed(field, problem)
    return key
