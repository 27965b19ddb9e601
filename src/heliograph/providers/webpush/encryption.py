"""Message encryption for Web Push: RFC 8291 keys in one RFC 8188 record. Pure.

The ephemeral key and the salt are derived from random octets that the caller gives, so the same octets
give the same message. They must be fresh for every different message: the same key and salt over two
texts would give both away.
"""

from typing import Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

RECORD_OCTETS: Final = 4_096
"""The record size we declare: one record holds every message that a push service must take (RFC 8291 4)."""

BODY_OCTETS_MAX: Final = 4_096
"""What a push service must take at least (RFC 8030 7.2); larger bodies are refused by some."""

SALT_OCTETS: Final = 16
KEY_OCTETS: Final = 32
_HEADER_OCTETS: Final = SALT_OCTETS + 4 + 1 + 65
_TAG_OCTETS: Final = 16
_LAST_RECORD: Final = b"\x02"

PLAINTEXT_OCTETS_MAX: Final = BODY_OCTETS_MAX - _HEADER_OCTETS - _TAG_OCTETS - len(_LAST_RECORD)
"""3,993: what fits beside the header, the tag and the delimiter."""

_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of the P-256 group."""

_SCALAR_OCTETS: Final = 48
"""Half as many again as the order has, so that reducing them leaves no measurable bias."""


def ephemeral(octets: bytes, purpose: bytes) -> tuple[ec.EllipticCurvePrivateKey, bytes]:
    """Derive an ephemeral key and a salt for one message.

    Args:
        octets: At least 32 random octets.
        purpose: Tells messages made from the same octets apart.

    Returns:
        The private key and the 16-octet salt.
    """
    material = HKDF(
        algorithm=hashes.SHA256(),
        length=_SCALAR_OCTETS + SALT_OCTETS,
        salt=None,
        info=b"heliograph webpush " + purpose,
    ).derive(octets)
    scalar = int.from_bytes(material[:_SCALAR_OCTETS], "big") % (_ORDER - 1) + 1
    return ec.derive_private_key(scalar, ec.SECP256R1()), material[_SCALAR_OCTETS:]


def encrypt(
    plaintext: bytes,
    *,
    p256dh: ec.EllipticCurvePublicKey,
    auth: bytes,
    key: ec.EllipticCurvePrivateKey,
    salt: bytes,
    padded_to: int = 0,
) -> bytes:
    """Encrypt one message for one subscription.

    Args:
        plaintext: What only the browser may read.
        p256dh: The subscription's public key.
        auth: The subscription's 16-octet secret.
        key: A fresh ephemeral private key.
        salt: 16 fresh random octets.
        padded_to: The length to pad the plaintext to; shorter texts then have equal bodies.

    Returns:
        The body for ``Content-Encoding: aes128gcm``.

    Raises:
        ValueError: The padded text does not fit one record: the caller's bug.
    """
    padding = max(0, padded_to - len(plaintext))
    if len(plaintext) + padding > PLAINTEXT_OCTETS_MAX:
        raise ValueError(f"a message holds at most {PLAINTEXT_OCTETS_MAX} octets")
    theirs, ours = _encoded(p256dh), _encoded(key.public_key())
    shared = key.exchange(ec.ECDH(), p256dh)
    ikm = HKDF(
        algorithm=hashes.SHA256(), length=KEY_OCTETS, salt=auth, info=b"WebPush: info\x00" + theirs + ours
    ).derive(shared)
    prk = HKDF.extract(hashes.SHA256(), salt, ikm)
    cek = HKDFExpand(hashes.SHA256(), 16, b"Content-Encoding: aes128gcm\x00").derive(prk)
    nonce = HKDFExpand(hashes.SHA256(), 12, b"Content-Encoding: nonce\x00").derive(prk)
    record = plaintext + _LAST_RECORD + bytes(padding)
    header = salt + RECORD_OCTETS.to_bytes(4, "big") + bytes([len(ours)]) + ours
    return header + AESGCM(cek).encrypt(nonce, record, None)


def _encoded(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
