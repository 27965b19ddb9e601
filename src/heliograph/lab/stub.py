"""The far side of the stub provider: a tiny JSON receiver that remembers what it was sent."""

import contextlib
import json
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from heliograph.lab.receiver import Captured, Heard, Reaction, Receiver, Reply, capture


@dataclass(frozen=True, slots=True)
class StubWakeup:
    """One wakeup as the receiver got it."""

    delivery_id: str
    collapse_key: str | None
    members: dict[str, Any]


class StubReceiver:
    """A receiver on loopback: ``async with StubReceiver.start() as receiver``.

    Attributes:
        url: What to put into the stub's settings.
        wakeups: Everything that was accepted, in order, repeats included.
        answers: What to answer next; when it is empty, 201.
    """

    def __init__(self) -> None:
        self.url = ""
        self.wakeups: list[StubWakeup] = []
        self.answers: deque[Reaction] = deque()
        self.heard: list[Heard] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def start(cls) -> AsyncIterator["StubReceiver"]:
        """Listen until the block ends."""
        stub = cls()
        async with Receiver.start(stub._react) as receiver:
            stub.url = f"http://127.0.0.1:{receiver.port}/wakeups"
            yield stub

    def times(self) -> Counter[str]:
        """Count the wakeups by delivery id: a device that folds by id shows each once."""
        return Counter(wakeup.delivery_id for wakeup in self.wakeups)

    def _react(self, heard: Heard) -> Reaction:
        capture(Captured("stub", heard, heard.body))
        self.heard.append(heard)
        answer = self.answers.popleft() if self.answers else Reply(201)
        if isinstance(answer, Reply) and answer.status // 100 == 2:  # noqa: PLR2004 - the success class
            self.wakeups.append(
                StubWakeup(
                    delivery_id=heard.headers.get("stub-delivery-id", ""),
                    collapse_key=heard.headers.get("stub-collapse-key"),
                    members=json.loads(heard.body),
                )
            )
        return answer
