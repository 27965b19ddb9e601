"""After the wake: who is disturbed by what, and why."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.arkret.client.attention import Attention, Display, Stage, Step, Why, surfaces
from heliograph.arkret.client.blocklist import Origin, Surface
from heliograph.arkret.client.facts import facts_of
from heliograph.arkret.client.preferences import NOTHING_CONFIGURED
from heliograph.pushrules.arkret.actions import Sound
from heliograph.pushrules.arkret.event import Event, Facts, read_event
from heliograph.pushrules.arkret.watch import WatchLevel
from heliograph.pushrules.engine import Truth
from tests.arkret.client.make import (
    ALWAYS,
    MIDNIGHT,
    NOON,
    TZDB,
    blocklist_document,
    entry,
    judge,
    night_document,
    preferences,
)
from tests.pushrules.arkret.make import ALICE, BOB, DIRECT, FIELD, KEYWORD, MENTION, STRAND, message, rule
from tests.pushrules.arkret.strategies import EVENTS, FACTS, JSON, rulesets

URGENT = rule("content.keyword-urgent", KEYWORD, actions=["notify", "sound_critical"])
MUTE_REALM = rule("override.mute-realm", FIELD, actions=["dont_notify"])


@pytest.mark.clause("R006", "R205", "R322")
def test_what_a_rule_lets_through_is_shown_and_heard_as_the_rule_says() -> None:
    """Banner, highlight and sound are decided here."""
    mention = rule("underride.mention", MENTION, actions=["notify", "highlight", "sound_default"])
    outcome = judge(preferences(URGENT, mention), facts=Facts(mentions_actor=Truth.YES))

    assert (outcome.display, outcome.sound) == (Display.HIGHLIGHTED_BANNER, Sound.DEFAULT)
    assert outcome.rule_id == "underride.mention"
    assert outcome.trace == (
        Step(Stage.RULES, Why.RULE_NOTIFIES, "underride.mention"),
        Step(Stage.SURFACE, Why.SHOWN),
    )


@pytest.mark.clause("R006", "R033")
def test_the_blocklist_is_asked_before_the_rules() -> None:
    """No rule can let a blocked sender through."""
    made = preferences(ALWAYS, blocked=blocklist_document(entry(7)))
    outcome = judge(made)

    assert not outcome.disturbs
    assert outcome.trace == (
        Step(Stage.BLOCKLIST, Why.BLOCKED, "ak:block:019640b3-cc00-7000-8000-000000000007"),
    )
    assert judge(made, message(sender=ALICE)).disturbs


@pytest.mark.clause("R033", "R177")
def test_a_rule_that_silences_ends_the_way() -> None:
    """A Realm that the person muted stays silent although a rule further down would notify."""
    outcome = judge(preferences(MUTE_REALM, URGENT, ALWAYS), message("urgent"))

    assert (outcome.display, outcome.rule_id) == (Display.NOTHING, "override.mute-realm")
    assert outcome.trace == (Step(Stage.RULES, Why.RULE_SILENCES, "override.mute-realm"),)


@pytest.mark.clause("R033", "R177", "R328", "R346")
def test_in_quiet_hours_only_an_exception_disturbs() -> None:
    """And it has to be the rule that matched."""
    made = preferences(URGENT, ALWAYS, night=night_document("content.keyword-urgent"))

    night = judge(made, now=MIDNIGHT)
    assert (night.display, night.trace[-1].why) == (Display.NOTHING, Why.QUIET)
    urgent = judge(made, message("urgent"), now=MIDNIGHT)
    assert (urgent.display, urgent.sound) == (Display.BANNER, Sound.CRITICAL)
    assert [step.why for step in urgent.trace] == [Why.RULE_NOTIFIES, Why.EXCEPTION, Why.SHOWN]
    assert judge(made, now=NOON).disturbs


@pytest.mark.clause("R183")
@pytest.mark.parametrize("readable", [True, False])
def test_a_muted_strand_stays_silent_whatever_the_rules_say(readable: bool) -> None:
    """Also before decryption, and also when the person is mentioned."""
    facts = Facts(mentions_actor=Truth.YES, watch=WatchLevel.MUTED)
    outcome = judge(preferences(ALWAYS), message(readable=readable), facts)

    assert outcome.trace == (Step(Stage.WATCH, Why.MUTED),)
    assert not outcome.again


@pytest.mark.clause("R199", "R212", "R213", "R322")
def test_an_event_that_is_not_decrypted_shows_nothing_and_is_judged_again() -> None:
    """A wakeup alone is no reason to disturb anybody, and no reason to forget the Event."""
    made = preferences(ALWAYS)
    before = judge(made, message(None, readable=False))
    after = judge(made, message())

    assert (before.display, before.again, before.rule_id) == (Display.NOTHING, True, None)
    assert before.trace == (Step(Stage.RULES, Why.NOT_DECRYPTED),)
    assert (after.display, after.again) == (Display.BANNER, False)


def test_where_rules_exist_and_none_matches_nobody_is_disturbed() -> None:
    """That is the person's own choice."""
    outcome = judge(preferences(URGENT))

    assert outcome.trace == (Step(Stage.RULES, Why.NO_RULE_MATCHES),)
    assert not outcome.disturbs


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (Facts(), True),
        (Facts(watch=WatchLevel.ALL), True),
        (Facts(watch=WatchLevel.MENTIONS_ONLY), False),
        (Facts(watch=WatchLevel.MENTIONS_ONLY, mentions_actor=Truth.YES), True),
        (Facts(watch=WatchLevel.MENTIONS_ONLY, assigned_to_actor=True), True),
        (Facts(watch=WatchLevel.PARTICIPATING), False),
        (Facts(watch=WatchLevel.PARTICIPATING, reply_to_self=True), True),
        (Facts(watch=WatchLevel.PARTICIPATING, participating_thread_update=True), True),
        (Facts(watch=WatchLevel.MUTED, mentions_actor=Truth.YES), False),
    ],
)
@pytest.mark.clause("R183")
def test_without_any_rules_the_watch_level_decides(facts: Facts, told: bool) -> None:
    """And where no Strand is concerned the person is told."""
    assert judge(preferences(), facts=facts).disturbs is told
    assert judge(NOTHING_CONFIGURED.with_rules(1, {"rules": []}), facts=facts).disturbs is told


@pytest.mark.clause("R177", "R203", "R204")
def test_the_whole_chain_is_asked_whatever_the_station_let_through() -> None:
    """What a wakeup was for is no input of the judgement, so it cannot stand for a rule that matched."""
    outcome = judge(preferences(URGENT, rule("underride.dm", DIRECT), ALWAYS), explain=True)

    assert [(step.why, step.name, step.condition) for step in outcome.trace] == [
        (Why.SKIPPED_DOES_NOT_HOLD, "content.keyword-urgent", 0),
        (Why.SKIPPED_INDETERMINATE, "underride.dm", 0),
        (Why.RULE_NOTIFIES, "underride.always", None),
        (Why.SHOWN, None, None),
    ]


@pytest.mark.clause("R219")
def test_one_wakeup_judges_everything_that_waits() -> None:
    """Each Event for itself, in its order."""
    attention = Attention(preferences(URGENT, night=night_document("content.keyword-urgent")), TZDB)
    pending = [(message(body), Facts(), Origin()) for body in ("hello", "urgent", "P0", "bye")]

    assert [outcome.disturbs for outcome in attention.wake(pending, MIDNIGHT)] == [False, True, True, False]


@pytest.mark.clause("R045")
def test_a_connected_device_shows_at_once() -> None:
    """Presence and time since the last Event are no input: only the way through a provider is paced."""
    attention = Attention(preferences(ALWAYS), TZDB)

    assert [attention.judge(message(), Facts(), now=NOON + step).disturbs for step in (0, 1, 2)] == [True] * 3


def test_a_trace_is_made_of_names_and_not_of_content() -> None:
    """It can be shown, kept and sent on: it holds neither a keyword nor a word of the message."""
    outcome = judge(preferences(URGENT), message("urgent: the plan"), explain=True)

    assert "plan" not in repr(outcome)
    assert "紧急" not in repr(outcome)


@pytest.mark.parametrize(
    ("event", "facts", "expected"),
    [
        (message(), Facts(), {Surface.MESSAGES}),
        (message(kind="ak.call.signal"), Facts(), {Surface.CALLS}),
        (message(), Facts(mentions_actor=Truth.YES), {Surface.MESSAGES, Surface.MENTIONS}),
        (message(), Facts(direct_message=Truth.YES), {Surface.MESSAGES, Surface.DM}),
        (message(kind=None), Facts(direct_message=Truth.INDETERMINATE), set()),
    ],
)
def test_an_event_appears_on_known_surfaces(event: Event, facts: Facts, expected: set[Surface]) -> None:
    """And always as a notification."""
    assert surfaces(event, facts) == expected | {Surface.NOTIFICATIONS}


@pytest.mark.clause("R154", "R160", "R163", "R164", "R186")
def test_facts_are_derived_from_the_event_and_the_verified_state() -> None:
    """What is not decrypted is not known, but for what its kind alone tells."""
    mine = {"mentions": [{"subject_account_id": ALICE.members()["account_id"]}]}
    update = message(None, kind="ak.strand.update", strand_id=STRAND)
    patched = replace(update, payload={"patch": {"tracks.synthesis.content": "x"}})

    assert facts_of(message(payload=mine), ALICE).mentions_actor is Truth.YES
    assert facts_of(message(payload=mine, readable=False), ALICE).mentions_actor is Truth.INDETERMINATE
    hidden = facts_of(message(None, strand_id=STRAND, readable=False), ALICE)
    assert hidden.tracks == frozenset({"discussion"})
    assert facts_of(replace(update, readable=False), ALICE).tracks is None
    assert facts_of(patched, ALICE).tracks is None
    assert facts_of(patched, ALICE, active_tracks=frozenset({"synthesis"})).tracks == frozenset({"synthesis"})
    assert facts_of(message(), ALICE).direct_message is Truth.INDETERMINATE
    assert facts_of(message(), ALICE, direct_message=False).direct_message is Truth.NO


@given(
    rulesets() | JSON,
    st.sampled_from([night_document(), night_document("content.0", all_day=True, periods=[])]) | JSON,
    st.sampled_from([blocklist_document(entry())]) | JSON,
    EVENTS | st.builds(read_event, JSON),
    FACTS,
    st.sampled_from([NOON, MIDNIGHT]),
)
@settings(max_examples=120)
@pytest.mark.clause("R344")
def test_nothing_that_is_json_breaks_the_way(  # noqa: PLR0917 - drawn
    rules: Any, night: Any, blocked: Any, event: Event, facts: Facts, now: int
) -> None:
    """Whatever the preferences and the Event hold, there is one outcome with a reason."""
    made = NOTHING_CONFIGURED.with_rules(1, rules).with_dnd(1, night).with_blocklist(1, blocked)
    outcome = judge(made, event, facts, Origin(BOB), now=now)
    explained = judge(made, event, facts, Origin(BOB), now=now, explain=True)

    assert outcome.trace
    assert outcome.disturbs is (outcome.trace[-1].why is Why.SHOWN)
    assert (outcome.sound is Sound.NONE) or outcome.disturbs
    assert (explained.display, explained.sound, explained.rule_id, explained.trace[-1]) == (
        outcome.display,
        outcome.sound,
        outcome.rule_id,
        outcome.trace[-1],
    )
