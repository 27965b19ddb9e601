"""The work handler that turns a claim into a delivery.

It is the same for every slice that sends through providers. A slice gives it a ``DeliverySource``: how to
load what a claim stands for, how to open it once the claim is ours, and what the end means for its rows.
Sealed details are loaded inside the claiming transaction and opened outside it, as late as possible; what
was opened is dropped when the attempt ends. So no secret is in a work item, and an attempt that was
waiting while a route was revoked finds it gone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Generic, Protocol, TypeVar, final

from heliograph.ambient.clock import Clock
from heliograph.ambient.entropy import Entropy
from heliograph.delivery.carrier import Carrier
from heliograph.delivery.exchange import Moment
from heliograph.delivery.gates import KnownGates, gate_names, passes
from heliograph.delivery.hygiene import store as hygiene_store
from heliograph.delivery.hygiene.decide import Freeze
from heliograph.delivery.hygiene.health import Health
from heliograph.delivery.model import Delivery, ProviderName, Route, Verdict
from heliograph.delivery.provider import Provider
from heliograph.delivery.ruling import Ruling, Shutting, ruled, ruling_of
from heliograph.delivery.signal import CONFIG_HOLD_MS, signal_of
from heliograph.queue.gate import store as gate_store
from heliograph.queue.gate.decide import Gate
from heliograph.queue.machine import EXPIRED, Change, Later, Policy, Refused, RouteGone, Signal
from heliograph.queue.model import Claim
from heliograph.storage.database import Tx
from heliograph.wire.instant import Instant

MOMENT_OCTETS: Final = 64
"""Random octets for one exchange."""

ROUTE_GONE: Final = "route_gone"
"""The reason of a delivery whose route had ended before the attempt began."""

NO_PROVIDER: Final = "provider_not_configured"
"""The reason of a delivery that waits for an operator to configure its application again."""

HELD_MS: Final = 1_000
"""How long an item waits besides its gate when it met a closed one: should the gate be open again by now, the
item comes soon, and not in a loop."""

S = TypeVar("S")


class DeliverySource(Protocol[S]):
    """What a slice knows of its deliveries. ``S`` is what it loads: details as they are stored, sealed."""

    @property
    def kind(self) -> str:
        """The kind of work item that stands for one delivery."""
        ...

    def load(self, tx: Tx, claims: Sequence[Claim]) -> Sequence[S]:
        """Read the stored details of each claim, in the same order, inside the claiming transaction."""
        ...

    def open(self, loaded: S) -> Delivery | None:
        """Open what was loaded.

        Returns:
            The delivery, with the same ``delivery_id`` and collapse key on every attempt; None when there
            is no route to deliver to any more.
        """
        ...

    def registered_at(self, loaded: S) -> Instant:
        """Tell when the route was registered: a provider may say since when a token is dead."""
        ...

    def settled(self, tx: Tx, claim: Claim, change: Change, verdict: Verdict | None) -> None:
        """Note what became of a delivery, inside the settling transaction. May be run again.

        Args:
            tx: The settling transaction.
            claim: The lease that ended.
            change: What became of the work item.
            verdict: What the provider's adapter said; None when it was not asked: the route was gone, the
                time was over, the lease was lost, or something of ours failed.
        """
        ...


@final
class DeliveryHandler(Generic[S]):
    """Delivers the work of one source; a ``queue.runner.Handler``.

    Args:
        source: What the slice knows.
        provider_of: Finds the provider for a route; None where nobody has configured one.
        carrier: Carries exchanges.
        clock: Tells the time.
        entropy: Draws octets for exchanges.
        policy: How patient this kind of work is.
        heard: Told of every verdict, for counters and the health of credentials; must not raise.
        gates: What this process knows of gates; shared by all handlers of a process.
        turned: Told, once it is on disk, of a gate that closed or of one that opened again; must not raise.
        health: What this process knows of the health of credentials; shared as ``gates`` is.
        froze: Told, once it is on disk, of a credential whose word on routes is not acted upon any more.
    """

    def __init__(
        self,
        source: DeliverySource[S],
        *,
        provider_of: Callable[[Route], Provider | None],
        carrier: Carrier,
        clock: Clock,
        entropy: Entropy,
        policy: Policy,
        heard: Callable[[ProviderName, Verdict], None] | None = None,
        gates: KnownGates | None = None,
        turned: Callable[[str, Gate | None], None] | None = None,
        health: Health | None = None,
        froze: Callable[[Freeze], None] | None = None,
    ) -> None:
        self._source = source
        self._provider_of = provider_of
        self._carrier = carrier
        self._clock = clock
        self._entropy = entropy
        self._policy = policy
        self._heard = heard
        self._gates = KnownGates() if gates is None else gates
        self._turned = turned
        self._health = Health() if health is None else health
        self._froze = froze

    @property
    def kind(self) -> str:
        """The source's kind."""
        return self._source.kind

    @property
    def policy(self) -> Policy:
        """How patient this kind of work is."""
        return self._policy

    def load(self, tx: Tx, claims: Sequence[Claim]) -> Sequence[S]:
        """Let the source read the stored details, and look which gates are shut."""
        shut = gate_store.gates(tx)
        tx.after_commit(lambda: self._gates.learn(shut))
        return self._source.load(tx, claims)

    async def perform(self, claim: Claim, loaded: S) -> Signal:
        """Make one attempt and say how it ended.

        The provider sees the same ids on every attempt of one delivery, so a repeat after an ambiguous
        loss folds into the first (I8). Nothing is sent once the delivery is worth nothing, nor through a
        gate that has closed since the claim.
        """
        delivery = self._source.open(loaded)
        if delivery is None:
            return RouteGone(ROUTE_GONE)
        now = self._clock.now()
        if delivery.expires_at <= now:
            return Refused(EXPIRED)
        provider = self._provider_of(delivery.route)
        if provider is None:
            # Our configuration is at fault, not the route: hold it, as for a bad credential.
            held = Later(NO_PROVIDER, after_ms=CONFIG_HOLD_MS, burns_attempt=False)
            return ruled(held, Ruling(passes=True))
        names = gate_names(provider, delivery)
        holding = self._gates.holding(names, claim, now)
        if holding is not None:
            gate, reason = holding
            held = Later(reason, after_ms=HELD_MS, burns_attempt=False, gate=gate)
            return ruled(held, Ruling(passes=claim.gate not in names))
        exchange = provider.exchange(delivery, Moment(now, self._entropy.octets(MOMENT_OCTETS)))
        verdict = await self._carrier.carry(exchange, provider=provider.name, until=delivery.expires_at)
        if self._heard is not None:
            self._heard(provider.name, verdict)
        now = self._clock.now()
        shutting = self._gates.heard(names, verdict, now, self._entropy.fraction())
        credential = provider.credential
        freeze = self._health.count(credential, verdict.outcome, now)
        frozen = self._health.frozen(credential)
        signal = signal_of(
            verdict,
            attempt=claim.attempt,
            registered_at=self._source.registered_at(loaded),
            frozen=frozen,
        )
        if shutting is not None and isinstance(signal, Later):
            signal = replace(signal, gate=shutting.gate)
        return ruled(
            signal,
            Ruling(
                verdict,
                credential,
                shutting,
                passes=passes(names, verdict, claim.gate),
                frozen=frozen,
                freeze=freeze,
                accepted_at=self._health.accepted_at(credential),
                loaded=loaded,
            ),
        )

    def settled(self, tx: Tx, claim: Claim, change: Change) -> None:
        """Hand the end to the source, and move the gates and freezes that it moves."""
        ruling = ruling_of(change.signal)
        if ruling.freeze is not None:
            self._freeze(tx, ruling.freeze)
        if ruling.shutting is not None:
            self._shut(tx, claim, ruling.shutting)
        if claim.probe and (ruling.shutting is None or ruling.shutting.gate != claim.gate):
            self._end_probe(tx, claim, passed=ruling.passes)
        self._source.settled(tx, claim, change, ruling.verdict)

    def _freeze(self, tx: Tx, freeze: Freeze) -> None:
        new = hygiene_store.freeze(tx, freeze)
        tx.after_commit(lambda: self._health.written(freeze.credential))
        if new and self._froze is not None:
            froze = self._froze
            tx.after_commit(lambda: froze(freeze))

    def _shut(self, tx: Tx, claim: Claim, shutting: Shutting) -> None:
        gate = gate_store.shut(tx, shutting.gate, shutting.closing, claim.item_id, self._clock.now())
        tx.after_commit(lambda: self._turn(shutting.gate, gate))

    def _end_probe(self, tx: Tx, claim: Claim, *, passed: bool) -> None:
        if not passed:
            gate_store.undecided(tx, claim.gate, claim.item_id, self._clock.now())
        elif gate_store.passed(tx, claim.gate, claim.item_id):
            tx.after_commit(lambda: self._turn(claim.gate, None))

    def _turn(self, name: str, gate: Gate | None) -> None:
        self._gates.learn_one(name, gate)
        if self._turned is not None:
            self._turned(name, gate)
