"""What every provider adapter is.

An adapter is pure: it checks push keys, and it turns a delivery and a moment into an exchange. Sending,
waiting, limits and redaction belong to the carrier; what an outcome means for the route belongs to the
handler.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from heliograph.delivery.exchange import Exchange, Moment
from heliograph.delivery.model import Delivery, ProviderName, Verdict, Wakeup
from heliograph.wire.secret import Secret


@runtime_checkable
class Provider(Protocol):
    """A third-party push service, seen from our side.

    Implementations hold settings and perhaps a bounded cache of signatures; never a socket or a clock.
    """

    @property
    def name(self) -> ProviderName:
        """The adapter's folder name, as it stands in routes and settings."""
        ...

    @property
    def credential(self) -> str:
        """The name of the section of the settings that this was built from.

        Quotas, faults and pauses belong to a credential: providers of one credential share them. It is the
        operator's word, so it may stand in metrics and logs.
        """
        ...

    def check_push_key(self, push_key: Secret) -> None:
        """Check that a push key could be one of this provider's, without asking the provider.

        Args:
            push_key: What a device registered, 1 to 4,096 code points. It goes nowhere else (R117).

        Raises:
            Malformed: It cannot be one. The text never repeats any part of it.
        """
        ...

    def fits(self, wakeup: Wakeup) -> bool:
        """Tell whether a wakeup fits the provider's payload budget; if not, it can go to nobody."""
        ...

    def exchange(self, delivery: Delivery, moment: Moment) -> Exchange:
        """Begin the conversation that makes one attempt.

        Args:
            delivery: What goes where. Its ``delivery_id`` is the same on every attempt, and so is every
                id that the provider sees, so that a repeat after a lost answer shows once.
            moment: The time and fresh random octets.

        Returns:
            A generator of asks that returns one of the ten outcomes. It never raises for anything that a
            push key, a provider or a network can do.
        """
        ...


@runtime_checkable
class Probe(Protocol):
    """A provider that can prove its credential without touching a device.

    Every adapter is one. It is a protocol of its own because deliveries need none of it.
    """

    def identity(self) -> Mapping[str, str]:
        """Return what tells this credential from others and is no secret: key ids, public keys, projects."""
        ...

    def probe(self, moment: Moment, *, reach: bool) -> Exchange:
        """Begin a conversation that proves the credential and reaches no device.

        Args:
            moment: The time and fresh random octets.
            reach: Also see whether the provider's servers can be reached, where the proof needs none.

        Returns:
            An exchange. ``ACCEPTED`` says that the credential is good, ``CONFIG_BAD`` that it is not, and any
            other outcome that nothing is proved now.
        """
        ...

    def advice(self, verdict: Verdict) -> str:
        """Return what an operator should do about the verdict of a probe; empty when there is nothing."""
        ...
