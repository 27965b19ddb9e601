"""FCM from the queue to the device, over real sockets and with a clock that is told the time: outages."""

import json

import pytest
from tests.deliveries import NOW
from tests.outgoing import Scripted, World, world
from tests.work import ToldClock

from heliograph.lab.fcm import PROJECT, FcmService
from heliograph.providers.fcm.exchange import FcmProvider
from heliograph.providers.fcm.settings import FcmSettings
from heliograph.queue.machine import State
from heliograph.storage.database import Database

pytestmark = pytest.mark.anyio


def provider(service: FcmService, credential: str = "fcm") -> FcmProvider:
    settings = FcmSettings(
        project_id=PROJECT,
        service_account="file:/k",
        token_url=service.token_url,
        send_origin=service.origin,
    )
    return FcmProvider(settings, service_account=service.account, credential=credential)


def asked(service: FcmService) -> list[str]:
    """Return which paths were asked for, in order."""
    return [heard.target.rpartition("/")[2] for heard in service.heard]


async def waiting(here: World, service: FcmService, count: int, credential: str = "fcm") -> None:
    """Let deliveries to so many devices wait."""
    for _ in range(count):
        await here.enqueue(credential, key=service.register().reveal())


async def test_a_project_that_is_asked_to_pause_for_54_seconds_does(database: Database) -> None:
    """P6: no call for that credential before, no attempt burned, and the other credential is served."""
    clock, other = ToldClock(NOW), Scripted("other")
    async with (
        FcmService.start(now=clock.now) as service,
        world(database, provider(service), other, clock=clock, ca_pem=service.ca_pem) as here,
    ):
        process = here.process()
        service.answers.append("quota_exceeded_54_seconds")
        await waiting(here, service, 1)
        await process.runner.turn()
        await waiting(here, service, 20)
        await here.enqueue("other", 3)
        for at in (0, 1_000, 20_000, 53_999):
            clock.at = NOW + at
            await process.runner.turn()
        before = asked(service)
        clock.at = NOW + 60_000
        for _ in range(6):
            await process.runner.turn()

    assert before == ["token", "messages:send"]
    assert len(other.asked) == 3
    assert len(service.messages) == 21
    assert {end[2] for end in process.source.ends if end[1] is State.DONE} == {1}
    assert service.granted == 1


async def test_an_outage_of_the_token_endpoint_holds_everything_and_burns_nothing(database: Database) -> None:
    """However long it lasts: afterwards every delivery arrives, at its first attempt."""
    clock = ToldClock(NOW)
    async with (
        FcmService.start(now=clock.now) as service,
        world(database, provider(service), clock=clock, ca_pem=service.ca_pem) as here,
    ):
        process = here.process()
        service.grants.extend(["unavailable", "server_error", "cut"] * 4)
        await waiting(here, service, 10)
        for _ in range(200):
            await process.runner.turn()
            clock.at += 5_000
        left = len(service.grants)
        tries = asked(service).index("messages:send")

    assert left == 0
    assert tries == 13
    assert len(service.messages) == 10
    assert {end[2] for end in process.source.ends if end[1] is State.DONE} == {1}


async def test_a_token_endpoint_that_grants_nothing_waits_for_an_operator(database: Database) -> None:
    """A page in place of a token: held, not lost, and well again by itself once it is mended."""
    clock = ToldClock(NOW)
    async with (
        FcmService.start(now=clock.now) as service,
        world(database, provider(service), clock=clock, ca_pem=service.ca_pem) as here,
    ):
        process = here.process()
        service.grants.extend(["not_json", "no_token", "unknown", "invalid_grant"])
        await waiting(here, service, 5)
        for _ in range(400):
            await process.runner.turn()
            clock.at += 5_000

    assert len(service.messages) == 5
    assert State.FAILED not in {state for _, state, _, _ in process.source.ends}


async def test_a_burst_at_the_start_fetches_one_token_and_goes_out_a_second_later(database: Database) -> None:
    """Those that found none yet have rested, and used up nothing."""
    clock = ToldClock(NOW)
    async with (
        FcmService.start(now=clock.now) as service,
        world(database, provider(service), clock=clock, ca_pem=service.ca_pem) as here,
    ):
        process = here.process(at_once=30)
        await waiting(here, service, 30)
        await process.runner.turn()
        clock.at += 1_200
        for _ in range(3):
            await process.runner.turn()

    assert asked(service).count("token") == 1
    assert len(service.messages) == 30
    assert {end[2] for end in process.source.ends if end[1] is State.DONE} == {1}


async def test_what_fcm_says_of_the_message_costs_no_token(database: Database) -> None:
    """P1: every device is told that its message is bad; all of them are reached by the next one."""
    clock = ToldClock(NOW)
    async with (
        FcmService.start(now=clock.now) as service,
        world(database, provider(service), clock=clock, ca_pem=service.ca_pem) as here,
    ):
        process = here.process()
        devices = [service.register().reveal() for _ in range(12)]
        service.answers.extend(["data_invalid"] * 12)
        for device in devices:
            await here.enqueue("fcm", key=device)
        for _ in range(4):
            await process.runner.turn()
            clock.at += 2_000
        ends = {(state, reason) for _, state, _, reason in process.source.ends if state is State.FAILED}
        for device in devices:
            await here.enqueue("fcm", key=device)
        for _ in range(4):
            await process.runner.turn()

    assert ends == {(State.FAILED, "fcm_invalid_argument")}
    assert process.froze == []
    assert {message.token for message in service.messages} == {
        device.removeprefix("fcm:") for device in devices
    }


@pytest.mark.parametrize("answer", ["cut", "truncated", "unavailable", "bad_gateway"])
async def test_a_message_that_is_tried_again_is_the_same_message(database: Database, answer: str) -> None:
    """P8, I8: to the octet but for the seconds it still has to live, so that a device shows it once."""
    clock = ToldClock(NOW)
    async with (
        FcmService.start(now=clock.now) as service,
        world(database, provider(service), clock=clock, ca_pem=service.ca_pem) as here,
    ):
        process = here.process()
        service.answers.append(answer)
        await waiting(here, service, 1)
        await process.runner.turn()
        clock.at += 10
        await process.runner.turn()
        first, second = (json.loads(heard.body) for heard in service.heard[1:])

    assert first["message"]["android"].pop("ttl")
    assert second["message"]["android"].pop("ttl")
    assert first == second
    assert len(service.messages) == 1
