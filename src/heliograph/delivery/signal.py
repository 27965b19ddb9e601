"""What a verdict means for the work item. Pure.

| outcome                             | signal                                      | the route             |
|-------------------------------------|---------------------------------------------|-----------------------|
| accepted, accepted_degraded         | delivered                                   | kept                  |
| token_dead                          | route gone                                  | ends                  |
| token_dead, since before we knew it | refused                                     | kept: it is a new one |
| token_dead, credential frozen       | refused                                     | kept                  |
| token_suspect                       | refused                                     | kept                  |
| payload_bad                         | refused                                     | kept                  |
| config_bad                          | later, burns no attempt                     | kept                  |
| throttled_target                    | later                                       | kept                  |
| throttled_app                       | later, burns no attempt                     | kept                  |
| transient                           | later                                       | kept                  |
| transient, kept at home by a breaker | later, burns no attempt                    | kept                  |
| unknown                             | later, twice; then refused                  | kept                  |

A token that died before the registration that names it was made is the ghost of an older life of the same
token: the provider speaks of that one, and the device has registered again since. Nothing says that the
present one is dead, so the delivery is over and the route stays.

Pauses that burn no attempt end with the delivery's life, which every work item has.
"""

from typing import Final, assert_never

from heliograph.delivery.model import Outcome, Verdict
from heliograph.queue.machine import Delivered, Later, Refused, RouteGone, Signal
from heliograph.wire.instant import Instant

CONFIG_HOLD_MS: Final = 60_000
"""How long an item waits for an operator to mend a credential: short enough for a wakeup to be still worth
something after it, long enough not to hammer a provider that has said no."""

THROTTLED_APP_MS: Final = 60_000
"""How long everything of an application waits when the provider names no pause of its own: quotas are
counted by the minute."""

UNKNOWN_RETRIES_MAX: Final = 2
"""How often an answer that nobody has mapped is tried again."""

ORIGIN_RESTS: Final = "origin_rests"
"""The reason of a delivery that was not sent because the provider's host does not answer."""

FROZEN: Final = "mass_token_death"
"""The reason of a delivery whose provider called the route dead when it called too many dead at once."""

BORN_LATER: Final = "token_dead_before_registration"
"""The reason of a delivery whose provider speaks of an older life of the token."""


def signal_of(verdict: Verdict, *, attempt: int, registered_at: Instant, frozen: bool = False) -> Signal:
    """Turn a verdict into one of the four signals of the queue.

    Args:
        verdict: How the attempt ended.
        attempt: Which attempt it was, from 1.
        registered_at: When the route was registered, for a provider that tells since when it is dead.
        frozen: The credential's word on dead routes is not acted upon.
    """
    reason, pause = verdict.reason, verdict.retry_after_ms
    match verdict.outcome:
        case Outcome.ACCEPTED | Outcome.ACCEPTED_DEGRADED:
            return Delivered()
        case Outcome.TOKEN_DEAD:
            if verdict.dead_since is not None and registered_at >= verdict.dead_since:
                return Refused(BORN_LATER)
            if frozen:
                return Refused(FROZEN)
            return RouteGone(reason)
        case Outcome.TOKEN_SUSPECT | Outcome.PAYLOAD_BAD:
            return Refused(reason)
        case Outcome.CONFIG_BAD:
            return Later(reason, after_ms=CONFIG_HOLD_MS, burns_attempt=False)
        case Outcome.THROTTLED_APP:
            return Later(reason, after_ms=THROTTLED_APP_MS if pause is None else pause, burns_attempt=False)
        case Outcome.TRANSIENT if verdict.rests_ms is not None:
            return Later(ORIGIN_RESTS, after_ms=verdict.rests_ms, burns_attempt=False)
        case Outcome.THROTTLED_TARGET | Outcome.TRANSIENT:
            return Later(reason, after_ms=pause)
        case Outcome.UNKNOWN:
            return Later(reason, after_ms=pause) if attempt <= UNKNOWN_RETRIES_MAX else Refused(reason)
        case _:
            assert_never(verdict.outcome)
