"""Which tracks an Event belongs to."""

from typing import Any

import pytest
from hypothesis import given

from heliograph.pushrules.arkret.track import derive_tracks
from tests.pushrules.arkret.make import STRAND
from tests.pushrules.arkret.strategies import JSON

BOTH = frozenset({"discussion", "synthesis"})


@pytest.mark.parametrize(
    "kind",
    ["ak.message.create", "ak.message.revise", "ak.message.redact", "ak.reaction.add", "ak.reaction.remove"],
)
@pytest.mark.clause("R160", "R163")
def test_messages_and_reactions_are_discussion(kind: str) -> None:
    """Whatever their payload claims, and whether or not it can be read."""
    assert derive_tracks(kind, STRAND, {"track_name": "synthesis"}, None) == frozenset({"discussion"})


@pytest.mark.parametrize(
    "patch",
    [
        {"tracks.synthesis.content": "x"},
        {"tracks.synthesis.encrypted_content": {}},
        {"tracks": {"synthesis": {"content": "x"}}},
        {"tracks.synthesis": {"content": None}},
        {"tracks": {"synthesis.encrypted_content": "x"}, "title": "y"},
    ],
)
@pytest.mark.clause("R160", "R164")
def test_new_synthesis_content_is_synthesis_while_that_track_is_active(patch: dict[str, Any]) -> None:
    """A track that is off derives nothing; a state that is not here cannot tell."""
    payload = {"patch": patch}

    assert derive_tracks("ak.strand.update", STRAND, payload, BOTH) == frozenset({"synthesis"})
    assert derive_tracks("ak.strand.update", STRAND, payload, frozenset({"discussion"})) == frozenset()
    assert derive_tracks("ak.strand.update", STRAND, payload, None) is None


@pytest.mark.parametrize(
    "patch",
    [
        {"content": "x"},
        {"encrypted_content": "x"},
        {"title": "x", "status": "done", "metadata": {"tracks": {"synthesis": {"content": 1}}}},
        {"tracks.synthesis.enabled": True},
        {"tracks": {"discussion": {"content": "x"}}},
        {},
        None,
        [],
    ],
)
@pytest.mark.clause("R165")
def test_the_base_of_a_strand_is_no_track(patch: object) -> None:
    """Description, metadata, status and title belong to none, so nothing has to be known of the state."""
    assert derive_tracks("ak.strand.update", STRAND, {"patch": patch}, None) == frozenset()


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "ak.strand.create",
            "ak.strand.archive",
            "ak.strand.restore",
            "ak.strand.move",
            "ak.strand.reorder",
        ),
        *("ak.strand.watch.set", "ak.call.signal", None),
    ],
)
@pytest.mark.clause("R166", "R168")
def test_the_life_of_a_strand_and_who_watches_it_are_no_track(kind: str | None) -> None:
    """Also where the payload holds a patch."""
    patch = {"patch": {"tracks.synthesis.content": "x"}}

    assert derive_tracks(kind, STRAND, patch, BOTH) == frozenset()


@pytest.mark.clause("R167")
def test_each_track_that_is_configured_is_derived() -> None:
    """A set; what is no name of a track is left out."""
    patch = {"tracks.synthesis.enabled": True, "tracks": {"discussion": {"primary": True}, "Not a name": 1}}

    assert derive_tracks("ak.strand.tracks.update", STRAND, {"patch": patch}, None) == BOTH


@pytest.mark.clause("R169")
def test_an_event_outside_strands_has_no_track() -> None:
    """And is no error."""
    assert derive_tracks("ak.message.create", None, {}, BOTH) == frozenset()


@given(JSON)
@pytest.mark.clause("R160")
def test_any_payload_derives_something(payload: Any) -> None:
    """Nothing in a payload can raise, or name a track that is not well formed."""
    for kind in ("ak.strand.update", "ak.strand.tracks.update"):
        for value in (payload, {"patch": payload}, {"patch": {"tracks": payload}}):
            assert all(name.islower() for name in derive_tracks(kind, STRAND, value, BOTH) or ())
