"""Message encryption, against the RFC's own example and somebody else's decryption."""

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from tests.deliveries import BROWSER_AUTH, BROWSER_KEY

from heliograph.providers.webpush.encryption import (
    BODY_OCTETS_MAX,
    PLAINTEXT_OCTETS_MAX,
    encrypt,
    ephemeral,
)
from heliograph.wire import base64url

# RFC 8291, section 5 and appendix A.
PLAINTEXT = b"When I grow up, I want to be a watermelon"
SENDER_PRIVATE = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
RECEIVER_PUBLIC = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
RECEIVER_PRIVATE = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml"
    "mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
    "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def octets(text: str) -> bytes:
    return base64url.decode(text, "vector")


def private(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(octets(text), "big"), ec.SECP256R1())


def opened(body: bytes, key: ec.EllipticCurvePrivateKey, auth: bytes) -> bytes:
    return bytes(http_ece.decrypt(body, private_key=key, auth_secret=auth, version="aes128gcm"))


def test_the_example_of_the_rfc_comes_out_octet_for_octet() -> None:
    """RFC 8291 appendix A."""
    body = encrypt(
        PLAINTEXT,
        p256dh=ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), octets(RECEIVER_PUBLIC)),
        auth=octets(AUTH),
        key=private(SENDER_PRIVATE),
        salt=octets(SALT),
    )

    assert body == octets(BODY)


def test_the_example_of_the_rfc_opens_with_the_other_library() -> None:
    """The vector above was copied right, and the oracle reads it as the RFC does."""
    assert opened(octets(BODY), private(RECEIVER_PRIVATE), octets(AUTH)) == PLAINTEXT


@given(
    plaintext=st.binary(max_size=PLAINTEXT_OCTETS_MAX),
    padded_to=st.integers(0, PLAINTEXT_OCTETS_MAX),
    drawn=st.binary(min_size=64, max_size=64),
    scalar=st.integers(1, 2**255),
    auth=st.binary(min_size=16, max_size=16),
)
def test_what_is_encrypted_opens_elsewhere(
    plaintext: bytes, padded_to: int, drawn: bytes, scalar: int, auth: bytes
) -> None:
    """Any text, any padding, any keys: http-ece reads it back, within one body."""
    browser = ec.derive_private_key(scalar, ec.SECP256R1())
    key, salt = ephemeral(drawn, b"first")
    body = encrypt(plaintext, p256dh=browser.public_key(), auth=auth, key=key, salt=salt, padded_to=padded_to)

    assert opened(body, browser, auth) == plaintext
    assert len(body) == 86 + max(len(plaintext), padded_to) + 1 + 16
    assert len(body) <= BODY_OCTETS_MAX


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_padded_bodies_have_equal_lengths(one: bytes, other: bytes) -> None:
    """A length tells nothing."""
    key, salt = ephemeral(bytes(64), b"first")
    bodies = [
        encrypt(text, p256dh=BROWSER_KEY.public_key(), auth=BROWSER_AUTH, key=key, salt=salt, padded_to=128)
        for text in (one, other)
    ]

    assert len(bodies[0]) == len(bodies[1])


def test_equal_octets_give_equal_keys_and_another_purpose_gives_others() -> None:
    """Two texts of one exchange must never share a key and a salt."""
    first, first_salt = ephemeral(bytes(64), b"first")
    again, again_salt = ephemeral(bytes(64), b"first")
    other, other_salt = ephemeral(bytes(64), b"smallest")

    assert (first.private_numbers(), first_salt) == (again.private_numbers(), again_salt)
    assert first.private_numbers() != other.private_numbers()
    assert first_salt != other_salt


def test_a_text_that_does_not_fit_is_the_callers_bug() -> None:
    """3,993 octets and not one more."""
    key, salt = ephemeral(bytes(64), b"first")
    whole = bytes(PLAINTEXT_OCTETS_MAX)
    body = encrypt(whole, p256dh=BROWSER_KEY.public_key(), auth=BROWSER_AUTH, key=key, salt=salt)

    assert len(body) == 4_096
    with pytest.raises(ValueError, match="3993"):
        encrypt(whole + b"x", p256dh=BROWSER_KEY.public_key(), auth=BROWSER_AUTH, key=key, salt=salt)


def test_a_thousand_messages_open_only_with_their_own_keys() -> None:
    """W7: nothing of one subscription ever gets into the message of another."""
    browsers = [ec.derive_private_key(1_000 + number, ec.SECP256R1()) for number in range(1_000)]
    bodies = []
    for number, browser in enumerate(browsers):
        key, salt = ephemeral(number.to_bytes(64, "big"), b"first")
        auth = number.to_bytes(16, "big")
        bodies.append(
            encrypt(f"for {number}".encode(), p256dh=browser.public_key(), auth=auth, key=key, salt=salt)
        )

    for number, browser in enumerate(browsers):
        auth = number.to_bytes(16, "big")
        assert opened(bodies[number], browser, auth) == f"for {number}".encode()
        with pytest.raises(http_ece.ECEException):
            opened(bodies[number - 1], browser, auth)
