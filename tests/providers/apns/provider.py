"""An APNs provider for tests, and what its provider tokens say."""

import json
from base64 import urlsafe_b64decode
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from heliograph.delivery.exchange import Answer, Ask
from heliograph.providers.apns.exchange import ApnsProvider
from heliograph.providers.apns.settings import ApnsSettings
from heliograph.wire.secret import Secret

TEAM_ID = "TEAM567890"
KEY_ID = "KEY4567890"
TOPIC = "org.example.a"
TOKEN = "0f744707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"
KEY = ec.derive_private_key(1_234_567, ec.SECP256R1())
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


def push_key(token: str = TOKEN) -> Secret:
    return Secret(f"apns:{token}")


def settings(**changes: Any) -> ApnsSettings:
    members = {"team_id": TEAM_ID, "key_id": KEY_ID, "key": "file:/k", "topic": TOPIC}
    return ApnsSettings(**{**members, **changes})


def provider(**changes: Any) -> ApnsProvider:
    return ApnsProvider(settings(**changes), key=Secret(PEM), credential="ios")


def refused(status: int, reason: str) -> Answer:
    return Answer(status, {}, json.dumps({"reason": reason}).encode())


def host(ask: Ask) -> str:
    return ask.url.reveal().split("/")[2]


def opened(authorization: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Verify a provider token with the public key and return its header and its claims."""
    scheme, _, token = authorization.partition(" ")
    assert scheme == "bearer"
    head, claims, signature = token.split(".")
    raw = _decoded(signature)
    assert len(raw) == 64
    pair = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    KEY.public_key().verify(pair, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    return json.loads(_decoded(head)), json.loads(_decoded(claims))


def _decoded(part: str) -> bytes:
    assert "=" not in part
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))
