"""Whom an entry covers, and whom it does not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from heliograph.arkret.client.blocklist import (
    ENTRIES_MAX,
    Mode,
    Origin,
    Surface,
    read_blocklist,
    salvage_blocklist,
)
from heliograph.pushrules.arkret.event import Account, Service
from heliograph.pushrules.document import DocumentRefused
from heliograph.pushrules.glob import fold
from tests.arkret.client.make import NOON, blocklist_document, entry
from tests.pushrules.arkret.make import ALICE, BOB
from tests.pushrules.arkret.strategies import JSON

DEVICE = "ak:device:0192f3a1-4c2b-7d5e-9f10-2a3b4c5d6e7f"
METHOD = "did:web:bob.example#device"
TOLD = frozenset({Surface.NOTIFICATIONS, Surface.MESSAGES})


def found(target: dict[str, Any], origin: Origin, body: str = "", **changes: Any) -> bool:
    blocklist = read_blocklist(blocklist_document(entry(1, target, **changes)))
    return blocklist.find(origin, fold(body), TOLD, NOON) is not None


@pytest.mark.parametrize(
    ("actor", "covered"),
    [
        (BOB, True),
        (Account(BOB.principal_id, "ak:did_core:web:other.example"), False),
        (Account("ak:did_core:web:carol.example", BOB.station_id), False),
        (Service(BOB.station_id), False),
        (None, False),
    ],
)
@pytest.mark.clause("R006")
def test_an_actor_is_both_components_of_an_account(actor: Any, covered: bool) -> None:
    """The same principal elsewhere, its Station, and other accounts there are somebody else."""
    assert found({"kind": "actor", "actor_id": BOB.members()}, Origin(actor)) is covered


@pytest.mark.parametrize(
    ("target", "origin"),
    [
        ({"kind": "actor", "actor_id": Service("s").members()}, Origin(Service("s"))),
        ({"kind": "device", "object_ref": DEVICE}, Origin(device_id=DEVICE)),
        ({"kind": "device", "value": METHOD}, Origin(verification_method=METHOD)),
        ({"kind": "handle", "value": "bob:example.com"}, Origin(handle="bob:example.com")),
        ({"kind": "domain", "value": "example.com"}, Origin(domains=frozenset({"x.org", "example.com"}))),
        ({"kind": "applet", "object_ref": "ak:applet:poll"}, Origin(applet="ak:applet:poll")),
    ],
)
@pytest.mark.clause("R006")
def test_each_kind_of_target_is_compared_exactly(target: dict[str, Any], origin: Origin) -> None:
    """Only what was verified counts, and a suffix is no domain."""
    assert found(target, origin)
    assert not found(target, Origin(ALICE, domains=frozenset({"sub.example.com"})))


@pytest.mark.clause("R006")
def test_a_keyword_is_found_in_the_decrypted_body() -> None:
    """Whatever its case, from whomever."""
    assert found({"kind": "keyword", "value": "Lottery"}, Origin(), "the LOTTERY is")
    assert not found({"kind": "keyword", "value": "Lottery"}, Origin(), "")


@pytest.mark.parametrize(
    ("applies_to", "covered"), [(["messages"], True), (["notifications"], True), (["calls", "dm"], False)]
)
@pytest.mark.parametrize("mode", list(Mode))
def test_an_entry_counts_where_it_applies_whatever_its_mode(
    applies_to: list[str], mode: Mode, covered: bool
) -> None:
    """Blocked, hidden and muted alike draw no attention there, and none elsewhere."""
    target = {"kind": "actor", "actor_id": BOB.members()}

    assert found(target, Origin(BOB), applies_to=applies_to, mode=mode) is covered


def test_what_an_entry_may_leave_out() -> None:
    """Why and when it was made, and when it ends."""
    bare = {name: entry()[name] for name in ("entry_id", "target", "mode", "applies_to")}
    [read] = read_blocklist(blocklist_document(bare)).entries

    assert read.expires_at is None


def test_an_entry_ends_when_it_says_so() -> None:
    """At that very instant."""
    target = {"kind": "actor", "actor_id": BOB.members()}

    assert found(target, Origin(BOB), expires_at="2026-01-15T04:00:00.001Z")
    assert not found(target, Origin(BOB), expires_at="2026-01-15T04:00:00.000Z")


def test_the_strongest_entry_is_named() -> None:
    """A block says more than a mute."""
    by_handle = {"kind": "handle", "value": "bob:example.com"}
    blocklist = read_blocklist(blocklist_document(entry(1, mode="mute"), entry(2, by_handle, mode="block")))
    strongest = blocklist.find(Origin(BOB, handle="bob:example.com"), "", TOLD, NOON)

    assert strongest is not None
    assert strongest.mode is Mode.BLOCK


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, ""),
        ({"entries": []}, "version"),
        (blocklist_document(version=0), "version"),
        (blocklist_document(version=True), "version"),
        (blocklist_document() | {"owner": 1}, "owner"),
        ({"version": 1, "entries": {}}, "entries"),
        (blocklist_document(*[entry()] * (ENTRIES_MAX + 1)), "entries"),
        (blocklist_document(entry(entry_id="x")), "entries[0].entry_id"),
        (blocklist_document(entry(mode="shun")), "entries[0].mode"),
        (blocklist_document(entry(applies_to=[])), "entries[0].applies_to"),
        (blocklist_document(entry(applies_to=["all"])), "entries[0].applies_to[0]"),
        (blocklist_document(entry(expires_at="tomorrow")), "entries[0].expires_at"),
        (blocklist_document(entry(created_at=5)), "entries[0].created_at"),
        (blocklist_document(entry(reason_code="")), "entries[0].reason_code"),
        (blocklist_document(entry(1, {"kind": "realm", "value": "x"})), "entries[0].target.kind"),
        (blocklist_document(entry(1, {"kind": "handle"})), "entries[0].target"),
        (blocklist_document(entry(1, {"kind": "handle", "object_ref": "x"})), "entries[0].target"),
        (
            blocklist_document(entry(1, {"kind": "device", "object_ref": DEVICE, "value": METHOD})),
            "entries[0].target",
        ),
        (blocklist_document(entry(1, {"kind": "device", "value": "x"})), "entries[0].target.value"),
        (blocklist_document(entry(1, {"kind": "device", "object_ref": "x"})), "entries[0].target.object_ref"),
        (
            blocklist_document(entry(1, {"kind": "applet", "object_ref": DEVICE})),
            "entries[0].target.object_ref",
        ),
        (blocklist_document(entry(1, {"kind": "actor", "actor_id": "x"})), "entries[0].target.actor_id"),
        (blocklist_document(entry(1, {"kind": "keyword", "value": ""})), "entries[0].target.value"),
        (blocklist_document(entry(1), entry(1)), "entries[1].entry_id"),
        (blocklist_document(entry(1), entry(2)), "entries[1].applies_to"),
    ],
)
@pytest.mark.clause("R006")
def test_what_is_no_blocklist_is_refused_by_name(value: object, field: str) -> None:
    """Place and clause, and nothing of the entry."""
    with pytest.raises(DocumentRefused) as refused:
        read_blocklist(value)

    assert (refused.value.field, refused.value.clause) == (field, "R006")


@given(JSON)
def test_whatever_a_list_holds_it_is_read_or_refused(value: Any) -> None:
    """And what is saved of it are valid entries."""
    for document in (value, blocklist_document(entry(), value), blocklist_document(entry(1, value))):
        saved = salvage_blocklist(document)
        try:
            read = read_blocklist(document)
        except DocumentRefused:
            continue

        assert saved.refusals == ()
        assert read.entries == saved.blocklist.entries


def test_entries_for_other_surfaces_of_one_target_stand_side_by_side() -> None:
    """Only the same surface twice would be two answers to one question."""
    document = blocklist_document(entry(1, applies_to=["dm"]), entry(2, applies_to=["calls"], mode="mute"))
    read = read_blocklist(document)

    assert [one.mode for one in read.entries] == ["block", "mute"]
    assert replace(read.entries[0], entry_id="x") != read.entries[1]
