"""What each verdict means for the work item."""

import pytest
from tests.deliveries import NOW

from heliograph.delivery.model import Outcome, Verdict
from heliograph.delivery.signal import BORN_LATER, CONFIG_HOLD_MS, THROTTLED_APP_MS, signal_of
from heliograph.queue.machine import Delivered, Later, Refused, RouteGone, Signal

SIGNALS: dict[str, tuple[Verdict, Signal]] = {
    "accepted": (Verdict(Outcome.ACCEPTED, "x"), Delivered()),
    "accepted with losses": (Verdict(Outcome.ACCEPTED_DEGRADED, "x"), Delivered()),
    "dead": (Verdict(Outcome.TOKEN_DEAD, "x"), RouteGone("x")),
    "dead since after the registration": (
        Verdict(Outcome.TOKEN_DEAD, "x", dead_since=NOW + 1),
        RouteGone("x"),
    ),
    "dead since the registration": (Verdict(Outcome.TOKEN_DEAD, "x", dead_since=NOW), Refused(BORN_LATER)),
    "dead since before the registration": (
        Verdict(Outcome.TOKEN_DEAD, "x", dead_since=NOW - 1),
        Refused(BORN_LATER),
    ),
    "suspect": (Verdict(Outcome.TOKEN_SUSPECT, "x"), Refused("x")),
    "bad payload": (Verdict(Outcome.PAYLOAD_BAD, "x"), Refused("x")),
    "bad configuration": (
        Verdict(Outcome.CONFIG_BAD, "x"),
        Later("x", after_ms=CONFIG_HOLD_MS, burns_attempt=False),
    ),
    "throttled target": (Verdict(Outcome.THROTTLED_TARGET, "x"), Later("x")),
    "throttled target with a pause": (
        Verdict(Outcome.THROTTLED_TARGET, "x", retry_after_ms=5_000),
        Later("x", after_ms=5_000),
    ),
    "throttled app": (
        Verdict(Outcome.THROTTLED_APP, "x"),
        Later("x", after_ms=THROTTLED_APP_MS, burns_attempt=False),
    ),
    "throttled app with a pause": (
        Verdict(Outcome.THROTTLED_APP, "x", retry_after_ms=54_000),
        Later("x", after_ms=54_000, burns_attempt=False),
    ),
    "transient": (Verdict(Outcome.TRANSIENT, "x"), Later("x")),
    "transient with a pause": (
        Verdict(Outcome.TRANSIENT, "x", retry_after_ms=20_000),
        Later("x", after_ms=20_000),
    ),
    "ambiguous": (Verdict(Outcome.TRANSIENT, "x", ambiguous=True), Later("x")),
    "unknown": (Verdict(Outcome.UNKNOWN, "x"), Later("x")),
}


@pytest.mark.parametrize(("verdict", "signal"), SIGNALS.values(), ids=SIGNALS)
def test_every_outcome_becomes_one_signal(verdict: Verdict, signal: Signal) -> None:
    """Only a token that is dead now ends a route; only what is the item's own fault burns its attempts."""
    assert signal_of(verdict, attempt=1, registered_at=NOW) == signal


def test_the_table_names_every_outcome() -> None:
    """None is left to a default."""
    assert {verdict.outcome for verdict, _ in SIGNALS.values()} == set(Outcome)


@pytest.mark.parametrize(("attempt", "signal"), [(1, Later("x")), (2, Later("x")), (3, Refused("x"))])
def test_an_answer_that_nobody_mapped_is_tried_again_twice(attempt: int, signal: Signal) -> None:
    """Then it is over, and the token stays."""
    assert signal_of(Verdict(Outcome.UNKNOWN, "x"), attempt=attempt, registered_at=NOW) == signal
