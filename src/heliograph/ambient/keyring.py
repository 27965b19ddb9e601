"""Keys by name and version, from a directory that only we can read, or from the environment.

A file is called ``<name>.v<version>.<kind>``, for example ``master.v1.symmetric``, and holds one line: 32
octets in unpadded base64url. A P-256 key may be PEM instead. The same key can come from the environment as
``HELIOGRAPH_KEY_MASTER_V1_SYMMETRIC``. The highest version is the current one; older ones still open what
they sealed and prove what they signed.
"""

import os
import re
import stat
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NoReturn, final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from heliograph.ambient.entropy import Entropy
from heliograph.wire.base64url import decode_exactly, encode
from heliograph.wire.malformed import Malformed

KEY_OCTETS: Final = 32
"""Every kind of key that we use is 32 octets long."""

FILE_OCTETS_MAX: Final = 4096
"""A key file larger than this is something else."""

VERSION_MAX: Final = 9999
"""More versions than anybody rotates through."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_FILE: Final = re.compile(r"([a-z][a-z0-9_]{0,31})\.v([1-9]\d{0,3})\.([a-z0-9]+)", re.ASCII)
_VARIABLE: Final = re.compile(r"HELIOGRAPH_KEY_([A-Z][A-Z0-9_]{0,31})_V([1-9]\d{0,3})_([A-Z0-9]+)", re.ASCII)
_PREFIX: Final = "HELIOGRAPH_KEY_"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class KeyKind(StrEnum):
    """What a key is good for."""

    SYMMETRIC = "symmetric"
    """32 random octets: sealing and derivation."""

    ED25519 = "ed25519"
    """The seed of a signing key."""

    P256 = "p256"
    """The private scalar of a P-256 key, big-endian: VAPID."""


class KeyUnusableError(Exception):
    """A key cannot be used. The text names the file, variable or key and the remedy, never a value."""


class KeyMissingError(KeyUnusableError):
    """There is no key of that name or version."""


@final
class Key:
    """One version of one key. It has no useful repr and cannot be pickled, compared or hashed.

    Attributes:
        name: What it is for.
        version: Counts from 1.
        kind: What its octets are.
    """

    __slots__ = ("_octets", "kind", "name", "version")

    def __init__(self, name: str, version: int, kind: KeyKind, octets: bytes) -> None:
        self.name = name
        self.version = version
        self.kind = kind
        self._octets = octets

    def reveal(self) -> bytes:
        """Return the 32 octets. Every call site is a place where a key can escape."""
        return self._octets

    def __repr__(self) -> str:
        return f"Key({self.name} v{self.version}, {self.kind})"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]  # as for a secret: no look-up by key material

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key cannot be pickled")


@final
class Keyring:
    """Every key that this process may use.

    Build it with ``Keyring.open``.
    """

    def __init__(self, directory: Path | None, keys: dict[str, dict[int, Key]]) -> None:
        self._directory = directory
        self._keys = keys

    @classmethod
    def open(cls, directory: Path | None, environ: Mapping[str, str]) -> "Keyring":
        """Read every key there is.

        Args:
            directory: Where key files are; it may be missing. None when keys come from the environment only.
            environ: The process's environment.

        Returns:
            The keyring; a key in the environment stands in for a file of the same name and version.

        Raises:
            KeyUnusableError: The directory or a file can be read by others, or something in it is no key.
        """
        ring = cls(directory, {})
        if directory is not None and directory.exists():
            _check_private(directory)
            for path in sorted(directory.iterdir()):
                if not path.name.startswith("."):
                    ring._add(_from_file(path))
        for variable, text in sorted(environ.items()):
            if variable.startswith(_PREFIX):
                ring._add(_from_variable(variable, text))
        return ring

    def _add(self, key: Key) -> None:
        versions = self._keys.setdefault(key.name, {})
        kinds = {known.kind for known in versions.values()} | {key.kind}
        if len(kinds) > 1:
            raise KeyUnusableError(f"the versions of key {key.name} are of different kinds")
        versions[key.version] = key

    def names(self) -> tuple[str, ...]:
        """Return the names of all keys, in order."""
        return tuple(sorted(self._keys))

    def versions(self, name: str) -> tuple[Key, ...]:
        """Return every version of a key, the newest last; empty when there is none."""
        return tuple(key for _, key in sorted(self._keys.get(name, {}).items()))

    def current(self, name: str) -> Key:
        """Return the newest version of a key.

        Raises:
            KeyMissingError: There is none.
        """
        versions = self.versions(name)
        if not versions:
            where = "the environment" if self._directory is None else f"{self._directory} or the environment"
            raise KeyMissingError(f"there is no key {name} in {where}")
        return versions[-1]

    def version(self, name: str, version: int) -> Key:
        """Return one version of a key.

        Raises:
            KeyMissingError: There is no such version.
        """
        key = self._keys.get(name, {}).get(version)
        if key is None:
            raise KeyMissingError(f"there is no version {version} of key {name}")
        return key

    def create_missing(self, wanted: Mapping[str, KeyKind], entropy: Entropy) -> tuple[Key, ...]:
        """Make the first version of every key that has none, so that a first start needs no preparation.

        Args:
            wanted: The names and kinds that the process needs.
            entropy: Draws the keys.

        Returns:
            Those that were made here; where two processes start at once, one of them makes each key.

        Raises:
            KeyUnusableError: One that exists is of another kind, or none can be written.
        """
        made = []
        for name, kind in wanted.items():
            versions = self.versions(name)
            if not versions:
                key, ours = self._make(name, 1, kind, entropy)
                if ours:
                    made.append(key)
                versions = (key,)
            if versions[-1].kind is not kind:
                raise KeyUnusableError(f"key {name} must be {kind}, not {versions[-1].kind}")
        return tuple(made)

    def rotate(self, name: str, entropy: Entropy) -> Key:
        """Add a version to a key and make it the current one. Older versions stay until they are removed.

        Args:
            name: Which key.
            entropy: Draws it.

        Returns:
            The new version.

        Raises:
            KeyMissingError: There is no key of that name.
            KeyUnusableError: It cannot be written, or another process is rotating it.
        """
        newest = self.current(name)
        key, ours = self._make(name, newest.version + 1, newest.kind, entropy)
        if not ours:
            raise KeyUnusableError(f"key {name} was rotated by another process just now")
        return key

    def _make(self, name: str, version: int, kind: KeyKind, entropy: Entropy) -> tuple[Key, bool]:
        """Write a new key, or read the one that another process wrote first."""
        if self._directory is None:
            raise KeyUnusableError(f"key {name} cannot be made: there is no directory to keep it in")
        if _NAME.fullmatch(name) is None or version > VERSION_MAX:
            raise KeyUnusableError(f"{name} v{version} is not a name and version that a key can have")
        octets = entropy.octets(KEY_OCTETS)
        while kind is KeyKind.P256 and not 0 < int.from_bytes(octets, "big") < _P256_ORDER:
            octets = entropy.octets(KEY_OCTETS)
        path = self._directory / f"{name}.v{version}.{kind}"
        try:
            ours = _write_new(path, encode(octets) + "\n")
        except OSError as error:
            raise KeyUnusableError(f"{path} cannot be written: {type(error).__name__}") from None
        key = Key(name, version, kind, octets) if ours else _from_file(path)
        self._add(key)
        return key, ours


def _write_new(path: Path, text: str) -> bool:
    """Write a file that is either whole and on disk or not there, and never over another.

    Returns:
        Whether it was written; False when there was one already.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(path.parent)
    draft = path.parent / f".{path.name}.{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        try:
            # Unlike a rename, a link refuses to replace what another process put there first.
            path.hardlink_to(draft)
        except FileExistsError:
            return False
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True


def _check_private(path: Path) -> None:
    """Refuse what others can read or change."""
    found = path.stat()
    wanted = "700" if stat.S_ISDIR(found.st_mode) else "600"
    if found.st_mode & _OTHERS:
        raise KeyUnusableError(
            f"{path} can be reached by others (its mode is {found.st_mode & 0o777:03o}): "
            f"run chmod {wanted} on it"
        )
    if found.st_uid not in {os.geteuid(), 0}:
        raise KeyUnusableError(f"{path} belongs to another user, who could read or change it")


def _from_file(path: Path) -> Key:
    """Read a key file."""
    matched = _FILE.fullmatch(path.name)
    if matched is None or matched[3] not in set(KeyKind):
        raise KeyUnusableError(f"{path} is not called as a key is: <name>.v<version>.<kind>")
    try:
        _check_private(path)
        if not path.is_file() or path.stat().st_size > FILE_OCTETS_MAX:
            raise KeyUnusableError(f"{path} is not a file of at most {FILE_OCTETS_MAX} octets")
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnusableError(f"{path} cannot be read: {type(error).__name__}") from None
    return _key(matched[1], int(matched[2]), KeyKind(matched[3]), text, str(path))


def _from_variable(variable: str, text: str) -> Key:
    """Read a key from the environment."""
    matched = _VARIABLE.fullmatch(variable)
    if matched is None or matched[3].lower() not in set(KeyKind):
        raise KeyUnusableError(f"{variable} is not called as a key is: {_PREFIX}<NAME>_V<VERSION>_<KIND>")
    return _key(matched[1].lower(), int(matched[2]), KeyKind(matched[3].lower()), text, variable)


def _key(name: str, version: int, kind: KeyKind, text: str, place: str) -> Key:
    """Read the text of a key."""
    if kind is KeyKind.P256 and text.lstrip().startswith("-----BEGIN"):
        return Key(name, version, kind, _scalar_of(text, place))
    try:
        octets = decode_exactly(text.removesuffix("\n"), KEY_OCTETS, place)
    except Malformed:
        raise KeyUnusableError(
            f"{place} must hold {KEY_OCTETS} octets as one line of unpadded base64url"
        ) from None
    if kind is KeyKind.P256 and not 0 < int.from_bytes(octets, "big") < _P256_ORDER:
        raise KeyUnusableError(f"{place} is not a private key of P-256")
    return Key(name, version, kind, octets)


def _scalar_of(pem: str, place: str) -> bytes:
    """Return the private scalar of a PEM key."""
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (TypeError, ValueError):
        raise KeyUnusableError(f"{place} is not an unencrypted PEM private key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise KeyUnusableError(f"{place} is not a private key of P-256")
    return key.private_numbers().private_value.to_bytes(KEY_OCTETS, "big")
