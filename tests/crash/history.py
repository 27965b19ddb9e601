"""What a harness knows of a run: what was asked and answered, what the provider heard, what was killed.

Values only. Times are the harness's own monotonic clock in milliseconds: client and provider live in one
event loop, so any two of them can be compared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

ACCEPTED: Final = "accepted"
DUPLICATE: Final = "duplicate"
REJECTED: Final = "rejected"


@dataclass(frozen=True, slots=True)
class Handoff:
    """One ``registrations:apply``, with all the retries that its answer took.

    Attributes:
        registration: The registration id.
        address: (push target, device).
        state: ``active`` or ``revoked``.
        route: What the provider would call its route; None for a revoke.
        ends: The registration that it ends when it is taken: the superseded or the revoked one.
        takes: Whether it must be taken; False for one that must be refused.
        begun_at: When its first attempt was sent.
        answered_at: When its definite answer was received.
        status: Of that answer.
        answer: Its octets.
    """

    registration: str
    address: tuple[str, str]
    state: str
    route: str | None
    ends: str | None
    takes: bool
    begun_at: float
    answered_at: float
    status: int
    answer: bytes


@dataclass(frozen=True, slots=True)
class Notify:
    """One notify under one key, with all the retries that its answers took.

    Attributes:
        key: Its Idempotency-Key.
        marker: What tells its wakeups apart at the provider; equal contents share one.
        folds: Whether it may join an equal one that waits.
        target: The push target.
        devices: As they were asked for.
        begun_at: When its first attempt was sent.
        answered_at: When its first definite answer was received.
        status: Of the definite answers.
        answers: Every definite answer; more than one where the client asked at two doors at once.
        outcomes: (status, reason) by device, from the first of them; empty for a refusal.
    """

    key: str
    marker: str
    folds: bool
    target: str
    devices: tuple[str, ...]
    begun_at: float
    answered_at: float
    status: int
    answers: tuple[bytes, ...]
    outcomes: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Ask:
    """One request that the provider heard.

    Attributes:
        at: When it arrived.
        provider_id: The id that folds repeats.
        route: Which route it took.
        marker: What it says.
        target: Whom it says it for.
        status: What the provider answers; None where it cuts the connection.
    """

    at: float
    provider_id: str
    route: str
    marker: str
    target: str
    status: int | None

    @property
    def taken(self) -> bool:
        """The provider took it."""
        return self.status is not None and self.status // 100 == 2


@dataclass(frozen=True, slots=True)
class Disruption:
    """A kill.

    Attributes:
        at: When.
        what: What was killed.
        delivers: Whether deliveries could have been in progress there.
    """

    at: float
    what: str
    delivers: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """A request sent again, or its key under another body, once everything had come to rest.

    Attributes:
        what: For people.
        status: The status it must have.
        answer: The octets it must have; None where only the problem's type counts.
        problem: The last word of the problem's type, where it must be refused.
        got_status: The status it had.
        got_answer: The octets it had.
    """

    what: str
    status: int
    answer: bytes | None
    problem: str | None
    got_status: int
    got_answer: bytes


@dataclass(slots=True)
class History:
    """All of it.

    Attributes:
        lease_ms: How long the Gateway's leases are.
        handoffs: Of this life of the database, in the order of their answers.
        notifies: Of this round.
        asks: Of this round, in the order of their arrival.
        disruptions: Of this round.
        replays: Of this round.
        settled: Provider ids of rounds that had come to rest.
        slow: How many times in this round the program itself said that an attempt or its settlement took too
            long for its lease, so that it begins anew.
        bugs: What it said of bugs in this round.
    """

    lease_ms: int
    handoffs: list[Handoff] = field(default_factory=list)
    notifies: list[Notify] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    disruptions: list[Disruption] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    slow: int = 0
    bugs: list[str] = field(default_factory=list)

    def next_round(self) -> None:
        """Keep what later rounds build on, and forget the rest."""
        self.settled |= {ask.provider_id for ask in self.asks}
        for each in (self.notifies, self.asks, self.disruptions, self.replays, self.bugs):
            each.clear()
        self.slow = 0


@dataclass(frozen=True, slots=True)
class Change:
    """What a handoff made current at its address, somewhere between its first attempt and its answer."""

    begun_at: float
    answered_at: float
    current: str | None


class Timeline:
    """What may be current at each address, and until when each registration may be used."""

    def __init__(self, handoffs: Iterable[Handoff]) -> None:
        self._changes: dict[tuple[str, str], list[Change]] = {}
        self.by_route: dict[str, Handoff] = {}
        self.route_of: dict[str, str] = {}
        self.ended_by: dict[str, Handoff] = {}
        for handoff in sorted(handoffs, key=lambda each: each.begun_at):
            if handoff.takes and handoff.status == 200:
                self._take(handoff)

    def _take(self, handoff: Handoff) -> None:
        changes = self._changes.setdefault(handoff.address, [])
        current = changes[-1].current if changes else None
        if handoff.route is not None:
            self.by_route[handoff.route] = handoff
            self.route_of[handoff.registration] = handoff.route
            current = handoff.registration
        if handoff.ends is not None:
            self.ended_by.setdefault(handoff.ends, handoff)
            current = None if current == handoff.ends else current
        changes.append(Change(handoff.begun_at, handoff.answered_at, current))

    def current(self, address: tuple[str, str]) -> str | None:
        """Return what is current once everything has been answered."""
        changes = self._changes.get(address)
        return changes[-1].current if changes else None

    def possible(self, address: tuple[str, str], since: float, until: float) -> set[str | None]:
        """Return every registration that may have been current at some time, and None if perhaps none was.

        Within the time of a handoff both what it found and what it left are possible. The handoffs of one
        address follow one another.
        """
        found: set[str | None] = set()
        current: str | None = None
        for change in self._changes.get(address, ()):
            if change.begun_at > until:
                break
            if change.answered_at >= since:
                found.add(current)
            current = change.current
        return found | {current}

    def target_known_by(self, target: str, at: float) -> bool:
        """Tell whether the target had certainly been installed before an instant."""
        return any(
            address[0] == target and change.answered_at < at
            for address, changes in self._changes.items()
            for change in changes
        )
