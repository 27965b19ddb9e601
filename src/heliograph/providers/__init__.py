"""Third-party push services as pure exchanges, one folder each, and the table of them.

A new adapter is a folder with ``settings.py``, ``payload.py`` and ``exchange.py``, and one row here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from heliograph.delivery.egress import EgressRules
from heliograph.delivery.model import ProviderName
from heliograph.delivery.provider import Provider
from heliograph.providers.apns.exchange import ApnsProvider
from heliograph.providers.apns.settings import ApnsSettings
from heliograph.providers.fcm.exchange import FcmProvider
from heliograph.providers.fcm.settings import FcmSettings
from heliograph.providers.stub.exchange import StubProvider
from heliograph.providers.stub.settings import StubSettings
from heliograph.providers.unifiedpush.exchange import UnifiedPushProvider
from heliograph.providers.unifiedpush.settings import UnifiedPushSettings
from heliograph.providers.webpush.exchange import WebPushProvider
from heliograph.providers.webpush.settings import WebPushSettings
from heliograph.providers.webpush.vapid import VapidKey
from heliograph.wire.secret import Secret

SecretLookup: TypeAlias = Callable[[str], Secret]
"""Turns a reference from the settings (``file:…``, ``env:…``) into the secret that it names."""

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Adapter(Generic[S]):
    """One row of the table.

    Attributes:
        settings: The type of its section in the operator's settings.
        build: Makes the provider from settings, a way to look secrets up, what the operator allows of
            endpoints that users supply, and the section's name, which is the credential's. Raises
            ``Malformed`` for settings that could never deliver.
        per_app: The settings that an application may set for itself alone; none of them a secret.
        tailored: Makes a provider of the same credential with other settings of those. It shares whatever
            the credential has only one of, such as its token.
    """

    settings: type[S]
    build: Callable[[S, SecretLookup, EgressRules, str], Provider]
    per_app: tuple[str, ...] = ()
    tailored: Callable[[Any, S], Provider] | None = None

    def build_from(
        self, document: object, secret: SecretLookup, egress: EgressRules, credential: str
    ) -> Provider:
        """Read a section of the settings and build the provider from it.

        Args:
            document: The section, without its choice of adapter.
            secret: Looks secrets up.
            egress: What the operator allows of endpoints that users supply.
            credential: The section's name.

        Raises:
            msgspec.ValidationError: The section does not have this adapter's form.
            Malformed: Its values could never deliver.
        """
        return self.build(msgspec.convert(document, self.settings), secret, egress, credential)

    def tailor(self, provider: Provider, document: object) -> Provider:
        """Make a provider of the same credential for an application with settings of its own.

        Args:
            provider: What ``build_from`` returned.
            document: The section with the application's own settings in it.

        Raises:
            msgspec.ValidationError: The document does not have this adapter's form.
            Malformed: Its values could never deliver.
            TypeError: Applications have no settings of their own with this adapter.
        """
        if self.tailored is None:
            raise TypeError("applications have no settings of their own with this adapter")
        return self.tailored(provider, msgspec.convert(document, self.settings))


def _stub(settings: StubSettings, secret: SecretLookup, egress: EgressRules, credential: str) -> Provider:
    del secret, egress
    return StubProvider(settings, credential=credential)


def _tailored_stub(provider: StubProvider, settings: StubSettings) -> Provider:
    return StubProvider(settings, credential=provider.credential)


def _apns(settings: ApnsSettings, secret: SecretLookup, egress: EgressRules, credential: str) -> Provider:
    del egress
    return ApnsProvider(settings, key=secret(settings.key), credential=credential)


def _fcm(settings: FcmSettings, secret: SecretLookup, egress: EgressRules, credential: str) -> Provider:
    del egress
    return FcmProvider(settings, service_account=secret(settings.service_account), credential=credential)


def _unifiedpush(
    settings: UnifiedPushSettings, secret: SecretLookup, egress: EgressRules, credential: str
) -> Provider:
    previous = settings.previous_vapid_key
    return UnifiedPushProvider(
        settings,
        key=VapidKey(secret(settings.vapid_key)),
        previous_key=None if previous is None else VapidKey(secret(previous), "previous_vapid_key"),
        egress=egress,
        credential=credential,
    )


def _webpush(
    settings: WebPushSettings, secret: SecretLookup, egress: EgressRules, credential: str
) -> Provider:
    previous = settings.previous_vapid_key
    return WebPushProvider(
        settings,
        key=VapidKey(secret(settings.vapid_key)),
        previous_key=None if previous is None else VapidKey(secret(previous), "previous_vapid_key"),
        egress=egress,
        credential=credential,
    )


ADAPTERS: Final[Mapping[ProviderName, Adapter[Any]]] = MappingProxyType(
    {
        "apns": Adapter(
            ApnsSettings,
            _apns,
            ("alert_loc_key", "environment", "push_type", "topic"),
            ApnsProvider.tailored,
        ),
        "fcm": Adapter(
            FcmSettings,
            _fcm,
            ("analytics_label", "direct_boot_ok", "restricted_package_name"),
            FcmProvider.tailored,
        ),
        "stub": Adapter(StubSettings, _stub, ("url",), _tailored_stub),
        "unifiedpush": Adapter(UnifiedPushSettings, _unifiedpush),
        "webpush": Adapter(WebPushSettings, _webpush),
    }
)
