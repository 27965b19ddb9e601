"""The push service of the lab: it takes what a real one takes, and gives every answer on demand."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests import deliveries
from tests.deliveries import COLLAPSE_KEY, DELIVERY_ID, FULLEST, SUBJECT, TARGET
from tests.egress_verifier import not_ours

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.exchange import Answer, Ask, Exchange, Moment
from heliograph.delivery.model import Outcome, Verdict, WakeupKind
from heliograph.delivery.resolver import SystemResolver
from heliograph.lab.receiver import Reply
from heliograph.lab.stub import StubReceiver
from heliograph.lab.webpush import ANSWERS, BrowserSubscription, WebPushService
from heliograph.providers.stub.exchange import StubProvider
from heliograph.providers.stub.settings import StubSettings
from heliograph.providers.webpush.exchange import WebPushProvider
from heliograph.providers.webpush.settings import WebPushSettings

CLOCK = SystemClock()
ENTROPY = SystemEntropy()
RULES = EgressRules(allow_loopback=True)


def provider() -> WebPushProvider:
    settings = WebPushSettings(subject=SUBJECT, vapid_key="env:VAPID", hosts=("localhost",))
    return WebPushProvider(settings, key=deliveries.vapid_key(), egress=RULES)


@contextlib.asynccontextmanager
async def carrier(ca_pem: bytes | None) -> AsyncIterator[Carrier]:
    built = Carrier(clock=CLOCK, guard=EgressGuard(RULES, SystemResolver()), extra_ca_pem=ca_pem)
    try:
        yield built
    finally:
        await built.close()


async def push(
    by: Carrier, to: BrowserSubscription, *, kind: WakeupKind = WakeupKind.MESSAGE, life_ms: int = 60_000
) -> Verdict:
    now = CLOCK.now()
    delivery = deliveries.delivery(
        to.push_key, provider="webpush", content=deliveries.wakeup(kind), expires_at=now + life_ms
    )
    moment = Moment(now, ENTROPY.octets(64))
    return await by.carry(
        provider().exchange(delivery, moment), provider="webpush", until=delivery.expires_at
    )


@pytest.mark.anyio
async def test_a_wakeup_reaches_its_browser_over_tls() -> None:
    """The whole way: guard, pinned address, certificate, VAPID, encryption, headers."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        mine = service.subscribe(application_server_key=provider().application_server_key)
        other = service.subscribe()
        provider().check_push_key(mine.push_key)

        verdict = await push(by, mine, kind=WakeupKind.CALL_INVITE)

    assert verdict == Verdict(Outcome.ACCEPTED, "webpush_accepted")
    assert service.refusals == []
    (message,) = service.shown(mine)
    assert message.members == {"push_target_id": TARGET, "wakeup_kind": "call_invite"}
    assert (message.urgency, message.topic, message.ttl_seconds) == ("high", COLLAPSE_KEY, 60)
    assert message.claims["sub"] == SUBJECT
    assert service.shown(other) == []


EXPECTED = {
    "accepted_200": "webpush_accepted",
    "accepted_201": "webpush_accepted",
    "accepted_202": "webpush_accepted",
    "ttl_lowered": "webpush_ttl_lowered",
    "redirect_301": "webpush_redirect",
    "redirect_302": "webpush_redirect",
    "redirect_307": "webpush_redirect",
    "redirect_308": "webpush_redirect",
    "bad_request": "webpush_bad_request",
    "bad_request_errno_104": "webpush_bad_request",
    "bad_crypto_errno_101": "webpush_vapid_refused",
    "bad_crypto_errno_108": "webpush_vapid_refused",
    "bad_crypto_errno_110": "webpush_vapid_refused",
    "bad_crypto_errno_111": "webpush_vapid_refused",
    "bad_crypto_errno_112": "webpush_vapid_refused",
    "bad_crypto_errno_113": "webpush_vapid_refused",
    "vapid_mismatch": "webpush_vapid_refused",
    "apple_key_mismatch": "webpush_vapid_refused",
    "unauthorized": "webpush_unauthorized",
    "unauthorized_errno_109": "webpush_unauthorized",
    "forbidden": "webpush_forbidden",
    "apple_bad_token": "webpush_forbidden",
    "unknown": "webpush_subscription_unknown",
    "unknown_errno_102": "webpush_subscription_unknown",
    "channel_throttled": "webpush_throttled_channel",
    "gone": "webpush_subscription_gone",
    "gone_errno_103": "webpush_subscription_gone",
    "gone_errno_105": "webpush_subscription_gone",
    "gone_errno_106": "webpush_subscription_gone",
    "too_large": "webpush_payload_too_large",
    "throttled": "webpush_throttled_origin",
    "throttled_54_seconds": "webpush_throttled_origin",
    "throttled_until_a_date": "webpush_throttled_origin",
    "apple_throttled_target": "webpush_throttled_subscription",
    "server_error": "webpush_service_error",
    "bad_gateway": "webpush_service_error",
    "unavailable": "webpush_service_unavailable",
    "unavailable_20_seconds": "webpush_service_unavailable",
    "unavailable_errno_201": "webpush_service_unavailable",
    "unavailable_errno_202": "webpush_service_unavailable",
    "bridge_errno_900": "webpush_service_unavailable",
    "gateway_timeout": "webpush_service_error",
    "full": "webpush_service_full",
    "teapot": "webpush_unmapped_status",
    "oversized_body": "webpush_service_error",
    "oversized_accepted": "webpush_accepted",
    "hang": "webpush_timed_out",
    "slow_headers": "webpush_timed_out",
    "cut": "webpush_cut",
    "cut_mid_headers": "webpush_cut",
    "truncated": "webpush_cut",
    "truncated_accepted": "webpush_accepted",
    "not_http": "webpush_cut",
}


@pytest.mark.anyio
async def test_every_answer_on_demand_gets_its_verdict_over_a_real_connection() -> None:
    """The verdict table once more, through the carrier: each answer by the path of its subscription."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        reached = {}
        for name in ANSWERS:
            life_ms = 400 if name in ("hang", "slow_headers") else 60_000
            reached[name] = (await push(by, service.subscribe(answer=name), life_ms=life_ms)).reason

    assert reached == EXPECTED


@pytest.mark.anyio
async def test_queued_answers_come_first_and_in_order() -> None:
    """A script for one conversation: refused once, then judged as ever."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        subscription = service.subscribe()
        service.answers.extend(["unavailable", Reply(429)])
        outcomes = [(await push(by, subscription)).outcome for _ in range(3)]

    assert outcomes == [Outcome.TRANSIENT, Outcome.THROTTLED_APP, Outcome.ACCEPTED]


@pytest.mark.anyio
async def test_a_repeat_after_a_lost_answer_shows_once() -> None:
    """I8: the retry carries the same topic, so the device shows one."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        subscription = service.subscribe()
        first, second = await push(by, subscription), await push(by, subscription)

    assert first == second == Verdict(Outcome.ACCEPTED, "webpush_accepted")
    assert len(service.messages) == 2
    assert len(service.shown(subscription)) == 1


@pytest.mark.anyio
async def test_an_ended_subscription_is_gone_and_the_renewed_one_is_not() -> None:
    """W5: an old endpoint's end touches that endpoint alone."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        old = service.subscribe()
        service.unsubscribe(old)
        renewed = service.subscribe()
        outcomes = [(await push(by, one)).outcome for one in (old, renewed)]

    assert outcomes == [Outcome.TOKEN_DEAD, Outcome.ACCEPTED]


@pytest.mark.anyio
async def test_another_key_than_the_one_subscribed_with_is_refused() -> None:
    """As browsers' services do; the subscription is kept."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        verdict = await push(by, service.subscribe(application_server_key="another"))

    assert verdict == Verdict(Outcome.CONFIG_BAD, "webpush_forbidden")
    assert service.refusals == ["another key than the one subscribed with"]


@pytest.mark.anyio
async def test_a_service_that_takes_less_gets_the_smallest_form() -> None:
    """W6, end to end: one retry as ids alone."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        service.body_octets_max = 300
        subscription = service.subscribe()
        verdict = await push(by, subscription)

    assert verdict.outcome is Outcome.ACCEPTED
    assert service.shown(subscription)[0].members == {"push_target_id": TARGET, "wakeup_kind": "message"}


@pytest.mark.anyio
async def test_a_thousand_sends_reach_a_thousand_browsers() -> None:
    """W7 over the wire, a few at a time: every message opens with its own subscription's key alone."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        subscriptions = [service.subscribe() for _ in range(1_000)]
        # Over HTTP/1.1 each at once is a connection with a handshake of its own, and all of them share this
        # process: a hundred would outlast the time that a connection is given on a machine that is busy.
        places = asyncio.Semaphore(16)

        async def placed(one: BrowserSubscription) -> Verdict:
            async with places:
                return await push(by, one)

        verdicts = await asyncio.gather(*(placed(one) for one in subscriptions))

    assert {verdict.outcome for verdict in verdicts} == {Outcome.ACCEPTED}
    assert [message.token for message in service.messages] != []
    assert all(len(service_shown) == 1 for service_shown in map(service.shown, subscriptions[:20]))
    assert sorted(message.token for message in service.messages) == sorted(one.token for one in subscriptions)


STRANGERS = {
    "no TTL": ({"ttl": ""}, 400, "TTL is missing or no number of seconds"),
    "a TTL beyond a month": ({"ttl": "2592001"}, 400, "TTL is missing or no number of seconds"),
    "a long topic": ({"topic": "x" * 33}, 400, "Topic is not 1 to 32 base64url characters"),
    "an unknown urgency": ({"urgency": "now"}, 400, "Urgency is unknown"),
    "the old encoding": ({"content-encoding": "aesgcm"}, 400, "Content-Encoding is not aes128gcm"),
    "no authorization": ({"authorization": "WebPush x"}, 403, "Authorization is not vapid t=…, k=…"),
}


def once(ask: Ask, heard: list[Answer]) -> Exchange:
    answer = yield ask
    assert isinstance(answer, Answer)
    heard.append(answer)
    return Verdict(Outcome.ACCEPTED, "test")


@pytest.mark.anyio
@pytest.mark.parametrize(("headers", "status", "why"), STRANGERS.values(), ids=STRANGERS)
async def test_the_service_refuses_what_real_ones_refuse(
    headers: dict[str, str], status: int, why: str
) -> None:
    """Else our own tests would prove little."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        now = CLOCK.now()
        delivery = deliveries.delivery(service.subscribe().push_key, expires_at=now + 60_000)
        ask = next(provider().exchange(delivery, Moment(now, ENTROPY.octets(64))))
        changed = replace(
            ask, headers={name: value for name, value in {**ask.headers, **headers}.items() if value}
        )
        heard: list[Answer] = []
        with not_ours():
            await by.carry(once(changed, heard), provider="test", until=now + 60_000)

    assert heard[0].status == status
    assert service.refusals == [why]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("part", "why"), [("aud", "aud is not this origin"), ("late", "exp is past, or more than a day ahead")]
)
async def test_the_service_checks_the_token(part: str, why: str) -> None:
    """W2: a token for another origin, or one that has ended."""
    late_ms = 86_400_000 if part == "late" else 0
    async with (
        WebPushService.start(now=lambda: CLOCK.now() + late_ms) as service,
        carrier(service.ca_pem) as by,
    ):
        subscription = service.subscribe()
        if part == "aud":
            service.origin = "https://localhost:1"
        await push(by, subscription)

    assert service.refusals == [why]


@pytest.mark.anyio
async def test_a_body_for_another_browser_is_refused() -> None:
    """The service's own browser cannot read it."""
    async with WebPushService.start() as service, carrier(service.ca_pem) as by:
        mine, other = service.subscribe(), service.subscribe()
        document = json.loads(mine.push_key.reveal().removeprefix("webpush:"))
        document["keys"] = json.loads(other.push_key.reveal().removeprefix("webpush:"))["keys"]
        crossed = replace(mine, push_key=deliveries.push_key(document))
        with not_ours():
            verdict = await push(by, crossed)

    assert verdict.outcome is Outcome.CONFIG_BAD
    assert service.refusals == ["the body does not decrypt"]


def test_an_answer_that_does_not_exist_is_named() -> None:
    """A typing error in a script fails at once."""
    service = WebPushService(CLOCK.now)

    with pytest.raises(ValueError, match="no answer is called 'gonne'"):
        service.subscribe(answer="gonne")


@pytest.mark.anyio
async def test_the_stub_receiver_remembers_ids_and_members() -> None:
    """What the demo and the crash tests count."""
    async with StubReceiver.start() as receiver, carrier(None) as by:
        stub = StubProvider(StubSettings(url=receiver.url))
        receiver.answers.append(Reply(503))
        now = CLOCK.now()
        delivery = deliveries.delivery(content=FULLEST, expires_at=now + 60_000)
        verdicts = [
            await by.carry(
                stub.exchange(delivery, Moment(now, bytes(64))), provider="stub", until=now + 60_000
            )
            for _ in range(3)
        ]

    assert [verdict.outcome for verdict in verdicts] == [
        Outcome.TRANSIENT,
        Outcome.ACCEPTED,
        Outcome.ACCEPTED,
    ]
    assert receiver.times() == {DELIVERY_ID: 2}
    assert receiver.wakeups[0].collapse_key == COLLAPSE_KEY
    assert receiver.wakeups[0].members["wakeup_kind"] == "expiry_invalidation"
    assert len(receiver.heard) == 3
