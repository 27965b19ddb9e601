"""One message over FCM: have a bearer token, send, judge the answer."""

import copy
from collections.abc import Generator, Mapping
from typing import Final, TypeAlias, assert_never, final

import msgspec

from heliograph.delivery.exchange import Answer, Ask, Exchange, Lost, Moment
from heliograph.delivery.model import Delivery, Outcome, ProviderName, Verdict, Wakeup
from heliograph.providers.fcm.answers import (
    BODY_OCTETS_MAX,
    UNAUTHENTICATED,
    granted,
    verdict_of,
    verdict_of_loss,
    verdict_of_lost_grant,
    verdict_of_refused_grant,
)
from heliograph.providers.fcm.bearer import Bearer, BearerCache, TokenDuty, Wanted
from heliograph.providers.fcm.payload import fcm_data, fcm_message, fits
from heliograph.providers.fcm.push_key import registration_token
from heliograph.providers.fcm.service_account import ServiceAccount
from heliograph.providers.fcm.settings import FcmSettings, check_settings
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

_GRANT: Final = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="

IMPOSSIBLE_TOKEN: Final = "heliograph-probe"  # noqa: S105 - no device's

_ADVICE: Final = {
    "": "compare project_id and the service account with the Firebase console",
    "fcm_grant_refused": "the account's key is revoked or this machine's clock is wrong: issue another key",
    "fcm_token_url_wrong": "look at token_url",
    "fcm_permission_denied": "turn the Cloud Messaging API on, and let the account send messages",
    "fcm_project_unknown": "there is no such project: look at project_id",
}

_Part: TypeAlias = Generator[Ask, Answer | Lost, Bearer | Verdict]
"""The part of an exchange that ends with a token, or with the verdict of the whole."""


@final
class FcmProvider:
    """Delivers wakeups to Android devices.

    One credential: a project and a service account. All exchanges share one bearer token. A project whose
    quota is used up rests behind its credential's gate, in every process; nothing of that is kept here.

    Args:
        settings: The operator's settings.
        service_account: The account's JSON key.
        credential: The name of the settings' section.

    Raises:
        Malformed: The settings could never deliver.
    """

    def __init__(self, settings: FcmSettings, *, service_account: Secret, credential: str = "fcm") -> None:
        check_settings(settings)
        self._credential = credential
        self._settings = settings
        self._account = ServiceAccount(service_account)
        self._send_url = Secret(f"{settings.send_origin}/v1/projects/{settings.project_id}/messages:send")
        self._bearers = BearerCache()

    @property
    def name(self) -> ProviderName:
        """The adapter's folder name."""
        return "fcm"

    @property
    def credential(self) -> str:
        """The name of its section of the settings."""
        return self._credential

    def tailored(self, settings: FcmSettings) -> "FcmProvider":
        """Return a provider of the same credential for an application with settings of its own.

        Both use one bearer token: the account is the same.

        Raises:
            Malformed: The settings could never deliver.
        """
        check_settings(settings)
        other = copy.copy(self)
        other._settings = settings  # noqa: SLF001 - a copy of our own kind
        return other

    def identity(self) -> Mapping[str, str]:
        """Return the project, and the account with its key's id as they stand in Google's console."""
        return {"project_id": self._settings.project_id, **self._account.identity()}

    def probe(self, moment: Moment, *, reach: bool) -> Exchange:
        """Have a token granted, and let FCM judge a message to no device without delivering it."""
        del reach  # the proof is an answer of FCM in any case
        bearer = yield from self._had(self._bearers.want(moment.now), moment.now)
        if isinstance(bearer, Verdict):
            return bearer
        message = {"validate_only": True, "message": {"token": IMPOSSIBLE_TOKEN, "data": {}}}
        heard = yield self._ask(msgspec.json.encode(message), bearer)
        if isinstance(heard, Lost):
            return verdict_of_loss(heard.loss)
        verdict = verdict_of(heard, moment.now)
        match verdict.outcome:
            case Outcome.ACCEPTED | Outcome.TOKEN_DEAD | Outcome.TOKEN_SUSPECT | Outcome.PAYLOAD_BAD:
                # Whoever is not allowed to send is told so before anybody looks at the message.
                return Verdict(Outcome.ACCEPTED, "fcm_account_proved")
            case _:
                return verdict

    def advice(self, verdict: Verdict) -> str:
        """Return what an operator should do about the verdict of a probe."""
        match verdict.outcome:
            case Outcome.ACCEPTED:
                return ""
            case Outcome.CONFIG_BAD:
                return _ADVICE.get(verdict.reason, _ADVICE[""])
            case _:
                return "FCM did not say whether the account is good: try again, and look at the network"

    def check_push_key(self, push_key: Secret) -> None:
        """Check that a push key is a registration token in the documented form.

        Raises:
            Malformed: It is not.
        """
        registration_token(push_key)

    def fits(self, wakeup: Wakeup) -> bool:
        """Tell whether the data stay within what FCM and a device take."""
        return fits(fcm_data(wakeup))

    def exchange(self, delivery: Delivery, moment: Moment) -> Exchange:
        """Send one message, after fetching a bearer token if it falls to this exchange to do so."""
        now = moment.now
        try:
            token = registration_token(delivery.route.push_key)
        except Malformed:
            # It was checked when it was registered; the form may be stricter now. Keep it.
            return Verdict(Outcome.TOKEN_SUSPECT, "fcm_push_key_not_allowed")
        data = fcm_data(delivery.wakeup)
        if not fits(data):
            return Verdict(Outcome.PAYLOAD_BAD, "fcm_payload_too_large")
        bearer = yield from self._had(self._bearers.want(now), now)
        if isinstance(bearer, Verdict):
            return bearer
        # Spelled once: what is tried again with another token is the same to the octet (P8).
        message = fcm_message(delivery, token, data, now, self._settings)
        heard = yield self._ask(message, bearer)
        if isinstance(heard, Answer) and verdict_of(heard, now).reason == UNAUTHENTICATED:
            wanted = self._bearers.after_refusal(bearer, now)
            if wanted is not None:
                another = yield from self._had(wanted, now)
                if isinstance(another, Verdict):
                    return another
                heard = yield self._ask(message, another)
        match heard:
            case Answer():
                return verdict_of(heard, now)
            case Lost():
                return verdict_of_loss(heard.loss)
            case _:
                assert_never(heard)

    def _ask(self, message: bytes, bearer: Bearer) -> Ask:
        return Ask(
            "POST",
            self._send_url,
            {"authorization": bearer.authorization, "content-type": "application/json"},
            message,
            body_limit=BODY_OCTETS_MAX,
        )

    def _had(self, wanted: Wanted, now: Instant) -> _Part:
        """Turn what an exchange got for its wish into a token or a verdict, fetching if that is its duty."""
        match wanted:
            case Bearer() | Verdict():
                return wanted
            case TokenDuty():
                try:
                    return (yield from self._fetch(wanted, now))
                finally:
                    # Whatever ends this exchange, being closed included, another one must be free to fetch.
                    self._bearers.abandon(wanted)
            case _:
                assert_never(wanted)

    def _fetch(self, duty: TokenDuty, now: Instant) -> _Part:
        url = self._settings.token_url
        heard = yield Ask(
            "POST",
            Secret(url),
            {"content-type": "application/x-www-form-urlencoded"},
            f"{_GRANT}{self._account.assertion(url, now)}".encode(),
            body_limit=BODY_OCTETS_MAX,
        )
        match heard:
            case Answer():
                grant = granted(heard)
                if grant is not None:
                    text, seconds = grant
                    bearer = Bearer(f"Bearer {text}", now, seconds * 1_000)
                    self._bearers.fulfil(duty, bearer)
                    return bearer
                return self._bearers.fail(duty, verdict_of_refused_grant(heard, now), now)
            case Lost():
                return self._bearers.fail(duty, verdict_of_lost_grant(heard.loss), now)
            case _:
                assert_never(heard)
