"""Sealing what must not lie readable in the database, and keys derived for one tenant and one purpose.

A master key, one per version, seals nothing itself. For every tenant and purpose a key of its own is derived
(HKDF-SHA256), so that what one tenant stores cannot be opened as another's, nor a route as a payload. Which
row a seal belongs to is bound as associated data: a sealed value moved to another row does not open.

A sealed value names the version of the master key it was sealed under. Old versions open until everything
was resealed; new values are always sealed under the current one.

Nonces are random and come from outside. Ninety-six random bits may repeat: a key should seal at most some
2^32 values, which a tenant's routes stay far below.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NewType, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SealedBytes = NewType("SealedBytes", bytes)
"""A format octet, four octets of key version, the nonce, the ciphertext and its tag."""

MASTER_KEY_OCTETS: Final = 32
NONCE_OCTETS: Final = 12
DERIVED_KEY_OCTETS: Final = 32

VERSION_MAX: Final = 2**32 - 1
"""What four octets can name."""

PLAINTEXT_OCTETS_MAX: Final = 256 * 1024
"""Four times the largest body that is admitted to storage; more than that is a mistake."""

DERIVED_KEYS_MAX: Final = 4096
"""Derived keys remembered: some purposes of a thousand tenants, a few hundred kilobytes."""

_FORMAT: Final = 1
_TAG_OCTETS: Final = 16
_VERSION_END: Final = 5
_NONCE_END: Final = _VERSION_END + NONCE_OCTETS
_SALT: Final = b"heliograph tenant keys v1"


class SealBroken(Exception):  # noqa: N818 - named for what it is
    """A sealed value does not open here. Why is not told: every reason is the same to whoever asks."""

    def __init__(self) -> None:
        super().__init__("a sealed value does not open")


@final
class TenantKeys:
    """Master keys by version, and the keys derived from them. Prints its versions only.

    Attributes:
        current: The version that new values are sealed under.
        derived: (version, use, tenant, purpose) to a key of 32 octets, remembered; KeyError for a version
            that is not here.
        cipher: (version, tenant, purpose) to the cipher that seals under such a key, remembered.
    """

    __slots__ = ("_master", "cipher", "current", "derived")

    def __init__(self, master: Mapping[int, bytes], current: int) -> None:
        """Take the master keys.

        Args:
            master: 32 secret octets for every version that may still be needed.
            current: The version for new values.

        Raises:
            ValueError: A key has another length, a version does not fit, or the current one is missing.
        """
        if current not in master:
            raise ValueError(f"master key version {current} is current and missing")
        for version, key in master.items():
            if not 0 <= version <= VERSION_MAX or len(key) != MASTER_KEY_OCTETS:
                raise ValueError(f"master key version {version} must be 32 octets under a 32-bit number")
        self._master = dict(master)
        self.current = current
        # On the object and not on the function, so that keys live no longer than their holder.
        self.derived = lru_cache(maxsize=DERIVED_KEYS_MAX)(self._derive)
        self.cipher = lru_cache(maxsize=DERIVED_KEYS_MAX)(self._cipher)

    def _derive(self, version: int, use: str, tenant: str, purpose: str) -> bytes:
        info = _joined((use, tenant, purpose))
        kdf = HKDF(algorithm=SHA256(), length=DERIVED_KEY_OCTETS, salt=_SALT, info=info)
        return kdf.derive(self._master[version])

    def _cipher(self, version: int, tenant: str, purpose: str) -> AESGCM:
        return AESGCM(self._derive(version, "seal", tenant, purpose))

    def __repr__(self) -> str:
        return f"TenantKeys(versions={sorted(self._master)}, current={self.current})"

    def __reduce__(self) -> str:
        raise TypeError("keys cannot be pickled")


def derive(keys: TenantKeys, tenant: str, purpose: str, version: int | None = None) -> bytes:
    """Derive a key for a tenant and a purpose, such as HMAC over collapse keys.

    Args:
        keys: The master keys.
        tenant: Whose key; without U+0000.
        purpose: What for; without U+0000. Never the same key as one that seals.
        version: Of the master key; the current one by default.

    Returns:
        32 secret octets, the same every time.

    Raises:
        ValueError: A name holds U+0000 or half a surrogate pair.
        KeyError: There is no such version.
    """
    return keys.derived(keys.current if version is None else version, "derive", tenant, purpose)


def seal(  # noqa: PLR0917 - who, what for, which row, what: always in this order
    keys: TenantKeys, tenant: str, purpose: str, aad_parts: tuple[str, ...], plaintext: bytes, nonce: bytes
) -> SealedBytes:
    """Seal octets for one row of one tenant.

    Args:
        keys: The master keys; the current version seals.
        tenant: Whose row; without U+0000.
        purpose: What is sealed, such as ``route``; without U+0000.
        aad_parts: Which row: its key, in order; without U+0000.
        plaintext: At most 256 KiB.
        nonce: 12 random octets, drawn for this call alone.

    Raises:
        ValueError: The nonce or the plaintext has another size, or a name holds U+0000.
    """
    if len(nonce) != NONCE_OCTETS or len(plaintext) > PLAINTEXT_OCTETS_MAX:
        raise ValueError(f"a nonce is {NONCE_OCTETS} octets, a plaintext at most {PLAINTEXT_OCTETS_MAX}")
    cipher = keys.cipher(keys.current, tenant, purpose)
    ciphertext = cipher.encrypt(nonce, plaintext, _joined((tenant, *aad_parts)))
    return SealedBytes(bytes([_FORMAT]) + keys.current.to_bytes(4, "big") + nonce + ciphertext)


def open(  # noqa: A001 - the opposite of seal, called as seal.open
    keys: TenantKeys, tenant: str, purpose: str, aad_parts: tuple[str, ...], sealed: bytes
) -> bytes:
    """Open what was sealed for this row of this tenant.

    Args:
        keys: The master keys, with the version that the value names.
        tenant: As when it was sealed.
        purpose: As when it was sealed.
        aad_parts: As when it was sealed.
        sealed: What ``seal`` gave.

    Raises:
        SealBroken: Another tenant, purpose, row or key, or octets that were changed or cut.
        ValueError: A name holds U+0000; our own mistake.
    """
    associated = _joined((tenant, *aad_parts))
    try:
        cipher = keys.cipher(version_of(sealed), tenant, purpose)
    except KeyError:  # a version that is not here, or not any more
        raise SealBroken from None
    nonce, ciphertext = sealed[_VERSION_END:_NONCE_END], sealed[_NONCE_END:]
    try:
        return cipher.decrypt(nonce, ciphertext, associated)
    except InvalidTag:
        raise SealBroken from None


def version_of(sealed: bytes) -> int:
    """Tell which master key version a value was sealed under; nothing is verified.

    Raises:
        SealBroken: Too short, or of a format that is not ours.
    """
    if len(sealed) < _NONCE_END + _TAG_OCTETS or sealed[0] != _FORMAT:
        raise SealBroken
    return int.from_bytes(sealed[1:_VERSION_END], "big")


def reseal(  # noqa: PLR0917 - as seal
    keys: TenantKeys, tenant: str, purpose: str, aad_parts: tuple[str, ...], sealed: bytes, nonce: bytes
) -> SealedBytes:
    """Seal a value anew under the current master key.

    Args:
        keys: The master keys, with the old version among them.
        tenant: As when it was sealed.
        purpose: As when it was sealed.
        aad_parts: As when it was sealed.
        sealed: What ``seal`` gave.
        nonce: 12 random octets, drawn for this call alone.

    Raises:
        SealBroken: It does not open here.
        ValueError: As ``seal``.
    """
    plaintext = open(keys, tenant, purpose, aad_parts, sealed)
    return seal(keys, tenant, purpose, aad_parts, plaintext, nonce)


def _joined(parts: tuple[str, ...]) -> bytes:
    """Join names so that no two lists of names join alike."""
    if any("\0" in part for part in parts):
        raise ValueError("a name in a seal must not hold U+0000")
    return "\0".join(parts).encode()
