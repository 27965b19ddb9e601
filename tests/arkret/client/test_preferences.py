"""Damage never silences a person for ever, and never undoes a mute."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.arkret.client.attention import Why
from heliograph.arkret.client.kept import Key
from heliograph.arkret.client.preferences import NOTHING_CONFIGURED, Preferences
from heliograph.pushrules.arkret.event import Event, Facts
from heliograph.pushrules.document import DocumentRefused, Fault
from tests.arkret.client.make import (
    ALWAYS,
    MIDNIGHT,
    NOON,
    blocklist_document,
    entry,
    judge,
    night_document,
    preferences,
    rules_document,
)
from tests.pushrules.arkret.make import FIELD, KEYWORD, MENTION, message, rule
from tests.pushrules.arkret.strategies import EVENTS, FACTS, JSON
from tests.shared import SHARED, shared_json

FIXTURE = "spec/arkret/fixtures/dnd-boundary.DERIVED.json"
DERIVED = shared_json(FIXTURE) if (SHARED / FIXTURE).is_file() else {}
NAMED = {case["name"]: case["value"] for case in DERIVED.get("validation_cases", [])}
UNREADABLE = DocumentRefused(Fault.UNREADABLE, "R342", "ciphertext", "does not open")
MUTE = rule("override.mute", FIELD, actions=["dont_notify"])


def named(word: str) -> Any:
    """Return the value that a published case names: a valid or invalid one, or one that does not open."""
    return UNREADABLE if word == "undecryptable" else NAMED[word.partition(":")[2]]


@pytest.mark.parametrize("case", DERIVED.get("recovery_cases", []), ids=lambda case: case["name"])
@pytest.mark.clause("R342", "R343", "R344")
def test_the_derived_recoveries_come_out_as_derived(case: dict[str, Any]) -> None:
    """The last valid value goes on; without one, quiet hours are not configured; and the person is told."""
    made = NOTHING_CONFIGURED
    for revision, word in enumerate([*case["history"], case["update"]], start=1):
        made = made.with_dnd(revision, named(word))
    expected = case["expected_effective"]

    assert made.dnd.in_force == (None if expected is None else preferences(night=NAMED[expected]).dnd.value)
    assert (made.troubles() != ()) is case["expected_user_visible_error"]


@pytest.mark.clause("R343", "R344")
def test_quiet_hours_that_were_never_valid_silence_nobody() -> None:
    """Not even where they say that every minute is quiet."""
    made = preferences(ALWAYS, night=night_document(all_day=True, periods=[], tzdb_version="2026a"))

    assert judge(made, now=MIDNIGHT).disturbs
    [(key, trouble)] = made.troubles()
    assert (key, trouble.clause, trouble.field) == ("ak.dnd_schedule", "R333", "dnd.schedule.tzdb_version")


@pytest.mark.clause("R342")
def test_a_repaired_value_ends_the_trouble() -> None:
    """The newest valid one counts from then on."""
    made = preferences(ALWAYS, night=night_document()).with_dnd(2, {})
    assert not judge(made, now=MIDNIGHT).disturbs
    repaired = made.with_dnd(3, night_document(periods=[]))

    assert repaired.troubles() == ()
    assert judge(repaired, now=MIDNIGHT).disturbs


@pytest.mark.clause("R342")
def test_what_arrives_late_changes_nothing() -> None:
    """An older revision is neither a value nor a trouble; a deletion is both ways final for its revision."""
    made = preferences(night=night_document()).with_dnd(5, night_document(periods=[]))

    assert made.with_dnd(4, night_document()) == made
    assert made.with_dnd(4, {}) == made
    assert made.without(Key.DND_SCHEDULE, 4) == made
    assert made.without(Key.DND_SCHEDULE, 6).dnd.in_force is None


def test_what_is_deleted_is_not_configured_any_more() -> None:
    """Each by its key, and the others stay."""
    made = preferences(ALWAYS, night=night_document(), blocked=blocklist_document(entry()))

    assert judge(made.without(Key.BLOCKLIST, 2)).disturbs
    assert made.without(Key.PUSH_RULES, 2).rules.in_force is None
    assert made.without(Key.PUSH_RULES, 2).dnd == made.dnd


@pytest.mark.parametrize("damage", [UNREADABLE, None, {}, {"rules": [1]}, rules_document(rule(kind="x"))])
def test_a_damaged_rule_set_leaves_the_last_valid_one_in_force(damage: object) -> None:
    """With its mutes and with what it lets through."""
    made = preferences(MUTE, rule("content.urgent", KEYWORD)).with_rules(2, damage)

    assert not judge(made, message("urgent")).disturbs
    assert judge(made, message("urgent", realm_id="ak:realm:other")).disturbs
    assert [key for key, _ in made.troubles()] == ["ak.push_rules"]


def test_of_a_first_damaged_rule_set_the_mutes_hold_and_the_rest_is_told() -> None:
    """Nothing is silenced but what a rule that is spelled rightly silences."""
    damaged = rules_document(
        rule("content.broken", {"kind": "sorcery"}), MUTE, rule("underride.mention", MENTION)
    )
    made = NOTHING_CONFIGURED.with_rules(1, damaged)

    assert judge(made).trace[-1].name == "override.mute"
    elsewhere = judge(made, message(realm_id="ak:realm:other"))
    assert elsewhere.disturbs
    assert elsewhere.trace[0].why is Why.RULES_DAMAGED


def test_a_saved_mute_outlives_a_worse_revision() -> None:
    """A value that does not even open takes nothing away from what could be read before."""
    damaged = rules_document(rule("content.broken", {"kind": "sorcery"}), MUTE)
    made = NOTHING_CONFIGURED.with_rules(1, damaged).with_rules(2, UNREADABLE)

    assert not judge(made).disturbs
    assert judge(made, message(realm_id="ak:realm:other")).disturbs


def test_of_a_first_damaged_blocklist_each_sound_entry_holds() -> None:
    """One bad entry does not unblock everybody."""
    made = preferences(ALWAYS, blocked=blocklist_document(entry(1, mode="shun"), entry(2)))

    assert not judge(made).disturbs
    assert [(key, trouble.field) for key, trouble in made.troubles()] == [
        ("ak.account.blocklist", "entries[0].mode")
    ]


DAMAGES: list[Callable[[Preferences, int, Any], Preferences]] = [
    lambda made, revision, value: made.with_rules(revision, value),
    lambda made, revision, value: made.with_dnd(revision, value),
    lambda made, revision, value: made.with_blocklist(revision, value),
]


@given(st.lists(st.tuples(st.sampled_from(DAMAGES), JSON), max_size=5), EVENTS, FACTS)
@pytest.mark.clause("R342", "R344")
def test_no_series_of_damage_changes_what_valid_preferences_say(
    damages: list[tuple[Callable[[Preferences, int, Any], Preferences], Any]], event: Event, facts: Facts
) -> None:
    """Every Event comes out as before the damage."""
    valid = preferences(
        MUTE,
        rule("content.urgent", KEYWORD),
        night=night_document("content.urgent"),
        blocked=blocklist_document(entry()),
    )
    made = valid
    for revision, (damage, value) in enumerate(damages, start=2):
        made = damage(made, revision, value)

    for now in (NOON, MIDNIGHT):
        assert judge(made, event, facts, now=now) == judge(valid, event, facts, now=now)


@given(JSON, EVENTS)
@pytest.mark.clause("R343", "R344")
def test_no_first_value_that_is_damaged_silences_everything(value: Any, event: Event) -> None:
    """Where nothing was ever valid, a readable Event still disturbs."""
    made = NOTHING_CONFIGURED
    for document in (value, {"rules": [value]}, {"dnd": value}, {"version": 1, "entries": [value]}):
        made = made.with_rules(1, document).with_dnd(1, document).with_blocklist(1, document)
    if made.rules.value is None and made.dnd.value is None and made.blocklist.in_force is None:
        assert judge(made, event, Facts(), now=MIDNIGHT).disturbs is event.readable
