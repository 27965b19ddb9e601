"""Identifiers are what their patterns say, octet for octet."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared import shared_json

from heliograph.wire import ids
from heliograph.wire.malformed import Malformed

UUID7 = "0192f3a1-4c2b-7d5e-9f10-2a3b4c5d6e7f"
EVENT = "AQJmSg1s9QyzppFeJL40dN92YVHZeLdBBt3UWHa9XNOD"
TARGET = "ak:pseudonym:push:FI75sRZ0YLoDyKf042gF-kLsw5Tg-M9zm2_aqKyZLOI"

Parse = Callable[[str, str], str]

KINDS: dict[str, tuple[Parse, Any, list[str], list[str]]] = {
    "did_core_id": (
        ids.parse_did_core_id,
        ids.DidCoreIdText,
        [
            "ak:did_core:web:station.example",
            "ak:did_core:web:h%3A8443:users:é",
            "ak:did_core:web:" + "a" * 496,
        ],
        [
            "did:web:station.example",
            "ak:did_core:Web:a",
            "ak:did_core:web:",
            "ak:did_core:web:a/b",
            "ak:did_core:web:a#k",
            "ak:did_core:web:a?q",
            "ak:did_core:web:a b",
            "ak:did_core:web:a\x00b",
            "ak:did_core:web:a\ufeff",
            "ak:did_core:web:" + "a" * 497,
        ],
    ),
    "did": (
        ids.parse_did,
        ids.DidText,
        ["did:web:station.example", "did:key:z6Mk", "did:web:" + "a" * 2040],
        ["did:web:a#k", "did:web:a/b", "did:WEB:a", "did:web", "did:web:", "did:web:" + "a" * 2041],
    ),
    "verification_method": (
        ids.parse_verification_method,
        ids.VerificationMethodText,
        ["did:web:station.example#push", "did:webvh:z6mk:alice.example#session-key-1", "did:web:a/b#k"],
        [
            "did:web:a",
            "did:web:a#",
            "did:web:a#k#k",
            "did:web:a?x=1#k",
            "did:web:a#k/2",
            "did:web:a#é",
            "did:web:a b#k",
            "did:web:" + "a" * 2300 + "#k",
        ],
    ),
    "device_id": (
        ids.parse_device_id,
        ids.DeviceIdText,
        ["ak:device:" + UUID7],
        [
            UUID7,
            "ak:device:" + UUID7.upper(),
            "ak:device:0192f3a1-4c2b-4d5e-9f10-2a3b4c5d6e7f",
            "ak:device:0192f3a1-4c2b-7d5e-cf10-2a3b4c5d6e7f",
            "ak:device:" + UUID7 + "0",
        ],
    ),
    "push_target_id": (
        ids.parse_push_target_id,
        ids.PushTargetIdText,
        [TARGET, "ak:pseudonym:push:" + "A" * 43],
        [
            TARGET[:-1],
            TARGET + "A",
            TARGET + "=",
            TARGET.removeprefix("ak:pseudonym:push:"),
            "ak:pseudonym:push:" + "A" * 42 + "B",
            "ak:pseudonym:push:" + "+" * 42 + "A",
            "ak:pseudonym:other" + "A" * 43,
        ],
    ),
    "registration_id": (
        ids.parse_registration_id,
        ids.RegistrationIdText,
        ["registration_0123456789abcdef", "a" * 22, "A.z_~-0123456789012345", "a" * 128],
        ["a" * 21, "a" * 129, "ak:" + "a" * 30, "a" * 21 + "/", "a" * 21 + "é"],
    ),
    "route_token": (
        ids.parse_route_token,
        ids.RouteTokenText,
        ["t" * 22, "t" * 512],
        ["t" * 21, "t" * 513, "t" * 21 + "+"],
    ),
    "event_id": (
        ids.parse_event_id,
        ids.EventIdText,
        ["ak:event:" + EVENT],
        ["ak:realm:" + EVENT, "ak:event:" + EVENT[:-1], "ak:event:" + EVENT + "A", "ak:event:" + "+" * 44],
    ),
    "realm_id": (
        ids.parse_realm_id,
        ids.RealmIdText,
        ["ak:realm:Ac1aCK8aQdnkYImvdH3DFjq4jDCP198pXYWCGzGuVyj5"],
        ["ak:event:" + EVENT],
    ),
    "strand_id": (ids.parse_strand_id, ids.StrandIdText, ["ak:strand:" + EVENT], ["ak:realm:" + EVENT]),
    "message_id": (ids.parse_message_id, ids.MessageIdText, ["ak:message:" + EVENT], ["ak:strand:" + EVENT]),
    "digest": (
        ids.parse_digest,
        ids.DigestText,
        ["sha256:" + "0f" * 32],
        ["sha256:" + "0F" * 32, "sha256:" + "0f" * 31, "sha512:" + "0f" * 32, "0f" * 32],
    ),
}


@pytest.mark.clause("R018", "R019")
@pytest.mark.parametrize("kind", KINDS)
def test_an_identifier_in_its_form_is_taken_unchanged(kind: str) -> None:
    """By the parser and by the closed wire types alike."""
    parse, text_type, good, _ = KINDS[kind]

    for text in good:
        assert parse(text, "x") == text
        assert msgspec.convert(text, text_type) == text


@pytest.mark.clause("R018", "R019")
@pytest.mark.parametrize("kind", KINDS)
def test_an_identifier_in_another_form_is_refused(kind: str) -> None:
    """A trailing newline, an empty text and every near miss; the error names the field."""
    parse, text_type, good, bad = KINDS[kind]

    for text in [*bad, "", *(text + "\n" for text in good), *(" " + text for text in good)]:
        with pytest.raises(Malformed) as caught:
            parse(text, "body.member")
        assert caught.value.field == "body.member"

        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(text, text_type)


def test_a_content_address_names_the_one_registered_digest_suite() -> None:
    """The first octet is 0x01; any other suite is refused though the pattern allows it."""
    for parse, prefix in (
        (ids.parse_event_id, "ak:event:"),
        (ids.parse_realm_id, "ak:realm:"),
        (ids.parse_strand_id, "ak:strand:"),
        (ids.parse_message_id, "ak:message:"),
    ):
        assert parse(prefix + "AQ" + "A" * 42, "x")
        with pytest.raises(Malformed, match="suite"):
            parse(prefix + "Ag" + "A" * 42, "x")


@pytest.mark.clause("R015", "R017")
def test_a_push_target_carries_the_whole_tag() -> None:
    """The published tags give the published ids, and nothing shorter is spelled."""
    for case in shared_json("spec/arkret/fixtures/push-target-id.WORKED-EXAMPLE.json")["cases"]:
        assert ids.format_push_target_id(bytes.fromhex(case["tag_hex"])) == case["push_target_id"]
        assert ids.parse_push_target_id(case["push_target_id"], "x") == case["push_target_id"]

    for tag in (bytes(31), bytes(33)):
        with pytest.raises(ValueError, match="shortened"):
            ids.format_push_target_id(tag)


@pytest.mark.parametrize(
    ("did", "core"),
    [
        ("did:web:station.example", "ak:did_core:web:station.example"),
        ("did:web:station.example%3A8443", "ak:did_core:web:station.example%3A8443"),
        ("did:web:station.example:users:a", "ak:did_core:web:station.example:users:a"),
        ("did:webvh:z6mkfixture:alice.example", "ak:did_core:webvh:z6mkfixture"),
        ("did:webvh:z6mkfixture:alice.example:deep:er", "ak:did_core:webvh:z6mkfixture"),
        (
            "did:key:z6Mkn3sUaRJMRwT4iPbBtHUzTk42mHDSA3M3D8krGpZfGW8D",
            "ak:did_core:key:z6Mkn3sUaRJMRwT4iPbBtHUzTk42mHDSA3M3D8krGpZfGW8D",
        ),
    ],
)
def test_a_did_projects_to_its_core(did: str, core: str) -> None:
    """Each registered method has its own projection, and a key of the DID projects to the same."""
    parsed = ids.parse_did(did, "did")

    assert ids.did_core_id_of(parsed) == core
    assert ids.service_of(ids.parse_verification_method(did + "#push", "keyid")) == core


@pytest.mark.parametrize(
    "did",
    [
        "did:webvh:z6mkfixture",
        "did:webvh::alice.example",
        "did:key:0OIl",
        "did:plc:abc",
        "did:web:" + "a" * 500,
    ],
)
def test_a_did_without_a_projection_is_refused(did: str) -> None:
    """Unknown methods, a history without a host, a key that is none, a core too long to be one."""
    with pytest.raises(Malformed) as caught:
        ids.did_core_id_of(ids.parse_did(did, "did"), "service.did")

    assert caught.value.field == "service.did"


def test_a_key_below_a_path_has_no_controller() -> None:
    """A verification method may carry a path, but only a bare DID projects."""
    with pytest.raises(Malformed):
        ids.service_of(ids.parse_verification_method("did:web:a.example/path#k", "keyid"))


@given(st.sampled_from(sorted(KINDS)), st.text(max_size=60))
def test_no_text_makes_a_parser_fail_otherwise(kind: str, text: str) -> None:
    """Whatever arrives is taken or refused."""
    try:
        taken = KINDS[kind][0](text, "x")
    except Malformed:
        return

    assert taken == text


@given(st.from_regex(ids.DID_PATTERN))
def test_no_did_makes_the_projection_fail_otherwise(did: str) -> None:
    """Whatever DID arrives projects or is refused."""
    try:
        core = ids.did_core_id_of(ids.parse_did(did, "did"))
    except Malformed:
        return

    assert core.startswith("ak:did_core:")
