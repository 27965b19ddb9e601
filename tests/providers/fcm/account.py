"""A service account of the tests, and a provider that uses it."""

import json

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from heliograph.delivery.exchange import Answer
from heliograph.providers.fcm.exchange import FcmProvider
from heliograph.providers.fcm.settings import FcmSettings
from heliograph.wire.secret import Secret

KEY = rsa.generate_private_key(65_537, 2_048)
EMAIL = "push@project-1.iam.example.com"
DOCUMENT = {
    "type": "service_account",
    "client_email": EMAIL,
    "private_key_id": "key-1",
    "private_key": KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode(),
}
ACCOUNT = json.dumps(DOCUMENT)
TOKEN = "cR7vQ0bTSUq:APA91bF1pZc5eH3Zr0o4"
PUSH_KEY = f"fcm:{TOKEN}"


def grant(text: str = "bearer", seconds: int = 3_600) -> Answer:
    """Return what the token endpoint answers to the account."""
    members = {"access_token": text, "expires_in": seconds, "token_type": "Bearer"}
    return Answer(200, {}, json.dumps(members).encode())


def provider(**settings: str | bool) -> FcmProvider:
    """Return a provider of one project."""
    chosen = FcmSettings(project_id="project-1", service_account="file:/k", **settings)  # type: ignore[arg-type]
    return FcmProvider(chosen, service_account=Secret(ACCOUNT))
