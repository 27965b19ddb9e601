"""A Content-Digest is one SHA-256 member, and vouches for the exact octets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import shared_json

from heliograph.signing.content_digest import (
    DigestFault,
    DigestRefused,
    check_content_digest,
    content_digest,
)

BODY = b'{"hello": "world"}'
# The value that RFC 9530 prints for this content.
DIGEST = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"


def fault_of(header: str, body: bytes) -> DigestFault:
    with pytest.raises(DigestRefused) as caught:
        check_content_digest(header, body)
    return caught.value.fault


def test_the_published_digest_comes_out() -> None:
    """RFC 9530's own example, and its value checks."""
    assert content_digest(BODY) == DIGEST
    assert check_content_digest(f" {DIGEST}\t", BODY).hex().startswith("5f8f04f6")


@pytest.mark.clause("R106")
def test_the_digests_of_the_worked_example_come_out() -> None:
    """Both signed bodies."""
    for case in shared_json("spec/arkret/fixtures/http-signature.WORKED-EXAMPLE.json")["cases"]:
        assert content_digest(case["body_utf8"].encode()) == case["headers"]["Content-Digest"]


@pytest.mark.parametrize(
    "header",
    [
        "",
        DIGEST.replace("sha-256", "sha256"),
        DIGEST.replace("sha-256", "SHA-256"),
        DIGEST + ";q=1",
        DIGEST + ", " + DIGEST,
        DIGEST + ", sha-512=:AAAA:",
        "sha-512=:AAAA:, " + DIGEST,
        DIGEST.replace("=:", "=", 1),
        DIGEST.replace("=:", ":"),
        DIGEST.replace("PE=", "PF="),
        DIGEST.replace("PE=", "PE"),
        DIGEST.replace("X48", "X4-"),
        "sha-256=5f8f04f6a3a892aaabbddb6cf273894493773960d4a325b105fee46eef4304f1",
        DIGEST + "\n",
        DIGEST + "é",
    ],
)
def test_another_form_is_refused(header: str) -> None:
    """Aliases, further members, parameters, other encodings."""
    assert fault_of(header, BODY) == DigestFault.MALFORMED


def test_other_octets_are_refused() -> None:
    """One space less is another content."""
    assert fault_of(DIGEST, b'{"hello":"world"}') == DigestFault.MISMATCH
    assert fault_of(DIGEST, b"") == DigestFault.MISMATCH


@given(st.text(max_size=80), st.binary(max_size=20))
def test_no_header_makes_the_check_fail_otherwise(header: str, body: bytes) -> None:
    """Whatever arrives is refused with a reason."""
    assert fault_of(header, body) in DigestFault


@given(st.binary(max_size=100))
def test_what_was_digested_checks(body: bytes) -> None:
    """Round trip."""
    assert len(check_content_digest(content_digest(body), body)) == 32
