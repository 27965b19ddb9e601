"""The lab's push server of UnifiedPush, over real connections."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from tests import deliveries
from tests.deliveries import SUBJECT, TARGET
from tests.egress_verifier import not_ours

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.exchange import Answer, Ask, Exchange, Moment
from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.resolver import SystemResolver
from heliograph.lab.unifiedpush import ANSWERS, DISCOVERY, UnifiedPushServer
from heliograph.lab.webpush import BrowserSubscription
from heliograph.providers.unifiedpush.exchange import UnifiedPushProvider
from heliograph.providers.unifiedpush.settings import UnifiedPushSettings
from heliograph.wire.secret import Secret

pytestmark = pytest.mark.anyio

CLOCK = SystemClock()
ENTROPY = SystemEntropy()
RULES = EgressRules(allow_loopback=True)


def provider() -> UnifiedPushProvider:
    settings = UnifiedPushSettings(subject=SUBJECT, hosts=())
    return UnifiedPushProvider(settings, key=deliveries.vapid_key(), egress=RULES)


@contextlib.asynccontextmanager
async def carrier(ca_pem: bytes | None) -> AsyncIterator[Carrier]:
    built = Carrier(clock=CLOCK, guard=EgressGuard(RULES, SystemResolver()), extra_ca_pem=ca_pem)
    try:
        yield built
    finally:
        await built.close()


async def push(by: Carrier, to: BrowserSubscription, life_ms: int = 60_000) -> Verdict:
    now = CLOCK.now()
    delivery = deliveries.delivery(to.push_key, provider="unifiedpush", expires_at=now + life_ms)
    exchange = provider().exchange(delivery, Moment(now, ENTROPY.octets(64)))
    return await by.carry(exchange, provider="unifiedpush", until=delivery.expires_at)


async def test_a_wakeup_reaches_its_application_over_tls() -> None:
    """Once, however often it is sent: repeats fold by topic (I8)."""
    async with UnifiedPushServer.start() as server, carrier(server.ca_pem) as by:
        mine = server.subscribe(application_server_key=provider().application_server_key)
        provider().check_push_key(mine.push_key)
        verdicts = [await push(by, mine), await push(by, mine)]

    assert verdicts == [Verdict(Outcome.ACCEPTED, "unifiedpush_accepted")] * 2
    assert server.refusals == []
    (message,) = server.shown(mine)
    assert message.members == {"push_target_id": TARGET, "wakeup_kind": "message"}
    assert mine.endpoint.endswith("?up=1")


OWN = {
    "throttled": "unifiedpush_throttled",
    "throttled_54_seconds": "unifiedpush_throttled",
    "ntfy_limit": "unifiedpush_server_limit",
    "ntfy_limit_9_seconds": "unifiedpush_server_limit",
    "ntfy_nobody_there": "unifiedpush_nobody_there",
    "full": "unifiedpush_service_full",
    "ttl_lowered": "unifiedpush_ttl_lowered",
    "redirect_307": "unifiedpush_redirect",
    "bad_request": "unifiedpush_bad_request",
    "forbidden": "unifiedpush_forbidden",
    "unknown": "unifiedpush_subscription_unknown",
    "gone": "unifiedpush_subscription_gone",
    "too_large": "unifiedpush_payload_too_large",
    "unavailable": "unifiedpush_service_unavailable",
    "cut": "unifiedpush_cut",
    "hang": "unifiedpush_timed_out",
    "slow_headers": "unifiedpush_timed_out",
    "truncated": "unifiedpush_cut",
    "not_http": "unifiedpush_cut",
}


async def test_answers_on_demand_get_their_verdicts_over_a_real_connection() -> None:
    """Those of its own, and one of each kind that it shares with Web Push."""
    async with UnifiedPushServer.start() as server, carrier(server.ca_pem) as by:
        reached = {}
        for name in OWN:
            life_ms = 400 if name in ("hang", "slow_headers") else 60_000
            reached[name] = (await push(by, server.subscribe(answer=name), life_ms)).reason

    assert reached == OWN
    assert ANSWERS.keys() >= OWN.keys()


async def test_an_endpoint_that_has_ended_is_gone_and_another_is_not() -> None:
    """W4, W5: the end of one touches that one."""
    async with UnifiedPushServer.start() as server, carrier(server.ca_pem) as by:
        ended, live = server.subscribe(), server.subscribe()
        server.unsubscribe(ended)
        outcomes = [(await push(by, one)).outcome for one in (ended, live)]

    assert outcomes == [Outcome.TOKEN_DEAD, Outcome.ACCEPTED]


async def test_an_endpoint_tells_that_it_is_one() -> None:
    """What the specification lets an application server ask for; nothing reaches the device."""
    heard: list[object] = []

    def looked(url: str) -> Exchange:
        heard.append((yield Ask("GET", Secret(url), {}, b"", untrusted_host=True)))
        return Verdict(Outcome.ACCEPTED, "test")

    async with UnifiedPushServer.start() as server, carrier(server.ca_pem) as by:
        endpoint = server.subscribe().endpoint
        with not_ours():
            await by.carry(looked(endpoint), provider="test", until=CLOCK.now() + 60_000)

    (answer,) = heard
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (200, DISCOVERY)
    assert server.messages == []
