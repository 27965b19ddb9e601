"""When each of the seven conditions holds, when it does not, and when nobody can tell."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.arkret.conditions import PATTERN_MAX_CHARACTERS, READERS, read_condition
from heliograph.pushrules.arkret.event import Facts, Service, Subject, read_event
from heliograph.pushrules.arkret.members import (
    DEFAULT_GRID,
    Bucket,
    Comparison,
    holds,
    in_bucket,
    read_bucket,
    torn,
)
from heliograph.pushrules.arkret.watch import WatchLevel
from heliograph.pushrules.document import DocumentRefused
from heliograph.pushrules.engine import Truth
from tests.pushrules.arkret.make import BOB, DIRECT, MENTION, REALM, message, subject

YES, NO, UNKNOWN = Truth.YES, Truth.NO, Truth.INDETERMINATE


def ask(condition: dict[str, Any], judged: Subject) -> Truth:
    """Read a condition and ask it."""
    return read_condition(condition, "", DEFAULT_GRID).holds(judged)


def field_match(name: str, pattern: object) -> dict[str, Any]:
    return {"kind": "field_match", "field": name, "pattern": pattern}


def refusal(condition: object) -> tuple[str, str, str]:
    with pytest.raises(DocumentRefused) as refused:
        read_condition(condition, "conditions[0]", DEFAULT_GRID)
    return refused.value.fault.value, refused.value.clause, refused.value.field


@pytest.mark.parametrize(
    ("name", "pattern", "answer"),
    [
        ("kind", "ak.message.create", YES),
        ("type", "ak.message.create", YES),
        ("event_kind", "ak.message.create", YES),
        ("kind", "ak.message", NO),
        ("kind", "ak.message.*", YES),
        ("kind", "*.create", YES),
        ("kind", "AK.MESSAGE.CREATE", NO),
        ("kind", "ak.message.creat?", NO),
        ("kind", ["ak.call.signal", "ak.message.*"], YES),
        ("realm_id", REALM, YES),
        ("sender", BOB.principal_id, YES),
        ("strand_id", "*", NO),
        ("notification_type", "*", NO),
        ("priority", "high", YES),
        ("track_name", "disc*", YES),
        ("watch_state", "all", YES),
        ("label.name", "red", YES),
        ("payload.label.name", "red", YES),
        ("label", "*", NO),
        ("number", "1", NO),
        ("label.name.deeper", "*", NO),
        ("absent", "*", NO),
    ],
)
@pytest.mark.clause("R149")
def test_a_field_matches_whole_and_with_its_case(name: str, pattern: object, answer: Truth) -> None:
    """A field that is not there, or holds no text, matches nothing."""
    event = message(priority="high", payload={"label": {"name": "red"}, "number": 1})
    judged = subject(event, tracks=frozenset({"discussion"}), watch=WatchLevel.ALL)

    assert ask(field_match(name, pattern), judged) is answer


def test_a_service_is_a_sender_too() -> None:
    """It has no principal."""
    judged = subject(message(sender=Service("ak:did_core:web:station.example")))

    assert ask(field_match("sender", "ak:did_core:web:station.example"), judged) is YES


@pytest.mark.parametrize(
    ("pattern", "body", "answer"),
    [
        ("urgent|紧急|P0", "this is URGENT!", YES),
        ("urgent|紧急|P0", "很紧急", YES),
        ("urgent|紧急|P0", "p0 incident", YES),
        ("urgent|紧急|P0", "no hurry", NO),
        (" urgent | ", "urgently", YES),
        (["lunch", "dinner"], "Dinner?", YES),
        ("a.c", "abc", NO),
        ("*", "abc", NO),
        ("(", "a (b", YES),
        ("ΣΑΣ", "σας", YES),
        ("urgent", None, NO),
    ],
)
@pytest.mark.clause("R149")
def test_a_keyword_is_found_anywhere_whatever_its_case(
    pattern: object, body: str | None, answer: Truth
) -> None:
    """Nothing in a keyword is special but the bar between two of them."""
    assert ask({"kind": "contains_keyword", "pattern": pattern}, subject(message(body))) is answer


@pytest.mark.clause("R149", "R199")
def test_what_is_not_decrypted_yet_neither_matches_nor_fails_to() -> None:
    """Silence would lose a notification, and yes would invent one."""
    judged = subject(message(None, readable=False), tracks=None)

    assert ask({"kind": "contains_keyword", "pattern": "x"}, judged) is UNKNOWN
    assert ask(field_match("body", "x"), judged) is UNKNOWN
    assert ask({"kind": "strand_track", "pattern": "*"}, judged) is UNKNOWN
    assert ask(field_match("kind", "ak.message.create"), judged) is YES


@pytest.mark.parametrize("truth", list(Truth))
@pytest.mark.clause("R149", "R154")
def test_mentions_and_conversations_of_two_are_as_known(truth: Truth) -> None:
    """What the Realm does not disclose stays indeterminate."""
    assert ask(MENTION, subject(mentions_actor=truth)) is truth
    assert ask(DIRECT, subject(direct_message=truth)) is truth


@pytest.mark.clause("R154")
def test_nothing_is_known_before_it_is_known() -> None:
    """The facts begin as indeterminate; nothing is fetched for a rule."""
    judged = Subject(message(), Facts())

    assert ask(MENTION, judged) is UNKNOWN
    assert ask(DIRECT, judged) is UNKNOWN
    assert ask({"kind": "member_count", "op": "<=", "value": 10}, judged) is UNKNOWN


@pytest.mark.parametrize(
    ("operator", "value", "members", "answer"),
    [
        ("<=", 10, Bucket(1, 10), YES),
        ("<=", 10, Bucket(11, 50), NO),
        ("lt", 11, Bucket(1, 10), YES),
        (">", 2000, Bucket(2001, None), YES),
        (">", 2000, Bucket(501, 2000), NO),
        ("gte", 51, Bucket(11, 50), NO),
        ("gte", 51, Bucket(2001, None), YES),
        ("<=", 10, 10, YES),
        ("<=", 10, 11, NO),
        ("<=", 10, None, UNKNOWN),
        ("<=", 10, Bucket(6, 20), UNKNOWN),
        ("==", 0, Bucket(1, 10), NO),
        ("!=", 0, Bucket(2001, None), YES),
    ],
)
@pytest.mark.clause("R155", "R157")
def test_a_member_count_is_compared_bucket_by_bucket(
    operator: str, value: int, members: int | Bucket | None, answer: Truth
) -> None:
    """No number in common is no, all numbers is yes, and an undisclosed count cannot tell."""
    condition = {"kind": "member_count", "op": operator, "value": value}

    assert ask(condition, subject(members=members)) is answer


@pytest.mark.parametrize(
    ("operator", "value", "bucket"),
    [
        ("<=", 5, "1-10"),
        ("eq", 2, "1-10"),
        (None, 2, "1-10"),
        ("!=", 30, "11-50"),
        (">", 10_000, "2000+"),
        ("<", 2_000, "501-2000"),
        (">=", 2_000, "501-2000"),
        ("gt", 2001, "2000+"),
    ],
)
@pytest.mark.clause("R156", "R157", "R158")
def test_a_count_that_divides_a_bucket_is_refused_when_it_is_written(
    operator: str | None, value: int, bucket: str
) -> None:
    """It is never completed with an exact number later."""
    condition = {"kind": "member_count", "value": value} | ({"op": operator} if operator else {})
    with pytest.raises(DocumentRefused) as refused:
        read_condition(condition, "conditions[0]", DEFAULT_GRID)

    assert (refused.value.fault, refused.value.clause) == ("param_invalid", "R156")
    assert refused.value.field == "conditions[0].value"
    assert f"bucket {bucket}" in refused.value.problem


@pytest.mark.clause("R158")
def test_a_realm_with_a_finer_grid_allows_finer_rules() -> None:
    """The edges are those of the grid."""
    grid = (Bucket(1, 5), Bucket(6, None))
    condition = {"kind": "member_count", "op": "<=", "value": 5}

    assert read_condition(condition, "", grid).holds(subject(members=Bucket(6, None))) is NO


@given(
    st.sampled_from(list(Comparison)), st.integers(0, 60), st.integers(1, 50), st.integers(0, 20) | st.none()
)
@pytest.mark.clause("R155", "R157")
def test_a_bucket_answers_as_all_its_numbers_do(
    comparison: Comparison, number: int, low: int, span: int | None
) -> None:
    """Counted out one by one; a hundred numbers stand for an open bucket."""
    bucket = Bucket(low, None if span is None else low + span)
    counts = range(low, low + (100 if span is None else span + 1))
    answers = {holds(comparison, number, count) for count in counts}

    expected = UNKNOWN if len(answers) == 2 else Truth.of(answers.pop())
    assert in_bucket(comparison, number, bucket) is expected
    assert (torn(comparison, number, (bucket,)) is None) is (expected is not UNKNOWN)


def test_a_realm_spells_its_bucket_and_anything_else_is_unknown() -> None:
    """A text off the grid is not a number that one may guess."""
    assert read_bucket("1-10") == Bucket(1, 10)
    assert read_bucket("2000+") == Bucket(2001, None)
    assert read_bucket("5-2") is None
    assert read_bucket("1-5", (Bucket(1, 5), Bucket(6, None))) == Bucket(1, 5)
    assert [(one.high or 0) + 1 for one in DEFAULT_GRID[:-1]] == [two.low for two in DEFAULT_GRID[1:]]


@pytest.mark.parametrize(
    ("pattern", "tracks", "answer"),
    [
        ("synthesis", {"discussion", "synthesis"}, YES),
        ("synth*", {"synthesis"}, YES),
        (["x", "discussion"], {"discussion"}, YES),
        ("synthesis", {"discussion"}, NO),
        ("*", set(), NO),
    ],
)
@pytest.mark.clause("R149", "R167", "R169")
def test_any_track_may_match(pattern: object, tracks: set[str], answer: Truth) -> None:
    """An Event without one matches nothing, not even a star, and that is no error."""
    assert ask({"kind": "strand_track", "pattern": pattern}, subject(tracks=frozenset(tracks))) is answer


@pytest.mark.clause("R149", "R182", "R183")
def test_a_watch_level_is_one_of_those_named() -> None:
    """Without a record it is mentions_only."""
    active = {"kind": "watch_state", "pattern": ["participating", "all"]}

    assert ask(active, subject(watch=WatchLevel.ALL)) is YES
    assert ask(active, subject(watch=WatchLevel.MUTED)) is NO
    assert ask({"kind": "watch_state", "pattern": "mentions_only"}, subject()) is YES


@pytest.mark.parametrize(
    ("condition", "code", "field"),
    [
        (None, "schema_violation", ""),
        ({}, "schema_violation", ".kind"),
        ({"kind": 1}, "schema_violation", ".kind"),
        ({"kind": ["field_match"]}, "schema_violation", ".kind"),
        ({"kind": "event_match"}, "schema_violation", ".kind"),
        ({"kind": "mentions_actor", "pattern": "x"}, "schema_violation", ".pattern"),
        ({"kind": "field_match", "pattern": "x"}, "schema_violation", ".field"),
        ({"kind": "field_match", "field": "", "pattern": "x"}, "schema_violation", ".field"),
        ({"kind": "field_match", "field": "kind"}, "schema_violation", ".pattern"),
        ({"kind": "field_match", "field": "kind", "pattern": []}, "param_invalid", ".pattern"),
        ({"kind": "field_match", "field": "kind", "pattern": ["x", 1]}, "schema_violation", ".pattern[1]"),
        (
            {"kind": "strand_track", "pattern": "x" * (PATTERN_MAX_CHARACTERS + 1)},
            "schema_violation",
            ".pattern",
        ),
        ({"kind": "contains_keyword", "pattern": " | "}, "param_invalid", ".pattern"),
        ({"kind": "contains_keyword", "pattern": "x|" * 300}, "schema_violation", ""),
        ({"kind": "watch_state", "pattern": "mute"}, "schema_violation", ".pattern"),
        ({"kind": "watch_state", "pattern": []}, "param_invalid", ".pattern"),
        ({"kind": "watch_state", "pattern": ["all", "x"]}, "schema_violation", ".pattern[1]"),
        ({"kind": "member_count", "op": "<="}, "schema_violation", ".value"),
        ({"kind": "member_count", "op": "=<", "value": 10}, "schema_violation", ".op"),
        ({"kind": "member_count", "op": "<=", "value": True}, "schema_violation", ".value"),
        ({"kind": "member_count", "op": "<=", "value": 10.0}, "schema_violation", ".value"),
        ({"kind": "member_count", "op": "<=", "value": -1}, "schema_violation", ".value"),
    ],
)
@pytest.mark.clause("R149")
def test_a_condition_that_cannot_be_understood_is_refused(condition: Any, code: str, field: str) -> None:
    """A mute that never matches would be worse than an error."""
    if condition is not None and "|x|" in str(condition.get("pattern")):
        words = "|".join(f"w{number}" for number in range(257))
        condition, code, field = (
            condition | {"pattern": [words[:900], words[900:]]},
            "param_invalid",
            ".pattern",
        )

    found = refusal(condition)
    assert found[0] == code
    assert found[2] == f"conditions[0]{field}"


def test_there_are_seven_kinds() -> None:
    """No more and no fewer."""
    assert sorted(READERS) == [
        "contains_keyword",
        "field_match",
        "is_direct_message",
        "member_count",
        "mentions_actor",
        "strand_track",
        "watch_state",
    ]


def test_an_envelope_is_taken_apart() -> None:
    """Values of the wrong type count as absent."""
    account = {"principal_id": BOB.principal_id, "station_id": BOB.station_id}
    envelope = {
        "kind": "ak.message.create",
        "realm_id": REALM,
        "actor_id": {"kind": "account", "account_id": account},
        "payload": {"strand_id": "ak:strand:x", "body": "hello"},
        "priority": 5,
    }
    read = read_event(envelope)

    assert (read.kind, read.realm_id, read.sender) == ("ak.message.create", REALM, BOB)
    assert (read.strand_id, read.body, read.priority) == ("ak:strand:x", "hello", None)
    assert read_event(envelope | {"actor_id": {"kind": "service", "service_id": "s"}}).sender == Service("s")
    assert read_event(envelope | {"actor_id": {"kind": "account", "account_id": {}}}).sender is None
    half = {"kind": "account", "account_id": account | {"station_id": 5}}
    assert read_event(envelope | {"actor_id": half}).sender is None
    assert read_event(envelope | {"payload": None}, strand_id="ak:strand:y").strand_id == "ak:strand:y"
