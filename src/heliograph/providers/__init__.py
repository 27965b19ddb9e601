"""Third-party push services as pure exchanges, one folder each, and the table of them.

A new adapter is a folder with ``settings.py``, ``payload.py`` and ``exchange.py``, and one row here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from heliograph.delivery.egress import EgressRules
from heliograph.delivery.model import ProviderName
from heliograph.delivery.provider import Provider
from heliograph.providers.stub.exchange import StubProvider
from heliograph.providers.stub.settings import StubSettings
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
        build: Makes the provider from settings, a way to look secrets up, and what the operator allows of
            endpoints that users supply. Raises ``Malformed`` for settings that could never deliver.
    """

    settings: type[S]
    build: Callable[[S, SecretLookup, EgressRules], Provider]

    def build_from(self, document: object, secret: SecretLookup, egress: EgressRules) -> Provider:
        """Read a section of the settings and build the provider from it.

        Raises:
            msgspec.ValidationError: The section does not have this adapter's form.
            Malformed: Its values could never deliver.
        """
        return self.build(msgspec.convert(document, self.settings), secret, egress)


def _stub(settings: StubSettings, secret: SecretLookup, egress: EgressRules) -> Provider:
    del secret, egress
    return StubProvider(settings)


def _webpush(settings: WebPushSettings, secret: SecretLookup, egress: EgressRules) -> Provider:
    previous = settings.previous_vapid_key
    return WebPushProvider(
        settings,
        key=VapidKey(secret(settings.vapid_key)),
        previous_key=None if previous is None else VapidKey(secret(previous), "previous_vapid_key"),
        egress=egress,
    )


ADAPTERS: Final[Mapping[ProviderName, Adapter[StubSettings] | Adapter[WebPushSettings]]] = MappingProxyType(
    {
        "stub": Adapter(StubSettings, _stub),
        "webpush": Adapter(WebPushSettings, _webpush),
    }
)
