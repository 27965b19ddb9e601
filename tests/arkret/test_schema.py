"""The wire bodies are closed, and say what belongs together."""

from typing import Any

import msgspec
import pytest

from heliograph.arkret.schema import (
    BlindNotify,
    DeviceOutcome,
    HandoffActive,
    HandoffOutcome,
    HandoffRevoked,
    NotifyOutcome,
    VisibleNotify,
    conserved,
)
from heliograph.wire.ids import PushTargetIdText
from tests.arkret import make
from tests.shared import shared_json

TYPES: dict[str, Any] = {
    "push_notify_outcome": NotifyOutcome,
    "push_notify_device_outcome": DeviceOutcome,
    "push_notify_request_body": BlindNotify | None,
    "push_target_id": PushTargetIdText,
    "push_registration_handoff_outcome": HandoffOutcome,
}


def legal(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def legal_handoff(value: Any) -> bool:
    return legal(value, HandoffActive) or legal(value, HandoffRevoked)


@pytest.mark.clause("R145", "R296", "R300", "R301", "R302", "R319")
def test_the_published_outcome_and_handoff_cases_are_judged_as_published() -> None:
    """Shape by the closed types; conservation by the rule that no schema can say."""
    fixture = shared_json("spec/arkret/fixtures/push-notify-outcome-fixture.json")
    request = msgspec.convert(fixture["request_context"]["instance"], BlindNotify)
    judged = 0
    for case in fixture["schema_validation_cases"]:
        name = case["schema_ref"].rpartition("/")[2]
        instance = case["instance"]
        if name == "push_registration_handoff_request_body":
            told = legal_handoff(instance)
        elif name in TYPES:
            told = legal(instance, TYPES[name])
        else:
            continue  # the device route's own state is the Station's
        judged += 1

        assert told == case["expect_valid"], case["name"]
        if name == "push_notify_outcome" and told:
            fair = conserved(request, msgspec.convert(instance, NotifyOutcome))
            assert fair == (case["semantic_outcome"] == "accept"), case["name"]
    assert judged == 24


@pytest.mark.clause("R248")
def test_a_device_named_twice_is_a_schema_violation() -> None:
    """Even where both items look alike."""
    assert not legal(make.notify_body(make.DEVICE, make.DEVICE), BlindNotify)


@pytest.mark.clause("R018", "R019")
@pytest.mark.parametrize(
    ("target", "ok"),
    [
        (make.TARGET, True),
        (make.TARGET[:-1] + "9", False),
        (make.TARGET[:-1], False),
        (make.TARGET + "\n", False),
        (make.TARGET.removeprefix("ak:pseudonym:push:"), False),
        ("ak:pseudonym:push:" + "A" * 22, False),
    ],
)
def test_a_push_target_is_32_octets_in_canonical_form(target: str, ok: bool) -> None:
    """The last character may leave no stray bits, and a newline is not part of an id."""
    assert legal(make.notify_body(push_target_id=target), BlindNotify) == ok


@pytest.mark.clause("R227", "R228")
@pytest.mark.parametrize(
    ("changes", "ok"),
    [
        ({"push_hint": "l10n_key", "push_hint_l10n_key": "push.new_message"}, True),
        ({"push_hint": "new_message"}, True),
        ({"push_hint": "l10n_key"}, False),
        ({"push_hint_l10n_key": "push.new_message"}, False),
        ({"push_hint": "new_message", "push_hint_l10n_key": "push.new_message"}, False),
        ({"push_hint": "push.new_message"}, False),
        ({"push_hint": "l10n_key", "push_hint_l10n_key": "See you at eight, Bob"}, False),
    ],
)
def test_a_localisation_key_stands_exactly_beside_its_sentinel(changes: dict[str, Any], ok: bool) -> None:
    """And it is a key token: a sentence would be a message body on its way to a provider."""
    assert legal(make.notify_body(**changes), BlindNotify) == ok


@pytest.mark.clause("R221", "R327", "R281", "R283", "R357")
@pytest.mark.parametrize(
    "member",
    [
        "event_id",
        "realm_id",
        "sender_actor_id",
        "kind",
        "content",
        "content_preview",
        "body",
        "preview",
        "summary",
        "payload",
        "data",
        "extra",
        "provider_payload",
        "title",
        "mention_route_token",
        "timing_hint",
        "dnd",
        "push_key",
    ],
)
def test_a_blind_body_has_no_place_for_what_it_must_not_say(member: str) -> None:
    """Neither identities, nor content, nor timing, nor a mention route."""
    assert not legal(make.notify_body(**dict[str, Any]({member: "x"})), BlindNotify)


@pytest.mark.clause("R221", "R251")
@pytest.mark.parametrize("token", ["mention_route_token", "actor_route_token"])
def test_route_tokens_are_two_and_no_more(token: str) -> None:
    """There is no token that would route by mention."""
    assert not legal(make.notify_body(route_tokens={token: "r" * 22}), BlindNotify)


@pytest.mark.clause("R249")
@pytest.mark.parametrize("member", ["push_key", "app_id", "platform", "visible_notification_opt_in"])
def test_a_device_is_named_by_its_id_alone(member: str) -> None:
    """Routes and consent come from the registration; a notify cannot override them."""
    body = make.notify_body(devices=[{"device_id": make.DEVICE, member: "x"}])

    assert not legal(body, BlindNotify)


@pytest.mark.parametrize("missing", ["event_id", "realm_id", "sender_actor_id"])
def test_a_visible_body_has_all_three_identities_or_matches_no_branch(missing: str) -> None:
    """A body between the two forms is neither."""
    body = make.visible_body(**{missing: None})

    assert not legal(body, VisibleNotify)
    assert not legal(body, BlindNotify)


@pytest.mark.clause("R281", "R290")
@pytest.mark.parametrize("member", ["content", "body", "preview", "summary", "content_text", "provider_data"])
def test_the_visible_form_adds_no_room_for_text_of_its_own(member: str) -> None:
    """Only the listed labels; a body stays illegal."""
    assert not legal(make.visible_body(**{member: "x"}), VisibleNotify)


@pytest.mark.clause("R290")
@pytest.mark.parametrize("title", ["two\nlines", "\u202eabc", " ", "", "\ufeff", "x" * 513])
def test_a_visible_label_is_one_printable_line(title: str) -> None:
    """No control, no bidirectional override, not blank, not longer than its limit."""
    assert not legal(make.visible_body(strand_title=title), VisibleNotify)


@pytest.mark.parametrize(
    ("counts", "ok"),
    [
        ({"badge": True}, True),
        ({"badge": "2-5"}, True),
        ({"badge": "21+"}, True),
        ({"unread_increment": 99}, True),
        ({"unread_increment": 100}, False),
        ({"unread_increment": -1}, False),
        ({"unread_increment": True}, False),
        ({"badge": 5}, False),
        ({"badge": "05"}, False),
        ({"badge": "2-5\n"}, False),
        ({"badge": "1" * 33}, False),
        ({"missed_call": 3}, False),
        ({"total": True}, False),
    ],
)
def test_counts_hold_flags_buckets_and_a_bounded_increment(counts: dict[str, Any], ok: bool) -> None:
    """An absolute number has no place to stand in."""
    assert legal(make.notify_body(counts=counts), BlindNotify) == ok


@pytest.mark.parametrize(
    "member", ["visible_notification_opt_in", "push_key", "registration_id", "device_id"]
)
def test_an_active_handoff_says_everything_itself(member: str) -> None:
    """Consent has no default: leaving it out is not a no, it is no legal body."""
    assert not legal_handoff(make.active_body(**{member: None}))


@pytest.mark.parametrize("member", ["push_key", "app_id", "visible_notification_opt_in", "expires_at"])
def test_a_revoked_handoff_carries_no_route(member: str) -> None:
    """It is the end of a route, not a copy of it."""
    assert not legal_handoff(make.revoked_body(**{member: "x"}))


@pytest.mark.clause("R096")
@pytest.mark.parametrize("member", ["account_id", "principal_id", "realm_id", "session_grant", "handle"])
def test_a_handoff_discloses_no_account(member: str) -> None:
    """The Gateway handles routes, not people."""
    assert not legal_handoff(make.active_body(**{member: "x"}))


@pytest.mark.parametrize(
    "registration_id",
    ["a" * 21, "a" * 129, "ak:" + "a" * 30, "a" * 22 + "\n", "a" * 21 + "ä", "a" * 21 + " "],
)
def test_a_registration_id_is_opaque_and_of_a_fixed_alphabet(registration_id: str) -> None:
    """It is no typed id, and too short a one could be guessed."""
    assert not legal_handoff(make.active_body(registration_id=registration_id))


def test_a_push_key_is_nowhere_in_what_a_handoff_shows_of_itself() -> None:
    """A repr ends up in logs."""
    assert "stub-key" not in repr(make.active())
