"""What an operator sets for everything that goes out: the ``[delivery]`` section."""

from typing import Annotated

import msgspec
from msgspec import Meta

from heliograph.wire.malformed import Malformed


class DeliverySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[delivery]`` section: how providers are spared and devices kept."""

    breaker_failures: Annotated[
        int,
        Meta(
            ge=1,
            le=20,
            description="Failures among a host's last 20 answers, and half of them, that open its breaker.",
        ),
    ] = 10
    breaker_pause_s: Annotated[
        int,
        Meta(ge=1, le=86_400, description="Seconds that an open breaker rests first; they double."),
    ] = 30
    breaker_pause_s_max: Annotated[
        int, Meta(ge=1, le=86_400, description="Seconds that an open breaker rests at most.")
    ] = 900


def check_settings(settings: DeliverySettings) -> None:
    """Refuse what the types alone cannot.

    Raises:
        Malformed: Two settings contradict one another.
    """
    if settings.breaker_pause_s > settings.breaker_pause_s_max:
        raise Malformed("breaker_pause_s", "must not be more than breaker_pause_s_max")
