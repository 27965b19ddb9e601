"""One round after another: load, kills, rest, and everything that must then hold."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from typing import Final

from tests.crash import oracle, rows
from tests.crash.history import History
from tests.crash.load import TENANT_OF, Load, Size, Told
from tests.crash.nursery import Nursery
from tests.crash.replaying import Replayer
from tests.crash.rows import Snapshot
from tests.crash.station import Postman
from tests.crash.world import Process, Stuck, World, life
from tests.postgres_server import PostgresServer

ROUNDS_OF_A_LIFE: Final = 20
"""After so many rounds the database begins anew: state builds up, and schema and keys are made often."""

RESEAL_SHARE: Final = 0.12
SERVER_SHARE: Final = 0.12
MOODY_SHARE: Final = 0.3
"""Parts of the rounds in which the master key is rotated, the database server crashes, the provider fails."""

STRIKE_SHARE: Final = 0.5
"""The part of the rounds in which a process is killed right after an answer, and the part in which one is
killed in the middle of an attempt."""

KEEP_UP_S: Final = 0.5
"""How soon a process that ended by itself is started again."""

LOAD_S: Final = 0.8
"""About how long the load of a round takes: kills at an instant fall within it."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a round.

    Attributes:
        kind: Which database.
        number: The round, from 1.
        killed: What was killed, when.
        counts: Of outcomes and more.
        late_ms: The longest that a request came behind the confirmed end of its route.
        seconds: How long it took.
        violations: Sentences; none when all is well.
    """

    kind: str
    number: int
    killed: tuple[str, ...]
    counts: Counter[str]
    late_ms: float
    seconds: float
    violations: tuple[str, ...]


class Killer:
    """Kills as a round's seed has it."""

    def __init__(self, world: World, random: Random) -> None:
        self._world = world
        self._random = random
        self._answers = 0
        self._asks = 0
        self._strike_at = 0
        self._strike_at_ask = 0
        self._struck: set[asyncio.Task[None]] = set()

    def prepare(self) -> None:
        """Draw at which answer the process that gives it is killed, and in the middle of which attempt."""
        if self._random.random() < STRIKE_SHARE:
            self._strike_at = self._random.randint(1, 40)
        if self._random.random() < STRIKE_SHARE:
            self._strike_at_ask = self._random.randint(1, 25)

    def answered(self, door: int) -> None:
        """Strike right behind an answer, before anybody has read it."""
        self._answers += 1
        if self._answers == self._strike_at:
            (process,) = [each for each in self._world.processes if each.port == door]
            self._strike(process, "right after an answer")

    def heard(self) -> None:
        """Strike while the provider has a request and has not answered it."""
        self._asks += 1
        if self._asks == self._strike_at_ask:
            (process,) = [each for each in self._world.processes if each.delivers]
            self._strike(process, "in the middle of an attempt")

    def _strike(self, process: Process, when: str) -> None:
        self._world.strike(process, when)
        self._struck.add(asyncio.create_task(self._revive(process)))

    async def strike(self) -> None:
        """Kill at instants within the load, and sometimes again while what was killed starts."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._random.randint(1, 2)):
                victim = self._random.choice(self._world.processes)
                tasks.create_task(self._at(self._random.uniform(0.02, LOAD_S), victim))
            if self._world.server is not None and self._random.random() < SERVER_SHARE:
                tasks.create_task(self._server_at(self._random.uniform(0.1, LOAD_S)))

    async def _at(self, seconds: float, victim: Process) -> None:
        await asyncio.sleep(seconds)
        await self._world.kill(victim, "at an instant")
        await self._revive(victim)

    async def _revive(self, victim: Process) -> None:
        """Start it again, at once or a little later, and perhaps kill it in the middle of that."""
        await asyncio.sleep(self._random.uniform(0, 0.1))
        await self._world.start(victim)
        if self._random.random() < 0.35:
            await asyncio.sleep(self._random.uniform(0, 0.35))
            await self._world.kill(victim, "while it started")
            await self._world.start(victim)

    async def _server_at(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._world.kill_server()

    async def rotate(self) -> None:
        """Rotate the master key with everything down, and kill while the routes are sealed anew."""
        await self._world.kill_all("before the rotation")
        said = await self._world.command("keys", "rotate", "master")
        assert "is at version" in said, said
        for process in self._world.processes:
            await self._world.start(process)
        await asyncio.sleep(self._random.uniform(0.05, 0.5))
        await self._world.kill(self._random.choice(self._world.processes), "while it sealed anew")

    def stop_striking(self) -> None:
        """Let replays be answered in peace."""
        self._strike_at = self._strike_at_ask = 0

    async def done(self) -> None:
        """Wait for what an answer set off."""
        await asyncio.gather(*self._struck)


@dataclass
class Life:
    """A database with what was told to it."""

    world: World
    told: Told = field(default_factory=Told)
    before: Snapshot | None = None


async def play(at: Life, number: int, random: Random, size: Size) -> Report:
    """Play one round to its end.

    Args:
        at: Where.
        number: Which round it is.
        random: Draws everything that the harness decides.
        size: How much is done.
    """
    began = monotonic()
    world, history = at.world, at.world.history
    killer = Killer(world, random)
    violations: list[str] = []
    async with Postman(world.doors, random, killer.answered).open() as postman:
        if number > 1 and random.random() < RESEAL_SHARE:
            await killer.rotate()
        world.provider.moody = random.random() < MOODY_SHARE
        killer.prepare()
        world.provider.heard = killer.heard
        over = asyncio.Event()
        keeping = asyncio.create_task(_keep_up(world, over))
        await asyncio.gather(Load(world, at.told, postman, random, size).run(), killer.strike())
        killer.stop_striking()
        await killer.done()
        over.set()
        await keeping
        await world.up()
        try:
            await world.come_to_rest()
        except Stuck as stuck:
            violations.append(f"accepted_is_delivered: {stuck}")
        await Replayer(history, at.told, postman, random).run()
    history.asks += world.provider.asks
    world.provider.asks.clear()
    world.listen()
    violations += oracle.broken(history)
    snapshot = await asyncio.to_thread(world.rows.snapshot)
    violations += _broken_rows(at, snapshot)
    at.before = snapshot
    report = Report(
        kind=world.kind,
        number=number,
        killed=tuple(each.what for each in history.disruptions if each.what),
        counts=_counted(history),
        late_ms=oracle.latest_after_an_end(history),
        seconds=monotonic() - began,
        violations=tuple(violations),
    )
    history.next_round()
    return report


async def _keep_up(world: World, over: asyncio.Event) -> None:
    """Start what fell over a database that was away, as whoever supervises processes would."""
    while not over.is_set():
        for process in world.processes:
            await world.start(process)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), KEEP_UP_S)


def _broken_rows(at: Life, snapshot: Snapshot) -> Iterator[str]:
    handoffs = at.world.history.handoffs
    for check, found in (
        (
            "items_and_details_belong_together",
            rows.items_and_details_belong_together(snapshot, at.told.accepted),
        ),
        ("answers_are_the_rows", rows.answers_are_the_rows(snapshot, at.told.answers)),
        ("receipts_are_the_rows", rows.receipts_are_the_rows(snapshot, handoffs, TENANT_OF, at.before)),
    ):
        yield from (f"{check}: {what}" for what in found)


def _counted(history: History) -> Counter[str]:
    counts = oracle.counted(history)
    taken = [ask.provider_id for ask in history.asks if ask.taken]
    counts["delivered"] = len(set(taken))
    counts["repeated"] = len(taken) - len(set(taken))
    counts["replayed"] = len(history.replays)
    counts["slow"] = history.slow
    counts["killed"] = sum(bool(each.what) for each in history.disruptions)
    return counts


async def run(
    kind: str,
    rounds: int,
    seed: int,
    size: Size,
    *,
    folder: Path,
    nursery: Nursery,
    server: PostgresServer | None,
    tell: Callable[[Report], None],
) -> None:
    """Play rounds on one kind of database until they are over or one of them finds something.

    Args:
        kind: ``sqlite`` or ``postgres``.
        rounds: How many.
        seed: What everything is drawn from.
        size: How much each does.
        folder: An empty folder.
        nursery: Where the processes come from.
        server: The database server; None for SQLite.
        tell: Told of each round.
    """
    number = 0
    while number < rounds:
        random = Random(f"{seed} {kind} life {number}")
        async with life(kind, folder / f"crash-{kind}-{number}", nursery, server, random) as world:
            at = Life(world)
            for _ in range(min(ROUNDS_OF_A_LIFE, rounds - number)):
                number += 1
                report = await play(at, number, Random(f"{seed} {kind} {number}"), size)
                tell(report)
                if report.violations:
                    return
