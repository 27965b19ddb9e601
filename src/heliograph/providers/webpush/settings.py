"""What an operator sets for Web Push, and the checks that spare a provider's refusal."""

import re
from typing import Final

import msgspec

from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import SecretReference

WELL_KNOWN_HOSTS: Final = (
    "fcm.googleapis.com",
    "updates.push.services.mozilla.com",
    "*.push.apple.com",
    "*.notify.windows.com",
)
"""The push services of the common browsers."""

SUBJECT_CHARACTERS_MAX: Final = 256
"""The subject travels in every request's token."""

_LABEL: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", re.ASCII)
_LOCAL_PART: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}", re.ASCII)
_PATH: Final = re.compile(r"(?:[/?][A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?", re.ASCII)
_TOP_LEVEL: Final = re.compile(r"[A-Za-z]{2,63}|[xX][nN]--[A-Za-z0-9-]{1,59}", re.ASCII)
_NOT_PUBLIC: Final = frozenset(
    {
        "alt",
        "arpa",
        "corp",
        "domain",
        "example",
        "home",
        "host",
        "internal",
        "intranet",
        "invalid",
        "lan",
        "local",
        "localdomain",
        "localhost",
        "mail",
        "onion",
        "private",
        "test",
        "workgroup",
    }
)
"""Top-level names that are reserved, or that only private networks use."""


class WebPushSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the Web Push provider.

    Attributes:
        subject: Whom a push service may contact: ``mailto:`` with an address, or an ``https:`` URL, on a
            real public domain. Some services refuse every push whose subject is not.
        vapid_key: A reference to the private key, such as ``file:/run/secrets/vapid``: a P-256 key as PEM,
            or its 32 octets in unpadded base64url. The default is the key that Heliograph made for itself.
        previous_vapid_key: A reference to the key that was used before, while subscriptions made with it
            are still alive; tried once when a service refuses the present one.
        hosts: The push services that endpoints may name: exact names, or ``*.suffix``. An empty list
            allows every public host.
    """

    subject: str
    vapid_key: SecretReference = "key:vapid"
    previous_vapid_key: SecretReference | None = None
    hosts: tuple[str, ...] = WELL_KNOWN_HOSTS


def check_settings(settings: WebPushSettings) -> None:
    """Refuse settings with which some push service would refuse every push.

    Raises:
        Malformed: The subject or an entry of the host list is not acceptable.
    """
    check_subject(settings.subject)
    for index, host in enumerate(settings.hosts):
        name = host.removeprefix("*.")
        if not name or name != name.lower() or not all(_LABEL.fullmatch(label) for label in name.split(".")):
            raise Malformed(f"hosts[{index}]", "must be a lower-case host name, or *. and one")


def check_subject(subject: str) -> None:
    """Check a VAPID subject (RFC 8292 2.1) as strictly as the strictest push service.

    Raises:
        Malformed: It is neither form, or its domain is not a public one.
    """
    rule = "must be mailto: and an address, or an https: URL"
    if len(subject) > SUBJECT_CHARACTERS_MAX:
        raise Malformed("subject", f"must have at most {SUBJECT_CHARACTERS_MAX} characters")
    if subject.startswith("mailto:"):
        local, at, domain = subject.removeprefix("mailto:").partition("@")
        if not at or _LOCAL_PART.fullmatch(local) is None:
            raise Malformed("subject", rule)
    elif subject.startswith("https://"):
        domain = re.split(r"[/?]", subject.removeprefix("https://"), maxsplit=1)[0]
        if _PATH.fullmatch(subject.removeprefix("https://" + domain)) is None:
            raise Malformed("subject", rule)
    else:
        raise Malformed("subject", rule)
    if not _is_public_domain(domain):
        raise Malformed(
            "subject", "must be on a real public domain: push services refuse local and reserved ones"
        )


def _is_public_domain(domain: str) -> bool:
    labels = domain.split(".")
    return (
        len(labels) > 1
        and all(_LABEL.fullmatch(label) for label in labels)
        and _TOP_LEVEL.fullmatch(labels[-1]) is not None
        and labels[-1].lower() not in _NOT_PUBLIC
    )
