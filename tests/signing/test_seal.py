"""A sealed value opens for its own tenant, purpose and row, and for nobody else."""

import pickle
from typing import Final

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from heliograph.signing import seal
from heliograph.signing.seal import SealBroken, TenantKeys

MASTER_1: Final = bytes(range(32))
MASTER_2: Final = bytes(range(32, 64))
KEYS: Final = TenantKeys({1: MASTER_1}, current=1)
BOTH: Final = TenantKeys({1: MASTER_1, 2: MASTER_2}, current=2)
TENANT: Final = "ak:did_core:web:station.example"
ROW: Final = ("registration_0123456789abcdef",)
NONCE: Final = bytes(12)

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(
    st.binary(max_size=100),
    names,
    names,
    st.lists(names, max_size=3).map(tuple),
    st.binary(min_size=12, max_size=12),
)
def test_what_was_sealed_opens(
    plaintext: bytes, tenant: str, purpose: str, row: tuple[str, ...], nonce: bytes
) -> None:
    """Round trip, with the plaintext nowhere in the sealed octets."""
    sealed = seal.seal(KEYS, tenant, purpose, row, plaintext, nonce)

    assert seal.open(KEYS, tenant, purpose, row, sealed) == plaintext
    assert seal.version_of(sealed) == 1
    assert len(sealed) == len(plaintext) + 33


def test_a_sealed_value_is_what_it_says_it_is() -> None:
    """Format 1, key version, nonce, and AES-256-GCM under HKDF-SHA256, by hand."""
    info = b"seal\0" + TENANT.encode() + b"\0route"
    key = HKDF(algorithm=SHA256(), length=32, salt=b"heliograph tenant keys v1", info=info).derive(MASTER_1)
    expected = AESGCM(key).encrypt(NONCE, b"push key", TENANT.encode() + b"\0" + ROW[0].encode())

    assert seal.seal(KEYS, TENANT, "route", ROW, b"push key", NONCE) == b"\x01\0\0\0\x01" + NONCE + expected


@pytest.mark.clause("R115")
@pytest.mark.parametrize(
    ("tenant", "purpose", "row"),
    [
        ("ak:did_core:web:other.example", "route", ROW),
        (TENANT, "payload", ROW),
        (TENANT, "route", ("registration_another_abcdef",)),
        (TENANT, "route", ()),
        (TENANT, "route", (*ROW, "")),
        (TENANT[:-1], "route", ("e", *ROW)),
    ],
)
def test_a_sealed_value_opens_nowhere_else(tenant: str, purpose: str, row: tuple[str, ...]) -> None:
    """Not for another tenant under an equal id, nor for another purpose or row."""
    sealed = seal.seal(KEYS, TENANT, "route", ROW, b"push key", NONCE)

    with pytest.raises(SealBroken):
        seal.open(KEYS, tenant, purpose, row, sealed)


@given(st.data())
def test_a_changed_or_cut_value_does_not_open(data: st.DataObject) -> None:
    """Any bit, any length."""
    sealed = seal.seal(KEYS, TENANT, "route", ROW, b"push key", NONCE)
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    flipped = bytearray(sealed)
    flipped[bit // 8] ^= 1 << bit % 8

    for broken in (bytes(flipped), sealed[: data.draw(st.integers(0, len(sealed) - 1))], sealed + b"\0"):
        with pytest.raises(SealBroken):
            seal.open(KEYS, TENANT, "route", ROW, broken)


@given(st.binary(max_size=80))
def test_no_octets_make_opening_fail_otherwise(octets: bytes) -> None:
    """Whatever is stored there, it opens or it is broken."""
    with pytest.raises(SealBroken) as caught:
        seal.open(KEYS, TENANT, "route", ROW, octets)

    assert str(caught.value) == "a sealed value does not open"


def test_an_old_version_opens_and_is_resealed_under_the_current_one() -> None:
    """Rotation: after the last value was resealed, the old master key is not needed."""
    old = seal.seal(KEYS, TENANT, "route", ROW, b"push key", NONCE)
    assert seal.open(BOTH, TENANT, "route", ROW, old) == b"push key"
    new = seal.reseal(BOTH, TENANT, "route", ROW, old, bytes(range(12)))

    assert (seal.version_of(old), seal.version_of(new)) == (1, 2)
    assert seal.open(TenantKeys({2: MASTER_2}, current=2), TENANT, "route", ROW, new) == b"push key"
    with pytest.raises(SealBroken):
        seal.open(KEYS, TENANT, "route", ROW, new)
    with pytest.raises(SealBroken):
        seal.reseal(BOTH, "other", "route", ROW, old, NONCE)


def test_a_derived_key_is_one_tenants_for_one_purpose() -> None:
    """The same every time; another for another tenant, purpose or version, and never a sealing key."""
    keys = {
        seal.derive(BOTH, TENANT, "collapse"),
        seal.derive(BOTH, TENANT, "collapse", version=1),
        seal.derive(BOTH, TENANT, "audit"),
        seal.derive(BOTH, "other", "collapse"),
        BOTH.derived(2, "seal", TENANT, "collapse"),
    }
    assert len(keys) == 5
    assert all(len(key) == 32 for key in keys)

    assert seal.derive(TenantKeys({2: MASTER_2}, current=2), TENANT, "collapse") in keys
    with pytest.raises(KeyError):
        seal.derive(KEYS, TENANT, "collapse", version=9)


def test_remembered_keys_are_bounded() -> None:
    """Many tenants cannot make the memory of keys grow."""
    assert BOTH.derived.cache_info().maxsize == seal.DERIVED_KEYS_MAX
    assert BOTH.cipher.cache_info().maxsize == seal.DERIVED_KEYS_MAX


def test_names_that_could_join_alike_are_our_own_mistake() -> None:
    """U+0000 separates names, so it may be in none."""
    for tenant, purpose, row in (("a\0b", "p", ROW), ("a", "p\0", ROW), ("a", "p", ("x\0",))):
        with pytest.raises(ValueError, match=r"U\+0000"):
            seal.seal(KEYS, tenant, purpose, row, b"", NONCE)


@pytest.mark.parametrize(
    ("nonce", "plaintext"), [(b"", b""), (bytes(11), b""), (bytes(13), b""), (NONCE, bytes(256 * 1024 + 1))]
)
def test_sizes_that_do_not_fit_are_our_own_mistake(nonce: bytes, plaintext: bytes) -> None:
    """A nonce of twelve octets, a plaintext of at most 256 KiB."""
    with pytest.raises(ValueError, match="nonce"):
        seal.seal(KEYS, TENANT, "route", ROW, plaintext, nonce)


@pytest.mark.parametrize(
    ("master", "current"),
    [
        ({}, 1),
        ({1: MASTER_1}, 2),
        ({1: b"short secret"}, 1),
        ({-1: MASTER_1}, -1),
        ({2**32: MASTER_1}, 2**32),
    ],
)
def test_master_keys_that_do_not_fit_are_refused_without_showing_them(
    master: dict[int, bytes], current: int
) -> None:
    """The version is named, the key is not."""
    with pytest.raises(ValueError, match="version") as caught:
        TenantKeys(master, current)

    assert "short secret" not in str(caught.value)


def test_keys_show_their_versions_only() -> None:
    """They print without their octets and are no cargo."""
    assert repr(BOTH) == "TenantKeys(versions=[1, 2], current=2)"
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(BOTH)
