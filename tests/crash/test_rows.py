"""What is looked for in the database: each planted fault is found."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.crash.history import Handoff
from tests.crash.rows import (
    Installed,
    Snapshot,
    answers_are_the_rows,
    items_and_details_belong_together,
    receipts_are_the_rows,
)
from tests.crash.test_oracle import install, revoke

TENANTS = {"target": "tenant"}
ROW = Installed("active", b"first", "digest", 7, None, routed=True)
GONE = replace(ROW, state="revoked", routed=False)
SOUND = Snapshot(
    items={("done", None, False): 2, ("failed", "route_gone", False): 1},
    orphans=0,
    answers={("arkret.notify:tenant", "key"): b"answer"},
    installations={("tenant", "first"): ROW},
)


def snapshot(**changes: Any) -> Snapshot:
    return replace(SOUND, **changes)


def test_a_sound_database_is_held_against_nobody() -> None:
    """Three acceptances, one answer, one registration."""
    assert list(items_and_details_belong_together(SOUND, 3)) == []
    assert list(answers_are_the_rows(SOUND, {("tenant", "key"): b"answer"})) == []
    assert list(receipts_are_the_rows(SOUND, [install()], TENANTS, SOUND)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        snapshot(orphans=1),
        snapshot(items={("done", None, False): 2}),
        snapshot(items={("done", None, False): 4}),
        snapshot(items={("done", None, True): 3}),
        snapshot(items={("ready", None, True): 3}),
        snapshot(items={("dead", "attempts_exhausted", True): 3}),
        snapshot(items={("failed", "stub_payload_refused", False): 3}),
    ],
    ids=["orphan", "lost", "doubled", "details kept", "waiting", "given up", "refused"],
)
def test_items_that_do_not_add_up_are_found(wrong: Snapshot) -> None:
    """Three were accepted."""
    assert list(items_and_details_belong_together(wrong, 3)) != []


@pytest.mark.parametrize(
    "answers", [{}, {("tenant", "key"): b"other"}, {("tenant", "key"): b"answer", ("tenant", "lost"): b""}]
)
def test_an_answer_that_is_not_the_remembered_one_is_found(answers: Mapping[tuple[str, str], bytes]) -> None:
    """Refused and yet remembered, changed, forgotten."""
    assert list(answers_are_the_rows(SOUND, answers)) != []


REVOKED = revoke("first", 20, 30)


@pytest.mark.parametrize(
    ("handoffs", "row", "before"),
    [
        ([install(takes=False, status=409)], ROW, ROW),
        ([install()], None, ROW),
        ([install()], replace(ROW, receipt=b"other"), ROW),
        ([install()], replace(ROW, digest="other"), ROW),
        ([install()], replace(ROW, stored_at=8), ROW),
        ([install()], GONE, ROW),
        ([install(), replace(REVOKED, answer=b"revoked")], ROW, ROW),
        (
            [install(), replace(REVOKED, answer=b"revoked")],
            replace(GONE, receipt=b"revoked", routed=True),
            ROW,
        ),
    ],
    ids=["refused", "lost", "receipt", "digest", "time", "ended", "revived", "route kept"],
)
def test_a_registration_that_is_not_what_its_receipt_says_is_found(
    handoffs: list[Handoff], row: Installed | None, before: Installed
) -> None:
    """One handoff, or one and its revoke."""
    found = snapshot(installations={} if row is None else {("tenant", "first"): row})
    earlier = snapshot(installations={("tenant", "first"): before})

    assert list(receipts_are_the_rows(found, handoffs, TENANTS, earlier)) != []
