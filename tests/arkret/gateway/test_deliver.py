"""From an accepted wakeup to a provider and back, on both databases, over real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from heliograph.ambient.entropy import SystemEntropy
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.model import AppCount, RouteEnd
from heliograph.arkret.gateway.service.deliver import Loaded, WakeupSource
from heliograph.arkret.gateway.service.office import Office
from heliograph.arkret.gateway.service.reseal import Resealer
from heliograph.arkret.gateway.service.takeover import KIND
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.handler import DeliveryHandler
from heliograph.delivery.resolver import SystemResolver
from heliograph.lab.receiver import Reply
from heliograph.lab.stub import StubReceiver
from heliograph.providers.stub.exchange import StubProvider
from heliograph.providers.stub.settings import StubSettings
from heliograph.queue import store as queue
from heliograph.queue.machine import Policy, State
from heliograph.queue.pace import Pace
from heliograph.queue.runner.loop import Runner
from heliograph.signing.seal import TenantKeys, version_of
from heliograph.storage.database import Database
from tests.arkret import make
from tests.arkret.gateway.house import MASTER, House, house
from tests.arkret.gateway.test_notify import statuses
from tests.secrets import planted, planted_octets

pytestmark = pytest.mark.anyio


@dataclass
class Works:
    """A Gateway, its worker, and the receiver that plays the provider."""

    there: House
    runner: Runner
    receiver: StubReceiver
    handler: DeliveryHandler[Loaded]


@asynccontextmanager
async def works(database: Database) -> AsyncIterator[Works]:
    """Build all three; a turn of the runner is one pass of the worker."""
    async with StubReceiver.start() as receiver:
        provider = StubProvider(StubSettings(url=receiver.url))
        async with house(database, providers={"com.example.app": provider}) as there:
            carrier = Carrier(clock=there.clock, guard=EgressGuard(EgressRules(), SystemResolver()))
            handler = DeliveryHandler(
                WakeupSource(KIND, there.keys),
                provider_of=lambda route: provider,
                carrier=carrier,
                clock=there.clock,
                entropy=SystemEntropy(),
                policy=Policy(max_attempts=3, first_backoff_ms=1_000, max_backoff_ms=1_000),
            )
            runner = Runner(
                database,
                there.clock,
                SystemEntropy(),
                there.doorbell,
                [handler],
                telemetry=there.telemetry,
                pace=Pace(),
            )
            yield Works(there, runner, receiver, handler)
            await carrier.close()


@pytest.mark.clause("R008", "R278", "R279", "R253", "R254", "R280", "R011")
async def test_an_accepted_wakeup_reaches_its_provider_with_the_allowed_members_only(
    database: Database,
) -> None:
    """And its content is forgotten once it is delivered."""
    async with works(database) as at:
        await at.there.apply(make.active_body(push_key=planted("deliver-push-key")))
        body = make.notify_body(
            counts={"badge": "2-5"},
            route_tokens={"realm_route_token": "r" * 22},
            top={"event_kind": "ak.message.create"},
        )
        await at.there.notify(body)

        turn = await at.runner.turn()

        assert turn.settled[State.DONE] == 1
        (wakeup,) = at.receiver.wakeups
        assert wakeup.members == {
            "push_target_id": make.TARGET,
            "wakeup_kind": "message",
            "counts": {"badge": "2-5"},
        }
        assert await database.read(store.waiting_by_lane, [KIND]) == {}
        assert await at.runner.turn() is not None
        assert len(at.receiver.wakeups) == 1


async def test_what_depends_on_an_application_is_counted(database: Database) -> None:
    """Live registrations, and deliveries that are not over; nothing of what has ended."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        registered = await Office(database).app_counts()
        await at.there.notify(make.notify_body())
        waiting = await Office(database).app_counts()
        await at.runner.turn()
        delivered = await Office(database).app_counts()
        await at.there.apply(make.revoked_body())

        assert registered == [AppCount("com.example.app", 1, 0)]
        assert waiting == [AppCount("com.example.app", 1, 1)]
        assert delivered == registered
        assert await Office(database).app_counts() == []


async def test_a_glob_stands_for_an_application_under_its_own_id(database: Database) -> None:
    """What is registered is the id that was asked for, so a later entry of its own takes it over."""
    async with house(database, providers={"com.example.*": StubProvider(StubSettings())}) as there:
        await there.apply(make.active_body())
        answer = await there.notify(make.notify_body())

        assert statuses(answer) == ["accepted"]
        assert await Office(database).app_counts() == [AppCount("com.example.app", 1, 1)]


@pytest.mark.clause("R305", "R306", "R310", "R318")
async def test_a_provider_in_trouble_is_tried_again_with_the_same_id(database: Database) -> None:
    """The caller was told accepted and hears nothing more; the provider can fold the repeats."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        first = await at.there.notify(make.notify_body())
        at.receiver.answers.extend([Reply(503), Reply(429)])

        turns = []
        for _ in range(3):
            turns.append(await at.runner.turn())
            at.there.clock.at += 3_600_000
        again = await at.there.notify(make.notify_body())

        assert [turn.settled[State.DONE] for turn in turns] == [0, 0, 1]
        assert len({heard.headers["stub-delivery-id"] for heard in at.receiver.heard}) == 1
        assert len(at.receiver.heard) == 3
        assert again.body == first.body


@pytest.mark.clause("R097", "R310", "R312")
async def test_a_dead_token_ends_its_route_and_leaves_the_first_answer_alone(database: Database) -> None:
    """Later notifies are told; the one that found out stays accepted."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        first = await at.there.notify(make.notify_body())
        at.receiver.answers.append(Reply(410))

        await at.runner.turn()

        row = await database.read(store.installation, make.STATION, make.REGISTRATION)
        assert row is not None
        assert row.route_end is RouteEnd.PROVIDER
        assert (await at.there.notify(make.notify_body())).body == first.body
        later = await at.there.notify(make.notify_body(), key="key-2")
        assert statuses(later) == ["rejected/push_token_invalid"]


@pytest.mark.clause("R098", "R139", "R141")
async def test_what_waited_when_its_route_was_revoked_is_not_sent(database: Database) -> None:
    """The worker finds no route and the item ends."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await at.there.notify(make.notify_body())
        await at.there.apply(make.revoked_body())

        turn = await at.runner.turn()

        assert turn.settled[State.FAILED] == 1
        assert at.receiver.heard == []


@pytest.mark.clause("R098", "R139")
async def test_a_successor_does_not_inherit_what_waited_for_its_predecessor(database: Database) -> None:
    """A wakeup belongs to the registration it was accepted for; the new one gets its own."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await at.there.notify(make.notify_body())
        await at.there.apply(
            make.active_body(registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION)
        )

        turn = await at.runner.turn()

        assert turn.settled[State.FAILED] == 1
        assert at.receiver.heard == []


async def test_a_wakeup_that_outlived_its_use_is_not_sent(database: Database) -> None:
    """A call invitation rings for a minute."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await at.there.notify(make.notify_body(wakeup_kind="call_invite"))
        at.there.clock.at += 60_000

        turn = await at.runner.turn()

        assert turn.settled[State.DEAD] == 1
        assert at.receiver.heard == []


async def test_a_dead_item_keeps_its_content_and_can_be_tried_again(database: Database) -> None:
    """Three answers of trouble exhaust it; an operator retries it; it arrives under its old id."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await at.there.notify(make.notify_body())
        at.receiver.answers.extend([Reply(503)] * 3)
        for _ in range(3):
            await at.runner.turn()
            at.there.clock.at += 10_000
        (dead,) = await database.read(queue.dead)

        assert await database.transact(queue.retry, dead.item_id, at.there.clock.at)
        await at.runner.turn()

        assert len(at.receiver.wakeups) == 1
        assert len({heard.headers["stub-delivery-id"] for heard in at.receiver.heard}) == 1


@pytest.mark.clause("R116")
async def test_after_a_rotation_routes_are_resealed_and_still_deliver(database: Database) -> None:
    """Behind every request; afterwards the old key is not needed any more."""
    async with house(database) as before:
        await before.apply(make.active_body(push_key=planted("reseal-push-key")))
    newer = planted_octets("newer-master")
    both = TenantKeys({1: MASTER, 2: newer}, 2)

    resealed = await Resealer(database, both, SystemEntropy()).turn()

    assert (resealed.moved, resealed.broken, resealed.more) == (1, 0, False)
    (route,) = await database.read(store.stale_routes, 3, None, 10)
    assert version_of(route.route) == 2
    alone = WakeupSource(KIND, TenantKeys({2: newer}, 2))
    async with house(database, master={2: newer}) as after:
        await after.notify(make.notify_body())
        claims = await database.claim(queue.claim, (KIND,), 1, after.clock.now(), 60_000)
        loaded = await database.read(alone.load, claims)
        delivery = alone.open(loaded[0])
    assert delivery is not None
    assert delivery.route.push_key.reveal() == planted("reseal-push-key")


async def test_routes_that_no_key_opens_do_not_hide_those_behind_them(database: Database) -> None:
    """They are counted and left for an operator."""
    async with house(database, master={1: planted_octets("lost-master")}) as lost:
        await lost.apply(make.active_body())
    keys = TenantKeys({1: MASTER, 2: planted_octets("newer-master")}, 2)

    resealed = await Resealer(database, keys, SystemEntropy()).turn()

    assert (resealed.moved, resealed.broken) == (0, 1)
