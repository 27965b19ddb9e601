"""One Web Push message: encrypt, identify ourselves, send, judge the answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never, final

from heliograph.delivery.blind import BLIND_PAYLOAD_OCTETS_MAX
from heliograph.delivery.egress import EgressRules
from heliograph.delivery.exchange import Answer, Ask, Exchange, Lost, Moment
from heliograph.delivery.model import Delivery, Outcome, ProviderName, Verdict, Wakeup
from heliograph.providers.webpush.answers import verdict_of, verdict_of_loss
from heliograph.providers.webpush.encryption import encrypt, ephemeral
from heliograph.providers.webpush.payload import (
    PADDED_OCTETS,
    smallest_padded_octets,
    smallest_payload,
    topic,
    ttl_seconds,
    urgency,
    webpush_payload,
)
from heliograph.providers.webpush.settings import WebPushSettings, check_settings
from heliograph.providers.webpush.subscription import Subscription, origin_of, read_subscription
from heliograph.providers.webpush.vapid import VapidKey
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

ORIGINS_PROBED_MAX: Final = 4
"""Of the hosts of the list: a probe is one exchange, and an exchange may not ask without end."""

_PROBE_ORIGIN: Final = "https://push.example.com"
_TOO_LARGE: Final = 413
_KEY_REFUSALS: Final = frozenset({401, 403})


@final
class WebPushProvider:
    """Delivers wakeups to browsers.

    Args:
        settings: The operator's settings.
        key: The present VAPID key.
        previous_key: The one before, while subscriptions made with it live.
        egress: What the operator allows of users' endpoints; the settings' host list is added to it.
        credential: The name of the settings' section.

    Raises:
        Malformed: The settings could never deliver.
    """

    def __init__(
        self,
        settings: WebPushSettings,
        *,
        key: VapidKey,
        previous_key: VapidKey | None = None,
        egress: EgressRules | None = None,
        credential: str = "webpush",
    ) -> None:
        check_settings(settings)
        self._credential = credential
        self._subject = settings.subject
        self._keys = (key,) if previous_key is None else (key, previous_key)
        self._rules = replace(egress or EgressRules(), hosts=settings.hosts or None)

    @property
    def name(self) -> ProviderName:
        """The adapter's folder name."""
        return "webpush"

    @property
    def credential(self) -> str:
        """The name of its section of the settings."""
        return self._credential

    @property
    def application_server_key(self) -> str:
        """What a client passes to ``pushManager.subscribe``: the present public key in base64url."""
        return self._keys[0].public_key

    def check_push_key(self, push_key: Secret) -> None:
        """Check that a push key is a subscription whose endpoint may be called as far as it can be told.

        Raises:
            Malformed: It is not.
        """
        read_subscription(push_key, self._rules)

    def fits(self, wakeup: Wakeup) -> bool:
        """Tell whether the payload stays within what a device payload may hold."""
        return len(webpush_payload(wakeup)) <= BLIND_PAYLOAD_OCTETS_MAX

    def identity(self) -> Mapping[str, str]:
        """Return the public keys, as clients subscribe with them, and whom a push service may contact."""
        names = ("application_server_key", "previous_application_server_key")
        keys = {name: key.public_key for name, key in zip(names, self._keys, strict=False)}
        return {**keys, "subject": self._subject}

    def probe(self, moment: Moment, *, reach: bool) -> Exchange:
        """Let every key sign and verify what it signed; and see whether the named push services answer.

        No push service says whether it likes a key before there is a subscription made with it, so the proof
        is our own. Any answer at all shows that a service is there.
        """
        for key in self._keys:
            if not key.verifies(_PROBE_ORIGIN, self._subject, moment.now):
                return Verdict(Outcome.CONFIG_BAD, "webpush_key_does_not_verify")
        hosts = [host for host in self._rules.hosts or () if not host.startswith("*.")]
        for host in hosts[:ORIGINS_PROBED_MAX] if reach else ():
            heard = yield Ask("GET", Secret(f"https://{host}/"), {}, b"", untrusted_host=True)
            if isinstance(heard, Lost):
                return verdict_of_loss(heard.loss)
        return Verdict(Outcome.ACCEPTED, "webpush_key_signs")

    def advice(self, verdict: Verdict) -> str:
        """Return what an operator should do about the verdict of a probe."""
        match verdict.outcome:
            case Outcome.ACCEPTED:
                return ""
            case Outcome.CONFIG_BAD:
                return "the key file may be damaged: put the key back, or make another one and subscribe anew"
            case Outcome.TOKEN_SUSPECT:
                return "a host of the list does not resolve to a public address: look at hosts and at egress"
            case _:
                return "a push service of the list cannot be reached from here: look at the network"

    def scope(self, delivery: Delivery) -> str:
        """Return the origin of the push service: each judges our key for itself, and counts for itself."""
        return origin_of(delivery.route.push_key, self._rules)

    def exchange(self, delivery: Delivery, moment: Moment) -> Exchange:
        """Send one message; once more in the smallest form if it is too large, or with the previous key."""
        try:
            subscription = read_subscription(delivery.route.push_key, self._rules)
        except Malformed:
            # It was checked when it was registered; the rules may have changed since. Keep it.
            return Verdict(Outcome.TOKEN_SUSPECT, "webpush_push_key_not_allowed")
        if subscription.expires_at is not None and subscription.expires_at <= moment.now:
            return Verdict(
                Outcome.TOKEN_DEAD, "webpush_subscription_expired", dead_since=subscription.expires_at
            )
        payload = webpush_payload(delivery.wakeup)
        if len(payload) > BLIND_PAYLOAD_OCTETS_MAX:
            return Verdict(Outcome.PAYLOAD_BAD, "webpush_payload_too_large")
        body = _encrypted(subscription, payload, PADDED_OCTETS, moment, b"first")
        ask = self._ask(delivery, subscription, body, self._keys[0], moment)
        heard = yield ask
        if isinstance(heard, Answer) and heard.status in _KEY_REFUSALS and len(self._keys) > 1:
            again = self._ask(delivery, subscription, body, self._keys[1], moment)
            heard = yield again
        elif isinstance(heard, Answer) and heard.status == _TOO_LARGE:
            smallest = smallest_payload(delivery.wakeup)
            # Other text, so another key and salt: the same ones over two texts would give both away.
            body = _encrypted(subscription, smallest, smallest_padded_octets(smallest), moment, b"smallest")
            heard = yield self._ask(delivery, subscription, body, self._keys[0], moment)
        match heard:
            case Answer():
                return verdict_of(heard, ttl_seconds(delivery.expires_at, moment.now), moment.now)
            case Lost():
                return verdict_of_loss(heard.loss)
            case _:
                assert_never(heard)

    def _ask(
        self, delivery: Delivery, subscription: Subscription, body: bytes, key: VapidKey, moment: Moment
    ) -> Ask:
        return Ask(
            "POST",
            Secret(subscription.endpoint.url),
            {
                "authorization": key.authorization(subscription.endpoint.origin, self._subject, moment.now),
                "content-encoding": "aes128gcm",
                "content-type": "application/octet-stream",
                "topic": topic(delivery),
                "ttl": str(ttl_seconds(delivery.expires_at, moment.now)),
                "urgency": urgency(delivery.wakeup.kind),
            },
            body,
            untrusted_host=True,
        )


def _encrypted(
    subscription: Subscription, payload: bytes, padded_to: int, moment: Moment, purpose: bytes
) -> bytes:
    key, salt = ephemeral(moment.octets, purpose)
    return encrypt(
        payload, p256dh=subscription.p256dh, auth=subscription.auth, key=key, salt=salt, padded_to=padded_to
    )
