"""What a watch level says by itself, in the published cases and beyond."""

from typing import Any

import msgspec
import pytest

from heliograph.pushrules.arkret.mention import mentions_actor
from heliograph.pushrules.arkret.watch import (
    WatchFacts,
    WatchLevel,
    WatchReason,
    effective_level,
    projection,
    verdict,
)
from heliograph.pushrules.engine import Truth
from tests.pushrules.arkret.make import ALICE, BOB
from tests.shared import SHARED, shared_json

FIXTURE = "spec/arkret/fixtures/push-rule-core-fixture.json"
CASES = shared_json(FIXTURE)["cases"] if (SHARED / FIXTURE).is_file() else []


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
@pytest.mark.clause("R183", "R199")
def test_the_published_cases_of_the_core_come_out_as_published(case: dict[str, Any]) -> None:
    """Deliver, blind or not, why, and what the client records of it."""
    judged = verdict(WatchLevel(case["watch_level"]), WatchFacts(**case["event"]))
    shown = projection(judged, **case.get("client_projection", {}))

    assert {
        "deliver": judged.deliver,
        "blind_wakeup": judged.blind_wakeup,
        "reason_code": judged.reason,
        "client_projection": msgspec.to_builtins(shown),
    } == case["expected"]


@pytest.mark.clause("R183")
def test_without_a_record_only_mentions_count() -> None:
    """Unless the receiver takes part; what they wrote beats both."""
    assert effective_level(None, subscribed=False) is WatchLevel.MENTIONS_ONLY
    assert effective_level(None, subscribed=True) is WatchLevel.PARTICIPATING
    assert effective_level(WatchLevel.MUTED, subscribed=True) is WatchLevel.MUTED


def test_a_reply_to_oneself_is_directed_and_a_thread_needs_participation() -> None:
    """Both in the core of every level."""
    assert verdict(WatchLevel.MENTIONS_ONLY, WatchFacts(reply_to_self=True)).deliver
    thread = WatchFacts(participating_thread_update=True)
    assert verdict(WatchLevel.MENTIONS_ONLY, thread).reason is WatchReason.NOT_MENTIONED
    assert verdict(WatchLevel.PARTICIPATING, thread).deliver


MINE = {"principal_id": ALICE.principal_id, "station_id": ALICE.station_id}
ELSEWHERE = MINE | {"station_id": "ak:did_core:web:other.example"}


@pytest.mark.parametrize(
    ("payload", "audience", "expected"),
    [
        ({"mentions": [{"subject_account_id": MINE}]}, Truth.NO, Truth.YES),
        ({"mentions": [{"subject_account_id": ELSEWHERE}]}, Truth.YES, Truth.NO),
        ({"mentions": [None, {}, {"subject_account_id": MINE}]}, Truth.NO, Truth.YES),
        ({"audience_mentions": [{"audience": "strand_engaged"}]}, Truth.YES, Truth.YES),
        ({"audience_mentions": [{"audience": "strand_engaged"}]}, Truth.NO, Truth.NO),
        ({"audience_mentions": [{"audience": "strand_engaged"}]}, Truth.INDETERMINATE, Truth.INDETERMINATE),
        ({"audience_mentions": []}, Truth.YES, Truth.NO),
        ({}, Truth.YES, Truth.NO),
        ([], Truth.YES, Truth.NO),
        ({"mentions": MINE, "audience_mentions": "all"}, Truth.YES, Truth.NO),
    ],
)
@pytest.mark.clause("R186")
def test_a_mention_is_of_this_account_or_of_an_audience_it_belonged_to(
    payload: object, audience: Truth, expected: Truth
) -> None:
    """The expansion at the Event's own position decides, never the present roster."""
    assert mentions_actor(payload, ALICE, BOB, audience) is expected


def test_nobody_is_told_that_they_mentioned_themselves() -> None:
    """Not even in an audience."""
    payload = {"mentions": [{"subject_account_id": MINE}], "audience_mentions": [{}]}

    assert mentions_actor(payload, ALICE, ALICE, Truth.YES) is Truth.NO
