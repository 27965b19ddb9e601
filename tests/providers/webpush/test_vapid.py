"""Who we say we are to a push service."""

import json

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from tests.deliveries import NOW, SUBJECT, VAPID_SCALAR, vapid_key

from heliograph.providers.webpush.vapid import TOKEN_KEPT_MS, TOKENS_KEPT_MAX, VapidKey
from heliograph.wire import base64url
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

ORIGIN = "https://push.example.org"


def parts(header: str) -> tuple[dict[str, object], dict[str, object], str]:
    scheme, _, rest = header.partition(" ")
    fields = dict(field.strip().split("=", 1) for field in rest.split(","))
    head, claims, signature = fields["t"].split(".")
    assert scheme == "vapid"
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), base64url.decode(fields["k"], "k"))
    raw = base64url.decode_exactly(signature, 64, "signature")
    der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    return (
        json.loads(base64url.decode(head, "head")),
        json.loads(base64url.decode(claims, "claims")),
        fields["k"],
    )


def test_the_token_names_the_origin_the_end_and_whom_to_call() -> None:
    """W2, RFC 8292: ES256, aud, exp twelve hours ahead, sub, and a signature that verifies."""
    head, claims, key = parts(vapid_key().authorization(ORIGIN, SUBJECT, NOW))

    assert head == {"typ": "JWT", "alg": "ES256"}
    assert claims == {"aud": ORIGIN, "exp": NOW // 1_000 + 43_200, "sub": SUBJECT}
    assert len(key) == 87


def test_a_token_is_signed_once_per_origin_and_renewed_at_half_its_life() -> None:
    """Cached, never older than six hours, and not from the future either."""
    key = vapid_key()
    first = key.authorization(ORIGIN, SUBJECT, NOW)

    assert key.authorization(ORIGIN, SUBJECT, NOW + TOKEN_KEPT_MS - 1) == first
    assert key.authorization("https://push.example.org:8443", SUBJECT, NOW) != first
    assert key.authorization(ORIGIN, SUBJECT, NOW + TOKEN_KEPT_MS) != first
    assert parts(key.authorization(ORIGIN, SUBJECT, NOW - 60_000))[1]["exp"] == NOW // 1_000 - 60 + 43_200


def test_the_tokens_kept_are_bounded() -> None:
    """Users' hosts are many; the least recently used makes room."""
    key = vapid_key()
    first = key.authorization(ORIGIN, SUBJECT, NOW)
    for number in range(TOKENS_KEPT_MAX - 1):
        key.authorization(f"https://h{number}.example.org", SUBJECT, NOW)
        assert key.authorization(ORIGIN, SUBJECT, NOW + 1_000) == first
    key.authorization("https://one-more.example.org", SUBJECT, NOW)

    assert len(key._kept) == TOKENS_KEPT_MAX
    assert key.authorization(ORIGIN, SUBJECT, NOW + 1_000) == first


def test_a_key_is_read_from_pem_and_from_its_octets() -> None:
    """Both spellings give the same public key, which is not a secret."""
    scalar = int.from_bytes(base64url.decode(VAPID_SCALAR, "key"), "big")
    pem = ec.derive_private_key(scalar, ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )

    assert VapidKey(Secret(pem.decode())).public_key == VapidKey(Secret(VAPID_SCALAR + "\n")).public_key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        VAPID_SCALAR + "=",
        VAPID_SCALAR[:-1],
        base64url.encode(bytes(32)),
        base64url.encode(b"\xff" * 32),
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        .decode(),
        ec.derive_private_key(5, ec.SECP384R1())
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        .decode(),
        "-----BEGIN \u00fc",
    ],
)
def test_what_is_no_p256_key_is_refused_without_being_shown(text: str) -> None:
    """Neither the error nor the key's repr holds any of it."""
    with pytest.raises(Malformed) as caught:
        VapidKey(Secret(text), "previous_vapid_key")

    assert caught.value.field == "previous_vapid_key"
    assert text == "" or text not in str(caught.value)
    assert VAPID_SCALAR not in repr(vapid_key())
