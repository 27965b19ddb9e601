"""Only a device of the holder writes account data."""

import contextlib
from typing import Any

import pytest
from hypothesis import given

from heliograph.arkret.client.account_data import AccountSecret, seal_value
from heliograph.arkret.client.holder import Write, sign_event, verify_write, write_event
from heliograph.arkret.client.kept import Key
from heliograph.pushrules.document import DocumentRefused
from heliograph.signing.ed25519 import SigningKey
from heliograph.wire import base64url, canonical
from heliograph.wire.ids import VerificationMethod
from tests.pushrules.arkret.make import ALICE, BOB
from tests.pushrules.arkret.strategies import JSON

METHOD = VerificationMethod("did:web:alice.example#device-1")
OTHER = VerificationMethod("did:web:alice.example#device-2")
BOBS = VerificationMethod("did:web:bob.example#device-1")
KEY, OTHER_KEY, BOBS_KEY = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3))
DEVICES = {METHOD: KEY.verify_key}
AT = 1_790_000_000_000

ENVELOPE = seal_value(AccountSecret(bytes(32)), ALICE, Key.PUSH_RULES, {"rules": []}, bytes(24))
WRITE = Write(Key.PUSH_RULES, 3, ENVELOPE)


def signed(**changes: Any) -> dict[str, Any]:
    """Return a signed write; members are changed before it is signed."""
    return sign_event(write_event(ALICE, WRITE, AT) | changes, METHOD, KEY, AT)


def refusal(event: object) -> str:
    with pytest.raises(DocumentRefused) as refused:
        verify_write(event, ALICE, DEVICES)
    assert refused.value.clause == "R347"
    return refused.value.field


@pytest.mark.clause("R347")
def test_what_a_device_of_the_holder_signs_is_a_write() -> None:
    """Key, revision and sealed value come out as they went in."""
    assert verify_write(signed(), ALICE, DEVICES) == WRITE
    assert verify_write(signed(prev_refs=[], actor_seq=7), ALICE, DEVICES) == WRITE


@pytest.mark.clause("R347")
def test_the_signature_covers_the_event_its_author_and_its_key() -> None:
    """Worked out from the text: digest without id and proofs, then the bound object, then the JWS."""
    event = signed()
    [proof] = event["proofs"]
    bare = {name: event[name] for name in ("kind", "actor_id", "created_at", "payload")}
    digest = canonical.digest(bare)
    bound = (
        '{"actor_id":{"account_id":{"principal_id":"ak:did_core:web:alice.example","station_id":'
        '"ak:did_core:web:station.example"},"kind":"account"},"context":"ak.event_proof.v1",'
        '"created_at":"2026-09-21T14:13:20.000Z","event_digest":"' + digest + '",'
        '"verification_method":"did:web:alice.example#device-1"}'
    )
    header = "eyJhbGciOiJFZDI1NTE5In0"
    signature = KEY.sign(f"{header}.{base64url.encode(bound.encode())}".encode())

    assert proof["event_digest"] == digest
    assert proof["jws"] == f"{header}..{base64url.encode(signature)}"
    assert event["event_id"] == "ak:event:" + base64url.encode(b"\x01" + bytes.fromhex(digest[7:]))


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (None, "kind"),
        (signed() | {"kind": "ak.account.blocklist"}, "kind"),
        (signed(kind="ak.message.create"), "kind"),
        (signed() | {"actor_id": BOB.members()}, "actor_id"),
        (signed() | {"payload": WRITE.payload() | {"expected_server_revision": 4}}, "proofs[0].event_digest"),
        (signed() | {"created_at": "2026-09-21T14:13:20.001Z"}, "proofs[0].event_digest"),
        (signed() | {"extra": 0.5}, "proofs[0].event_digest"),
        (signed() | {"extra": float("inf")}, ""),
        (signed() | {"event_id": "ak:event:x"}, "event_id"),
        (signed() | {"proofs": []}, "proofs"),
        (signed() | {"proofs": signed()["proofs"] * 2}, "proofs"),
        (signed() | {"proofs": [None]}, "proofs[0]"),
        (signed() | {"proofs": [signed()["proofs"][0] | {"domain": "x"}]}, "proofs[0].domain"),
        (signed() | {"proofs": [signed()["proofs"][0] | {"kind": "jws"}]}, "proofs[0].kind"),
        (signed() | {"proofs": [signed()["proofs"][0] | {"jws": "x..y"}]}, "proofs[0].jws"),
        (signed() | {"proofs": [signed()["proofs"][0] | {"created_at": "x"}]}, "proofs[0].jws"),
        (
            signed()
            | {"proofs": [signed()["proofs"][0] | {"jws": "eyJhbGciOiJFZDI1NTE5In0.." + "A" * 85 + "!"}]},
            "proofs[0].jws",
        ),
        (sign_event(write_event(ALICE, WRITE, AT), OTHER, OTHER_KEY, AT), "proofs[0].verification_method"),
        (sign_event(write_event(ALICE, WRITE, AT), METHOD, OTHER_KEY, AT), "proofs[0].jws"),
        (signed(payload={}), "payload.key"),
        (signed(payload=WRITE.payload() | {"key": "ak.client.ui_state"}), "payload.key"),
        (
            signed(payload=WRITE.payload() | {"expected_server_revision": -1}),
            "payload.expected_server_revision",
        ),
        (signed(payload=WRITE.payload() | {"expected_revision": 3}), "payload.expected_revision"),
        (signed(payload=WRITE.payload() | {"body": {"rules": []}}), "payload.body.encrypted_payload"),
        (
            signed(payload=WRITE.payload() | {"body": {"encrypted_payload": "x"}}),
            "payload.body.encrypted_payload",
        ),
    ],
)
@pytest.mark.clause("R347")
def test_what_no_device_of_the_holder_signed_is_refused(event: object, field: str) -> None:
    """By the place where it shows."""
    assert refusal(event) == field


@pytest.mark.clause("R347")
def test_a_key_of_somebody_else_signs_nothing_even_if_it_is_listed() -> None:
    """A name belongs to its controller, whatever a list of devices says."""
    with pytest.raises(ValueError, match="device of its author"):
        sign_event(write_event(ALICE, WRITE, AT), BOBS, BOBS_KEY, AT)
    [proof] = signed()["proofs"]
    event = signed() | {"proofs": [proof | {"verification_method": BOBS}]}
    with pytest.raises(DocumentRefused) as refused:
        verify_write(event, ALICE, {BOBS: BOBS_KEY.verify_key, VerificationMethod("x"): KEY.verify_key})

    assert refused.value.field == "proofs[0].verification_method"
    nameless = signed() | {"proofs": [proof | {"verification_method": "x"}]}
    with pytest.raises(DocumentRefused) as refused:
        verify_write(nameless, ALICE, {VerificationMethod("x"): KEY.verify_key})
    assert refused.value.field == "proofs[0].verification_method"


@given(JSON)
def test_whatever_an_event_holds_it_is_a_write_or_refused(value: Any) -> None:
    """Nothing in it can raise anything else."""
    events = [value, signed() | {"payload": value}, signed() | {"proofs": value}, signed() | {"x": value}]
    with contextlib.suppress(ValueError):  # not everything that is JSON has a canonical form to be signed
        events.append(signed(payload=value))
    for event in events:
        with pytest.raises(DocumentRefused):
            verify_write(event, ALICE, DEVICES)


def test_an_event_of_any_depth_is_refused() -> None:
    """Also one that no reader would have let in."""
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}

    assert refusal(signed() | {"payload": deep}) == ""
