"""Who may notify a whole room, in rooms of all ages."""

from typing import Any

import pytest

from heliograph.pushrules.matrix.power import PowerLevels

MAX = 2**53 - 1


def may(
    levels: Any, version: str = "10", creators: tuple[str, ...] = (), sender: str | None = "@c:test"
) -> bool:
    return PowerLevels(levels, version, creators).may_notify(sender, "room")


@pytest.mark.clause("M112")
@pytest.mark.parametrize("version", ["1", "9", "10", "11", "12", "org.example.13"])
def test_without_power_levels_only_the_creator_may(version: str) -> None:
    """The creator of such a room has 100, everybody else nothing, and 50 is needed."""
    assert may(None, version, ("@c:test",))
    assert not may(None, version, ("@other:test",))


@pytest.mark.clause("M112")
def test_from_version_12_on_creators_stand_above_every_level() -> None:
    """Whatever the levels say."""
    levels = {"users_default": -MAX, "notifications": {"room": MAX}}

    assert may(levels, "12", ("@c:test",))
    assert may(levels, "13", ("@a:test", "@c:test"))
    assert not may(levels, "11", ("@c:test",))
    assert not may(levels, "org.example.12", ("@c:test",))
    assert not may(levels, "1" * 5_000, ("@c:test",))


@pytest.mark.clause("M112")
@pytest.mark.parametrize("level", ["50", " +50 ", "0050", "\t50\n", 50.0, 50.9], ids=repr)
def test_old_rooms_may_spell_a_level_otherwise(level: Any) -> None:
    """Before version 10 it may be a text; from then on that is no level."""
    assert may({"users": {"@c:test": level}}, "9")
    assert not may({"users": {"@c:test": level}}, "10")


NO_LEVELS = [
    None,
    "",
    " ",
    "+",
    "-",
    "fifty",
    "5_0",
    "5 0",
    "\u0665\u0660",
    "0x32",
    "1e2",
    "9" * 65,
    "9" * 5_000,
]


@pytest.mark.clause("M112", "M113")
@pytest.mark.parametrize("level", [*NO_LEVELS, [50], {}, True, float("nan"), float("inf")], ids=repr)
def test_what_is_no_level_counts_as_not_set(level: Any) -> None:
    """In every version: 0 for the sender, 50 for the notification."""
    for version in ("9", "10"):
        assert not may({"users": {"@c:test": level}}, version)
        assert not may({"users_default": level}, version)
        assert may({"users": {"@c:test": 50}, "notifications": {"room": level}}, version)
        assert may({"users": {"@c:test": level}, "users_default": 50}, version)


@pytest.mark.clause("M112")
@pytest.mark.parametrize("wrong", [None, 5, "50", [], ["@c:test"]])
def test_levels_of_the_wrong_type_count_as_not_set(wrong: Any) -> None:
    """Nothing breaks on them."""
    assert not may({"users": wrong, "notifications": wrong, "users_default": wrong})


@pytest.mark.clause("M112")
def test_levels_beyond_every_machine_word_compare_correctly() -> None:
    """Old rooms can carry them."""
    assert may({"users": {"@c:test": 2**80}, "notifications": {"room": 2**79}})
    assert not may({"users": {"@c:test": 2**79}, "notifications": {"room": 2**80}})
    assert not may({"users": {"@c:test": -(2**80)}})


@pytest.mark.clause("M112")
def test_a_sender_that_is_no_text_has_the_default_level() -> None:
    """It is nobody's creator either."""
    assert not may({"users": {"@c:test": 100}}, sender=None)
    assert may({"users_default": 50}, sender=None)
