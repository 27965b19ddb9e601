"""What one process knows of the health of its credentials. No I/O; told the time.

It counts what this process hears and adds what others have written down. When a credential is frozen it says
so at once; the settlement of the very delivery that led to it, or else the next look, writes it down for all.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

from heliograph.delivery.hygiene.decide import Bucket, Freeze, Pulse, Tally, tally_of
from heliograph.delivery.model import Outcome
from heliograph.wire.instant import Instant

CREDENTIALS_MAX: Final = 10_000
"""Credentials that are watched. They are sections of the settings, so nobody has as many."""

_TAKEN: Final = frozenset({Outcome.ACCEPTED, Outcome.ACCEPTED_DEGRADED})


@final
class Health:
    """The health of all credentials, as far as this process knows."""

    def __init__(self) -> None:
        self._pulses: dict[str, Pulse] = {}
        self._others: Mapping[str, Tally] = {}
        self._frozen: dict[str, Freeze] = {}
        self._unwritten: dict[str, Freeze] = {}
        self._accepted_at: dict[str, Instant] = {}

    def count(self, credential: str, outcome: Outcome, now: Instant) -> Freeze | None:
        """Count an outcome.

        Returns:
            The freeze that it leads to, to be written down; None when nothing changes.
        """
        if outcome in _TAKEN:
            self._accepted_at[credential] = now
        if credential not in self._pulses and len(self._pulses) >= CREDENTIALS_MAX:
            return None
        pulse = self._pulses.setdefault(credential, Pulse())
        pulse.count(tally_of(outcome), now)
        tally = pulse.tally(now) + self._others.get(credential, Tally())
        if self.frozen(credential) or not tally.mass_death:
            return None
        self._unwritten[credential] = Freeze(credential, now, tally)
        return self._unwritten[credential]

    def frozen(self, credential: str) -> bool:
        """Tell whether the credential's word on routes is not acted upon."""
        return credential in self._frozen or credential in self._unwritten

    @property
    def freezes(self) -> int:
        """How many credentials are frozen."""
        return len(self._frozen.keys() | self._unwritten.keys())

    def accepted_at(self, credential: str) -> Instant | None:
        """Tell when something was last accepted with a credential, as far as this process knows."""
        return self._accepted_at.get(credential)

    def pulses(self) -> Mapping[str, Sequence[Bucket]]:
        """Return what is to be written down for the others."""
        return {credential: pulse.buckets() for credential, pulse in self._pulses.items()}

    def unwritten(self) -> Sequence[Freeze]:
        """Return the freezes that nobody has written down."""
        return tuple(self._unwritten.values())

    def written(self, credential: str) -> None:
        """Learn that a freeze is on disk."""
        freeze = self._unwritten.pop(credential, None)
        if freeze is not None:
            self._frozen[credential] = freeze

    def learn(self, freezes: Iterable[Freeze], others: Mapping[str, Tally]) -> None:
        """Take over what the database says. A credential that was thawed begins with a fresh minute."""
        frozen = {freeze.credential: freeze for freeze in freezes}
        for thawed in self._frozen.keys() - frozen.keys():
            self._pulses.pop(thawed, None)
        self._frozen = frozen
        self._others = others
