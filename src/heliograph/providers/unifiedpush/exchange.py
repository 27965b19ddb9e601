"""One message over UnifiedPush, which since version 3 of its specification is Web Push.

So this adapter is that one with other push keys, another choice of hosts and a few more answers. Messages in
the forms of earlier versions (not encrypted, or in the old encoding) are not sent.
"""

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import final

from heliograph.delivery.egress import EgressRules
from heliograph.delivery.exchange import Answer, Ask, Exchange, Lost, Moment
from heliograph.delivery.model import Delivery, Outcome, ProviderName, Verdict, Wakeup
from heliograph.providers.unifiedpush.answers import REASONS, verdict_of
from heliograph.providers.unifiedpush.payload import fits, unifiedpush_payload
from heliograph.providers.unifiedpush.push_key import as_webpush, origin
from heliograph.providers.unifiedpush.settings import UnifiedPushSettings
from heliograph.providers.unifiedpush.settings import as_webpush as webpush_settings
from heliograph.providers.webpush.exchange import WebPushProvider
from heliograph.providers.webpush.vapid import VapidKey
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret


@final
class UnifiedPushProvider:
    """Delivers wakeups to applications through the push servers that their users chose.

    Args:
        settings: The operator's settings.
        key: The present VAPID key.
        previous_key: The one before, while endpoints registered with it live.
        egress: What the operator allows of users' endpoints; the settings' host list is added to it.
        credential: The name of the settings' section.

    Raises:
        Malformed: The settings could never deliver.
    """

    def __init__(
        self,
        settings: UnifiedPushSettings,
        *,
        key: VapidKey,
        previous_key: VapidKey | None = None,
        egress: EgressRules | None = None,
        credential: str = "unifiedpush",
    ) -> None:
        self._webpush = WebPushProvider(
            webpush_settings(settings),
            key=key,
            previous_key=previous_key,
            egress=egress,
            credential=credential,
        )
        self._rules = replace(egress or EgressRules(), hosts=settings.hosts or None)

    @property
    def name(self) -> ProviderName:
        """The adapter's folder name."""
        return "unifiedpush"

    @property
    def credential(self) -> str:
        """The name of its section of the settings."""
        return self._webpush.credential

    @property
    def application_server_key(self) -> str:
        """What an application passes when it registers: the present public key in base64url."""
        return self._webpush.application_server_key

    def check_push_key(self, push_key: Secret) -> None:
        """Check that a push key names an endpoint that may be called as far as it can be told.

        Raises:
            Malformed: It does not.
        """
        as_webpush(push_key, self._rules)

    def fits(self, wakeup: Wakeup) -> bool:
        """Tell whether the payload stays within what a device payload may hold."""
        return fits(unifiedpush_payload(wakeup))

    def identity(self) -> Mapping[str, str]:
        """Return the public keys, as applications register with them, and whom a server may contact."""
        return self._webpush.identity()

    def probe(self, moment: Moment, *, reach: bool) -> Exchange:
        """Let every key sign and verify what it signed; and see whether the named push servers answer."""
        verdict = yield from self._webpush.probe(moment, reach=reach)
        return verdict_of(verdict, None, moment.now)

    def advice(self, verdict: Verdict) -> str:
        """Return what an operator should do about the verdict of a probe."""
        return self._webpush.advice(verdict)

    def scope(self, delivery: Delivery) -> str:
        """Return the origin of the push server: a user's own may say what it likes, to its own harm."""
        return origin(delivery.route.push_key, self._rules)

    def exchange(self, delivery: Delivery, moment: Moment) -> Exchange:
        """Send one message as Web Push does, and judge the last answer."""
        try:
            push_key = as_webpush(delivery.route.push_key, self._rules)
        except Malformed:
            # It was checked when it was registered; the rules may have changed since. Keep it.
            return Verdict(Outcome.TOKEN_SUSPECT, f"{REASONS}push_key_not_allowed")
        spelled = replace(delivery, route=replace(delivery.route, push_key=push_key))
        verdict, heard = yield from _watched(self._webpush.exchange(spelled, moment))
        return verdict_of(verdict, heard, moment.now)


def _watched(exchange: Exchange) -> Generator[Ask, Answer | Lost, tuple[Verdict, Answer | Lost | None]]:
    """Pass an exchange on, and return its verdict with the last that it heard."""
    heard: Answer | Lost | None = None
    with contextlib.closing(exchange):
        try:
            ask = next(exchange)
            while True:
                heard = yield ask
                ask = exchange.send(heard)
        except StopIteration as end:
            verdict: Verdict = end.value
            return verdict, heard
