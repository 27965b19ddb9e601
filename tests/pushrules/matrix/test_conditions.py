"""Every condition: when it holds, and what it must never take for a match."""

from typing import Any

import pytest

from heliograph.pushrules.matrix.conditions import Never, read_condition, read_pattern
from heliograph.pushrules.matrix.power import PowerLevels
from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from tests.pushrules.matrix.make import event, facts, holds, message


def match(pattern: Any, key: Any = "content.topic") -> dict[str, Any]:
    return {"kind": "event_match", "key": key, "pattern": pattern}


def is_value(value: Any, key: Any = "content.value") -> dict[str, Any]:
    return {"kind": "event_property_is", "key": key, "value": value}


def contains(value: Any, key: Any = "content.value") -> dict[str, Any]:
    return {"kind": "event_property_contains", "key": key, "value": value}


def topic(value: Any) -> dict[str, Any]:
    return event("m.room.topic", {"topic": value}, state_key="")


def valued(value: Any) -> dict[str, Any]:
    return event("org.example.thing", {"value": value})


# ── event_match ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.clause("M006", "M084", "M085", "M088")
@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("lunch plans", "Lunch Plans", True),
        ("LUNCH*", "lunch plans", True),
        ("lunch", "lunch plans", False),
        ("lunc?*", "lunc", False),
        ("*", "", True),
        ("", "", True),
        ("", "x", False),
        ("x?y", "x\ny", True),
        ("?", "İ", True),
    ],
)
def test_event_match_compares_the_whole_text_whatever_the_case(
    pattern: str, text: str, expected: bool
) -> None:
    """For every key but the body."""
    assert holds(match(pattern), topic(text)) is expected


@pytest.mark.clause("M089")
def test_event_match_on_the_body_looks_for_whole_words() -> None:
    """Anywhere in it, but never inside a word."""
    body = match("cake", "content.body")

    assert holds(body, message("the CAKE is a lie"))
    assert not holds(body, message("cakes are lies"))


@pytest.mark.clause("M088", "M089")
@pytest.mark.parametrize("key", ["content.formatted_body", "content.m.body", "content.Body", "body"])
def test_only_the_key_of_the_body_itself_looks_for_words(key: str) -> None:
    """A key that merely looks like it gets the whole text compared."""
    content = {"formatted_body": "the cake", "m": {"body": "the cake"}, "Body": "the cake"}

    assert not holds(match("cake", key), event(content=content, body="the cake"))
    assert holds(match("the cake", key), event(content=content, body="the cake"))


@pytest.mark.clause("M090", "M091", "M092")
@pytest.mark.parametrize("value", [0, 1, 1.5, True, False, None, [], ["x"], {}, {"x": "x"}])
@pytest.mark.parametrize("key", ["content.topic", "content.body"])
def test_event_match_matches_nothing_but_text(value: Any, key: str) -> None:
    """Not even a lone star matches a number, a boolean, or what is not there."""
    assert not holds(match("*", key), event(content={"topic": value, "body": value}))
    assert not holds(match("*", key), event(content={}))


# ── event_property_is ────────────────────────────────────────────────────────────────────────────


@pytest.mark.clause("M093", "M094", "M095", "M096", "M097")
@pytest.mark.parametrize("value", ["text", "", 0, 1, -1, 2**53 - 1, -(2**53) + 1, True, False, None])
def test_event_property_is_holds_for_the_very_same_scalar(value: Any) -> None:
    """A text, an integer, a boolean or null."""
    assert holds(is_value(value), valued(value))


@pytest.mark.clause("M093", "M098")
@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (1, True),
        (True, 1),
        (0, False),
        (1, 1.0),
        (1, "1"),
        ("1", 1),
        (None, False),
        (None, 0),
        (None, ""),
        ("text", "Text"),
        ("text", "text "),
        ("*", "text"),
        (1, [1]),
        (None, []),
        (None, {}),
    ],
    ids=repr,
)
def test_event_property_is_tells_types_and_spellings_apart(wanted: Any, value: Any) -> None:
    """Python takes some of these for equal; JSON does not."""
    assert not holds(is_value(wanted), valued(value))


@pytest.mark.clause("M097", "M098")
def test_what_is_not_there_is_not_null() -> None:
    """An absent property equals nothing."""
    assert not holds(is_value(None), event(content={}))


@pytest.mark.clause("M093")
@pytest.mark.parametrize("value", [1.0, 2**53, -(2**53), 2**64, 10**300, [], {}, [1], {"a": 1}])
def test_what_is_no_scalar_of_canonical_json_equals_nothing(value: Any) -> None:
    """Not even itself: other servers would answer differently."""
    assert not holds(is_value(value), valued(value))
    assert not holds(contains(value), valued([value]))


# ── event_property_contains ──────────────────────────────────────────────────────────────────────


@pytest.mark.clause("M099")
@pytest.mark.parametrize("value", ["b", 3, True, None])
@pytest.mark.parametrize("kind", [list, tuple])
def test_event_property_contains_finds_the_scalar_in_the_list(value: Any, kind: type) -> None:
    """Whatever else is in it."""
    assert holds(contains(value), valued(kind([{"a": 1}, [1], 1.5, "a", value, value])))


@pytest.mark.clause("M099", "M100")
@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        ("a", "a"),
        ("a", "abc"),
        ("a", {"a": 1}),
        ("a", []),
        ("a", ["A"]),
        ("a", [["a"]]),
        ("a", [{"a": "a"}]),
        (1, [True]),
        (True, [1]),
        (None, None),
        (1, 1),
    ],
)
def test_event_property_contains_needs_a_list_with_that_very_scalar(wanted: Any, value: Any) -> None:
    """A text is no list of letters, and an object no list of names."""
    assert not holds(contains(wanted), valued(value))


# ── contains_display_name ────────────────────────────────────────────────────────────────────────

NAMED = {"kind": "contains_display_name"}


@pytest.mark.clause("M101", "M102")
@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("Robert", "hey ROBERT!", True),
        ("Robert", "hey Roberta", False),
        ("Robert", "xRobert", False),
        ("Bob B.", "ask bob b. about it", True),
        ("Ångström", "hi ÅNGSTRÖM", True),
        ("🎉", "party🎉time", True),
        ("@bob", "hi@bob", True),
    ],
)
def test_contains_display_name_finds_the_name_as_whole_words(name: str, body: str, expected: bool) -> None:
    """Whatever the case."""
    assert holds(NAMED, message(body), name=name) is expected


@pytest.mark.clause("M103", "M104")
@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("*", "anything", False),
        ("*", "a * b", True),
        ("?", "a", False),
        ("R?bert", "Robert", False),
        ("[a-z]+", "word", False),
        (".*", "word", False),
    ],
)
def test_a_display_name_is_no_pattern(name: str, body: str, expected: bool) -> None:
    """Whoever is called star is not mentioned by everything."""
    assert holds(NAMED, message(body), name=name) is expected


@pytest.mark.clause("M101")
@pytest.mark.parametrize("name", [None, "", " ", "\u3000\n", 5, True, ["Robert"], {"a": 1}, "x" * 1_025])
def test_who_has_no_name_is_not_named(name: object) -> None:
    """Nor is one whose name is blank, for nearly every message holds a blank."""
    assert not holds(NAMED, message("5 \u3000\n Robert True " + "x" * 1_025), name=name)


@pytest.mark.clause("M101")
@pytest.mark.parametrize("body", [1, True, None, ["Robert"], {"Robert": "Robert"}])
def test_a_body_that_is_no_text_names_nobody(body: Any) -> None:
    """And breaks nothing."""
    assert not holds(NAMED, message(body))


# ── room_member_count ────────────────────────────────────────────────────────────────────────────


@pytest.mark.clause("M105", "M106", "M107", "M108", "M109", "M110", "M111")
@pytest.mark.parametrize(
    ("form", "holding"),
    [
        ("2", {2}),
        ("==2", {2}),
        ("<2", {0, 1}),
        (">2", {3, 4}),
        ("<=2", {0, 1, 2}),
        (">=2", {2, 3, 4}),
        ("02", {2}),
        ("0", {0}),
        ("000", {0}),
    ],
)
def test_room_member_count_compares_the_joined_members(form: str, holding: set[int]) -> None:
    """In six forms."""
    condition = {"kind": "room_member_count", "is": form}

    assert {count for count in range(5) if holds(condition, message(), room=facts(count))} == holding


SIGNS = ["", "==", "=2", "=>2", "=<2", "===2", "!2", "!=2", " 2", "2 ", "== 2", "+2", "-2", "2\n"]
DIGITS = ["2_0", "2.0", "2e0", "٢", "²", "0x2", "two", 2, 2.0, True, None, ["2"], {}]


@pytest.mark.clause("M105")
@pytest.mark.parametrize("form", [*SIGNS, *DIGITS], ids=repr)
def test_a_malformed_count_never_holds(form: Any) -> None:
    """Nothing is guessed and nothing breaks."""
    condition = {"kind": "room_member_count", "is": form}

    assert [count for count in range(25) if holds(condition, message(), room=facts(count))] == []


@pytest.mark.clause("M105")
@pytest.mark.parametrize("number", ["9" * 20, "9" * 26, "1" + "0" * 5_000], ids=len)
def test_counts_beyond_every_room_compare_correctly(number: str) -> None:
    """Even those that no machine word holds."""
    assert holds({"kind": "room_member_count", "is": f"<{number}"}, message())
    assert holds({"kind": "room_member_count", "is": f"<={number}"}, message())
    assert not holds({"kind": "room_member_count", "is": f">{number}"}, message())
    assert not holds({"kind": "room_member_count", "is": number}, message())
    assert holds({"kind": "room_member_count", "is": "0" * 5_000 + "3"}, message())


# ── sender_notification_permission ───────────────────────────────────────────────────────────────


@pytest.mark.clause("M112", "M113")
@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"users": {"@carol:test": 50}}, True),
        ({"users": {"@carol:test": 49}}, False),
        ({}, False),
        ({"users_default": 50}, True),
        ({"users": {"@carol:test": 49}, "users_default": 100}, False),
        ({"notifications": {"room": 0}}, True),
        ({"notifications": {"room": 1}}, False),
        ({"notifications": {"org.example": 0}}, False),
        ({"notifications": {"room": 60}, "users": {"@carol:test": 50}}, False),
    ],
)
def test_the_sender_needs_the_level_of_the_notification(levels: dict[str, Any], expected: bool) -> None:
    """Which is 50 where the room does not set it."""
    condition = {"kind": "sender_notification_permission", "key": "room"}

    assert holds(condition, message(), room=facts(power=PowerLevels(levels))) is expected


@pytest.mark.clause("M112", "M114")
@pytest.mark.parametrize("key", [None, 5, ["room"]])
def test_a_permission_without_a_key_never_holds(key: Any) -> None:
    """Not even for an admin."""
    admin = facts(power=PowerLevels({"users": {"@carol:test": 100}}))

    assert not holds({"kind": "sender_notification_permission", "key": key}, message(), room=admin)
    assert not holds({"kind": "sender_notification_permission"}, message(), room=admin)


# ── what is not known, and what is malformed ─────────────────────────────────────────────────────


@pytest.mark.clause("M114")
@pytest.mark.parametrize(
    "kind", ["org.example.x", "device", "", "EVENT_MATCH", "event_match ", "im.nheko.reply"]
)
def test_a_condition_that_is_not_known_never_holds(kind: str) -> None:
    """Whatever it carries."""
    assert not holds({"kind": kind, "key": "type", "pattern": "*", "value": "x", "is": ">0"}, message())


@pytest.mark.clause("M114")
@pytest.mark.parametrize(
    "condition",
    [
        match(None),
        match(5),
        match(["*"]),
        match("*", None),
        match("*", ["type"]),
        {"kind": "event_match", "key": "type"},
        {"kind": "event_match", "pattern": "*"},
        {"kind": "event_match", "key": "sender", "pattern_type": "user_id"},
        is_value("x", 5),
        {"kind": "event_property_is", "key": "content.value"},
        {"kind": "event_property_is", "value": None},
        {"kind": "event_property_contains", "key": "content.value", "value_type": "user_id"},
        {"kind": "room_member_count"},
    ],
)
def test_a_condition_that_lacks_what_it_needs_never_holds(condition: dict[str, Any]) -> None:
    """It is kept, for a newer client may have written it."""
    assert read_condition(condition, "conditions[0]") == Never()


@pytest.mark.parametrize(
    ("document", "fault", "field"),
    [
        ("event_match", Fault.INVALID, "conditions[0]"),
        (None, Fault.INVALID, "conditions[0]"),
        ([], Fault.INVALID, "conditions[0]"),
        ({}, Fault.MISSING, "conditions[0].kind"),
        ({"kind": 5}, Fault.INVALID, "conditions[0].kind"),
        ({"kind": None}, Fault.INVALID, "conditions[0].kind"),
        (match("x" * 1_025), Fault.TOO_LARGE, "conditions[0].pattern"),
        (match("é" * 513), Fault.TOO_LARGE, "conditions[0].pattern"),
    ],
)
def test_what_is_no_condition_at_all_is_refused(document: Any, fault: Fault, field: str) -> None:
    """With the place, so that whoever wrote it can find it."""
    with pytest.raises(RuleRefused) as refused:
        read_condition(document, "conditions[0]")

    assert (refused.value.fault, refused.value.field) == (fault, field)


def test_a_pattern_may_take_1024_bytes() -> None:
    """And is folded as it is read."""
    assert read_pattern("É" * 512, "pattern") == "é" * 512
