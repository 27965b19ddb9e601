"""What an operator sets for APNs, and the checks that spare a refusal."""

import re
from enum import StrEnum
from typing import Final

import msgspec

from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import SecretReference

LOCALIZATION_KEY_CHARACTERS_MAX: Final = 128
"""As much as a localization key of a wakeup has."""

TOPIC_CHARACTERS_MAX: Final = 155
"""The longest bundle id that the App Store takes."""

_ID: Final = re.compile(r"[A-Z0-9]{10}", re.ASCII)
_TOPIC: Final = re.compile(rf"[A-Za-z0-9.-]{{1,{TOPIC_CHARACTERS_MAX}}}", re.ASCII)
_LOCALIZATION_KEY: Final = re.compile(rf"[\x21-\x7e]{{1,{LOCALIZATION_KEY_CHARACTERS_MAX}}}", re.ASCII)
_ORIGIN: Final = re.compile(
    r"https://(?:[A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}(?::[0-9]{1,5})?|https://\[[0-9A-Fa-f:.]{2,45}\](?::[0-9]{1,5})?",
    re.ASCII,
)


class Environment(StrEnum):
    """Where devices were given their tokens."""

    PRODUCTION = "production"
    SANDBOX = "sandbox"
    BOTH = "both"
    """Some here and some there: production is asked first, and the other one where that does not know a
    token."""


class PushType(StrEnum):
    """How a wakeup presents itself to the system."""

    ALERT = "alert"
    """An alert with nothing but a localization key, which a service extension replaces."""
    BACKGROUND = "background"
    """Content available, without an alert; the system delivers only a few of these an hour."""


class ApnsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the APNs provider.

    Attributes:
        team_id: The ten characters of the developer team.
        key_id: The ten characters of the signing key.
        key: A reference to the signing key as Apple issued it, such as ``file:/run/secrets/AuthKey.p8``.
        topic: The bundle id of every application that ``topics`` does not name.
        topics: Bundle ids by application id, where there are several.
        environment: Where devices were given their tokens. ``both`` needs a key for both.
        push_type: ``alert`` for an alert with a localization key alone, which an extension of the
            application replaces on the device; ``background`` for no alert at all.
        alert_loc_key: The localization key of the alert; the same for every wakeup, so it tells nothing.
        production_origin: Another origin than Apple's, for labs and for proxies that speak HTTP/2.
        sandbox_origin: The same for the sandbox.
    """

    team_id: str
    key_id: str
    key: SecretReference
    topic: str | None = None
    topics: dict[str, str] = {}
    environment: Environment = Environment.PRODUCTION
    push_type: PushType = PushType.ALERT
    alert_loc_key: str = "push.wakeup"
    production_origin: str = "https://api.push.apple.com"
    sandbox_origin: str = "https://api.sandbox.push.apple.com"


def check_settings(settings: ApnsSettings) -> None:
    """Refuse settings with which APNs would refuse every push.

    Raises:
        Malformed: A value cannot be one; the error names it.
    """
    for name, value in (("team_id", settings.team_id), ("key_id", settings.key_id)):
        if _ID.fullmatch(value) is None:
            raise Malformed(name, "must be ten upper-case letters and digits")
    if settings.topic is None and not settings.topics:
        raise Malformed("topic", "must be set, or topics must name one for each application")
    for name, topic in (
        ("topic", settings.topic),
        *((f"topics.{app}", to) for app, to in settings.topics.items()),
    ):
        if topic is not None and _TOPIC.fullmatch(topic) is None:
            raise Malformed(name, "must be a bundle id: letters, digits, dots and hyphens")
    if _LOCALIZATION_KEY.fullmatch(settings.alert_loc_key) is None:
        raise Malformed(
            "alert_loc_key", f"must be 1 to {LOCALIZATION_KEY_CHARACTERS_MAX} ASCII characters without spaces"
        )
    for name, origin in (
        ("production_origin", settings.production_origin),
        ("sandbox_origin", settings.sandbox_origin),
    ):
        if _ORIGIN.fullmatch(origin) is None:
            raise Malformed(name, "must be https:// and a host, with a port if need be, and no path")
