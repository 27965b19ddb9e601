"""Bodies are read from canonical bytes, or refused for the right reason and with the right field."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.arkret.errors import ArkretRefused
from heliograph.arkret.reading import read_handoff, read_notify
from heliograph.arkret.schema import BlindNotify, HandoffActive, HandoffRevoked, VisibleNotify
from heliograph.wire import canonical
from tests.arkret import make


def refusal(read: Any, body: bytes, **options: Any) -> tuple[str, str | None]:
    """Return the code and the field of the refusal that reading ends in."""
    with pytest.raises(ArkretRefused) as caught:
        read(body, **options)
    return caught.value.code.code, caught.value.field


def ending(read: Any, body: bytes, **options: Any) -> str:
    """Return ``read``, or the code of the refusal."""
    try:
        read(body, **options)
    except ArkretRefused as refused:
        return refused.code.code
    return "read"


def test_a_canonical_blind_body_is_read_with_its_digest() -> None:
    """The digest is SHA-256 over the very bytes."""
    body = (
        b'{"notification":{"devices":[{"device_id":"ak:device:0192f3a1-4c2b-7d5e-9f10-2a3b4c5d6e7f"}],'
        b'"push_target_id":"ak:pseudonym:push:kosc9iQ4gVct1OB-b6X364WIFIsJFVbVzn7BMBs1sm8",'
        b'"wakeup_kind":"message"}}'
    )

    reading = read_notify(body)

    assert reading.value == make.notify()
    assert reading.digest == "sha256:" + hashlib.sha256(body).hexdigest()


def test_each_form_is_read_as_its_own_type() -> None:
    """The two forms of a notify and the two states of a handoff are never mixed."""
    values = [
        read_notify(canonical.encode(make.notify_body())).value,
        read_notify(canonical.encode(make.visible_body(realm_title="Grüße"))).value,
        read_handoff(canonical.encode(make.active_body())).value,
        read_handoff(canonical.encode(make.revoked_body())).value,
    ]

    assert [type(value) for value in values] == [BlindNotify, VisibleNotify, HandoffActive, HandoffRevoked]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_canonical_json"),
        (b"{", "invalid_canonical_json"),
        (b"\xff", "invalid_canonical_json"),
        (b"\xef\xbb\xbf{}", "invalid_canonical_json"),
        (b'{"a":1,"a":1}', "invalid_canonical_json"),
        (b'{"a":NaN}', "invalid_canonical_json"),
        (b'{"a":1.5}', "invalid_canonical_json"),
        (b'{"a":"\\ud800"}', "invalid_canonical_json"),
        (b'{"a":"\\ufeff"}', "invalid_canonical_json"),
        (b'{"a":9007199254740992}', "invalid_canonical_json"),
        (b"{} ", "invalid_canonical_json"),
        (b"{}x", "invalid_canonical_json"),
        (b"[]", "schema_violation"),
        (b"null", "schema_violation"),
        (b"{}", "schema_violation"),
        (b"[" * 65 + b"]" * 65, "schema_violation"),
        (b"[" * 100_000 + b"]" * 100_000, "schema_violation"),
    ],
)
@pytest.mark.parametrize("read", [read_notify, read_handoff])
def test_what_is_no_body_is_refused_for_what_it_is(read: Any, body: bytes, code: str) -> None:
    """Not JSON and not canonical are one code, the wrong shape another."""
    assert refusal(read, body)[0] == code


def test_too_deep_a_body_says_so() -> None:
    """Nesting has a registered finer reason."""
    with pytest.raises(ArkretRefused) as caught:
        read_notify(b"[" * 65 + b"]" * 65)

    assert caught.value.reason_code == "structure_depth_exceeded"


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(make.notify_body()).encode(),
        canonical.encode(make.notify_body()) + b"\n",
        canonical.encode(make.notify_body()).replace(b"message", b"\\u006dessage"),
        canonical.encode(make.notify_body(evaluation_locus_unresolved=True)).replace(b"true", b"true "),
    ],
)
def test_bytes_that_are_not_canonical_are_refused_unless_the_trust_entry_relaxes_it(body: bytes) -> None:
    """What was signed must be what is meant; relaxed, the identity is the canonical form's."""
    assert refusal(read_notify, body) == ("invalid_canonical_json", None)
    assert read_notify(body, canonical_required=False).digest.startswith("sha256:")


def test_relaxed_reading_still_refuses_duplicate_members() -> None:
    """Two readers could take them two ways."""
    body = b'{"notification":{"wakeup_kind":"message","wakeup_kind":"mention"}}'

    assert refusal(read_notify, body, canonical_required=False)[0] == "invalid_canonical_json"


def test_members_in_another_order_have_one_digest_when_relaxed() -> None:
    """The digest identifies what is said, not how."""
    body = make.notify_body()
    backwards = json.dumps(dict(reversed(body["notification"].items())))

    loose = read_notify(f'{{"notification":{backwards}}}'.encode(), canonical_required=False)

    assert loose.digest == read_notify(canonical.encode(body)).digest


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"wakeup_kind": None}, "notification.wakeup_kind"),
        ({"wakeup_kind": "whisper"}, "notification.wakeup_kind"),
        ({"content": "Hello Bob"}, "notification.content"),
        ({"devices": []}, "notification.devices"),
        ({"devices": [{"device_id": "phone"}]}, "notification.devices[0].device_id"),
        ({"counts": {"unread_increment": 100}}, "notification.counts.unread_increment"),
        ({"route_tokens": {"realm_route_token": "short"}}, "notification.route_tokens.realm_route_token"),
    ],
)
def test_a_wrong_member_is_named_and_its_value_is_not_repeated(changes: dict[str, Any], field: str) -> None:
    """The caller learns where, and nothing that was secret travels back."""
    with pytest.raises(ArkretRefused) as caught:
        read_notify(canonical.encode(make.notify_body(**changes)))

    assert (caught.value.code.code, caught.value.field) == ("schema_violation", field)
    assert "Hello Bob" not in caught.value.detail


def test_a_push_key_of_the_wrong_type_is_not_repeated() -> None:
    """The complaint of a schema library may quote the value."""
    body = canonical.encode(make.active_body(push_key=["planted-push-key"]))

    with pytest.raises(ArkretRefused) as caught:
        read_handoff(body)

    assert caught.value.field == "push_key"
    assert "planted" not in caught.value.detail


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00.000Z", "2026-02-29T00:00:00.000Z"])
def test_an_expiry_on_a_day_that_does_not_exist_is_a_schema_violation(text: str) -> None:
    """Its pattern is right; the calendar is not."""
    body = canonical.encode(make.active_body(expires_at=text))

    assert refusal(read_handoff, body) == ("schema_violation", "expires_at")


def test_a_registration_cannot_supersede_itself() -> None:
    """It would be its own predecessor."""
    body = canonical.encode(make.active_body(supersedes_registration_id=make.REGISTRATION))

    assert refusal(read_handoff, body) == ("schema_violation", "supersedes_registration_id")


def test_a_notify_names_at_most_256_devices() -> None:
    """256 are read; 257 are too large, not a wrong shape."""
    devices = [f"ak:device:0192f3a1-4c2b-7d5e-9f10-{i:012x}" for i in range(257)]

    assert (
        len(read_notify(canonical.encode(make.notify_body(*devices[:256]))).value.notification.devices) == 256
    )
    assert refusal(read_notify, canonical.encode(make.notify_body(*devices))) == (
        "payload_too_large",
        "notification.devices",
    )


@given(st.binary(max_size=200))
def test_no_bytes_end_in_anything_but_a_value_or_a_refusal(body: bytes) -> None:
    """Whatever arrives."""
    for read in (read_notify, read_handoff):
        assert ending(read, body) in {"read", "invalid_canonical_json", "schema_violation"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["push_target_id", "wakeup_kind", "devices", "counts", "event_id", "push_hint", "x"]),
        json_values,
    )
)
def test_no_shape_ends_in_anything_but_a_value_or_a_refusal(note: dict[str, Any]) -> None:
    """Nor whatever shape it has."""
    body = json.dumps({"notification": make.notify_body()["notification"] | note}).encode()

    assert ending(read_notify, body, canonical_required=False) in {
        "read",
        "invalid_canonical_json",
        "schema_violation",
    }


@pytest.mark.clause("S15")
@pytest.mark.parametrize(
    ("member", "characters"),
    [("sender_actor_display_name", 256), ("realm_title", 256), ("strand_title", 512)],
)
def test_a_label_fills_its_limits_of_characters_and_of_octets_at_once(member: str, characters: int) -> None:
    """The widest character has four octets, so 1,024 and 2,048 octets are reached and can never be passed."""
    widest = "\U0001f514" * characters

    full = read_notify(canonical.encode(make.visible_body(**{member: widest}))).value
    code, field = refusal(read_notify, canonical.encode(make.visible_body(**{member: widest + "\U0001f514"})))

    assert isinstance(full, VisibleNotify)
    assert len(getattr(full.notification, member).encode()) == characters * 4
    assert (code, field) == ("schema_violation", f"notification.{member}")


@pytest.mark.clause("S15")
@pytest.mark.parametrize("member", ["sender_actor_display_name", "realm_title", "strand_title"])
def test_a_label_is_refused_when_it_is_not_composed(member: str) -> None:
    """The strict reader takes no text outside normalization form C, so no label has to be looked at again."""
    body = json.dumps(
        make.visible_body(**{member: "Cafe\u0301"}), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    ).encode()

    assert refusal(read_notify, body)[0] == "invalid_canonical_json"
