"""The gates that deliveries wait behind: one for each credential, and finer ones where a provider has them.

A credential that is refused or throttled is so for everything that uses it; therefore all that uses it waits
behind one gate of the queue. The gate is closed in the database, for every process and across restarts; here
is what a process decides and what it remembers in between: whether an answer closes a gate, and which gates
are known not to be open. Nothing here does any I/O.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar, final, runtime_checkable

from heliograph.delivery.model import Delivery, Outcome, Verdict
from heliograph.delivery.provider import Provider
from heliograph.delivery.ruling import Shutting
from heliograph.delivery.signal import ORIGIN_RESTS
from heliograph.queue.gate.decide import Closing, Gate
from heliograph.queue.model import Claim
from heliograph.wire.instant import Instant

V = TypeVar("V")

CONFIG_PAUSE_MS_FIRST: Final = 30_000
CONFIG_PAUSE_MS_LONGEST: Final = 900_000
"""How long nothing is tried with a credential that was refused. One request in a quarter of an hour offends
no provider, and an operator who has mended it waits no longer than that, or opens the gate."""

THROTTLED_PAUSE_MS_FIRST: Final = 60_000
"""Where a provider names no pause: quotas are counted by the minute."""

ASKED_PAUSE_MS_FIRST: Final = 1_000
"""Where it names one, ours only matters once its own has failed several times."""

THROTTLED_PAUSE_MS_LONGEST: Final = 900_000

REST_PAUSE_MS_LONGEST: Final = 60_000
"""Our own part of the pause for a host that does not answer; the breaker's is longer when it must be."""

STRANGERS_FAULTS_MIN: Final = 3
"""So many refusals in a row, without a success between them, close a gate whose host a stranger has named. A
single subscription that was made with another key is refused alone, and must not hold up all the others."""

PENDING_MS: Final = 5_000
"""How long a closing is believed that is not in the database yet; its settlement takes a moment."""

NAMES_KEPT_MAX: Final = 1_024
"""Gates of which something is remembered. The one noticed first makes room."""

_WORKS: Final = frozenset(
    {
        Outcome.ACCEPTED,
        Outcome.ACCEPTED_DEGRADED,
        Outcome.TOKEN_DEAD,
        Outcome.TOKEN_SUSPECT,
        Outcome.PAYLOAD_BAD,
        Outcome.THROTTLED_TARGET,
    }
)
"""Answers that a provider gives only to a credential that it knows."""


@runtime_checkable
class Scoped(Protocol):
    """A provider whose credential is judged by several services, each for itself."""

    def scope(self, delivery: Delivery) -> str:
        """Tell which service, as a text of any kind, will judge the credential."""
        ...


def gate_names(provider: Provider, delivery: Delivery) -> tuple[str, ...]:
    """Name the gates that a delivery goes through, the widest first.

    A scope may be an address that a stranger chose, so a digest of it stands in the name.
    """
    if not isinstance(provider, Scoped):
        return (provider.credential,)
    digest = hashlib.sha256(provider.scope(delivery).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return provider.credential, f"{provider.credential}#{digest}"


def credential_of(gate: str) -> str:
    """Return the credential that a gate belongs to: the operator's word, fit for a metric."""
    return gate.partition("#")[0]


def closing_of(verdict: Verdict, fraction: float) -> Closing | None:
    """Tell whether an answer asks for a pause of everything that uses the credential.

    Args:
        verdict: The answer.
        fraction: A random number in [0, 1) that spreads the pause.
    """
    asked = verdict.retry_after_ms
    match verdict.outcome:
        case Outcome.TRANSIENT if verdict.rests_ms is not None:
            # The breaker has its own steps; the gate only lets other processes and claims know.
            return Closing(
                ORIGIN_RESTS, ASKED_PAUSE_MS_FIRST, REST_PAUSE_MS_LONGEST, verdict.rests_ms, fraction
            )
        case Outcome.CONFIG_BAD:
            return Closing(
                verdict.reason, CONFIG_PAUSE_MS_FIRST, CONFIG_PAUSE_MS_LONGEST, asked or 0, fraction
            )
        case Outcome.THROTTLED_APP:
            first = THROTTLED_PAUSE_MS_FIRST if asked is None else ASKED_PAUSE_MS_FIRST
            return Closing(verdict.reason, first, THROTTLED_PAUSE_MS_LONGEST, asked or 0, fraction)
        case _:
            return None


@final
class KnownGates:
    """What one process knows of gates between two looks at the database. Bounded; told the time."""

    def __init__(self) -> None:
        self._shut: dict[str, str] = {}
        self._pending: dict[str, tuple[str, Instant]] = {}
        self._faults: dict[str, int] = {}

    @property
    def resting(self) -> int:
        """How many gates are known not to be simply open."""
        return len(self._shut)

    def learn(self, gates: Sequence[Gate]) -> None:
        """Take over what the database says: these are not simply open, all others are."""
        self._shut = {gate.name: gate.reason for gate in gates}

    def learn_one(self, name: str, gate: Gate | None) -> None:
        """Take over what the database says of one gate."""
        self._pending.pop(name, None)
        if gate is not None:
            self._shut[name] = gate.reason
        else:
            self._shut.pop(name, None)

    def holding(self, names: Sequence[str], claim: Claim, now: Instant) -> tuple[str, str] | None:
        """Tell which gate an item has to wait behind, and why; None when it may go.

        A probe may go through the gate that it tries, and no other.
        """
        for name in names:
            if claim.probe and claim.gate == name:
                continue
            if name in self._shut:
                return name, self._shut[name]
            reason, until = self._pending.get(name, ("", 0))
            if now < until:
                return name, reason
        return None

    def heard(self, names: Sequence[str], verdict: Verdict, now: Instant, fraction: float) -> Shutting | None:
        """Learn how an attempt ended, and tell whether a gate should close for it: the narrowest."""
        name = names[-1]
        if verdict.outcome in _WORKS:
            self._faults.pop(name, None)
            return None
        closing = closing_of(verdict, fraction)
        if closing is None:
            return None
        if len(names) > 1 and verdict.outcome is Outcome.CONFIG_BAD:
            faults = self._faults.pop(name, 0) + 1
            _keep(self._faults, name, faults)
            if faults < STRANGERS_FAULTS_MIN and name not in self._shut:
                return None
        _keep(self._pending, name, (verdict.reason, now + PENDING_MS))
        return Shutting(name, closing)


def passes(names: Sequence[str], verdict: Verdict, gate: str) -> bool:
    """Tell whether an attempt opens the gate that it came through, if it was the probe.

    It does when the provider knew the credential. It does also when it did not need that gate, because an
    operator has changed what it needs: then nothing is known against those who do.
    """
    return gate not in names or verdict.outcome in _WORKS


def _keep(kept: dict[str, V], name: str, value: V) -> None:
    while len(kept) >= NAMES_KEPT_MAX and name not in kept:
        del kept[next(iter(kept))]
    kept[name] = value
