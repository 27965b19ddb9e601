"""What Stations do in a round: handoffs and notifies, drawn from a seed, sent at the same time."""

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from heliograph.lab.station import SignedRequest
from heliograph.providers.stub.exchange import stub_route
from heliograph.wire.secret import Secret
from tests.arkret import make
from tests.crash.history import Handoff, Notify, Timeline
from tests.crash.oracle import outcomes_of
from tests.crash.provider import now_ms
from tests.crash.station import STATIONS, Postman, TrustedPen
from tests.crash.world import World
from tests.secrets import planted

TARGETS: Final = tuple("ak:pseudonym:push:" + letter * 42 + "A" for letter in "BCDE")
DEVICES: Final = tuple(f"ak:device:0192f3a1-4c2b-7d5e-9f10-2a3b4c5d6e{number:02x}" for number in range(3))
NOBODYS_TARGET: Final = "ak:pseudonym:push:" + "Z" * 42 + "A"
KINDS: Final = ("message", "mention", "reminder")

STATION_OF: Final[Mapping[str, TrustedPen]] = {
    target: STATIONS[number % len(STATIONS)] for number, target in enumerate((*TARGETS, NOBODYS_TARGET))
}
TENANT_OF: Final = {target: station.pen.service_id for target, station in STATION_OF.items()}


HANDOFF_PAUSE_S: Final = 0.8
"""The longest pause before a handoff: most come while wakeups of their device wait or are being retried."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done in a round.

    Attributes:
        writers: Notifies in progress at once.
        each: Notifies of each writer.
        handoffs_max: Handoffs of each device at most.
    """

    writers: int
    each: int
    handoffs_max: int


FULL: Final = Size(writers=8, each=4, handoffs_max=3)
QUICK: Final = Size(writers=4, each=4, handoffs_max=1)


@dataclass
class Told:
    """What was sent in this life, to be sent again.

    Attributes:
        handoffs: The body of every handoff that was taken, by (registration, state).
        notifies: (target, body) by key.
        answers: The first answer to every key, by (tenant, key).
        accepted: Outcomes ``accepted`` so far.
        numbers: Makes every registration, key and marker a new one.
    """

    handoffs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    notifies: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    answers: dict[tuple[str, str], bytes] = field(default_factory=dict)
    accepted: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))


class Load:
    """The Stations of one round."""

    def __init__(self, world: World, told: Told, postman: Postman, random: Random, size: Size) -> None:
        self._world = world
        self._told = told
        self._postman = postman
        self._random = random
        self._size = size
        self._contents: list[tuple[str, dict[str, Any]]] = []

    async def run(self) -> None:
        """Do all of it, and return when the last answer is there."""
        async with asyncio.TaskGroup() as tasks:
            for target, device in itertools.product(TARGETS, DEVICES):
                tasks.create_task(self._hand_off((target, device), Random(self._random.random())))
            for _ in range(self._size.writers):
                tasks.create_task(self._write(Random(self._random.random())))

    # ── handoffs ─────────────────────────────────────────────────────────────────────────────────

    async def _hand_off(self, address: tuple[str, str], random: Random) -> None:
        """Change one device's registration a few times, one after another."""
        mine = [each for each in self._world.history.handoffs if each.address == address]
        for _ in range(random.randint(0 if mine else 1, self._size.handoffs_max)):
            await asyncio.sleep(random.uniform(0, HANDOFF_PAUSE_S) if mine else 0)
            current = Timeline(mine).current(address)
            handoff = await self._apply(address, *self._next_handoff(address, current, mine, random))
            mine.append(handoff)

    def _next_handoff(
        self, address: tuple[str, str], current: str | None, mine: list[Handoff], random: Random
    ) -> tuple[dict[str, Any], str | None, bool]:
        """Draw a handoff: its body, which registration it ends, and whether it must be taken."""
        names = {"push_target_id": address[0], "device_id": address[1]}
        fresh = f"registration-{next(self._told.numbers):010d}"
        ended = [each.registration for each in mine if each.takes and each.registration != current]
        late = [each for each in ended if (each, "active") in self._told.handoffs]
        new = make.active_body(
            registration_id=fresh, push_key=f"{planted('crash-push-key')}.{fresh}", **names
        )
        match random.randrange(10):
            case 0 if late:  # an active that was delayed on the way
                return self._told.handoffs[random.choice(late), "active"], None, False
            case 1 if ended:  # what has ended is ended once more
                gone = random.choice(ended)
                return make.revoked_body(registration_id=gone, **names), gone, True
            case 2:  # a predecessor that is none
                return new | {"supersedes_registration_id": "registration-that-is-not-there"}, None, False
            case 3 if current:  # the device has one already, and it is not named
                return new, None, False
            case 4:  # an application that nobody configured
                return new | {"app_id": "com.example.unknown"}, None, False
            case 5 | 6 | 7 if current:
                return make.revoked_body(registration_id=current, **names), current, True
            case _:
                return new | ({"supersedes_registration_id": current} if current else {}), current, True

    async def _apply(
        self, address: tuple[str, str], body: dict[str, Any], ends: str | None, takes: bool
    ) -> Handoff:
        pen = STATION_OF[address[0]].pen
        begun_at = now_ms()
        status, answer = await self._postman.ask(lambda now, life: pen.handoff(body, now, life))
        key = body.get("push_key")
        handoff = Handoff(
            registration=body["registration_id"],
            address=address,
            state=body["state"],
            route=None if key is None else stub_route(Secret(key)),
            ends=ends,
            takes=takes,
            begun_at=begun_at,
            answered_at=now_ms(),
            status=status,
            answer=answer,
        )
        self._world.history.handoffs.append(handoff)
        if takes and status == 200:
            self._told.handoffs[handoff.registration, handoff.state] = body
        return handoff

    # ── notifies ─────────────────────────────────────────────────────────────────────────────────

    async def _write(self, random: Random) -> None:
        """Send notifies, one after another."""
        for _ in range(self._size.each):
            await asyncio.sleep(random.uniform(0, 0.1))
            await self._notify(random)

    def _content(self, random: Random) -> tuple[str, dict[str, Any]]:
        """Draw what to notify: something new, or the same as shortly before."""
        if self._contents and random.random() < 0.3:
            return random.choice(self._contents[-4:])
        target = NOBODYS_TARGET if random.random() < 0.04 else random.choice(TARGETS)
        marker = f"marker.{next(self._told.numbers)}"
        changes: dict[str, Any] = {"push_hint": "l10n_key", "push_hint_l10n_key": marker}
        if random.random() < 0.2:
            changes["counts"] = {"unread_increment": random.randint(1, 9)}
        body = make.notify_body(
            *random.sample(DEVICES, random.randint(1, len(DEVICES))),
            push_target_id=target,
            wakeup_kind=random.choice(KINDS),
            **changes,
        )
        self._contents.append((target, body))
        return target, body

    async def _notify(self, random: Random) -> None:
        target, body = self._content(random)
        key = f"key-{next(self._told.numbers)}"
        pen = STATION_OF[target].pen
        begun_at = now_ms()

        def sign(now: int, life: int) -> SignedRequest:
            return pen.notify(body, key, now, life)

        doors = self._world.doors if random.random() < 0.2 else [None]
        asking = [asyncio.create_task(self._postman.ask(sign, door)) for door in (*doors, *doors)[:2]]
        first = await next(asyncio.as_completed(asking)) if doors != [None] else await asking[0]
        answered_at = now_ms()
        rest = await asyncio.gather(*asking)
        status, answer = first
        note = body["notification"]
        notify = Notify(
            key=key,
            marker=note["push_hint_l10n_key"],
            folds="counts" not in note,
            target=target,
            devices=tuple(each["device_id"] for each in note["devices"]),
            begun_at=begun_at,
            answered_at=answered_at,
            status=status,
            answers=tuple(each[1] for each in rest),
            outcomes=outcomes_of(answer) if status == 200 else {},
        )
        self._world.history.notifies.append(notify)
        if status == 200:
            self._told.notifies[key] = target, body
            self._told.answers[TENANT_OF[target], key] = answer
            self._told.accepted += sum(word == "accepted" for word, _ in notify.outcomes.values())
