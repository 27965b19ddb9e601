"""Sends again what was answered, and holds the answers side by side."""

import asyncio
from random import Random
from typing import Any, Final

from tests.crash.history import Handoff, History, Replay, Timeline
from tests.crash.load import STATION_OF, TENANT_OF, Told
from tests.crash.station import Postman, Sign

OLDER: Final = 12
"""How many keys of earlier rounds are tried again in each."""

AT_ONCE: Final = 8
"""Replays in progress at once."""


class Replayer:
    """Replays what a life was told."""

    def __init__(self, history: History, told: Told, postman: Postman, random: Random) -> None:
        self._history = history
        self._told = told
        self._postman = postman
        self._random = random
        self._room = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Send again what this round was told, and some of what earlier ones were."""
        fresh = [notify.key for notify in self._history.notifies if notify.key in self._told.notifies]
        older = sorted(self._told.notifies.keys() - set(fresh))
        keys = fresh + self._random.sample(older, min(OLDER, len(older)))
        handoffs = self._history.handoffs[-len(fresh) or None :]
        older_handoffs = self._history.handoffs[: -len(handoffs)]
        handoffs += self._random.sample(older_handoffs, min(OLDER, len(older_handoffs)))
        timeline = Timeline(self._history.handoffs)
        async with asyncio.TaskGroup() as tasks:
            for key in keys:
                tasks.create_task(self._notify(key))
            for number, handoff in enumerate(handoffs):
                tasks.create_task(self._handoff(handoff, timeline, number))

    async def _notify(self, key: str) -> None:
        """The same body gets the same octets; a body that differs by a member gets nothing."""
        target, body = self._told.notifies[key]
        pen = STATION_OF[target].pen
        await self._send(
            lambda now, life: pen.notify(body, key, now, life),
            f"the same notify under {key}",
            200,
            answer=self._told.answers[TENANT_OF[target], key],
        )
        other = {"notification": body["notification"] | {"push_hint_l10n_key": "of.another.body"}}
        await self._send(
            lambda now, life: pen.notify(other, key, now, life),
            f"another body under {key}",
            409,
            problem="duplicate_conflict",
        )

    async def _handoff(self, handoff: Handoff, timeline: Timeline, number: int) -> None:
        """What is current or revoked keeps its receipt; an active that has ended is refused."""
        body = self._told.handoffs.get((handoff.registration, handoff.state))
        if body is None:
            return
        pen = STATION_OF[handoff.address[0]].pen

        def sign(now: int, life: int) -> Any:
            return pen.handoff(body, now, life)

        current = timeline.current(handoff.address) == handoff.registration
        if handoff.state == "revoked" or current:
            if not handoff.takes:
                return
            await self._send(
                sign, f"the same handoff {handoff.registration} {number}", 200, answer=handoff.answer
            )
        else:
            await self._send(sign, f"a late {handoff.registration}", 409, problem="duplicate_conflict")

    async def _send(
        self, sign: Sign, what: str, status: int, *, answer: bytes | None = None, problem: str | None = None
    ) -> None:
        async with self._room:
            got_status, got_answer = await self._postman.ask(sign)
        self._history.replays.append(Replay(what, status, answer, problem, got_status, got_answer))
