"""The provider of a run: hears every wakeup, outlives every kill, and is sometimes out of sorts."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from random import Random
from time import monotonic
from typing import Final

from heliograph.lab.receiver import Captured, Heard, Misbehaviour, Reaction, Receiver, Reply, Spoiled, capture
from tests.crash.history import Ask

SLOWEST_MS: Final = 300
"""How long an answer takes at most; most take far less. Long enough for kills to come in the middle of an
attempt, and well within the time that one may take."""

FAILING_SHARE: Final = 0.1
"""The part of the answers that fail while the provider is out of sorts; half of them by cutting the line."""

AWAY: Final = Reply(503, {"retry-after": "2"})
"""What the others say: come back so much later that whatever was in flight at a revoke has long landed."""


FAILURES: Final[tuple[Reaction, ...]] = (AWAY, Spoiled(Misbehaviour.CUT))


def now_ms() -> float:
    """Return the one clock of a run, in milliseconds."""
    return monotonic() * 1_000


class RecordingProvider:
    """A stub receiver that notes what it hears, and when.

    Attributes:
        url: What to put into the stub's settings.
        asks: What it heard; whoever reads it empties it.
        moody: Whether some answers fail.
        heard: Told of every request, before it is answered.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.heard: Callable[[], None] | None = None
        self.url = ""
        self.asks: list[Ask] = []
        self.moody = False

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls, random: Random) -> AsyncIterator["RecordingProvider"]:
        provider = cls(random)
        async with Receiver.start(provider._react) as receiver:
            provider.url = f"http://127.0.0.1:{receiver.port}/wakeups"
            yield provider

    def _react(self, heard: Heard) -> Reaction:
        at = now_ms()
        capture(Captured("stub", heard, heard.body))
        if self.heard is not None:
            self.heard()
        members = json.loads(heard.body)
        answer: Reaction = Reply(201, after_ms=int(SLOWEST_MS * self._random.random() ** 2))
        if self.moody and self._random.random() < FAILING_SHARE:
            answer = self._random.choice(FAILURES)
        self.asks.append(
            Ask(
                at=at,
                provider_id=heard.headers["stub-delivery-id"],
                route=heard.headers["stub-route"],
                marker=members["push_hint_l10n_key"],
                target=members["push_target_id"],
                status=answer.status if isinstance(answer, Reply) else None,
            )
        )
        return answer
