"""The first match decides, and the compiled chain says what the plain engine says."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.pushrules.arkret.chain import Chain
from heliograph.pushrules.arkret.event import Event, Facts, Subject, read_event
from heliograph.pushrules.arkret.ruleset import Ruleset, read_ruleset
from heliograph.pushrules.arkret.watch import WatchLevel
from heliograph.pushrules.engine import Because, Truth
from tests.pushrules.arkret.make import (
    DIRECT,
    DISCUSSION,
    FIELD,
    KEYWORD,
    MENTION,
    MUTED,
    SMALL,
    chain,
    matched,
    message,
    rule,
    subject,
)
from tests.pushrules.arkret.strategies import CONDITIONS, EVENTS, FACTS, JSON, rulesets


def seed_rules() -> Chain:
    """Return the example of the text."""
    return chain(
        rule("override.mute-realm-x", FIELD, actions=["dont_notify"]),
        rule("content.keyword-urgent", KEYWORD, actions=["notify", "sound_critical"]),
        rule(
            "underride.dm", {"kind": "field_match", "field": "kind", "pattern": "ak.message.create"}, DIRECT
        ),
        rule("underride.mention", MENTION, actions=["notify", "highlight"]),
    )


@pytest.mark.parametrize(
    ("event", "facts", "expected"),
    [
        (message("urgent"), {"mentions_actor": Truth.YES}, "override.mute-realm-x"),
        (message("urgent", realm_id="ak:realm:other"), {}, "content.keyword-urgent"),
        (message("hi", realm_id=None), {"direct_message": Truth.YES}, "underride.dm"),
        (
            message("hi", realm_id=None),
            {"direct_message": Truth.INDETERMINATE, "mentions_actor": Truth.YES},
            "underride.mention",
        ),
        (message("hi", realm_id=None), {}, None),
    ],
)
@pytest.mark.clause("R146", "R154", "R203")
def test_the_first_rule_that_matches_decides(
    event: Event, facts: dict[str, Any], expected: str | None
) -> None:
    """From the highest priority on; what cannot tell is passed over and lets nothing through."""
    assert matched(seed_rules(), subject(event, **facts)) == expected


@pytest.mark.clause("R154")
def test_an_undisclosed_count_passes_on_to_the_next_rule() -> None:
    """It neither silences nor notifies."""
    rules = chain(
        rule("override.small", SMALL, actions=["dont_notify"]),
        rule("override.large", {"kind": "member_count", "op": ">", "value": 10}),
        rule("underride.rest"),
    )

    assert matched(rules, subject(members=None)) == "underride.rest"
    assert [skipped.because for skipped in rules.explain(subject(members=None)).skipped] == [
        Because.INDETERMINATE,
        Because.INDETERMINATE,
    ]


@pytest.mark.clause("R167", "R177")
def test_tracks_and_mentions_together_choose_the_rule() -> None:
    """All of synthesis, and of the discussion only what mentions the receiver."""
    rules = chain(
        rule("underride.strand-synthesis-all", {"kind": "strand_track", "pattern": "synthesis"}),
        rule(
            "underride.strand-discussion-mention-only", DISCUSSION, MENTION, actions=["notify", "highlight"]
        ),
    )
    talk = frozenset({"discussion"})

    assert matched(rules, subject(tracks=frozenset({"synthesis"}))) == "underride.strand-synthesis-all"
    assert matched(rules, subject(tracks=talk, mentions_actor=Truth.NO)) is None
    mentioned = subject(tracks=talk, mentions_actor=Truth.YES)
    assert matched(rules, mentioned) == "underride.strand-discussion-mention-only"


@pytest.mark.clause("R182")
def test_a_mute_may_be_written_as_a_rule_too() -> None:
    """It is redundant, legal, and shows in the trace."""
    rules = chain(
        rule("override.respect-mute", MUTED, actions=["dont_notify"]),
        rule("underride.watching-all", {"kind": "watch_state", "pattern": ["participating", "all"]}),
    )

    assert matched(rules, subject(watch=WatchLevel.MUTED)) == "override.respect-mute"
    assert matched(rules, subject(watch=WatchLevel.PARTICIPATING)) == "underride.watching-all"
    assert matched(rules, subject(watch=WatchLevel.MENTIONS_ONLY)) is None


def test_a_rule_that_is_off_is_not_asked() -> None:
    """The next one is."""
    rules = chain(rule("override.off", enabled=False), rule("override.on"))

    assert matched(rules, subject()) == "override.on"


def test_a_matched_rule_without_actions_ends_the_chain() -> None:
    """Nobody is told, and nothing behind it is asked."""
    found = chain(rule("override.nothing", actions=[]), rule("override.loud")).decide(subject())

    assert found is not None
    assert (found.rule_id, found.effect.notify) == ("override.nothing", False)


@given(rulesets(), EVENTS, FACTS)
@settings(max_examples=200)
@pytest.mark.clause("R146", "R203", "R204")
def test_the_compiled_chain_decides_as_the_whole_chain_does(
    document: dict[str, Any], event: Event, facts: Facts
) -> None:
    """Whatever is filed where: the same rule as asking all of them from the top."""
    rules = Chain(read_ruleset(document))

    assert rules.decide(Subject(event, facts)) is rules.explain(Subject(event, facts)).rule


@given(rulesets(), EVENTS, FACTS, st.randoms(use_true_random=False))
@pytest.mark.clause("R146")
def test_the_order_of_conditions_and_of_patterns_is_nothing(
    document: dict[str, Any], event: Event, facts: Facts, random: Any
) -> None:
    """All conditions of a rule have to hold, and any pattern of a condition will do."""
    rules = Chain(read_ruleset(document))
    shuffled = []
    for written in document["rules"]:
        conditions = [dict(condition) for condition in written["conditions"]]
        random.shuffle(conditions)
        for condition in conditions:
            if isinstance(condition.get("pattern"), list):
                condition["pattern"] = random.sample(condition["pattern"], len(condition["pattern"]))
        shuffled.append(written | {"conditions": conditions})
    again = Chain(read_ruleset({"rules": shuffled}))

    assert matched(again, Subject(event, facts)) == matched(rules, Subject(event, facts))


@given(rulesets(), st.lists(CONDITIONS, max_size=2), EVENTS, FACTS, st.integers(0, 8))
@pytest.mark.clause("R146")
def test_only_what_stands_before_the_match_can_change_it(
    document: dict[str, Any], conditions: list[Any], event: Event, facts: Facts, place: int
) -> None:
    """A rule put in anywhere is either the new match or changes nothing."""
    before = Chain(read_ruleset(document))
    added = rule("content.added", *conditions)
    written = [*document["rules"][:place], added, *document["rules"][place:]]
    after = Chain(read_ruleset({"rules": written}))

    assert matched(after, Subject(event, facts)) in {"content.added", matched(before, Subject(event, facts))}


@given(rulesets(), JSON, FACTS, st.booleans())
@settings(max_examples=100)
def test_nothing_that_is_json_breaks_the_evaluation(
    document: dict[str, Any], envelope: Any, facts: Facts, readable: Any
) -> None:
    """An Event may hold anything in any place."""
    rules = Chain(read_ruleset(document))
    for event in (envelope, {"kind": "ak.message.create", "payload": envelope}, {"actor_id": envelope}):
        judged = Subject(read_event(event, readable=readable), facts)

        assert rules.decide(judged) is rules.explain(judged).rule


def test_an_empty_chain_decides_nothing() -> None:
    """It is for others to say what that means."""
    assert Chain(Ruleset()).decide(subject()) is None
