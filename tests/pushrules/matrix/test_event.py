"""Dotted keys, and the event as the rules see it."""

from collections import OrderedDict, UserDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.pushrules.matrix.event import ABSENT, Event, read_path
from tests.pushrules.matrix.make import event, holds, message


@pytest.mark.clause("M116", "M117")
@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("type", ("type",)),
        ("content.body", ("content", "body")),
        (r"content.m\.mentions.user_ids", ("content", "m.mentions", "user_ids")),
        (r"a\\.b", ("a\\", "b")),
        (r"a\\\.b", ("a\\.b",)),
        (r"a\xb", ("a\\xb",)),
        ("a\\", ("a\\",)),
        ("", ("",)),
        (".", ("", "")),
        ("a..b", ("a", "", "b")),
        (r"\.\.", ("..",)),
    ],
)
def test_a_backslash_before_a_dot_makes_it_part_of_a_name(key: str, path: tuple[str, ...]) -> None:
    """And one before a backslash makes that part of a name; any other stands for itself."""
    assert read_path(key) == path


@given(st.lists(st.text(alphabet="ab.\\", max_size=5), min_size=1, max_size=4))
def test_every_name_can_be_reached(names: list[str]) -> None:
    """Escaped, whatever it is made of, it leads to where it stands."""
    key = ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in names)

    assert read_path(key) == tuple(names)


@pytest.mark.clause("M117")
def test_a_dotted_name_is_not_a_nested_one() -> None:
    """The two are reached by two keys, and neither by the other's."""
    dotted = event(content={"m.relates_to": {"rel_type": "m.thread"}})
    nested = event(content={"m": {"relates_to": {"rel_type": "m.thread"}}})
    escaped = {"kind": "event_match", "key": r"content.m\.relates_to.rel_type", "pattern": "m.thread"}
    plain = {"kind": "event_match", "key": "content.m.relates_to.rel_type", "pattern": "m.thread"}

    assert [holds(escaped, dotted), holds(plain, dotted)] == [True, False]
    assert [holds(escaped, nested), holds(plain, nested)] == [False, True]


@pytest.mark.clause("M117")
def test_the_mention_key_reaches_the_list_of_users() -> None:
    """Inside the property whose name has a dot in it."""
    mentioned = {
        "kind": "event_property_contains",
        "key": r"content.m\.mentions.user_ids",
        "value": "@bob:test",
    }

    assert holds(mentioned, message(m_mentions={"user_ids": ["@bob:test"]}))


@pytest.mark.parametrize("key", ["content.list.0", "content.list.a", "content.body.0", "content.number.real"])
def test_a_key_leads_through_objects_only(key: str) -> None:
    """Lists have no names, and neither have texts."""
    document = event(content={"list": ["a", {"a": "a"}], "body": "abc", "number": 5})

    assert Event(document).value(read_path(key)) is ABSENT


@pytest.mark.parametrize("name", ["user_id", "age", "prev_content", "replaces_state", "invite_room_state"])
def test_what_a_server_adds_for_clients_is_not_part_of_the_event(name: str) -> None:
    """So a rule means the same whichever way the event came."""
    decorated = event(**{name: "@carol:test"})

    assert not holds({"kind": "event_match", "key": name, "pattern": "*"}, decorated)
    assert holds(
        {"kind": "event_match", "key": f"content.{name}", "pattern": "*"}, event(content={name: "x"})
    )


def frozen(value: Any) -> Any:
    """Rebuild a value from containers that are neither lists nor dicts."""
    if isinstance(value, dict):
        return MappingProxyType(UserDict({name: frozen(item) for name, item in value.items()}))
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def test_it_does_not_matter_what_kind_of_containers_an_event_is_made_of() -> None:
    """Any mapping is an object, and a tuple is a list."""
    plain = message("hello Robert", m_mentions={"user_ids": ["@bob:test", "@x:test"], "room": True})

    for document in (plain, frozen(plain), OrderedDict(plain)):
        read = Event(document)
        assert read.mentioned == {(str, "@bob:test"), (str, "@x:test")}
        assert (read.body, read.sender, read.has_mentions) == ("hello robert", "@carol:test", True)


@pytest.mark.parametrize("wrong", [None, 5, True, 1.5, [], ["x"], {}, {"x": 1}])
def test_wrong_types_are_no_error(wrong: Any) -> None:
    """They hold nothing that could match."""
    read = Event({"sender": wrong, "state_key": wrong, "content": {"body": wrong, "m.mentions": wrong}})

    assert (read.sender, read.state_key, read.body, read.words) == (None, None, None, frozenset())
    assert read.mentioned == frozenset()
    assert read.has_mentions
    assert not Event({"content": wrong}).has_mentions


def test_an_empty_event_holds_nothing() -> None:
    """And asking it for anything is no error."""
    read = Event({})

    assert (read.sender, read.state_key, read.body, read.has_mentions) == (None, None, None, False)


def test_the_words_of_the_body_are_folded() -> None:
    """And worked out once."""
    read = Event(message("Hello, WORLD hello"))

    assert read.words == {"hello", "world"}
    assert read.words is read.words
