"""The far side of the stub provider: a tiny JSON receiver that remembers what it was sent."""

import contextlib
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from heliograph.ambient.clock import SystemClock
from heliograph.lab.certificates import Authority
from heliograph.lab.receiver import (
    Captured,
    Heard,
    Misbehaviour,
    Reaction,
    Receiver,
    Reply,
    Spoiled,
    capture,
)
from heliograph.lab.script import Observe, Script

ANSWERS: Final[Mapping[str, Reaction]] = MappingProxyType(
    {
        "accepted": Reply(201),
        "accepted_degraded": Reply(202),
        "bad_request": Reply(400),
        "unauthorized": Reply(401),
        "forbidden": Reply(403),
        "suspect": Reply(404),
        "gone": Reply(410),
        "too_large": Reply(413),
        "throttled": Reply(429),
        "throttled_app": Reply(429, {"stub-throttles": "app"}),
        "server_error": Reply(500),
        "unavailable": Reply(503),
        "unavailable_20_seconds": Reply(503, {"retry-after": "20"}),
        "teapot": Reply(418),
        "hang": Spoiled(Misbehaviour.HANG),
        "cut": Spoiled(Misbehaviour.CUT),
        "not_http": Spoiled(Misbehaviour.NOT_HTTP),
    }
)
"""Every answer by name: each row of the stub's verdict table, and ways to give none."""


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
        script: What is answered on demand, before that.
        observe: Told of every answer.
    """

    def __init__(self) -> None:
        self.url = ""
        self.wakeups: list[StubWakeup] = []
        self.answers: deque[Reaction] = deque()
        self.heard: list[Heard] = []
        self.script: Script | None = None
        self.observe: Observe | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def start(
        cls, *, authority: Authority | None = None, port: int = 0
    ) -> AsyncIterator["StubReceiver"]:
        """Listen on 127.0.0.1 until the block ends.

        Args:
            authority: Speak TLS with a certificate of this authority.
            port: Where to listen; 0 lets the system choose.
        """
        stub = cls()
        context = None if authority is None else authority.server_context(SystemClock().now())
        async with Receiver.start(stub._react, context, port) as receiver:
            scheme, host = ("http", "127.0.0.1") if context is None else ("https", "localhost")
            stub.url = f"{scheme}://{host}:{receiver.port}/wakeups"
            yield stub

    def times(self) -> Counter[str]:
        """Count the wakeups by delivery id: a device that folds by id shows each once."""
        return Counter(wakeup.delivery_id for wakeup in self.wakeups)

    def _react(self, heard: Heard) -> Reaction:
        capture(Captured("stub", heard, heard.body))
        self.heard.append(heard)
        scripted = None if self.script is None else self.script.reaction("stub", "")
        answer = scripted or (self.answers.popleft() if self.answers else Reply(201))
        taken = len(self.wakeups)
        if isinstance(answer, Reply) and answer.status // 100 == 2:  # noqa: PLR2004 - the success class
            self.wakeups.append(
                StubWakeup(
                    delivery_id=heard.headers.get("stub-delivery-id", ""),
                    collapse_key=heard.headers.get("stub-collapse-key"),
                    members=json.loads(heard.body),
                )
            )
        if self.observe is not None:
            message = self.wakeups[-1].members if len(self.wakeups) > taken else None
            self.observe("", answer, message, by_script=scripted is not None)
        return answer
