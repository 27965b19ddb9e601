"""Preferences travel sealed, and open only for their owner, as what they are."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from heliograph.arkret.client.account_data import (
    AccountSecret,
    Owner,
    open_value,
    seal_value,
)
from heliograph.arkret.client.kept import Key
from heliograph.pushrules.arkret.event import Account
from heliograph.pushrules.document import DocumentRefused
from heliograph.wire import base64url
from heliograph.wire.ids import DidCoreId
from tests.pushrules.arkret.make import ALICE, BOB, KEYWORD, rule
from tests.shared import shared_json

SECRET = AccountSecret(bytes(range(32)))
NONCE = bytes(range(24))
RULES = {"rules": [rule("content.urgent", KEYWORD)]}


def sealed(owner: Owner = ALICE, key: Key = Key.PUSH_RULES, value: Any = RULES) -> dict[str, Any]:
    return seal_value(SECRET, owner, key, value, NONCE)


def refusal(envelope: object, owner: Owner = ALICE, key: Key = Key.PUSH_RULES) -> tuple[str, str, str]:
    with pytest.raises(DocumentRefused) as refused:
        open_value(SECRET, owner, key, envelope)
    return refused.value.fault.value, refused.value.clause, refused.value.field


@pytest.mark.parametrize("key", list(Key))
@pytest.mark.parametrize("owner", [ALICE, DidCoreId("ak:did_core:web:alice.example")])
@pytest.mark.clause("R033", "R347")
def test_what_one_device_seals_another_opens(owner: Owner, key: Key) -> None:
    """Of the same owner, with the same secret."""
    assert open_value(SECRET, owner, key, sealed(owner, key)) == RULES


@pytest.mark.clause("R347")
def test_the_envelope_has_the_published_shape() -> None:
    """The schema that is published still names the owner by the principal alone."""
    folder = "spec/arkret/fixtures"
    schema = shared_json(f"{folder}/account-data-encrypted-value.schema.json")
    ids = Resource.from_contents(shared_json(f"{folder}/common-ids.schema.json"))
    registry = Registry().with_resource("https://arkret.org/v1/schemas/common-ids.schema.json", ids)
    envelope = sealed(DidCoreId("ak:did_core:web:alice.example"))

    assert list(Draft202012Validator(schema, registry=registry).iter_errors(envelope)) == []


def test_the_key_is_derived_as_published() -> None:
    """HKDF with SHA-256, worked out by hand from its definition; the reference names the derived key."""
    import hmac  # noqa: PLC0415 - the oracle and nothing else needs it

    info = (
        b'{"account_data_key":"ak.push_rules","actor_id":{"account_id":{"principal_id":'
        b'"ak:did_core:web:alice.example","station_id":"ak:did_core:web:station.example"},"kind":"account"},'
        b'"schema":"ak.schema.account_data_encrypted_value.v1"}'
    )
    extracted = hmac.digest(b"arkret-account-data-value-hkdf-v1", bytes(range(32)), "sha256")
    expected = hmac.digest(extracted, info + b"\x01", "sha256")

    assert sealed()["key_ref"] == "sha256:" + hashlib.sha256(expected).hexdigest()


@pytest.mark.clause("R222", "R348")
def test_the_station_gets_no_keyword_not_even_hashed() -> None:
    """Nothing in the envelope depends on a keyword but the ciphertext."""
    one, two = (
        sealed(),
        sealed(value={"rules": [rule("content.urgent", KEYWORD | {"pattern": "urgent|紧急|P1"})]}),
    )
    spelled = repr(one)

    assert {name for name in one if one[name] != two[name]} == {"ciphertext"}
    for keyword in ("urgent", "紧急", "P0"):
        assert keyword not in spelled
        assert hashlib.sha256(keyword.encode()).hexdigest() not in spelled


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"schema": "x"}, ("schema_violation", "R347", "schema")),
        ({"version": "1.1"}, ("schema_violation", "R347", "version")),
        ({"aead_profile": "ak.aead.aes.v1"}, ("schema_violation", "R347", "aead_profile")),
        ({"key_ref": "sha256:" + "0" * 64}, ("unreadable", "R342", "key_ref")),
        ({"nonce": base64url.encode(bytes(24))}, ("unreadable", "R342", "ciphertext")),
        ({"nonce": base64url.encode(bytes(23))}, ("schema_violation", "R347", "nonce")),
        ({"nonce": "!" * 32}, ("schema_violation", "R347", "nonce")),
        ({"nonce": 5}, ("schema_violation", "R347", "nonce")),
        ({"ciphertext": base64url.encode(bytes(15))}, ("schema_violation", "R347", "ciphertext")),
        ({"ciphertext": base64url.encode(bytes(16))}, ("unreadable", "R342", "ciphertext")),
        ({"ciphertext": "A" * 1_500_000}, ("schema_violation", "R347", "ciphertext")),
        ({"aad": None}, ("schema_violation", "R347", "aad")),
        ({"note": 1}, ("schema_violation", "R347", "note")),
    ],
)
@pytest.mark.clause("R342", "R347")
def test_an_envelope_that_is_not_as_it_was_sealed_is_refused(
    changes: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    """Place and clause, before or after the seal is tried."""
    assert refusal(sealed() | changes) == expected


@pytest.mark.clause("R342", "R347")
def test_a_value_opens_only_as_what_it_is_and_for_whom_it_is() -> None:
    """A Station cannot pass quiet hours off as rules, nor one account's as another's."""
    elsewhere = Account(ALICE.principal_id, "ak:did_core:web:other.example")

    assert refusal(sealed(key=Key.DND_SCHEDULE)) == ("unreadable", "R342", "aad.account_data_key")
    assert refusal(sealed(), owner=BOB) == ("unreadable", "R342", "aad.actor_id")
    assert refusal(sealed(), owner=elsewhere) == ("unreadable", "R342", "aad.actor_id")
    lied = sealed(key=Key.DND_SCHEDULE)
    lied["aad"] = sealed()["aad"]
    assert refusal(lied) == ("unreadable", "R342", "key_ref")
    lied["key_ref"] = sealed()["key_ref"]
    assert refusal(lied) == ("unreadable", "R342", "ciphertext")


def test_another_secret_opens_nothing() -> None:
    """After the account secret was renewed an old envelope says so."""
    with pytest.raises(DocumentRefused) as refused:
        open_value(AccountSecret(bytes(32)), ALICE, Key.PUSH_RULES, sealed())

    assert refused.value.field == "key_ref"


@given(st.data())
@pytest.mark.clause("R342")
def test_no_changed_octet_goes_unnoticed(data: st.DataObject) -> None:
    """Of the sealed value, wherever it is."""
    envelope = sealed()
    octets = bytearray(base64url.decode(envelope["ciphertext"], "ciphertext"))
    octets[data.draw(st.integers(0, len(octets) - 1))] ^= data.draw(st.integers(1, 255))
    envelope["ciphertext"] = base64url.encode(bytes(octets))

    assert refusal(envelope) == ("unreadable", "R342", "ciphertext")


def test_a_sealed_text_that_is_no_strict_json_is_refused() -> None:
    """A value with a fraction can be sealed, and no reader takes it."""
    assert refusal(sealed(value={"rules": 0.5})) == ("unreadable", "R342", "ciphertext")


def test_the_secret_is_never_shown() -> None:
    """Not printed, not pickled, not half taken."""
    import pickle  # noqa: PLC0415 - only to see it refused

    assert repr(SECRET) == f"{SECRET}" == "‹secret›"
    with pytest.raises(TypeError):
        pickle.dumps(SECRET)
    with pytest.raises(ValueError, match="32 octets"):
        AccountSecret(bytes(31))
    with pytest.raises(ValueError, match="24 octets"):
        seal_value(SECRET, ALICE, Key.PUSH_RULES, RULES, bytes(12))
