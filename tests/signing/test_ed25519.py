"""Ed25519 keys and signatures are taken only in the form that means one thing."""

import pickle
from typing import Final

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import shared_json

from heliograph.signing.ed25519 import SigningKey, VerifyKey
from heliograph.wire.malformed import Malformed

SEED: Final = bytes(range(32))
ORDER: Final = 2**252 + 27742317777372353535851937790883648493
KEY: Final = SigningKey(SEED)

# The points of order 1, 2, 4 and 8, and other spellings of some of them.
SMALL_ORDER: Final = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0100000000000000000000000000000000000000000000000000000000000080",
]


def test_the_published_keys_come_out_of_their_seeds() -> None:
    """RFC 8032's first test key and the fixture key, in both text forms."""
    for case in shared_json("spec/arkret/fixtures/detached-object-signature-kat.extract.json")["test_keys"]:
        key = SigningKey(bytes.fromhex(case["private_seed_hex"])).verify_key
        assert key.base64url() == case["public_key_b64u"]
        assert VerifyKey.from_base64url(case["public_key_b64u"]) == key
    case = shared_json("spec/arkret/fixtures/receipt-proof.WORKED-EXAMPLE.json")["cases"][0]
    key = SigningKey(bytes.fromhex(case["ed25519_private_seed_hex"])).verify_key

    assert key.multibase() == case["ed25519_public_key_multibase"]
    assert VerifyKey.from_multibase(case["ed25519_public_key_multibase"]) == key


def test_the_published_signature_comes_out() -> None:
    """The signature of RFC 8032's first test, over nothing."""
    key = SigningKey(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    expected = bytes.fromhex(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b"
    )

    assert key.sign(b"") == expected
    assert key.verify_key.verify(b"", expected)


@given(st.binary(max_size=200), st.binary(min_size=32, max_size=32))
def test_another_implementation_agrees(message: bytes, seed: bytes) -> None:
    """Both sign alike and verify each other's."""
    ours, theirs = SigningKey(seed), Ed25519PrivateKey.from_private_bytes(seed)

    assert ours.sign(message) == theirs.sign(message)
    assert ours.verify_key.verify(message, theirs.sign(message))


@given(st.binary(max_size=50), st.integers(0, 511))
def test_one_changed_bit_breaks_a_signature(message: bytes, bit: int) -> None:
    """In the signature or in the message."""
    signature = bytearray(KEY.sign(message))
    signature[bit // 8] ^= 1 << bit % 8

    assert not KEY.verify_key.verify(message, bytes(signature))
    assert not KEY.verify_key.verify(message + b"\0", KEY.sign(message))


@given(st.binary(max_size=130))
def test_no_octets_make_verification_fail_otherwise(signature: bytes) -> None:
    """Whatever claims to be a signature is simply none."""
    assert not KEY.verify_key.verify(b"message", signature)


@pytest.mark.parametrize("point", SMALL_ORDER)
def test_a_key_of_small_order_is_refused(point: str) -> None:
    """Such a key would verify one signature over many messages."""
    with pytest.raises(Malformed) as caught:
        VerifyKey(bytes.fromhex(point), "peers[0].key")

    assert caught.value.field == "peers[0].key"


def test_a_key_of_mixed_order_or_off_the_curve_is_refused() -> None:
    """A point with a small component, and octets that are no point at all."""
    for octets in (bytes.fromhex("02" + "00" * 31), b"\xff" * 32, b"", bytes(31), bytes(33)):
        with pytest.raises(Malformed):
            VerifyKey(octets)


def test_a_scalar_that_is_not_reduced_is_refused() -> None:
    """S and S plus the group order would both satisfy the equation."""
    signature = KEY.sign(b"message")
    scalar = int.from_bytes(signature[32:], "little") + ORDER

    assert not KEY.verify_key.verify(b"message", signature[:32] + scalar.to_bytes(32, "little"))


def test_strictness_is_why_this_library_was_chosen() -> None:
    """The other one verifies a forged signature under a small-order key; a change of library must notice."""
    point = bytes.fromhex(SMALL_ORDER[0])
    Ed25519PublicKey.from_public_bytes(point).verify(point + bytes(32), b"anything")

    with pytest.raises(InvalidSignature):
        Ed25519PublicKey.from_public_bytes(KEY.verify_key.octets).verify(point + bytes(32), b"anything")
    assert not KEY.verify_key.verify(b"anything", point + bytes(32))


@given(st.binary(min_size=32, max_size=32))
def test_a_key_survives_both_its_text_forms(seed: bytes) -> None:
    """Multibase and base64url round trips."""
    key = SigningKey(seed).verify_key

    assert VerifyKey.from_multibase(key.multibase()) == key
    assert VerifyKey.from_base64url(key.base64url()) == key
    assert hash(key) == hash(VerifyKey(key.octets))


GOOD: Final = "z6Mkn3sUaRJMRwT4iPbBtHUzTk42mHDSA3M3D8krGpZfGW8D"


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD[1:],
        "f" + GOOD[1:],
        GOOD + "1",
        GOOD[:-1],
        GOOD[:-1] + "0",
        GOOD[:-1] + "\n",
        "z" + "z" * 47,
        "z" + "1" * 47,
        "z6LS" + GOOD[4:],
        "z" + "\u0661" * 47,
    ],
)
def test_another_spelling_of_a_key_is_refused(text: str) -> None:
    """Wrong base, length, mark or key type."""
    with pytest.raises(Malformed):
        VerifyKey.from_multibase(text)


@given(st.text(max_size=50))
def test_no_text_makes_the_key_readers_fail_otherwise(text: str) -> None:
    """Whatever arrives is a key or refused."""
    for read in (VerifyKey.from_multibase, VerifyKey.from_base64url):
        with pytest.raises(Malformed):
            read(text)


def test_a_signing_key_shows_its_public_half_only() -> None:
    """It prints without its seed and is no cargo; keys compare with keys only."""
    assert SEED.hex() not in repr(KEY)
    assert KEY.verify_key.multibase() in repr(KEY)
    assert KEY.verify_key != "key"
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(KEY)
    with pytest.raises(ValueError, match="32 octets") as caught:
        SigningKey(b"short secret")

    assert "short secret" not in str(caught.value)
