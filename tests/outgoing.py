"""A worker without a network: scripted providers, a source of plain references, several processes at will."""

import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from heliograph.ambient.telemetry import Level, Telemetry
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.egress import EgressGuard, EgressRules
from heliograph.delivery.exchange import Exchange, Moment
from heliograph.delivery.gates import KnownGates
from heliograph.delivery.handler import DeliveryHandler
from heliograph.delivery.hygiene.decide import Freeze
from heliograph.delivery.hygiene.health import Health
from heliograph.delivery.hygiene.service import Watch
from heliograph.delivery.model import Delivery, Outcome, Route, Verdict, Wakeup
from heliograph.delivery.provider import Provider
from heliograph.delivery.resolver import SystemResolver
from heliograph.doorbell.local import LocalDoorbell
from heliograph.queue import store
from heliograph.queue.gate.decide import Gate
from heliograph.queue.machine import Change, Policy, State
from heliograph.queue.model import Claim, NewItem
from heliograph.queue.pace import Pace
from heliograph.queue.runner import Runner
from heliograph.storage.database import Database, Tx
from heliograph.wire.instant import Instant
from heliograph.wire.secret import Secret
from tests import deliveries
from tests.deliveries import NOW
from tests.work import SeededEntropy, ToldClock

POLICY = Policy(max_attempts=2, first_backoff_ms=1, max_backoff_ms=1)
LIFE_MS = 6 * 3_600_000
ACCEPTED = Verdict(Outcome.ACCEPTED, "ok")


class Scripted:
    """A provider without a network: it answers what the script says, and then accepts."""

    name = "scripted"

    def __init__(self, credential: str, script: Sequence[Verdict] = (), always: Verdict = ACCEPTED) -> None:
        self.credential = credential
        self.script = deque(script)
        self.always = always
        self.asked: list[tuple[Instant, str]] = []

    def check_push_key(self, push_key: Secret) -> None:
        pass

    def fits(self, wakeup: Wakeup) -> bool:
        return True

    def exchange(self, delivery: Delivery, moment: Moment) -> Exchange:
        self.asked.append((moment.now, delivery.route.push_key.reveal()))
        yield from ()
        return self.script.popleft() if self.script else self.always


class ByHost(Scripted):
    """One whose credential each host judges for itself; a push key is ``host/anything``."""

    def scope(self, delivery: Delivery) -> str:
        return delivery.route.push_key.reveal().partition("/")[0]


class References:
    """A source whose references are ``credential host/key``."""

    kind = "k"

    def __init__(self) -> None:
        self.ends: list[tuple[str, State, int, str | None]] = []

    def load(self, tx: Tx, claims: Sequence[Claim]) -> Sequence[str]:
        return [claim.reference for claim in claims]

    def open(self, loaded: str) -> Delivery | None:
        credential, push_key = loaded.split(" ")
        return replace(
            deliveries.delivery(expires_at=NOW + LIFE_MS),
            route=Route("scripted", Secret(push_key), app_id=credential),
        )

    def registered_at(self, loaded: str) -> Instant:
        return NOW

    def settled(self, tx: Tx, claim: Claim, change: Change, verdict: Verdict | None) -> None:
        tx.after_commit(
            lambda: self.ends.append((claim.reference, change.state, change.attempt, change.reason))
        )


@dataclass(slots=True)
class Process:
    """A worker process: what it has in memory is its own."""

    runner: Runner
    source: References
    watch: Watch
    health: Health
    froze: list[Freeze] = field(default_factory=list)
    turned: list[tuple[str, Gate | None]] = field(default_factory=list)


@dataclass(slots=True)
class World:
    database: Database
    clock: ToldClock
    providers: dict[str, Provider]
    carrier: Carrier
    number: int = 0
    processes: int = 0

    def process(self, *, at_once: int = 10) -> Process:
        source, turned, froze = References(), list[tuple[str, Gate | None]](), list[Freeze]()
        gates, health = KnownGates(), Health()
        handler = DeliveryHandler(
            source,
            provider_of=lambda route: self.providers.get(route.app_id or ""),
            carrier=self.carrier,
            clock=self.clock,
            entropy=SeededEntropy(),
            policy=POLICY,
            gates=gates,
            turned=lambda name, gate: turned.append((name, gate)),
            health=health,
            froze=froze.append,
        )
        runner = Runner(
            self.database,
            self.clock,
            SeededEntropy(),
            LocalDoorbell(),
            [handler],
            telemetry=Telemetry(Level.ERROR),
            pace=Pace(concurrency=at_once, batch=at_once),
        )
        self.processes += 1
        watch = Watch(
            self.database,
            self.clock,
            gates=gates,
            health=health,
            worker=f"process-{self.processes}",
            froze=froze.append,
        )
        return Process(runner, source, watch, health, froze, turned)

    async def enqueue(
        self, credential: str, count: int = 1, key: str = "a/b", gate: str | None = None, lane: str = "t"
    ) -> None:
        new = [
            NewItem(
                f"item-{self.number + number:06}",
                "k",
                lane,
                f"{credential} {key}",
                self.clock.at,
                expires_at=NOW + LIFE_MS,
                gate=gate or credential,
            )
            for number in range(count)
        ]
        self.number += count
        await self.database.transact(store.enqueue, new, self.clock.at)


@contextlib.asynccontextmanager
async def world(
    database: Database, *providers: Provider, clock: ToldClock | None = None, ca_pem: bytes | None = None
) -> AsyncIterator[World]:
    clock = clock or ToldClock(NOW)
    guard = EgressGuard(EgressRules(), SystemResolver())
    carrier = Carrier(clock=clock, guard=guard, extra_ca_pem=ca_pem)
    try:
        yield World(database, clock, {each.credential: each for each in providers}, carrier)
    finally:
        await carrier.close()
