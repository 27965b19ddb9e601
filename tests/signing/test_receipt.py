"""A receipt proves that exactly this request was stored, by exactly that gateway."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import shared_json

from heliograph.signing.ed25519 import SigningKey
from heliograph.signing.receipt import (
    Receipt,
    ReceiptFault,
    ReceiptRefused,
    ReceiptState,
    binding,
    sign_receipt,
    verify_receipt,
)
from heliograph.wire import base64url, canonical
from heliograph.wire.ids import DeviceId, DidCoreId, PushTargetId, RegistrationId, VerificationMethod
from heliograph.wire.instant import parse_instant

KEY: Final = SigningKey(b"\x3d" * 32)
METHOD: Final = VerificationMethod("did:web:gateway.example#push-receipt-key")
SOURCE: Final = DidCoreId("ak:did_core:web:source.example")
GATEWAY: Final = DidCoreId("ak:did_core:web:gateway.example")
REQUEST: Final[dict[str, Any]] = {
    "registration_id": "registration_0123456789abcdef",
    "push_target_id": "ak:pseudonym:push:kosc9iQ4gVct1OB-b6X364WIFIsJFVbVzn7BMBs1sm8",
    "device_id": "ak:device:01904100-0000-7000-8000-000000000001",
    "state": "active",
    "push_key": "provider-secret",
    "visible_notification_opt_in": False,
}

ABSENT: Final = object()


def receipt(request: dict[str, Any] = REQUEST, stored_at: str = "2026-09-20T12:34:56.000Z") -> Receipt:
    return Receipt(
        RegistrationId(request["registration_id"]),
        PushTargetId(request["push_target_id"]),
        DeviceId(request["device_id"]),
        ReceiptState(request["state"]),
        canonical.digest(request),
        SOURCE,
        GATEWAY,
        parse_instant(stored_at, "stored_at"),
    )


def verified(
    document: Any,
    request: Any = REQUEST,
    source: str = SOURCE,
    destination: str = GATEWAY,
    method: str = METHOD,
) -> Receipt:
    return verify_receipt(
        document,
        request,
        DidCoreId(source),
        DidCoreId(destination),
        verification_method=VerificationMethod(method),
        key=KEY.verify_key,
    )


def changed(where: str, name: str, value: Any) -> dict[str, Any]:
    """A receipt that was changed after signing."""
    document: dict[str, Any] = sign_receipt(receipt(), METHOD, KEY)
    members = document["proof"] if where == "proof" else document
    members[name] = value
    if value is ABSENT:
        del members[name]
    return document


def resigned(name: str, value: str) -> dict[str, Any]:
    """A receipt of which one member was changed before its gateway digested and signed it."""
    document: dict[str, Any] = sign_receipt(receipt(), METHOD, KEY)
    proof = document.pop("proof")
    document[name] = value
    proof["payload_digest"] = canonical.digest(document)
    proof["created_at"] = document["stored_at"]
    proof["audience"] = document["source_station_id"]
    bound = canonical.encode(binding(document, proof["payload_digest"], METHOD))
    signing_input = "eyJhbGciOiJFZDI1NTE5In0." + base64url.encode(bound)
    proof["jws"] = "eyJhbGciOiJFZDI1NTE5In0.." + base64url.encode(KEY.sign(signing_input.encode()))
    return {**document, "proof": proof}


def fault(document: Any, request: Any = REQUEST, **who: str) -> ReceiptFault:
    with pytest.raises(ReceiptRefused) as caught:
        verified(document, request, **who)
    return caught.value.fault


@pytest.mark.clause("R123", "R133", "R134", "R135")
def test_the_worked_example_comes_out_octet_for_octet() -> None:
    """Digests, binding, signature and the whole response body, for an installation and for its end."""
    for case in shared_json("spec/arkret/fixtures/receipt-proof.WORKED-EXAMPLE.json")["cases"]:
        key = SigningKey(bytes.fromhex(case["ed25519_private_seed_hex"]))
        stored = receipt(case["request"], case["receipt"]["stored_at"])
        assert stored.request_digest == case["request_digest"]
        assert canonical.encode(stored.members()) == case["receipt_without_proof_canonical_utf8"].encode()
        assert binding(stored.members(), case["payload_digest"], METHOD) == case["binding_object"]
        document = sign_receipt(stored, METHOD, key)

        assert document == case["receipt"]
        assert canonical.encode({"receipt": document}) == case["response_body_canonical_utf8"].encode()
        assert verified(document, case["request"]) == stored


@pytest.mark.clause("R134")
def test_a_receipt_holds_nothing_of_the_route() -> None:
    """The provider's key is in the request's digest and nowhere else."""
    text = canonical.encode(sign_receipt(receipt(), METHOD, KEY)).decode()

    assert "provider-secret" not in text
    assert "push_key" not in text


@pytest.mark.clause("R123")
def test_signing_the_same_receipt_twice_gives_the_same_octets() -> None:
    """Ed25519 has no randomness, so even a lost store could not give two receipts."""
    assert sign_receipt(receipt(), METHOD, KEY) == sign_receipt(receipt(), METHOD, KEY)


def test_a_gateway_signs_only_for_itself() -> None:
    """A key of another service is our own mistake."""
    with pytest.raises(ValueError, match="gateway that it names"):
        sign_receipt(receipt(), VerificationMethod("did:web:other.example#k"), KEY)


@pytest.mark.clause("R135", "R137")
@pytest.mark.parametrize(
    "request_body",
    [
        {},
        {**REQUEST, "registration_id": "short"},
        {**REQUEST, "push_target_id": "x"},
        {**REQUEST, "device_id": None},
        {**REQUEST, "state": "paused"},
        {**REQUEST, "push_key": "\ud800"},
    ],
)
def test_a_request_that_was_none_has_no_receipt(request_body: dict[str, Any]) -> None:
    """The request is looked at before the receipt."""
    assert fault({}, request_body) == ReceiptFault.REQUEST


@pytest.mark.clause("R135", "R137")
@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("receipt", "proof", ABSENT),
        ("receipt", "stored_at", ABSENT),
        ("receipt", "push_key", "provider-secret"),
        ("receipt", "state", None),
        ("receipt", "registration_id", "\ud800"),
        ("receipt", "proof", "x"),
        ("proof", "jws", ABSENT),
        ("proof", "kid", "x"),
        ("proof", "jws", 1),
        ("proof", "kind", "jws"),
    ],
)
def test_a_receipt_is_closed(where: str, name: str, value: Any) -> None:
    """Members missing, added or of another type, in the receipt and in its proof."""
    assert fault(changed(where, name, value)) == ReceiptFault.SHAPE


@pytest.mark.parametrize("document", [None, [], "receipt", {}])
def test_what_is_no_receipt_is_refused(document: Any) -> None:
    """Any other JSON value."""
    assert fault(document) == ReceiptFault.SHAPE


@pytest.mark.clause("R133", "R135", "R137")
@pytest.mark.parametrize(
    ("where", "name", "value", "expected"),
    [
        ("receipt", "state", "revoked", ReceiptFault.PAYLOAD_DIGEST),
        ("receipt", "stored_at", "2026-09-20T12:34:56.001Z", ReceiptFault.PAYLOAD_DIGEST),
        ("proof", "payload_digest", "sha256:" + "0" * 64, ReceiptFault.PAYLOAD_DIGEST),
        ("proof", "created_at", "2026-09-20T12:34:56.001Z", ReceiptFault.CREATED_AT),
        ("resigned", "stored_at", "2026-09-20T12:34:56Z", ReceiptFault.CREATED_AT),
        ("proof", "domain", "x", ReceiptFault.DOMAIN),
        ("proof", "domain", None, ReceiptFault.DOMAIN),
        ("proof", "proof_purpose", "x", ReceiptFault.PROOF_PURPOSE),
        ("proof", "audience", [SOURCE], ReceiptFault.AUDIENCE),
        ("proof", "audience", GATEWAY, ReceiptFault.AUDIENCE),
        ("proof", "audience", ABSENT, ReceiptFault.AUDIENCE),
        ("proof", "verification_method", "did:web:evil.example#k", ReceiptFault.CONTROLLER),
        ("proof", "verification_method", "key-1", ReceiptFault.CONTROLLER),
        ("resigned", "destination_gateway_id", SOURCE, ReceiptFault.CONTROLLER),
        ("resigned", "registration_id", "registration_another_abcdef", ReceiptFault.ECHO),
        ("resigned", "push_target_id", "ak:pseudonym:push:" + "A" * 43, ReceiptFault.ECHO),
        ("resigned", "device_id", "ak:device:01904100-0000-7000-8000-000000000002", ReceiptFault.ECHO),
        ("resigned", "state", "revoked", ReceiptFault.ECHO),
        ("resigned", "request_digest", "sha256:" + "0" * 64, ReceiptFault.ECHO),
        ("resigned", "source_station_id", "ak:did_core:web:other.example", ReceiptFault.ECHO),
        ("proof", "verification_method", METHOD + "2", ReceiptFault.VERIFICATION_METHOD),
    ],
)
def test_every_echoed_member_is_compared(where: str, name: str, value: Any, expected: ReceiptFault) -> None:
    """Even where the gateway signed the difference; reasons are found in the published order."""
    document = resigned(name, value) if where == "resigned" else changed(where, name, value)

    assert fault(document) == expected


@pytest.mark.clause("R135")
def test_a_receipt_for_somebody_else_is_refused() -> None:
    """Another Station, another gateway, another key name, another body."""
    document = sign_receipt(receipt(), METHOD, KEY)

    assert fault(document, source="ak:did_core:web:other.example") == ReceiptFault.ECHO
    assert fault(document, destination="ak:did_core:web:other.example") == ReceiptFault.ECHO
    assert fault(document, {**REQUEST, "push_key": "another"}) == ReceiptFault.ECHO
    assert fault(document, method="did:web:gateway.example#x") == ReceiptFault.VERIFICATION_METHOD


@pytest.mark.clause("R133")
@pytest.mark.parametrize(
    ("jws", "expected"),
    [
        ("", ReceiptFault.JWS_FORM),
        ("{header}.{signature}", ReceiptFault.JWS_FORM),
        ("{header}.e30.{signature}", ReceiptFault.JWS_FORM),
        ("{header}..{signature}.", ReceiptFault.JWS_FORM),
        ("{header}..{signature}=", ReceiptFault.JWS_FORM),
        ("{header}..{signature}AA", ReceiptFault.JWS_FORM),
        ("eyJhbGciOiJFZERTQSJ9..{signature}", ReceiptFault.JWS_HEADER),
        ("eyJhbGciOiJFZERTQSJ9..c2lnbmF0dXJl", ReceiptFault.JWS_FORM),
        ("..{signature}", ReceiptFault.JWS_HEADER),
        ("eyJhbGciOiJub25lIn0..{signature}", ReceiptFault.JWS_HEADER),
        ("eyJhbGciOiJFZDI1NTE5Iiwia2lkIjoieCJ9..{signature}", ReceiptFault.JWS_HEADER),
        ("{header}.." + "A" * 86, ReceiptFault.JWS_SIGNATURE),
    ],
)
def test_the_signature_has_one_form_and_one_header(jws: str, expected: ReceiptFault) -> None:
    """Detached, Ed25519 by that name alone, 64 octets; the fixtures' placeholder is never a receipt."""
    document = sign_receipt(receipt(), METHOD, KEY)
    proof = document["proof"]
    assert isinstance(proof, dict)
    header, _, signature = str(proof["jws"]).split(".")
    proof["jws"] = jws.format(header=header, signature=signature)

    assert fault(document) == expected


def test_a_refusal_says_which_reason() -> None:
    """And nothing of the receipt."""
    assert str(ReceiptRefused(ReceiptFault.ECHO)) == "receipt refused: echo"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(json_values, st.sampled_from([*sign_receipt(receipt(), METHOD, KEY), "extra"]))
def test_no_member_makes_verification_fail_otherwise(value: Any, name: str) -> None:
    """Whatever stands in a receipt's members, it is refused with a reason."""
    document = sign_receipt(receipt(), METHOD, KEY)
    document[name] = value

    assert fault(document) in ReceiptFault


proof_members = st.sampled_from(
    ["kind", "verification_method", "payload_digest", "created_at", "audience", "jws"]
)


@given(json_values, proof_members)
def test_no_proof_makes_verification_fail_otherwise(value: Any, name: str) -> None:
    """Whatever stands in a proof's members, it is refused with a reason."""
    assert fault(changed("proof", name, value)) in ReceiptFault
