"""The envelope in which a person's preferences travel: sealed on one of their devices, opened on another.

The Station stores it and orders its revisions. It never sees the account secret, so it can neither read a
keyword nor make a value up. Everything that could be read differently is settled before the seal is tried:
the envelope is closed, its header has to name this very owner and this very key, and every text has one
spelling.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from nacl import bindings
from nacl.exceptions import CryptoError

from heliograph.arkret.client.kept import Key
from heliograph.pushrules import document
from heliograph.pushrules.arkret.event import Account
from heliograph.pushrules.document import DocumentRefused, Fault
from heliograph.wire import base64url, canonical, strict_json
from heliograph.wire.canonical import Canonical
from heliograph.wire.ids import DidCoreId
from heliograph.wire.malformed import Malformed
from heliograph.wire.strict_json import JsonValue

SECRET_OCTETS: Final = 32
NONCE_OCTETS: Final = 24
TAG_OCTETS: Final = 16

VALUE_OCTETS_MAX: Final = 1024 * 1024
"""Largest value; the Event around it may not be larger either."""

SCHEMA: Final = "ak.schema.account_data_encrypted_value.v1"
VERSION: Final = "1.0"
PROFILE: Final = "ak.aead.xchacha20_poly1305.v1"
_SALT: Final = b"arkret-account-data-value-hkdf-v1"
_CLAUSE: Final = "R347"
_BROKEN: Final = "R342"

Owner: TypeAlias = Account | DidCoreId
"""Whose value it is: a complete account, or the bare principal id that the published schema still has. Writer
and reader have to use the same, for it is sealed with the value."""


@final
class AccountSecret:
    """The secret of one account, out of its secret storage. It is never printed, pickled or sent."""

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        """Take the secret.

        Raises:
            ValueError: It has not 32 octets; the text does not show it.
        """
        if len(octets) != SECRET_OCTETS:
            raise ValueError(f"an account secret is {SECRET_OCTETS} octets")
        self._octets = octets

    def derive(self, owner: Owner, key: Key) -> bytes:
        """Derive the key for one value of one owner. Every call site is a place where it can escape."""
        info = canonical.encode(
            {"schema": SCHEMA, "actor_id": _actor_id(owner), "account_data_key": key.value}
        )
        return HKDF(algorithm=SHA256(), length=32, salt=_SALT, info=info).derive(self._octets)

    def __repr__(self) -> str:
        return "‹secret›"

    def __reduce__(self) -> str:
        raise TypeError("an account secret cannot be pickled")


def seal_value(
    secret: AccountSecret, owner: Owner, key: Key, value: Canonical, nonce: bytes
) -> dict[str, JsonValue]:
    """Seal a value for the owner's other devices.

    Args:
        secret: The account secret.
        owner: Whose value it is.
        key: Which preference it is.
        value: The document, checked already by whoever wrote it.
        nonce: 24 random octets, drawn for this call alone.

    Returns:
        The envelope, ready for the Event that writes it.

    Raises:
        ValueError: The nonce has another length, the value is too large or has no canonical form.
    """
    plaintext = canonical.encode(value)
    if len(nonce) != NONCE_OCTETS or len(plaintext) > VALUE_OCTETS_MAX:
        raise ValueError(f"a nonce is {NONCE_OCTETS} octets, a value at most {VALUE_OCTETS_MAX}")
    sealing = secret.derive(owner, key)
    aad = _header(owner, key)
    sealed = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
        plaintext, canonical.encode(aad), nonce, sealing
    )
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "aead_profile": PROFILE,
        "key_ref": _key_ref(sealing),
        "nonce": base64url.encode(nonce),
        "ciphertext": base64url.encode(sealed),
        "aad": aad,
    }


def open_value(secret: AccountSecret, owner: Owner, key: Key, envelope: object) -> JsonValue:
    """Open a value that one of the owner's devices sealed.

    Args:
        secret: The account secret.
        owner: Whose value it has to be.
        key: Which preference it has to be.
        envelope: Any JSON value.

    Returns:
        The document; it still has to be read and checked as what it is.

    Raises:
        DocumentRefused: The envelope is not closed, names another owner, key or profile, was sealed under
            another secret, was changed, or holds what is no JSON of the strict kind.
    """
    given = document.members(
        envelope,
        "",
        ("schema", "version", "aead_profile", "key_ref", "nonce", "ciphertext", "aad"),
        clause=_CLAUSE,
    )
    for name, constant in (("schema", SCHEMA), ("version", VERSION), ("aead_profile", PROFILE)):
        if given[name] != constant:
            raise DocumentRefused(Fault.SCHEMA_VIOLATION, _CLAUSE, name, f"must be {constant}")
    aad = _header(owner, key)
    _check_header(given["aad"], aad)
    nonce = _octets(given, "nonce", NONCE_OCTETS, NONCE_OCTETS)
    sealed = _octets(given, "ciphertext", TAG_OCTETS, VALUE_OCTETS_MAX + TAG_OCTETS)
    opening = secret.derive(owner, key)
    if given["key_ref"] != _key_ref(opening):
        raise DocumentRefused(
            Fault.UNREADABLE, _BROKEN, "key_ref", "must name the key of this account secret"
        )
    try:
        plaintext = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
            sealed, canonical.encode(aad), nonce, opening
        )
    except CryptoError:
        raise DocumentRefused(Fault.UNREADABLE, _BROKEN, "ciphertext", "does not open") from None
    try:
        return strict_json.loads(plaintext)
    except strict_json.JsonRefused as refused:
        raise DocumentRefused(Fault.UNREADABLE, _BROKEN, "ciphertext", refused.problem) from None


def _actor_id(owner: Owner) -> Canonical:
    return owner.members() if isinstance(owner, Account) else owner


def _header(owner: Owner, key: Key) -> dict[str, Any]:
    return {"schema": SCHEMA, "version": VERSION, "actor_id": _actor_id(owner), "account_data_key": key.value}


def _check_header(value: object, expected: Mapping[str, Any]) -> None:
    given = document.members(value, "aad", tuple(expected), clause=_CLAUSE)
    for name, wanted in expected.items():
        if given[name] != wanted:
            raise DocumentRefused(
                Fault.UNREADABLE, _BROKEN, f"aad.{name}", "must be that of the value that was asked for"
            )


def _octets(given: Mapping[str, Any], name: str, least: int, most: int) -> bytes:
    text = document.text(given[name], name, (most * 8 + 5) // 6, clause=_CLAUSE)
    try:
        octets = base64url.decode(text, name)
    except Malformed as malformed:
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, _CLAUSE, name, malformed.problem) from None
    if not least <= len(octets) <= most:
        raise DocumentRefused(Fault.SCHEMA_VIOLATION, _CLAUSE, name, f"must spell {least} to {most} octets")
    return octets


def _key_ref(sealing: bytes) -> str:
    return "sha256:" + hashlib.sha256(sealing).hexdigest()
