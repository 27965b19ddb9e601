"""An application id finds its own provider, and never another's."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.delivery.applications import APP_ID_CHARACTERS_MAX, GLOBS_MAX, Applications, AppTable, overlap
from heliograph.delivery.provider import Provider
from heliograph.providers.stub.exchange import StubProvider
from heliograph.providers.stub.settings import StubSettings
from heliograph.pushrules.glob import Glob
from heliograph.wire.malformed import Malformed


def stub() -> Provider:
    return StubProvider(StubSettings())


def test_a_dot_in_an_id_is_a_dot() -> None:
    """Elsewhere it stood for any character once, and one application got another's pushes."""
    table = AppTable({"com.x": "one"})

    assert table.find("com.x") == "one"
    assert table.find("comAx") is None


def test_an_exact_id_goes_before_globs_and_the_most_literal_glob_before_others() -> None:
    """However they are ordered in the file."""
    table = AppTable({"*": 1, "com.example.*": 2, "com.example.chat": 3, "com.example.chat.*": 4, "com.?": 5})

    assert table.find("com.example.chat") == 3
    assert table.find("com.example.chat.beta") == 4
    assert table.find("com.example.mail") == 2
    assert table.find("com.x") == 5
    assert table.find("org.example") == 1


def test_a_glob_does_not_reach_beyond_what_it_says() -> None:
    """A question mark is one character, no less; case counts."""
    table = AppTable({"com.example.?": 1})

    assert table.find("com.example.") is None
    assert table.find("com.example.ab") is None
    assert table.find("COM.example.a") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [("com.*.x", "*.com.x"), ("a*", "*a"), ("a?", "?a"), ("ab*", "a*b"), ("*", "**")],
)
def test_two_globs_that_could_both_claim_an_id_are_refused(one: str, other: str) -> None:
    """Nobody should have to know in which order they stand."""
    with pytest.raises(Malformed, match="could both claim an id"):
        AppTable({one: 1, other: 2})


def test_globs_of_equal_rank_that_never_meet_are_fine() -> None:
    """One for each of two platforms."""
    table = AppTable({"com.example.ios*": "apns", "com.example.and*": "fcm"})

    assert table.find("com.example.ios.dev") == "apns"
    assert table.find("com.example.android") == "fcm"


@given(st.text("ab?*", max_size=5), st.text("ab?*", max_size=5))
def test_globs_overlap_where_some_text_matches_both(one: str, other: str) -> None:
    """Judged against every text that could be the witness."""
    texts = ("".join(text) for length in range(9) for text in product("ab", repeat=length))
    first, second = Glob(one), Glob(other)

    assert overlap(one, other) == any(first.matches(text) and second.matches(text) for text in texts)
    assert overlap(one, other) == overlap(other, one)


@pytest.mark.parametrize(
    "keys",
    [[""], ["x" * (APP_ID_CHARACTERS_MAX + 1)], [f"{number:03}*" for number in range(GLOBS_MAX + 1)]],
)
def test_a_table_without_measure_is_refused(keys: list[str]) -> None:
    """At the start, by name."""
    with pytest.raises(Malformed, match="apps"):
        AppTable(dict.fromkeys(keys, 1))


def test_the_default_application_is_whoever_names_none() -> None:
    """And may be one that a glob stands for; the id that was asked for is the one that is kept."""
    provider = stub()
    applications = Applications({"com.example.*": provider}, "com.example.chat")

    found = applications.resolve(None)
    assert found is not None
    assert (found.app_id, found.provider) == ("com.example.chat", provider)
    assert applications.exists("com.example.any")
    assert Applications({}, None).resolve(None) is None


def test_others_put_in_their_place_serve_from_then_on_and_a_bad_table_changes_nothing() -> None:
    """Who holds the old provider may finish with it."""
    old, new = stub(), stub()
    applications = Applications({"com.example.chat": old})
    held = applications.resolve("com.example.chat")

    applications.replace({"com.example.chat": new})
    with pytest.raises(Malformed):
        applications.replace({"a*": old, "*a": old})

    assert held is not None
    assert held.provider is old
    found = applications.resolve("com.example.chat")
    assert found is not None
    assert found.provider is new
