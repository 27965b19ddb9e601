"""APNs on loopback is as strict as the real one, and what the adapter sends passes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from tests import deliveries
from tests.deliveries import OCTETS, TARGET
from tests.egress_verifier import not_ours

from heliograph.ambient.clock import SystemClock
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.exchange import Answer, Ask, Exchange, Lost, Moment
from heliograph.delivery.model import Delivery, Outcome, Verdict, Wakeup, WakeupKind
from heliograph.delivery.resolver import SystemResolver
from heliograph.lab.apns import TOPIC, ApnsService, Device
from heliograph.lab.apns_answers import ANSWERS
from heliograph.lab.apns_keys import SANDBOX, AppleKey
from heliograph.providers.apns.exchange import ApnsProvider
from heliograph.providers.apns.settings import ApnsSettings
from heliograph.wire.instant import Instant

pytestmark = pytest.mark.anyio
CLOCK = SystemClock()
MINUTE_MS = 60_000
LIFE_MS = 20_000


class Watch:
    """A clock that the test sets, begun at the real time."""

    def __init__(self) -> None:
        self.at: Instant = CLOCK.now()

    def __call__(self) -> Instant:
        return self.at


@contextlib.asynccontextmanager
async def carrier(service: ApnsService, places: int = 100) -> AsyncIterator[Carrier]:
    built = Carrier(
        clock=CLOCK,
        guard=EgressGuard(EgressRules(), SystemResolver()),
        extra_ca_pem=service.ca_pem,
        in_flight_per_origin=places,
    )
    try:
        yield built
    finally:
        await built.close()


def provider(service: ApnsService, key: AppleKey | None = None, **changes: object) -> ApnsProvider:
    key = key or service.key
    members = {
        "team_id": key.team_id,
        "key_id": key.key_id,
        "key": "file:/k",
        "topic": TOPIC,
        "production_origin": service.production_origin,
        "sandbox_origin": service.sandbox_origin,
    }
    return ApnsProvider(msgspec.convert({**members, **changes}, ApnsSettings), key=key.pem)


def delivery_to(device: Device, number: int = 0) -> Delivery:
    made = deliveries.delivery(device.push_key, provider="apns", collapse_key=None)
    return replace(made, delivery_id=f"0b5c2f5e-9d52-4a51-8c1d-{number:012x}")


async def push(
    by: Carrier, through: ApnsProvider, device: Device, *, now: Instant | None = None, number: int = 0
) -> Verdict:
    moment = Moment(CLOCK.now() if now is None else now, OCTETS)
    exchange = through.exchange(delivery_to(device, number), moment)
    return await by.carry(exchange, provider="apns", until=CLOCK.now() + LIFE_MS)


async def pushes(by: Carrier, through: ApnsProvider, devices: list[Device]) -> list[Verdict]:
    return await asyncio.gather(*(push(by, through, device, number=n) for n, device in enumerate(devices)))


async def test_what_the_adapter_sends_passes_the_strictest_reading() -> None:
    """Signature, key, headers, topic, payload and device; the device reads the members and no more."""
    async with ApnsService.start() as service, carrier(service) as by:
        device = service.register()
        verdict = await push(by, provider(service), device)

    assert (verdict, service.refusals) == (Verdict(Outcome.ACCEPTED, "apns_accepted"), [])
    assert service.pushes[0].members == {"push_target_id": TARGET, "wakeup_kind": "message"}
    assert service.pushes[0].apns_id == delivery_to(device).delivery_id


async def test_a_cold_burst_opens_one_connection_and_waits_for_the_first_answer() -> None:
    """One stream until a key is proved, many after that; no second connection is opened for impatience."""
    async with ApnsService.start() as service, carrier(service) as by:
        devices = [service.register() for _ in range(60)]
        verdicts = await pushes(by, provider(service), devices)

    assert [verdict.outcome for verdict in verdicts] == [Outcome.ACCEPTED] * 60
    assert service.connections == 1


OUTCOMES = {
    "accepted": Outcome.ACCEPTED,
    "truncated_accepted": Outcome.ACCEPTED,
    "bad_device_token": Outcome.TOKEN_SUSPECT,
    "device_token_not_for_topic": Outcome.TOKEN_SUSPECT,
    "gone_without_a_reason": Outcome.TOKEN_SUSPECT,
    "unregistered": Outcome.TOKEN_DEAD,
    "unregistered_long_ago": Outcome.TOKEN_DEAD,
    "expired_token": Outcome.TOKEN_DEAD,
    "bad_topic": Outcome.CONFIG_BAD,
    "missing_topic": Outcome.CONFIG_BAD,
    "topic_disallowed": Outcome.CONFIG_BAD,
    "expired_provider_token": Outcome.CONFIG_BAD,
    "invalid_provider_token": Outcome.CONFIG_BAD,
    "missing_provider_token": Outcome.CONFIG_BAD,
    "forbidden": Outcome.CONFIG_BAD,
    "bad_certificate": Outcome.CONFIG_BAD,
    "bad_certificate_environment": Outcome.CONFIG_BAD,
    "unrelated_key_id": Outcome.CONFIG_BAD,
    "bad_environment_key_id": Outcome.CONFIG_BAD,
    "too_many_provider_token_updates": Outcome.CONFIG_BAD,
    "too_many_requests": Outcome.THROTTLED_TARGET,
    "idle_timeout": Outcome.TRANSIENT,
    "internal_server_error": Outcome.TRANSIENT,
    "service_unavailable": Outcome.TRANSIENT,
    "shutdown": Outcome.TRANSIENT,
    "cut": Outcome.TRANSIENT,
    "truncated": Outcome.TRANSIENT,
    "not_http": Outcome.TRANSIENT,
    "reset": Outcome.TRANSIENT,
    "reason_of_tomorrow": Outcome.UNKNOWN,
    "teapot": Outcome.UNKNOWN,
    "bad_collapse_id": Outcome.PAYLOAD_BAD,
    "bad_expiration_date": Outcome.PAYLOAD_BAD,
    "bad_message_id": Outcome.PAYLOAD_BAD,
    "bad_priority": Outcome.PAYLOAD_BAD,
    "duplicate_headers": Outcome.PAYLOAD_BAD,
    "invalid_push_type": Outcome.PAYLOAD_BAD,
    "payload_empty": Outcome.PAYLOAD_BAD,
    "missing_device_token": Outcome.PAYLOAD_BAD,
    "bad_path": Outcome.PAYLOAD_BAD,
    "method_not_allowed": Outcome.PAYLOAD_BAD,
    "payload_too_large": Outcome.PAYLOAD_BAD,
}
WITHOUT_END = {"hang", "slow_headers", "cut_mid_headers", "silent"}
UNPROCESSED = {"refused", "go_away"}


def test_every_answer_is_driven_over_sockets() -> None:
    """No name is left out below."""
    assert ANSWERS.keys() == OUTCOMES.keys() | WITHOUT_END | UNPROCESSED


@pytest.mark.parametrize("answer", OUTCOMES)
async def test_each_answer_comes_to_its_verdict_over_a_real_connection(answer: str) -> None:
    """The same as by hand: nothing is lost on the way, broken answers included."""
    async with ApnsService.start() as service, carrier(service) as by:
        device = service.register()
        service.answers.extend([answer, answer])
        verdict = await push(by, provider(service), device)
        service.answers.clear()
        after = await push(by, provider(service), device)

    assert verdict.outcome is OUTCOMES[answer]
    assert verdict.ambiguous == (answer in {"cut", "truncated", "not_http", "reset"})
    assert after.outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("answer", sorted(WITHOUT_END))
async def test_an_answer_that_never_ends_is_ambiguous_and_the_next_push_goes_through(
    answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P5: a dead peer is found by its silence to pings, long before the ask's own time is over."""
    monkeypatch.setattr("heliograph.delivery.client.PING_MS", 150)
    async with ApnsService.start() as service, carrier(service) as by:
        device, through = service.register(), provider(service)
        await push(by, through, device)
        service.answers.append(answer)
        exchange = through.exchange(delivery_to(device), Moment(CLOCK.now(), OCTETS))
        verdict = await by.carry(exchange, provider="apns", until=CLOCK.now() + 3_000)
        after = await push(by, through, device)

    assert (verdict.outcome, verdict.ambiguous) == (Outcome.TRANSIENT, True)
    assert after.outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("answer", sorted(UNPROCESSED))
async def test_what_was_not_processed_is_repeated_at_once_and_shown_once(answer: str) -> None:
    """P5: of a burst, streams up to k are awaited, and those beyond it sent again, once."""
    async with ApnsService.start() as service, carrier(service) as by:
        devices, through = [service.register() for _ in range(40)], provider(service)
        await push(by, through, devices[0])
        service.answers.extend([*["accepted"] * 10, answer])
        verdicts = await pushes(by, through, devices)

    assert [verdict.outcome for verdict in verdicts] == [Outcome.ACCEPTED] * 40
    assert len(service.pushes) == 1 + 40 - 10
    assert len({one.token for one in service.pushes[1:]}) == 30
    assert service.connections == (2 if answer == "go_away" else 1)


@pytest.mark.parametrize("answer", sorted(UNPROCESSED))
async def test_what_is_never_processed_was_not_sent_and_is_not_tried_for_ever(answer: str) -> None:
    """P5: three tries at once, and then the queue's own patience; nothing is ambiguous about it."""
    async with ApnsService.start() as service, carrier(service) as by:
        device, through = service.register(), provider(service)
        await push(by, through, device)
        service.answers.extend([answer] * 10)
        verdict = await push(by, through, device)
        tried = 10 - len(service.answers)

    assert verdict == Verdict(Outcome.TRANSIENT, "apns_not_sent")
    assert tried == 3


async def test_what_a_goaway_does_not_exclude_is_awaited_and_ambiguous_when_the_connection_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P5: up to k the provider may have acted; only those beyond it are sent again."""
    monkeypatch.setattr("heliograph.lab.http2.LEAVING_S", 0.2)
    async with ApnsService.start() as service, carrier(service) as by:
        one, two, through = service.register(), service.register(), provider(service)
        await push(by, through, one)
        service.answers.extend(["hang", "go_away"])
        first, second = await asyncio.gather(push(by, through, one), push(by, through, two, number=1))

    assert (first.reason, first.ambiguous) == ("apns_cut", True)
    assert second.outcome is Outcome.ACCEPTED
    assert [heard.target for heard in service.heard].count(f"/3/device/{one.token}") == 2


async def test_a_server_that_leaves_between_bursts_is_left() -> None:
    """P5: the next push opens a new connection; nobody restarts anything."""
    async with ApnsService.start() as service, carrier(service) as by:
        device, through = service.register(), provider(service)
        outcomes = []
        for _ in range(3):
            outcomes.append((await push(by, through, device)).outcome)
            service.receivers["production"].leave()

    assert outcomes == [Outcome.ACCEPTED] * 3
    assert service.connections == 3


async def test_over_two_hours_no_connection_changes_its_token_too_soon_or_uses_an_old_one() -> None:
    """P4: eight workers, three topics, two hours of a clock."""
    watch = Watch()
    topics = {"a": "org.example.a", "b": "org.example.b", "c": "org.example.c"}
    async with ApnsService.start(now=watch) as service, carrier(service) as by:
        through = provider(service, topics=topics)
        devices = [service.register() for _ in range(24)]
        begun = watch.at
        for minute in range(0, 121, 5):
            watch.at = begun + minute * MINUTE_MS
            verdicts = await asyncio.gather(
                *(push(by, through, device, now=watch.at, number=n) for n, device in enumerate(devices))
            )
            assert {verdict.outcome for verdict in verdicts} == {Outcome.ACCEPTED}

    changed = [begun, *(at for _, _, at in service.token_changes)]
    assert service.refusals == []
    assert len(changed) == 3
    assert all(20 * MINUTE_MS <= later - earlier <= 60 * MINUTE_MS for earlier, later in pairwise(changed))


async def test_a_change_that_came_too_soon_is_taken_back() -> None:
    """P4: on 429 the old token serves on, on the same connection."""
    watch = Watch()
    async with ApnsService.start(now=watch) as service, carrier(service) as by:
        device, through = service.register(), provider(service)
        await push(by, through, device, now=watch.at)
        watch.at += 51 * MINUTE_MS
        service.answers.append("too_many_provider_token_updates")
        held = await push(by, through, device, now=watch.at)
        after = await push(by, through, device, now=watch.at)

    assert (held.outcome, after.outcome) == (Outcome.CONFIG_BAD, Outcome.ACCEPTED)
    assert (service.token_changes, service.connections) == ([], 1)


async def test_a_clock_that_steps_back_and_forth_causes_no_storm() -> None:
    """T5: a token of another time is refused once, not for ever, and never changed in haste."""
    watch = Watch()
    async with ApnsService.start(now=watch) as service, carrier(service) as by:
        device, through = service.register(), provider(service)
        begun, verdicts = watch.at, []
        for minute, ours in ((0, 0), (5, 65), (10, 10), (15, 75), (20, 20), (45, 45), (66, 66), (70, 70)):
            watch.at = begun + minute * MINUTE_MS
            verdicts.append(await push(by, through, device, now=begun + ours * MINUTE_MS))

    assert verdicts[-1].outcome is Outcome.ACCEPTED
    assert "the token changed too soon" not in service.refusals
    assert len(service.refusals) <= 2


async def test_concurrent_pushes_keep_their_devices_apart() -> None:
    """W7: each payload reaches its own device, under its own id."""
    async with ApnsService.start() as service, carrier(service) as by:
        through, devices = provider(service), [service.register() for _ in range(300)]

        async def one(number: int, device: Device) -> None:
            content = Wakeup(f"{TARGET[:-3]}{number:03}", WakeupKind.MESSAGE)
            exchange = through.exchange(
                replace(delivery_to(device, number), wakeup=content), Moment(CLOCK.now(), OCTETS)
            )
            await by.carry(exchange, provider="apns", until=CLOCK.now() + LIFE_MS)

        await asyncio.gather(*(one(number, device) for number, device in enumerate(devices)))

    by_token = {device.token: f"{number:03}" for number, device in enumerate(devices)}
    assert len(service.pushes) == 300
    assert all(one.members["push_target_id"][-3:] == by_token[one.token] for one in service.pushes)
    assert all(int(one.apns_id[-3:], 16) == int(by_token[one.token]) for one in service.pushes)


async def test_a_device_that_is_gone_is_dead_since_then() -> None:
    """W4: the time is the service's, in milliseconds."""
    async with ApnsService.start() as service, carrier(service) as by:
        device = service.register()
        service.unregister(device)
        verdict = await push(by, provider(service), device)

    assert verdict == Verdict(Outcome.TOKEN_DEAD, "apns_unregistered", dead_since=device.unregistered_at)


async def test_a_device_of_the_sandbox_is_found_there() -> None:
    """And after that production is not asked again."""
    async with ApnsService.start() as service, carrier(service) as by:
        device, through = service.register(environment=SANDBOX), provider(service, environment="both")
        verdicts = [await push(by, through, device) for _ in range(2)]

    assert verdicts == [Verdict(Outcome.ACCEPTED, "apns_accepted_in_sandbox")] * 2
    assert len(service.heard) == 3


async def test_two_keys_never_meet_on_one_connection() -> None:
    """The service would call the second one unrelated."""
    async with ApnsService.start() as service, carrier(service) as by:
        device, other = service.register(), service.issue_key()
        one, two = provider(service), provider(service, other)
        verdicts = [await push(by, through, device) for through in (one, two, one, two)]

    assert {verdict.outcome for verdict in verdicts} == {Outcome.ACCEPTED}
    assert (service.connections, service.refusals) == (2, [])


async def test_the_probe_proves_a_key_and_finds_one_of_the_other_environment() -> None:
    """Without any device."""
    async with ApnsService.start() as service, carrier(service) as by:
        half = service.issue_key(environments=(SANDBOX,))
        verdicts = [
            await by.carry(
                through.probe(Moment(CLOCK.now(), OCTETS), reach=True),
                provider="apns",
                until=CLOCK.now() + LIFE_MS,
            )
            for through in (provider(service, environment="both"), provider(service, half))
        ]

    assert verdicts == [
        Verdict(Outcome.ACCEPTED, "apns_key_proved"),
        Verdict(Outcome.CONFIG_BAD, "apns_bad_environment_key_id"),
    ]


@pytest.fixture
def strangers() -> Iterator[None]:
    """What is sent here is bent by hand, and not by an adapter of ours."""
    with not_ours():
        yield


def heard_of(ask: Ask, heard: list[Answer | Lost]) -> Exchange:
    heard.append((yield ask))
    return Verdict(Outcome.ACCEPTED, "test")


BENT = {
    "a GET": (405, "MethodNotAllowed"),
    "another path": (404, "BadPath"),
    "no token": (400, "MissingDeviceToken"),
    "a token of nobody": (400, "BadDeviceToken"),
    "no authorization": (403, "MissingProviderToken"),
    "another scheme": (403, "InvalidProviderToken"),
    "a changed signature": (403, "InvalidProviderToken"),
    "an id that is no uuid": (400, "BadMessageId"),
    "an expiration in words": (400, "BadExpirationDate"),
    "a collapse id of 65 octets": (400, "BadCollapseId"),
    "a push type of nobody": (400, "InvalidPushType"),
    "a priority of 7": (400, "BadPriority"),
    "background at once": (400, "BadPriority"),
    "two topics": (400, "DuplicateHeaders"),
    "no topic": (400, "MissingTopic"),
    "a topic with a slash": (400, "BadTopic"),
    "a topic of another application": (400, "DeviceTokenNotForTopic"),
    "an empty payload": (400, "PayloadEmpty"),
    "a payload of 4097 octets": (413, "PayloadTooLarge"),
    "a payload of 4096 octets": (200, None),
}


def bent(ask: Ask, how: str) -> Ask:
    """Return what the adapter would send, with one thing wrong."""
    every: dict[str, dict[str, str | None]] = {
        "no authorization": {"authorization": None},
        "another scheme": {"authorization": ask.headers["authorization"].replace("bearer", "Basic")},
        "a changed signature": {"authorization": ask.headers["authorization"][:-6] + "AAAAAA"},
        "an id that is no uuid": {"apns-id": "one"},
        "an expiration in words": {"apns-expiration": "soon"},
        "a collapse id of 65 octets": {"apns-collapse-id": "x" * 65},
        "a push type of nobody": {"apns-push-type": "wake"},
        "a priority of 7": {"apns-priority": "7"},
        "background at once": {"apns-push-type": "background"},
        "two topics": {"apns-topic": f"{TOPIC}, {TOPIC}"},
        "no topic": {"apns-topic": None},
        "a topic with a slash": {"apns-topic": "a/b"},
        "a topic of another application": {"apns-topic": "org.example.other"},
    }
    headers: dict[str, str | None] = {**ask.headers, **every.get(how, {})}
    changed = {name: value for name, value in headers.items() if value is not None}
    url = ask.url.reveal()
    path = {
        "another path": "/4/device/aa",
        "no token": "/3/device/",
        "a token of nobody": f"/3/device/{'00' * 32}",
    }.get(how)
    octets = {
        "an empty payload": 2,
        "a payload of 4097 octets": 4_097,
        "a payload of 4096 octets": 4_096,
    }.get(how)
    body = ask.body
    if octets is not None:
        body = b"{}" if octets == 2 else json.dumps({"aps": {}, "x": ""}).encode()
        body = body.replace(b'""', b'"' + b"x" * (octets - len(body)) + b'"')
    return replace(
        ask,
        method="GET" if how == "a GET" else "POST",
        url=ask.url if path is None else type(ask.url)("/".join(url.split("/")[:3]) + path),
        headers=changed,
        body=body,
    )


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize("how", BENT)
async def test_each_rule_of_the_real_service_is_kept(how: str) -> None:
    """One thing wrong in what the adapter sends, and the reason that APNs gives for it."""
    heard: list[Answer | Lost] = []
    async with ApnsService.start() as service, carrier(service) as by:
        ask = next(provider(service).exchange(delivery_to(service.register()), Moment(CLOCK.now(), OCTETS)))
        await by.carry(heard_of(bent(ask, how), heard), provider="test", until=CLOCK.now() + LIFE_MS)

    (answer,) = heard
    assert isinstance(answer, Answer)
    reason = json.loads(answer.body)["reason"] if answer.body else None
    assert (answer.status, reason) == BENT[how]
