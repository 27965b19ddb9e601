"""Keys come from a place that only we can read, and never show."""

import os
import pickle
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.keyring import Key, KeyKind, KeyMissingError, Keyring, KeyUnusableError
from heliograph.wire.base64url import encode
from tests.secrets import planted_octets

WANTED = {"master": KeyKind.SYMMETRIC, "service": KeyKind.ED25519, "vapid": KeyKind.P256}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that only we can read."""
    made = tmp_path / "keys"
    made.mkdir(mode=0o700)
    return made


def put(folder: Path, name: str, text: str, mode: int = 0o600) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_first_start_makes_every_key_it_needs(tmp_path: Path) -> None:
    """Nothing is prepared; afterwards the keys are on disk, private, and found again."""
    place = tmp_path / "data" / "keys"

    made = Keyring.open(place, {}).create_missing(WANTED, SystemEntropy())

    again = Keyring.open(place, {})
    assert [key.name for key in made] == ["master", "service", "vapid"]
    assert [again.current(key.name).reveal() for key in made] == [key.reveal() for key in made]
    assert {len(key.reveal()) for key in made} == {32}
    assert place.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o600}
    assert sorted(path.name for path in place.iterdir()) == [
        "master.v1.symmetric",
        "service.v1.ed25519",
        "vapid.v1.p256",
    ]


def test_keys_that_exist_are_kept(folder: Path) -> None:
    """A second start makes nothing."""
    Keyring.open(folder, {}).create_missing(WANTED, SystemEntropy())

    assert Keyring.open(folder, {}).create_missing(WANTED, SystemEntropy()) == ()


def test_of_two_processes_that_start_at_once_one_makes_the_key(folder: Path) -> None:
    """The second has already looked and found nothing; it takes what the first wrote."""
    first, second = Keyring.open(folder, {}), Keyring.open(folder, {})

    made = first.create_missing({"master": KeyKind.SYMMETRIC}, SystemEntropy())
    made_too = second.create_missing({"master": KeyKind.SYMMETRIC}, SystemEntropy())

    assert len(made) == 1
    assert made_too == ()
    assert second.current("master").reveal() == made[0].reveal()
    assert [path.name for path in folder.iterdir()] == ["master.v1.symmetric"]


def test_rotation_adds_a_version_and_keeps_the_old_one(folder: Path) -> None:
    """What was sealed with the old version can still be opened."""
    ring = Keyring.open(folder, {})
    ring.create_missing({"master": KeyKind.SYMMETRIC}, SystemEntropy())
    old = ring.current("master").reveal()

    new = ring.rotate("master", SystemEntropy())

    again = Keyring.open(folder, {})
    assert (new.version, again.current("master").version) == (2, 2)
    assert again.version("master", 1).reveal() == old
    assert [key.version for key in again.versions("master")] == [1, 2]


def test_a_rotation_that_another_process_did_first_is_refused(folder: Path) -> None:
    """Two rotations at once must not both believe that theirs is current."""
    ring, other = Keyring.open(folder, {}), Keyring.open(folder, {})
    ring.create_missing({"master": KeyKind.SYMMETRIC}, SystemEntropy())
    other.create_missing({"master": KeyKind.SYMMETRIC}, SystemEntropy())
    ring.rotate("master", SystemEntropy())

    with pytest.raises(KeyUnusableError, match="rotated by another process"):
        other.rotate("master", SystemEntropy())


def test_versions_are_ordered_by_number_not_by_spelling(folder: Path) -> None:
    """Version 10 is newer than version 9."""
    for version in (9, 10):
        put(folder, f"master.v{version}.symmetric", encode(bytes([version]) * 32) + "\n")

    assert Keyring.open(folder, {}).current("master").version == 10


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_key_that_others_can_reach_is_refused(folder: Path, mode: int) -> None:
    """The error names the file and the remedy."""
    path = put(folder, "master.v1.symmetric", encode(bytes(32)), mode)

    with pytest.raises(KeyUnusableError, match=f"{path}.*chmod 600"):
        Keyring.open(folder, {})


def test_a_folder_that_others_can_reach_is_refused(folder: Path) -> None:
    """Others could put a key of theirs into it."""
    folder.chmod(0o750)

    with pytest.raises(KeyUnusableError, match="chmod 700"):
        Keyring.open(folder, {})


def test_a_key_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner can read it whatever its mode."""
    path = put(folder, "master.v1.symmetric", encode(bytes(32)))
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)

    with pytest.raises(KeyUnusableError, match="belongs to another user"):
        Keyring.open(folder, {})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("master.v1.symmetric", "short"),
        ("master.v1.symmetric", ""),
        ("master.v1.symmetric", encode(bytes(31))),
        ("master.v1.symmetric", encode(bytes(33))),
        ("master.v1.symmetric", encode(bytes(32)) + "="),
        ("master.v1.symmetric", encode(bytes(32)) + "\n\n"),
        ("master.v1.symmetric", "x" * 5000),
        ("vapid.v1.p256", encode(bytes(32))),
        ("vapid.v1.p256", encode(b"\xff" * 32)),
        ("vapid.v1.p256", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
    ],
)
def test_what_is_no_key_is_refused_without_repeating_it(folder: Path, name: str, text: str) -> None:
    """The error names the file only."""
    path = put(folder, name, text)

    with pytest.raises(KeyUnusableError) as caught:
        Keyring.open(folder, {})
    assert str(path) in str(caught.value)
    assert not text or text.strip() not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["master.symmetric", "master.v0.symmetric", "master.v1.aes", "Master.v1.symmetric", "notes.txt"]
)
def test_a_file_that_is_not_called_as_a_key_is_refused(folder: Path, name: str) -> None:
    """A misspelled name would otherwise be a missing key, and a new one would be made in its place."""
    put(folder, name, encode(bytes(32)))

    with pytest.raises(KeyUnusableError, match="not called as a key is"):
        Keyring.open(folder, {})


def test_versions_of_one_key_are_of_one_kind(folder: Path) -> None:
    """A signing key cannot become a sealing key by rotation."""
    put(folder, "master.v1.symmetric", encode(bytes(32)))
    put(folder, "master.v2.ed25519", encode(bytes(32)))

    with pytest.raises(KeyUnusableError, match="different kinds"):
        Keyring.open(folder, {})


def test_a_key_of_the_wrong_kind_is_not_taken_for_the_wanted_one(folder: Path) -> None:
    """Starting must fail rather than sign with a sealing key."""
    put(folder, "service.v1.symmetric", encode(bytes(32)))

    with pytest.raises(KeyUnusableError, match="must be ed25519"):
        Keyring.open(folder, {}).create_missing({"service": KeyKind.ED25519}, SystemEntropy())


def test_the_environment_stands_in_for_files(folder: Path) -> None:
    """A key there needs no directory, and replaces the file of its name and version."""
    seed = planted_octets("seed in the environment")
    put(folder, "service.v1.ed25519", encode(bytes(32)))

    ring = Keyring.open(folder, {"HELIOGRAPH_KEY_SERVICE_V1_ED25519": encode(seed), "PATH": "/bin"})

    assert ring.current("service").reveal() == seed


@pytest.mark.parametrize("variable", ["HELIOGRAPH_KEY_SERVICE", "HELIOGRAPH_KEY_SERVICE_V1_RSA"])
def test_a_variable_that_is_not_called_as_a_key_is_refused(variable: str) -> None:
    """As for files: a misspelled key is not a missing one."""
    with pytest.raises(KeyUnusableError, match=variable):
        Keyring.open(None, {variable: encode(bytes(32))})


def test_without_a_directory_no_key_can_be_made() -> None:
    """It would be gone with the process, and everything sealed with it."""
    with pytest.raises(KeyUnusableError, match="no directory"):
        Keyring.open(None, {}).create_missing(WANTED, SystemEntropy())


def test_a_p256_key_may_be_pem(folder: Path) -> None:
    """As other tools write it; its scalar is what counts."""
    key = ec.derive_private_key(7, ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    put(folder, "vapid.v1.p256", pem.decode())

    assert Keyring.open(folder, {}).current("vapid").reveal() == (7).to_bytes(32, "big")


def test_a_pem_key_of_another_curve_is_refused(folder: Path) -> None:
    """It would sign nothing that a push service accepts."""
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    put(folder, "vapid.v1.p256", pem.decode())

    with pytest.raises(KeyUnusableError, match="not a private key of P-256"):
        Keyring.open(folder, {})


def test_a_missing_key_says_where_it_was_looked_for(folder: Path) -> None:
    """Names the key, the directory and the environment."""
    with pytest.raises(KeyMissingError, match=f"no key master in {folder} or the environment"):
        Keyring.open(folder, {}).current("master")
    with pytest.raises(KeyMissingError, match="no version 3"):
        Keyring.open(folder, {}).version("master", 3)


def test_a_key_shows_nothing_of_itself() -> None:
    """Not printed, not pickled, not compared, not hashed."""
    octets = planted_octets("a key")
    key = Key("master", 1, KeyKind.SYMMETRIC, octets)

    assert repr(key) == f"{key}" == "Key(master v1, symmetric)"
    assert key != Key("master", 1, KeyKind.SYMMETRIC, octets)
    with pytest.raises(TypeError):
        pickle.dumps(key)
    with pytest.raises(TypeError):
        hash(key)
