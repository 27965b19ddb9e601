"""The breaker of an origin: nothing is sent to a host that does not answer, until one ask has tried it.

A host that is away costs a whole timeout for each ask, and a place that something else could use. So once
most of its last answers were failures the breaker opens: asks stay at home. When the pause is over one ask
tries (it is half open); if that works the breaker closes, otherwise the next pause is twice as long.

It lives in one process and forgets with it. What a process learns here it tells the gate of the credential,
which all processes see. Nothing here does I/O; time and chance are arguments.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias, assert_never, final

from heliograph.delivery.exchange import Answer, Loss, Lost
from heliograph.delivery.model import ProviderName
from heliograph.wire.instant import Instant

Origin: TypeAlias = str

REMEMBERED: Final = 20
"""So many last ends decide: enough that chance opens nothing, and few enough to notice an outage at once."""

FAILURES_OF_REMEMBERED: Final = 0.5
"""The part of them that must be failures. With half of its asks lost a host is better left alone."""

STALE_MS: Final = 60_000
"""Ends that are older say nothing of now: a host that is asked twice an hour is not judged by last week."""

TRIAL_MS: Final = 60_000
"""How long the ask that tries may take to tell its end; then another may try. Longer than any ask lasts."""

ORIGINS_KEPT_MAX: Final = 1_024
"""Origins of which something is remembered. Strangers can name some; the one not heard for longest goes."""

PAUSE_MS_MAX: Final = 86_400_000

SPREAD: Final = 0.1
"""By up to this part of it a pause is longer, so that processes do not try together."""

_SERVER_ERROR: Final = 500


class BreakerState(StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerPace:
    """How patient breakers are.

    Attributes:
        failures_min: So many failures among the last ends, at least, open a breaker.
        pause_ms_first: The first pause; it doubles with each trial that fails.
        pause_ms_longest: Where the doubling stops.
    """

    failures_min: int = 10
    pause_ms_first: int = 30_000
    pause_ms_longest: int = 900_000

    def __post_init__(self) -> None:
        if not 1 <= self.failures_min <= REMEMBERED:
            raise ValueError(f"failures_min must be from 1 to {REMEMBERED}")
        if not 1 <= self.pause_ms_first <= self.pause_ms_longest <= PAUSE_MS_MAX:
            raise ValueError(f"pauses must be from 1 ms to {PAUSE_MS_MAX} ms, the first the shortest")


@dataclass(slots=True)
class _Host:
    """What is remembered of one origin. The breaker is open or half open while ``step`` is not 0."""

    provider: ProviderName
    ends: deque[tuple[Instant, bool]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    step: int = 0
    until: Instant = 0
    trying: bool = False


@final
class HostBreaker:
    """The breakers of all origins that a process asks; a ``carrier.Breaker``.

    Args:
        fraction: Draws random numbers in [0, 1).
        pace: How patient they are.
        changed: Told when a breaker changes its state; must not raise.
    """

    def __init__(
        self,
        fraction: Callable[[], float],
        pace: BreakerPace | None = None,
        changed: Callable[[ProviderName, BreakerState], None] | None = None,
    ) -> None:
        self._fraction = fraction
        self._pace = pace or BreakerPace()
        self._changed = changed
        self._hosts: dict[Origin, _Host] = {}

    def opened(self) -> Counter[ProviderName]:
        """Count the origins that are not closed, by the provider that asked last."""
        return Counter(host.provider for host in self._hosts.values() if host.step)

    def wait_ms(self, lane: Origin, now: Instant) -> int:
        """Tell how long nothing may be sent to an origin; 0 when an ask may go out now.

        When the pause is over the first caller may try and the others wait until its end is heard.
        """
        host = self._hosts.get(lane)
        if host is None or not host.step:
            return 0
        if now < host.until:
            return host.until - now
        host.trying = True
        host.until = now + TRIAL_MS
        self._tell(host, BreakerState.HALF_OPEN)
        return 0

    def heard(self, lane: Origin, provider: ProviderName, heard: Answer | Lost, now: Instant) -> None:
        """Learn how an ask ended."""
        host = self._host(lane, provider)
        failed = _failed(heard)
        if host.step:
            if host.trying:
                self._tried(host, failed=failed, now=now)
            return  # begun before the breaker opened
        while host.ends and host.ends[0][0] <= now - STALE_MS:
            host.ends.popleft()
        host.ends.append((now, failed))
        failures = sum(end for _, end in host.ends)
        if (
            failed
            and failures >= self._pace.failures_min
            and failures >= FAILURES_OF_REMEMBERED * len(host.ends)
        ):
            self._open(host, now)

    def _tried(self, host: _Host, *, failed: bool, now: Instant) -> None:
        host.trying = False
        if failed:
            self._open(host, now)
            return
        host.step = 0
        host.ends.clear()
        self._tell(host, BreakerState.CLOSED)

    def _open(self, host: _Host, now: Instant) -> None:
        pause_ms = min(self._pace.pause_ms_first << min(host.step, 30), self._pace.pause_ms_longest)
        host.step += 1
        host.until = now + int(pause_ms * (1 + SPREAD * self._fraction()))
        self._tell(host, BreakerState.OPEN)

    def _host(self, lane: Origin, provider: ProviderName) -> _Host:
        host = self._hosts.pop(lane, None)
        if host is None:
            while len(self._hosts) >= ORIGINS_KEPT_MAX:
                closed = next((name for name, kept in self._hosts.items() if not kept.step), None)
                del self._hosts[next(iter(self._hosts)) if closed is None else closed]
            host = _Host(provider)
        host.provider = provider
        self._hosts[lane] = host
        return host

    def _tell(self, host: _Host, state: BreakerState) -> None:
        if self._changed is not None:
            self._changed(host.provider, state)


def _failed(heard: Answer | Lost) -> bool:
    """Tell whether an end says that the host is in trouble, whatever it thinks of us."""
    if isinstance(heard, Answer):
        return heard.status >= _SERVER_ERROR
    match heard.loss:
        case Loss.NOT_SENT | Loss.CUT | Loss.TIMED_OUT:
            return True
        case Loss.REFUSED_EGRESS:
            return False
        case _:
            assert_never(heard.loss)
