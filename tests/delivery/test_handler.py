"""Claims become deliveries: the handler with a real queue, a real carrier and the stub's receiver."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest
from tests import deliveries
from tests.deliveries import DELIVERY_ID, NOW

from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Telemetry
from heliograph.delivery.breaker import BreakerPace, HostBreaker
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.gates import CONFIG_PAUSE_MS_LONGEST
from heliograph.delivery.handler import NO_PROVIDER, ROUTE_GONE, DeliveryHandler
from heliograph.delivery.model import Delivery, Outcome, Route, Verdict
from heliograph.delivery.provider import Provider
from heliograph.delivery.resolver import SystemResolver
from heliograph.delivery.signal import CONFIG_HOLD_MS
from heliograph.doorbell.local import LocalDoorbell
from heliograph.lab.receiver import Misbehaviour, Reply, Spoiled
from heliograph.lab.stub import StubReceiver
from heliograph.providers.stub.exchange import StubProvider
from heliograph.providers.stub.settings import StubSettings
from heliograph.queue import store
from heliograph.queue.machine import Change, Policy, State
from heliograph.queue.model import Claim, NewItem
from heliograph.queue.runner import Runner
from heliograph.storage.database import Database, Tx
from heliograph.wire.instant import Instant

KIND = "test.deliver"
POLICY = Policy(max_attempts=5, first_backoff_ms=1_000, max_backoff_ms=60_000)
LIFE_MS = 6 * 3_600_000


class SetClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> Instant:
        return self.at

    def monotonic(self) -> float:
        return self.at / 1_000

    async def sleep(self, seconds: float) -> None:
        self.at += int(seconds * 1_000)


@dataclass(frozen=True, slots=True)
class Settled:
    state: State
    reason: str | None
    verdict: Verdict | None


class OneRoute:
    """A source with one route, open until somebody ends it."""

    kind = KIND

    def __init__(self) -> None:
        self.delivery: Delivery | None = deliveries.delivery(expires_at=NOW + LIFE_MS)
        self.registered = NOW
        self.ends: list[Settled] = []

    def load(self, tx: Tx, claims: Sequence[Claim]) -> Sequence[str]:
        return [claim.reference for claim in claims]

    def open(self, loaded: str) -> Delivery | None:
        assert loaded == "the reference"
        return self.delivery

    def registered_at(self, loaded: str) -> Instant:
        return self.registered

    def settled(self, tx: Tx, claim: Claim, change: Change, verdict: Verdict | None) -> None:
        self.ends.append(Settled(change.state, change.reason, verdict))


@dataclass(slots=True)
class World:
    """Everything around one item."""

    database: Database
    clock: SetClock
    source: OneRoute
    handler: DeliveryHandler[str]
    runner: Runner
    receiver: StubReceiver
    heard: list[tuple[str, Verdict]]

    async def enqueue(self) -> None:
        item = NewItem(
            item_id=SystemEntropy().uuid7(NOW),
            kind=KIND,
            lane="tenant",
            reference="the reference",
            due_at=self.clock.now(),
            expires_at=NOW + LIFE_MS,
        )
        await self.database.transact(store.enqueue, [item], self.clock.now())

    async def turn(self) -> Settled:
        """Do one turn and tell how its only item ended."""
        assert (await self.runner.turn()).claimed == 1
        return self.source.ends[-1]


@contextlib.asynccontextmanager
async def world(
    database: Database,
    provider: Provider | None = None,
    *,
    configured: bool = True,
    breaker: HostBreaker | None = None,
) -> AsyncIterator[World]:
    clock, entropy, source = SetClock(), SystemEntropy(), OneRoute()
    heard: list[tuple[str, Verdict]] = []
    async with StubReceiver.start() as receiver:
        stub = provider or StubProvider(StubSettings(url=receiver.url))
        carrier = Carrier(clock=clock, guard=EgressGuard(EgressRules(), SystemResolver()), breaker=breaker)

        def provider_of(route: Route) -> Provider | None:
            return stub if configured and route.provider == "stub" else None

        handler = DeliveryHandler(
            source,
            provider_of=provider_of,
            carrier=carrier,
            clock=clock,
            entropy=entropy,
            policy=POLICY,
            heard=lambda name, verdict: heard.append((name, verdict)),
        )
        runner = Runner(database, clock, entropy, LocalDoorbell(), [handler], telemetry=Telemetry())
        try:
            made = World(database, clock, source, handler, runner, receiver, heard)
            await made.enqueue()
            yield made
        finally:
            await carrier.close()


@pytest.mark.anyio
async def test_an_accepted_wakeup_is_delivered_and_its_verdict_told(database: Database) -> None:
    """Claim, carry, settle: the source learns what the provider said, inside the settling transaction."""
    async with world(database) as here:
        end = await here.turn()

    accepted = Verdict(Outcome.ACCEPTED, "stub_accepted")
    assert end == Settled(State.DONE, None, accepted)
    assert here.heard == [("stub", accepted)]
    assert here.receiver.times() == {DELIVERY_ID: 1}


@pytest.mark.anyio
async def test_a_repeat_after_a_lost_answer_carries_the_same_identity(database: Database) -> None:
    """I8: the provider took it and the connection broke; the second attempt can be folded into the first."""
    async with world(database) as here:
        here.receiver.answers.append(Spoiled(Misbehaviour.CUT))
        first = await here.turn()
        here.clock.at += 60_000
        second = await here.turn()

    assert first == Settled(State.READY, "stub_cut", Verdict(Outcome.TRANSIENT, "stub_cut", ambiguous=True))
    assert second.state is State.DONE
    sent = [
        (heard.headers["stub-delivery-id"], heard.headers["stub-collapse-key"], heard.body)
        for heard in here.receiver.heard
    ]
    assert len(sent) == 2
    assert sent[0] == sent[1]


@pytest.mark.anyio
async def test_a_route_that_ended_while_the_item_waited_is_not_called(database: Database) -> None:
    """Nothing is sent to a revoked registration; no verdict was given."""
    async with world(database) as here:
        here.source.delivery = None
        end = await here.turn()

    assert end == Settled(State.FAILED, ROUTE_GONE, None)
    assert here.receiver.heard == []


@pytest.mark.anyio
async def test_a_delivery_that_is_worth_nothing_any_more_is_not_sent(database: Database) -> None:
    """Its own life may be shorter than the item's."""
    async with world(database) as here:
        here.source.delivery = deliveries.delivery(expires_at=NOW)
        end = await here.turn()

    assert end == Settled(State.FAILED, "expired", None)
    assert here.receiver.heard == []


@pytest.mark.anyio
async def test_a_token_that_died_ends_its_route(database: Database) -> None:
    """W4: at once, never retried."""
    async with world(database) as here:
        here.receiver.answers.append(Reply(410))
        end = await here.turn()
        again = await here.runner.turn()

    assert (end.state, end.reason) == (State.FAILED, "stub_token_gone")
    assert again.claimed == 0


@pytest.mark.anyio
async def test_a_token_that_died_before_it_was_registered_again_is_kept(database: Database) -> None:
    """The provider speaks of its older life; the item is over, the route is not."""
    async with world(database) as here:
        here.receiver.answers.append(Reply(410, {"stub-dead-since": str(NOW - 1)}))
        end = await here.turn()

    assert (end.state, end.reason) == (State.FAILED, "token_dead_before_registration")
    assert end.verdict == Verdict(Outcome.TOKEN_DEAD, "stub_token_gone", dead_since=NOW - 1)


@pytest.mark.anyio
async def test_a_bad_credential_holds_the_item_without_burning_its_attempts(database: Database) -> None:
    """However long the operator takes, within the wakeup's life."""
    async with world(database) as here:
        for _ in range(POLICY.max_attempts + 3):
            here.receiver.answers.append(Reply(401))
            assert (await here.turn()).state is State.READY
            here.clock.at += CONFIG_PAUSE_MS_LONGEST + CONFIG_HOLD_MS + POLICY.max_backoff_ms
        end = await here.turn()

    assert end.state is State.DONE


@pytest.mark.anyio
async def test_a_missing_provider_holds_the_item_too(database: Database) -> None:
    """A22: the operator took an application away; that is our fault and not the token's."""
    async with world(database, configured=False) as here:
        end = await here.turn()

    assert end == Settled(State.READY, NO_PROVIDER, None)


@pytest.mark.anyio
async def test_the_pause_that_a_provider_asks_for_is_kept(database: Database) -> None:
    """P6: nothing is sent before it is over, and something is after."""
    async with world(database) as here:
        here.receiver.answers.append(Reply(503, {"retry-after": "54"}))
        await here.turn()
        here.clock.at += 53_999
        early = await here.runner.turn()
        here.clock.at += 1
        end = await here.turn()

    assert early.claimed == 0
    assert end.state is State.DONE


@pytest.mark.anyio
async def test_transient_failures_end_with_the_attempts(database: Database) -> None:
    """Five tries, then the dead-letter list with the provider's reason."""
    async with world(database) as here:
        here.receiver.answers.extend([Reply(500)] * POLICY.max_attempts)
        ends = []
        for _ in range(POLICY.max_attempts):
            ends.append(await here.turn())
            here.clock.at += POLICY.max_backoff_ms

    assert [end.state for end in ends] == [State.READY] * 4 + [State.DEAD]
    assert ends[-1].reason == "attempts_exhausted"


@pytest.mark.anyio
async def test_while_a_host_rests_nothing_is_sent_and_no_attempt_is_burned(database: Database) -> None:
    """What the breaker keeps at home is no attempt; the item waits behind its credential's gate."""
    breaker = HostBreaker(lambda: 0.0, BreakerPace(1, 300_000, 300_000))
    async with world(database, breaker=breaker) as here:
        here.receiver.answers.extend([Reply(503)] * 2)
        await here.turn()
        held = []
        for _ in range(3):
            here.clock.at += 60_000
            held.append((await here.runner.turn()).claimed)
        resting = len(here.receiver.heard)
        here.clock.at += 600_000
        await here.turn()
        here.clock.at += 600_000
        await here.turn()

    assert [(end.state, end.reason) for end in here.source.ends] == [
        (State.READY, "stub_unavailable"),
        (State.READY, "origin_rests"),
        (State.READY, "stub_unavailable"),
        (State.DONE, None),
    ]
    assert held == [1, 0, 0]
    assert resting == 1
