"""Ed25519 keys and signatures, verified strictly.

libsodium does the arithmetic (docs/decisions/0004-ed25519.md). It refuses what other libraries let pass and
what makes one signature valid for many messages: keys and commitments of small order, keys that are not
spelled canonically, and scalars that are not reduced.
"""

from typing import Final, final

from nacl import bindings
from nacl.exceptions import CryptoError

from heliograph.wire import base64url
from heliograph.wire.malformed import Malformed

SEED_OCTETS: Final = 32
KEY_OCTETS: Final = 32
SIGNATURE_OCTETS: Final = 64

_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE58_VALUES: Final = {mark: value for value, mark in enumerate(_BASE58)}
_MULTICODEC: Final = b"\xed\x01"
_MULTIBASE_CHARACTERS: Final = 48
"""``z`` and 47 marks: what 34 octets that begin with 0xed take in base 58, always."""


@final
class VerifyKey:
    """A public key, known to be a point of the prime-order group.

    Attributes:
        octets: The 32 octets of the point.
    """

    __slots__ = ("octets",)

    octets: Final[bytes]

    def __init__(self, octets: bytes, field: str = "public_key") -> None:
        """Take the 32 octets of a point.

        Args:
            octets: The point, in its one canonical spelling.
            field: Where it stood, for the error.

        Raises:
            Malformed: Not 32 octets, not a point of the curve, or one of small or mixed order.
        """
        if len(octets) != KEY_OCTETS:
            raise Malformed(field, "must be an Ed25519 public key of 32 octets")
        if not bindings.crypto_core_ed25519_is_valid_point(octets):
            raise Malformed(field, "must be a point of the Ed25519 group that is not of small order")
        self.octets = octets

    @classmethod
    def from_base64url(cls, text: str, field: str = "public_key") -> "VerifyKey":
        """Read a key from canonical unpadded base64url.

        Raises:
            Malformed: The text or the key is not well formed.
        """
        return cls(base64url.decode_exactly(text, KEY_OCTETS, field), field)

    @classmethod
    def from_multibase(cls, text: str, field: str = "public_key") -> "VerifyKey":
        """Read a key from its multibase form: ``z`` and base58btc of 0xed01 and the key.

        Raises:
            Malformed: The text is not that form, or the key is not well formed.
        """
        if len(text) != _MULTIBASE_CHARACTERS or text[0] != "z":
            raise Malformed(field, "must be the multibase form of an Ed25519 key: z and 47 base58 characters")
        number = 0
        for mark in text[1:]:
            value = _BASE58_VALUES.get(mark)
            if value is None:
                raise Malformed(field, "must hold base58 characters only")
            number = number * 58 + value
        # 47 marks can spell a little more than 34 octets do.
        octets = number.to_bytes(KEY_OCTETS + 3, "big")
        if octets[:3] != b"\0" + _MULTICODEC:
            raise Malformed(field, "must name the Ed25519 key type (0xed01)")
        return cls(octets[3:], field)

    def base64url(self) -> str:
        """Spell the key in canonical unpadded base64url."""
        return base64url.encode(self.octets)

    def multibase(self) -> str:
        """Spell the key in its multibase form."""
        number = int.from_bytes(_MULTICODEC + self.octets, "big")
        marks = []
        while number:
            number, value = divmod(number, 58)
            marks.append(_BASE58[value])
        return "z" + "".join(reversed(marks))

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Tell whether this key signed the message.

        Args:
            message: What was signed.
            signature: What claims to be its signature; any octets.
        """
        if len(signature) != SIGNATURE_OCTETS:
            return False
        try:
            bindings.crypto_sign_open(signature + message, self.octets)
        except CryptoError:
            return False
        return True

    def __eq__(self, other: object) -> bool:
        return self.octets == other.octets if isinstance(other, VerifyKey) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.octets)

    def __repr__(self) -> str:
        return f"VerifyKey({self.multibase()})"


@final
class SigningKey:
    """A private key. Prints as its public half and cannot be pickled."""

    __slots__ = ("_secret", "verify_key")

    verify_key: Final[VerifyKey]

    def __init__(self, seed: bytes) -> None:
        """Derive the pair from its seed.

        Args:
            seed: 32 secret octets.

        Raises:
            ValueError: The seed has another length; the text does not show it.
        """
        if len(seed) != SEED_OCTETS:
            raise ValueError("an Ed25519 seed is 32 octets")
        public, self._secret = bindings.crypto_sign_seed_keypair(seed)
        self.verify_key = VerifyKey(public)

    def sign(self, message: bytes) -> bytes:
        """Sign a message. The same message always gets the same 64 octets."""
        return bindings.crypto_sign(message, self._secret)[:SIGNATURE_OCTETS]

    def __repr__(self) -> str:
        return f"SigningKey(of {self.verify_key!r})"

    def __reduce__(self) -> str:
        raise TypeError("a signing key cannot be pickled")
