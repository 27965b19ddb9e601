"""The stub's exchange, and the example of what an exchange is.

Read this one first. An adapter is a class with a name, a check of push keys and ``exchange``, a generator.
``yield Ask(...)`` is the whole of its networking: the carrier makes the request and the yield becomes the
``Answer``, or a ``Lost`` when no answer can come. What the generator returns is the verdict. So a test
drives the whole conversation by hand: ``next(exchange)`` gives the ask, ``exchange.send(Answer(...))``
raises ``StopIteration`` with the verdict in ``value``.

Two rules hold for every adapter. Whatever the provider sees of identity (here the header
``stub-delivery-id``) is the same on every attempt. And each ``Loss`` has its meaning in one place: not
sent and ambiguous losses are ``transient``, and only the latter are marked ambiguous.
"""

import hashlib
from collections.abc import Mapping
from typing import Final, assert_never, final

from heliograph.delivery.blind import BLIND_PAYLOAD_OCTETS_MAX
from heliograph.delivery.exchange import Answer, Ask, Exchange, Loss, Lost, Moment
from heliograph.delivery.model import Delivery, Outcome, ProviderName, Verdict, Wakeup
from heliograph.delivery.retry_after import retry_after_ms
from heliograph.providers.stub.payload import stub_payload
from heliograph.providers.stub.settings import StubSettings, check_settings
from heliograph.wire import base64url
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

PUSH_KEY_CODE_POINTS_MAX: Final = 4_096
"""The longest push key that the wire schema lets through."""

DEAD_SINCE_DIGITS_MAX: Final = 15
"""Enough for milliseconds in any year that matters."""

_STATUSES: Final = {
    202: (Outcome.ACCEPTED_DEGRADED, "stub_accepted_degraded"),
    400: (Outcome.PAYLOAD_BAD, "stub_payload_refused"),
    401: (Outcome.CONFIG_BAD, "stub_unauthorized"),
    403: (Outcome.CONFIG_BAD, "stub_unauthorized"),
    404: (Outcome.TOKEN_SUSPECT, "stub_token_unknown"),
    410: (Outcome.TOKEN_DEAD, "stub_token_gone"),
    413: (Outcome.PAYLOAD_BAD, "stub_payload_too_large"),
    429: (Outcome.THROTTLED_TARGET, "stub_throttled_target"),
}


@final
class StubProvider:
    """Delivers wakeups as plain JSON to one URL, for labs, demos and tests.

    Args:
        settings: The operator's settings.
        credential: The name of their section.

    Raises:
        Malformed: The settings could never deliver.
    """

    def __init__(self, settings: StubSettings, *, credential: str = "stub") -> None:
        check_settings(settings)
        self._credential = credential
        self._url = None if settings.url is None else Secret(settings.url)

    @property
    def name(self) -> ProviderName:
        """The adapter's folder name."""
        return "stub"

    @property
    def credential(self) -> str:
        """The name of its section of the settings."""
        return self._credential

    def check_push_key(self, push_key: Secret) -> None:
        """Accept any text of 1 to 4,096 code points.

        Raises:
            Malformed: It is empty or longer.
        """
        if not 1 <= len(push_key.reveal()) <= PUSH_KEY_CODE_POINTS_MAX:
            raise Malformed("push_key", f"must have 1 to {PUSH_KEY_CODE_POINTS_MAX} characters")

    def fits(self, wakeup: Wakeup) -> bool:
        """Tell whether the body stays within what a device payload may hold."""
        return len(stub_payload(wakeup)) <= BLIND_PAYLOAD_OCTETS_MAX

    def identity(self) -> Mapping[str, str]:
        """Return where it posts to; without a path, which may be a capability."""
        if self._url is None:
            return {}
        scheme, _, rest = self._url.reveal().partition("://")
        return {"origin": f"{scheme}://{rest.partition('/')[0].partition('?')[0]}"}

    def probe(self, moment: Moment, *, reach: bool) -> Exchange:
        """Prove nothing: there is no credential."""
        del moment, reach
        yield from ()  # an exchange that asks nothing is a generator all the same
        return Verdict(Outcome.ACCEPTED, "stub_nothing_to_prove")

    def advice(self, verdict: Verdict) -> str:
        """Return nothing: whatever it is, it is no credential."""
        del verdict
        return ""

    def exchange(self, delivery: Delivery, moment: Moment) -> Exchange:
        """POST the wakeup once and judge the status."""
        if self._url is None:
            return Verdict(Outcome.ACCEPTED, "stub_accepted_without_a_receiver")
        body = stub_payload(delivery.wakeup)
        if len(body) > BLIND_PAYLOAD_OCTETS_MAX:
            return Verdict(Outcome.PAYLOAD_BAD, "stub_payload_too_large")
        headers = {
            "content-type": "application/json",
            "stub-delivery-id": delivery.delivery_id,
            "stub-route": stub_route(delivery.route.push_key),
        }
        if delivery.collapse_key is not None:
            headers["stub-collapse-key"] = delivery.collapse_key
        heard = yield Ask("POST", self._url, headers, body)
        match heard:
            case Answer():
                return _verdict(heard, moment.now)
            case Lost():
                return _lost(heard.loss)
            case _:
                assert_never(heard)


def stub_route(push_key: Secret) -> str:
    """Name a route to the receiver without telling its push key: the first 16 octets of a digest."""
    return base64url.encode(hashlib.sha256(push_key.reveal().encode()).digest()[:16])


def _verdict(answer: Answer, now: Instant) -> Verdict:
    pause = retry_after_ms(answer.headers.get("retry-after"), now)
    outcome, reason = _STATUSES.get(answer.status, (Outcome.UNKNOWN, "stub_unmapped_status"))
    if answer.status not in _STATUSES:
        if 200 <= answer.status < 300:  # noqa: PLR2004 - the success class of HTTP
            return Verdict(Outcome.ACCEPTED, "stub_accepted")
        if answer.status >= 500:  # noqa: PLR2004 - the server-error class of HTTP
            return Verdict(Outcome.TRANSIENT, "stub_unavailable", retry_after_ms=pause)
    if outcome is Outcome.TOKEN_DEAD:
        since = answer.headers.get("stub-dead-since", "")
        told = since.isascii() and since.isdigit() and len(since) <= DEAD_SINCE_DIGITS_MAX
        return Verdict(outcome, reason, dead_since=int(since) if told else None)
    if outcome is Outcome.THROTTLED_TARGET:
        if answer.headers.get("stub-throttles") == "app":
            outcome, reason = Outcome.THROTTLED_APP, "stub_throttled_app"
        return Verdict(outcome, reason, retry_after_ms=pause)
    return Verdict(outcome, reason)


def _lost(loss: Loss) -> Verdict:
    match loss:
        case Loss.NOT_SENT:
            return Verdict(Outcome.TRANSIENT, "stub_not_sent")
        case Loss.CUT:
            return Verdict(Outcome.TRANSIENT, "stub_cut", ambiguous=True)
        case Loss.TIMED_OUT:
            return Verdict(Outcome.TRANSIENT, "stub_timed_out", ambiguous=True)
        case Loss.REFUSED_EGRESS:
            return Verdict(Outcome.CONFIG_BAD, "stub_egress_refused")
        case _:
            assert_never(loss)
