"""What a rule does: notify or not, and the tweaks."""

from typing import Any

import pytest

from heliograph.pushrules.matrix.actions import ACTIONS_MAX, read_actions
from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from heliograph.pushrules.matrix.spelling import unspell
from tests.pushrules.matrix.make import HIGHLIGHT, SOUND


@pytest.mark.clause("M004")
@pytest.mark.parametrize(
    ("actions", "notify"),
    [
        ([], False),
        (["notify"], True),
        (["dont_notify"], False),
        (["coalesce"], True),
        (["dont_notify", "notify"], True),
        (["notify", "dont_notify"], True),
        ([SOUND], False),
    ],
)
def test_only_a_word_for_notify_notifies(actions: list[Any], notify: bool) -> None:
    """``dont_notify`` is an older word for nothing; it takes nothing back."""
    assert read_actions(actions).notify is notify


@pytest.mark.parametrize(
    ("actions", "tweaks"),
    [
        ([HIGHLIGHT], {"highlight": True}),
        ([{"set_tweak": "sound"}], {"sound": "default"}),
        ([{"set_tweak": "org.example.led"}], {"org.example.led": True}),
        ([{"set_tweak": "highlight", "value": False}], {"highlight": False}),
        ([SOUND, {"set_tweak": "sound", "value": "ring"}], {"sound": "ring"}),
        ([{"set_tweak": "x", "value": {"rgb": [1, None]}}], {"x": {"rgb": [1, None]}}),
        ([{"set_tweak": "sound", "value": None}], {"sound": None}),
    ],
)
def test_tweaks_say_how_to_notify(actions: list[Any], tweaks: dict[str, Any]) -> None:
    """The last of a name wins; without a value one is true, and a sound the default sound."""
    assert read_actions(actions).tweaks == tweaks


@pytest.mark.parametrize(
    ("actions", "highlight"),
    [
        (["notify", HIGHLIGHT], True),
        ([HIGHLIGHT], False),
        (["notify"], False),
        (["notify", {"set_tweak": "highlight", "value": False}], False),
        (["notify", {"set_tweak": "highlight", "value": "yes"}], True),
        (["notify", {"set_tweak": "highlight", "value": None}], False),
    ],
)
def test_a_notification_stands_out_when_its_highlight_is_set(actions: list[Any], highlight: bool) -> None:
    """What notifies nobody cannot stand out."""
    assert read_actions(actions).highlight is highlight


def test_actions_are_kept_as_they_were_given() -> None:
    """Older words and members that mean nothing to us are shown again as they were written."""
    given = ["dont_notify", "coalesce", {"set_tweak": "sound", "value": 1.0, "more": {"a": [True, 1]}}]

    assert unspell(read_actions(given).spelled) == given


def test_actions_do_not_change_with_what_they_were_read_from() -> None:
    """A rule that is shared by a whole room must not be anybody's to change."""
    value = {"a": [1]}
    actions = read_actions(["notify", {"set_tweak": "x", "value": value}])

    value["a"].append(2)

    assert actions.tweaks == {"x": {"a": [1]}}
    with pytest.raises(TypeError):
        actions.tweaks["x"] = 5  # type: ignore[index]


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (1, 1.0), (0, False), (None, False), ("1", 1)], ids=repr
)
def test_actions_that_differ_in_type_alone_are_different(one: Any, other: Any) -> None:
    """Though Python takes some of these for equal."""
    actions = [read_actions([{"set_tweak": "x", "value": value}]) for value in (one, other)]

    assert actions[0] != actions[1]


@pytest.mark.parametrize(
    ("actions", "fault", "field"),
    [
        ("notify", Fault.INVALID, "actions"),
        (None, Fault.INVALID, "actions"),
        ({"notify": 1}, Fault.INVALID, "actions"),
        (["notify", "shout"], Fault.INVALID, "actions[1]"),
        (["NOTIFY"], Fault.INVALID, "actions[0]"),
        ([5], Fault.INVALID, "actions[0]"),
        ([None], Fault.INVALID, "actions[0]"),
        ([["notify"]], Fault.INVALID, "actions[0]"),
        ([{}], Fault.INVALID, "actions[0]"),
        ([{"set_tweak": 5}], Fault.INVALID, "actions[0]"),
        ([{"value": "ring"}], Fault.INVALID, "actions[0]"),
        ([{"set_tweak": "x", "value": float("nan")}], Fault.INVALID, "actions"),
        ([{"set_tweak": "x", "value": {1: 2}}], Fault.INVALID, "actions"),
        ([{"set_tweak": "x", "value": b"x"}], Fault.INVALID, "actions"),
        ([{"set_tweak": "x", "value": 2**1_024}], Fault.INVALID, "actions"),
        (["notify"] * (ACTIONS_MAX + 1), Fault.TOO_LARGE, "actions"),
        ([{"set_tweak": "x", "value": "x" * 65_536}], Fault.TOO_LARGE, "actions"),
    ],
    ids=[str(number) for number in range(17)],
)
def test_what_are_no_actions_is_refused(actions: Any, fault: Fault, field: str) -> None:
    """With the place; and nothing of what was written is repeated."""
    with pytest.raises(RuleRefused) as refused:
        read_actions(actions)

    assert (refused.value.fault, refused.value.field) == (fault, field)
    assert "shout" not in str(refused.value)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    """Not with a traceback, however deep it is."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(RuleRefused) as refused:
        read_actions(["notify", {"set_tweak": "x", "value": deep}])

    assert refused.value.fault is Fault.TOO_LARGE
