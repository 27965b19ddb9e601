"""What an operator sets for UnifiedPush, and the checks that spare a push server's refusal."""

import msgspec

from heliograph.providers.webpush import settings as webpush
from heliograph.providers.webpush.settings import WebPushSettings
from heliograph.wire.secret import SecretReference


class UnifiedPushSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the UnifiedPush provider.

    Attributes:
        subject: Whom a push server may contact: ``mailto:`` with an address, or an ``https:`` URL, on a real
            public domain.
        vapid_key: A reference to the private key, such as ``file:/run/secrets/vapid``: a P-256 key as PEM,
            or its 32 octets in unpadded base64url. The default is the key that Heliograph made for itself.
        previous_vapid_key: A reference to the key that was used before, while endpoints registered with it
            are still alive; tried once when a push server refuses the present one.
        hosts: The push servers that endpoints may name: exact names, or ``*.suffix``. Users choose their own
            servers, so there is no list that suits everybody: an empty one allows every public host. A
            server in a private network also needs an exception in ``egress.exceptions``.
    """

    subject: str
    hosts: tuple[str, ...]
    vapid_key: SecretReference = "key:vapid"
    previous_vapid_key: SecretReference | None = None


def as_webpush(settings: UnifiedPushSettings) -> WebPushSettings:
    """Return the settings of the Web Push that UnifiedPush is."""
    return WebPushSettings(
        subject=settings.subject,
        vapid_key=settings.vapid_key,
        previous_vapid_key=settings.previous_vapid_key,
        hosts=settings.hosts,
    )


def check_settings(settings: UnifiedPushSettings) -> None:
    """Refuse settings with which some push server would refuse every push.

    Raises:
        Malformed: The subject or an entry of the host list is not acceptable.
    """
    webpush.check_settings(as_webpush(settings))
