"""One push over APNs: sign, send, judge the answer; twice or thrice where one answer cannot decide."""

import copy
import hashlib
from collections.abc import Mapping
from typing import Final, assert_never, final

import msgspec

from heliograph.delivery.exchange import Answer, Ask, Exchange, Lost, Moment
from heliograph.delivery.model import Delivery, Outcome, ProviderName, Verdict, Wakeup
from heliograph.providers.apns.answers import (
    BAD_DEVICE_TOKEN,
    EXPIRED_PROVIDER_TOKEN,
    TOO_MANY_UPDATES,
    WRONG_KEY_FOR_CONNECTION,
    said,
    verdict_of,
    verdict_of_loss,
)
from heliograph.providers.apns.payload import (
    apns_payload,
    collapse_id,
    expiration,
    fits,
    priority,
    system_members,
)
from heliograph.providers.apns.push_key import device_token
from heliograph.providers.apns.settings import ApnsSettings, Environment, check_settings
from heliograph.providers.apns.token import ProviderToken, TokenMinter
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

ENVIRONMENTS_KEPT_MAX: Final = 65_536
"""Tokens whose environment is remembered where both are configured; the one unused for longest makes room
and costs one ask more when it comes again. Some 10 MB."""

IMPOSSIBLE_TOKEN: Final = "00" * 32
"""In the form of a token, and no device's."""

_ADVICE: Final = {
    "": "compare team_id, key_id and key with the developer account, where the key must not be revoked",
    "apns_expired_provider_token": "set this machine's clock",
    "apns_bad_topic": "topic must be the bundle id of the application",
    "apns_topic_disallowed": "the key may not push to this topic: look at topic and at the key's scope",
    "apns_bad_environment_key_id": "the key is of the other environment: look at environment",
    "apns_egress_refused": "the origin is no address that may be called: look at production_origin",
}

_OTHER: Final = {
    Environment.PRODUCTION: Environment.SANDBOX,
    Environment.SANDBOX: Environment.PRODUCTION,
}


@final
class ApnsProvider:
    """Delivers wakeups to Apple's devices.

    One credential: a team and its key. APNs ties a connection to the first key that it sees there, so a
    credential has connections of its own: no other one, and no later life of this one, ever shares them.

    Args:
        settings: The operator's settings.
        key: The signing key as PEM.
        credential: The name of the settings' section.

    Raises:
        Malformed: The settings could never deliver.
    """

    def __init__(self, settings: ApnsSettings, *, key: Secret, credential: str = "apns") -> None:
        check_settings(settings)
        self._credential = credential
        self._settings = settings
        self._minter = TokenMinter(settings.team_id, settings.key_id, key)
        self._system = system_members(settings.push_type, settings.alert_loc_key)
        self._origins = {
            Environment.PRODUCTION: settings.production_origin,
            Environment.SANDBOX: settings.sandbox_origin,
        }
        self._confirmed: dict[bytes, Environment] = {}

    @property
    def name(self) -> ProviderName:
        """The adapter's folder name."""
        return "apns"

    @property
    def credential(self) -> str:
        """The name of its section of the settings."""
        return self._credential

    def tailored(self, settings: ApnsSettings) -> "ApnsProvider":
        """Return a provider of the same credential for an application with settings of its own.

        Both sign with one minter: APNs counts how often a key's token changes, whoever it is for.

        Raises:
            Malformed: The settings could never deliver.
        """
        check_settings(settings)
        other = copy.copy(self)
        other._settings = settings  # noqa: SLF001 - a copy of our own kind
        other._system = system_members(settings.push_type, settings.alert_loc_key)  # noqa: SLF001 - a copy of our own kind
        other._confirmed = {}  # noqa: SLF001 - a copy of our own kind
        return other

    def identity(self) -> Mapping[str, str]:
        """Return the team, the key's id, where it pushes to, and the topic."""
        settings = self._settings
        topics = ",".join(filter(None, (settings.topic, *settings.topics.values())))
        return {
            "team_id": settings.team_id,
            "key_id": settings.key_id,
            "environment": settings.environment.value,
            "topic": topics,
        }

    def probe(self, moment: Moment, *, reach: bool) -> Exchange:
        """Push to a token that no device can have: a key that is good makes APNs speak of the token."""
        del reach  # the proof is an answer of APNs in any case
        settings = self._settings
        topic = settings.topic or next(iter(settings.topics.values()))
        headers = {
            "apns-expiration": "0",
            "apns-priority": "5",
            "apns-push-type": settings.push_type.value,
            "apns-topic": topic,
            "content-type": "application/json",
        }
        push = _Push(IMPOSSIBLE_TOKEN, headers, msgspec.json.encode({"aps": self._system}))
        environments = (
            (Environment.PRODUCTION, Environment.SANDBOX)
            if settings.environment is Environment.BOTH
            else (settings.environment,)
        )
        signed = self._minter.token(moment.now, moment.octets)
        for environment in environments:
            heard = yield self._ask(push, environment, signed)
            if isinstance(heard, Lost):
                return verdict_of_loss(heard.loss)
            verdict = verdict_of(heard, moment.now)
            if verdict.outcome not in (Outcome.TOKEN_SUSPECT, Outcome.TOKEN_DEAD):
                unproved = verdict.outcome in (Outcome.ACCEPTED, Outcome.PAYLOAD_BAD)
                return Verdict(Outcome.UNKNOWN, verdict.reason) if unproved else verdict
        return Verdict(Outcome.ACCEPTED, "apns_key_proved")

    def advice(self, verdict: Verdict) -> str:
        """Return what an operator should do about the verdict of a probe."""
        match verdict.outcome:
            case Outcome.ACCEPTED:
                return ""
            case Outcome.CONFIG_BAD:
                return _ADVICE.get(verdict.reason, _ADVICE[""])
            case _:
                return "APNs did not say whether the key is good: try again, and look at the network"

    def check_push_key(self, push_key: Secret) -> None:
        """Check that a push key is a device token in the documented form.

        Raises:
            Malformed: It is not.
        """
        device_token(push_key)

    def fits(self, wakeup: Wakeup) -> bool:
        """Tell whether the payload stays within what APNs and a device take."""
        return fits(wakeup, apns_payload(wakeup, self._system))

    def exchange(self, delivery: Delivery, moment: Moment) -> Exchange:
        """Send one push; once more with a fresh provider token, and once to the other environment."""
        try:
            token = device_token(delivery.route.push_key)
        except Malformed:
            # It was checked when it was registered; the form may be stricter now. Keep it.
            return Verdict(Outcome.TOKEN_SUSPECT, "apns_push_key_not_allowed")
        topic = self._topic(delivery.route.app_id)
        if topic is None:
            return Verdict(Outcome.CONFIG_BAD, "apns_topic_not_configured")
        payload = apns_payload(delivery.wakeup, self._system)
        if not fits(delivery.wakeup, payload):
            return Verdict(Outcome.PAYLOAD_BAD, "apns_payload_too_large")
        push = _Push(token, self._headers(delivery, topic), payload)
        mark = _mark(delivery, token)
        environment, is_confirmed = self._environment(mark)

        signed = self._minter.token(moment.now, moment.octets)
        heard = yield self._ask(push, environment, signed)
        again = self._again(said(heard), signed, moment)
        if again is not None:
            signed = again
            heard = yield self._ask(push, environment, signed)
        if said(heard) == BAD_DEVICE_TOKEN and not is_confirmed:
            environment = _OTHER[environment]
            heard = yield self._ask(push, environment, signed)
        if said(heard) == TOO_MANY_UPDATES:
            self._minter.too_many_updates(signed, moment.now)
        match heard:
            case Answer():
                verdict = verdict_of(heard, moment.now)
            case Lost():
                return verdict_of_loss(heard.loss)
            case _:
                assert_never(heard)
        return self._confirmed_by(verdict, environment, mark)

    def _again(self, heard: tuple[int, str], refused: ProviderToken, moment: Moment) -> ProviderToken | None:
        """Return the token to ask with at once where the answer was about the token or its connection."""
        if heard == EXPIRED_PROVIDER_TOKEN:
            return self._minter.after_expiry(refused, moment.now, moment.octets)
        if heard in WRONG_KEY_FOR_CONNECTION:
            return self._minter.after_wrong_key(refused, moment.now)
        return None

    def _topic(self, app_id: str | None) -> str | None:
        """Return the topic of an application, by its exact id (S9)."""
        if app_id is None:
            return self._settings.topic
        return self._settings.topics.get(app_id, self._settings.topic)

    def _headers(self, delivery: Delivery, topic: str) -> dict[str, str]:
        """Return the headers that are the same on every attempt."""
        push_type = self._settings.push_type
        return {
            "apns-collapse-id": collapse_id(delivery),
            "apns-expiration": expiration(delivery),
            "apns-id": delivery.delivery_id,
            "apns-priority": priority(delivery.wakeup.kind, push_type),
            "apns-push-type": push_type.value,
            "apns-topic": topic,
            "content-type": "application/json",
        }

    def _ask(self, push: "_Push", environment: Environment, signed: ProviderToken) -> Ask:
        return Ask(
            "POST",
            Secret(f"{self._origins[environment]}/3/device/{push.token}"),
            {**push.headers, "authorization": signed.authorization},
            push.payload,
            connections=signed.connections,
            http2_only=True,
        )

    def _environment(self, mark: bytes) -> tuple[Environment, bool]:
        """Return the environment to ask first, and whether there is no doubt about it."""
        configured = self._settings.environment
        if configured is not Environment.BOTH:
            return configured, True
        known = self._confirmed.get(mark)
        return (Environment.PRODUCTION, False) if known is None else (known, True)

    def _confirmed_by(self, verdict: Verdict, environment: Environment, mark: bytes) -> Verdict:
        """Remember and tell where a token holds, where both environments are configured."""
        if self._settings.environment is not Environment.BOTH:
            return verdict
        if verdict.outcome is Outcome.ACCEPTED:
            self._confirmed.pop(mark, None)
            while len(self._confirmed) >= ENVIRONMENTS_KEPT_MAX:
                del self._confirmed[next(iter(self._confirmed))]
            self._confirmed[mark] = environment
            return Verdict(verdict.outcome, f"{verdict.reason}_in_{environment.value}")
        if verdict.outcome in (Outcome.TOKEN_DEAD, Outcome.TOKEN_SUSPECT):
            self._confirmed.pop(mark, None)
        return verdict


class _Push:
    """What is the same on every ask of one exchange. Holds the token, so it has no useful repr."""

    __slots__ = ("headers", "payload", "token")

    def __init__(self, token: str, headers: dict[str, str], payload: bytes) -> None:
        self.token = token
        self.headers = headers
        self.payload = payload


def _mark(delivery: Delivery, token: str) -> bytes:
    """Return what an environment is remembered under.

    The push target is part of it: it is pairwise, so what one Station's registration has taught is never
    used for another's (R119).
    """
    text = f"{delivery.wakeup.push_target_id}\n{token}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
