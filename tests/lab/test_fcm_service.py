"""FCM of the lab: it takes what the real one takes, and gives every answer on demand, over real sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests import deliveries
from tests.deliveries import COLLAPSE_KEY, TARGET
from tests.egress_verifier import not_ours

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.exchange import Answer, Ask, Exchange, Moment
from heliograph.delivery.model import Outcome, Verdict, WakeupKind
from heliograph.delivery.resolver import SystemResolver
from heliograph.lab.fcm import ANSWERS, GRANTS, PROJECT, FcmService
from heliograph.lab.receiver import Reply
from heliograph.providers.fcm.exchange import FcmProvider
from heliograph.providers.fcm.settings import FcmSettings
from heliograph.wire.secret import Secret

CLOCK = SystemClock()
ENTROPY = SystemEntropy()


def provider(service: FcmService, *, account: Secret | None = None, project: str = PROJECT) -> FcmProvider:
    settings = FcmSettings(
        project_id=project,
        service_account="file:/k",
        token_url=service.token_url,
        send_origin=service.origin,
    )
    return FcmProvider(settings, service_account=account or service.account)


@contextlib.asynccontextmanager
async def carrier(service: FcmService) -> AsyncIterator[Carrier]:
    guard = EgressGuard(EgressRules(allow_loopback=True), SystemResolver())
    built = Carrier(clock=CLOCK, guard=guard, extra_ca_pem=service.ca_pem)
    try:
        yield built
    finally:
        await built.close()


async def push(by: Carrier, over: FcmProvider, push_key: Secret, *, life_ms: int = 60_000) -> Verdict:
    now = CLOCK.now()
    delivery = deliveries.delivery(
        push_key,
        provider="fcm",
        content=deliveries.wakeup(WakeupKind.MENTION),
        expires_at=now + life_ms,
    )
    exchange = over.exchange(delivery, Moment(now, ENTROPY.octets(64)))
    return await by.carry(exchange, provider="fcm", until=delivery.expires_at)


@pytest.mark.anyio
async def test_a_wakeup_reaches_its_device_over_tls() -> None:
    """The whole way: a grant, a bearer, a message that is judged as strictly as Google would."""
    async with FcmService.start() as service, carrier(service) as by:
        mine, other, over = service.register(), service.register(), provider(service)

        verdict = await push(by, over, mine)
        again = await push(by, over, mine)

    assert [verdict, again] == [Verdict(Outcome.ACCEPTED, "fcm_accepted")] * 2
    assert service.refusals == []
    assert service.granted == 1
    (message,) = service.shown(mine)
    assert message.data == {"push_target_id": TARGET, "wakeup_kind": "mention"}
    assert (message.android["priority"], message.android["collapse_key"]) == ("HIGH", COLLAPSE_KEY)
    assert len(service.messages) == 2
    assert service.shown(other) == []


EXPECTED = {
    "accepted": "fcm_accepted",
    "token_invalid": "fcm_token_invalid",
    "invalid_argument": "fcm_invalid_argument",
    "data_invalid": "fcm_invalid_argument",
    "token_and_data_invalid": "fcm_invalid_argument",
    "third_party_auth_error": "fcm_third_party_auth_error",
    "unauthenticated": "fcm_unauthenticated",
    "sender_id_mismatch": "fcm_sender_id_mismatch",
    "permission_denied": "fcm_permission_denied",
    "unregistered": "fcm_unregistered",
    "project_unknown": "fcm_project_unknown",
    "not_found_page": "fcm_project_unknown",
    "too_large": "fcm_payload_too_large",
    "quota_exceeded": "fcm_quota_exceeded",
    "quota_exceeded_54_seconds": "fcm_quota_exceeded",
    "quota_exceeded_until_a_date": "fcm_quota_exceeded",
    "device_rate_exceeded": "fcm_device_rate_exceeded",
    "internal": "fcm_internal",
    "bad_gateway": "fcm_server_error",
    "unavailable": "fcm_unavailable",
    "unavailable_20_seconds": "fcm_unavailable",
    "teapot": "fcm_unmapped_status",
    "oversized_body": "fcm_internal",
    "hang": "fcm_timed_out",
    "slow_headers": "fcm_timed_out",
    "cut": "fcm_cut",
    "cut_mid_headers": "fcm_cut",
    "truncated": "fcm_cut",
    "truncated_accepted": "fcm_accepted",
    "not_http": "fcm_cut",
}


@pytest.mark.anyio
@pytest.mark.parametrize("answer", ANSWERS)
async def test_every_answer_on_demand_ends_in_its_verdict(answer: str) -> None:
    """By token: each device stands for one answer."""
    async with FcmService.start() as service, carrier(service) as by:
        over = provider(service)
        await push(by, over, service.register())
        life_ms = 1_500 if answer in {"hang", "slow_headers"} else 60_000

        verdict = await push(by, over, service.register(answer), life_ms=life_ms)

    assert verdict.reason == EXPECTED[answer]


GRANT_EXPECTED = {
    "invalid_grant": "fcm_grant_refused",
    "unauthorized": "fcm_grant_refused",
    "forbidden": "fcm_grant_refused",
    "unknown": "fcm_token_url_wrong",
    "throttled": "fcm_token_throttled",
    "server_error": "fcm_token_unavailable",
    "unavailable": "fcm_token_unavailable",
    "no_token": "fcm_token_unreadable",
    "not_json": "fcm_token_unreadable",
    "hang": "fcm_token_lost",
    "cut": "fcm_token_lost",
}


@pytest.mark.anyio
@pytest.mark.parametrize("answer", GRANTS)
async def test_every_answer_of_the_token_endpoint_ends_in_its_verdict_and_sends_nothing(answer: str) -> None:
    """An outage of the token endpoint is never held against a device."""
    async with FcmService.start() as service, carrier(service) as by:
        service.grants.append(answer)
        life_ms = 1_500 if answer == "hang" else 60_000

        verdict = await push(by, provider(service), service.register(), life_ms=life_ms)

    assert verdict.reason == GRANT_EXPECTED[answer]
    assert verdict.rests_ms is not None or verdict.outcome in {Outcome.CONFIG_BAD, Outcome.THROTTLED_APP}
    assert service.messages == []


@pytest.mark.anyio
async def test_the_account_of_another_project_is_refused() -> None:
    """Its signature does not verify here."""
    async with FcmService.start() as service, FcmService.start() as elsewhere, carrier(service) as by:
        verdict = await push(by, provider(service, account=elsewhere.account), service.register())

    assert verdict == Verdict(Outcome.CONFIG_BAD, "fcm_grant_refused")
    assert service.refusals == ["the assertion's signature does not verify"]


@pytest.mark.anyio
async def test_another_project_is_a_matter_of_settings_and_costs_no_token() -> None:
    """Sygnal drops the device here: a 404 about the project is not about the token."""
    async with FcmService.start() as service, carrier(service) as by:
        verdict = await push(by, provider(service, project="another-project"), service.register())

    assert verdict == Verdict(Outcome.CONFIG_BAD, "fcm_project_unknown")


@pytest.mark.anyio
async def test_a_burst_makes_one_grant() -> None:
    """A hundred deliveries at once; those that find no token yet are put off unsent."""
    async with FcmService.start() as service, carrier(service) as by:
        over, devices = provider(service), [service.register() for _ in range(100)]

        verdicts = await asyncio.gather(*(push(by, over, device) for device in devices))
        later = await asyncio.gather(*(push(by, over, device) for device in devices))

    assert {verdict.reason for verdict in verdicts} <= {"fcm_accepted", "fcm_token_awaited"}
    assert {verdict.outcome for verdict in later} == {Outcome.ACCEPTED}
    assert service.granted == 1


@pytest.mark.anyio
async def test_a_bearer_that_has_run_out_is_refused_by_the_service() -> None:
    """Its clock is its own; a token lives an hour there."""
    at = [CLOCK.now()]
    async with FcmService.start(now=lambda: at[0]) as service, carrier(service) as by:
        over, device = provider(service), service.register()
        await push(by, over, device)
        at[0] += 3_600_000

        verdict = await push(by, over, device)

    assert verdict == Verdict(Outcome.CONFIG_BAD, "fcm_unauthenticated")
    assert service.refusals == ["the bearer token is unknown or has run out"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"message":{"token":"t"},"more":1}', "a request has a message and perhaps validate_only"),
        (
            b'{"message":{"token":"t","topic":"all"}}',
            "a message of ours has a token, data, android and fcm_options",
        ),
        (b'{"message":{"token":"t","data":{"n":1}}}', "data are texts by name"),
        (b'{"message":{"token":"t","data":{"google.x":"1"}}}', "a name of the data is reserved"),
        (b'{"message":{"token":"t","data":{"n":"' + b"x" * 4_096 + b'"}}}', "the data are too large"),
        (
            b'{"message":{"token":"t","android":{"ttl":"5"}}}',
            "the ttl is a number of seconds up to four weeks, and an s",
        ),
        (b'{"message":{"token":"t","android":{"priority":"high"}}}', "the priority is NORMAL or HIGH"),
        (b"no JSON", "a request has a message and perhaps validate_only"),
    ],
)
async def test_what_the_reference_does_not_allow_is_refused(body: bytes, problem: str) -> None:
    """So that a lab is no milder than the real service."""
    async with FcmService.start() as service, carrier(service) as by:
        over = provider(service)
        await push(by, over, service.register())
        bearer = service.heard[-1].headers["authorization"]
        ask = Ask(
            "POST",
            Secret(f"{service.origin}/v1/projects/{PROJECT}/messages:send"),
            {"authorization": bearer, "content-type": "application/json"},
            body,
        )

        def once() -> Exchange:
            heard = yield ask
            return Verdict(Outcome.ACCEPTED, str(heard.status) if isinstance(heard, Answer) else "lost")

        with not_ours():
            verdict = await by.carry(once(), provider="fcm", until=CLOCK.now() + 60_000)

    assert verdict.reason == "400"
    assert service.refusals == [problem]


@pytest.mark.anyio
async def test_answers_come_from_the_queue_first() -> None:
    """One each, in order; then the service judges again."""
    async with FcmService.start() as service, carrier(service) as by:
        over, device = provider(service), service.register()
        service.answers.extend(["unavailable", Reply(500)])

        reasons = [(await push(by, over, device)).reason for _ in range(3)]

    assert reasons == ["fcm_unavailable", "fcm_internal", "fcm_accepted"]
