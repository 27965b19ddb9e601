"""Signed requests verify while nothing that matters changed, and are refused with the right code if not."""

import base64
import datetime as dt
from dataclasses import dataclass, field
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    algorithms,
)
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.shared import shared_json

from heliograph.signing import signature_fields
from heliograph.signing.content_digest import content_digest
from heliograph.signing.ed25519 import SigningKey, VerifyKey
from heliograph.signing.http_signature import (
    ACCEPTANCE_WINDOW_MS,
    SERVICE_TO_SERVICE,
    Fault,
    Policy,
    RequestHead,
    SignatureRefused,
    VerifiedRequest,
    Why,
    sign,
    verify,
)
from heliograph.wire.ids import DidCoreId, VerificationMethod

FIXTURES: Final = "spec/arkret/fixtures/"
KEY: Final = SigningKey(bytes(range(32)))
KEYID: Final = VerificationMethod("did:web:station.example#push")
STATION: Final = "ak:did_core:web:station.example"
GATEWAY: Final = "ak:did_core:web:push.example.com"
NOW: Final = 1_790_000_000
BODY: Final = b'{"hello":"world"}'
URI: Final = "https://push.example.com/_arkret/edge/push/notify"


def unsigned(**fields: str) -> RequestHead:
    return RequestHead(
        "POST",
        URI,
        "push.example.com",
        {
            "arkret-operation": "ak.edge.push.command.notify.v1",
            "source-service-id": STATION,
            "destination-service-id": GATEWAY,
            "idempotency-key": "notify-0001",
            **{name.replace("_", "-"): value for name, value in fields.items()},
        },
    )


def with_fields(head: RequestHead, **fields: str | None) -> RequestHead:
    changed: dict[str, str | None] = dict(head.fields)
    changed.update({name.replace("_", "-"): value for name, value in fields.items()})
    return replace(head, fields={name: value for name, value in changed.items() if value is not None})


def signed(
    head: RequestHead | None = None,
    body: bytes | None = BODY,
    *,
    created: int = NOW,
    expires: int = NOW + 300,
) -> RequestHead:
    head = head if head is not None else unsigned()
    return replace(
        head, fields={**head.fields, **sign(head, body, KEY, KEYID, created=created, expires=expires)}
    )


def raw(
    names: str,
    parameters: str,
    base: list[str],
    head: RequestHead | None = None,
    *,
    label: str = "sig1",
) -> RequestHead:
    """Sign by hand, where our signer would refuse to."""
    text = f"({names}){parameters}"
    signature = KEY.sign("\n".join([*base, f'"@signature-params": {text}']).encode("latin-1"))
    head = head if head is not None else unsigned()
    return with_fields(
        head,
        content_digest=content_digest(BODY),
        signature_input=f"{label}={text}",
        signature=f"{label}=:{base64.b64encode(signature).decode()}:",
    )


LINES: Final = {
    "@method": "POST",
    "@target-uri": URI,
    "@authority": "push.example.com",
    "content-digest": content_digest(BODY),
    "source-service-id": STATION,
    "destination-service-id": GATEWAY,
    "arkret-operation": "ak.edge.push.command.notify.v1",
    "idempotency-key": "notify-0001",
}
NAMES: Final = " ".join(f'"{name}"' for name in LINES)
BASE: Final = [f'"{name}": {value}' for name, value in LINES.items()]
USUAL: Final = f';created={NOW};expires={NOW + 300};keyid="{KEYID}";alg="ed25519"'


def known(source: DidCoreId, keyid: VerificationMethod) -> VerifyKey | None:
    return KEY.verify_key if (source, keyid) == (STATION, KEYID) else None


def check(
    head: RequestHead, body: bytes | None = BODY, now: int = NOW, policy: Policy = SERVICE_TO_SERVICE
) -> VerifiedRequest:
    return verify(head, body, known, now * 1000, policy)


def refusal(head: RequestHead, body: bytes | None = BODY, now: int = NOW) -> SignatureRefused:
    with pytest.raises(SignatureRefused) as caught:
        check(head, body, now)
    return caught.value


def why(head: RequestHead, body: bytes | None = BODY, now: int = NOW) -> Why:
    return refusal(head, body, now).why


@pytest.mark.clause("R106", "R270")
def test_the_worked_example_comes_out_octet_for_octet() -> None:
    """Our signer writes the published headers, and our verifier takes them."""
    for case in shared_json(FIXTURES + "http-signature.WORKED-EXAMPLE.json")["cases"]:
        published = {name.lower(): value for name, value in case["headers"].items()}
        made = {"content-digest", "signature-input", "signature"}
        head = RequestHead(
            case["method"],
            case["target_uri"],
            "push.example.com",
            {name: value for name, value in published.items() if name not in made},
        )
        key = SigningKey(bytes.fromhex(case["ed25519_private_seed_hex"]))
        body = case["body_utf8"].encode()

        assert sign(head, body, key, KEYID, created=NOW, expires=NOW + 300) == {
            name: published[name] for name in made
        }
        verified = verify(replace(head, fields=published), body, known, NOW * 1000)
        assert (verified.source_id, verified.destination_id, verified.keyid) == (STATION, GATEWAY, KEYID)
        assert (verified.created, verified.expires) == (NOW, NOW + 300)
        assert base64.b64encode(verified.signature).decode() in published["signature"]


def test_what_was_verified_is_told() -> None:
    """Source, destination, key, cover, window, signature and the digest of the content."""
    verified = check(signed())

    assert verified.source_id == STATION
    assert verified.covered == tuple(LINES)
    assert len(verified.signature) == 64
    assert verified.content_sha256 is not None
    assert verified.content_sha256.hex() == "93a23971a914e5eacbf0a8d25154cda309c3c1c72fbb9914d47c60f3cb681588"


def test_a_request_without_content_needs_no_digest() -> None:
    """None and nothing are both no content; a digest of nothing may be given if it is covered."""
    for body in (None, b""):
        verified = check(signed(body=body), body)
        assert "content-digest" not in verified.covered
        assert verified.content_sha256 is None

    assert check(signed(unsigned(content_digest=content_digest(b"")), body=b""), b"").content_sha256


def test_a_signer_may_cover_more_in_any_order() -> None:
    """Further fields and every part of the URI; the verifier rebuilds the signer's order."""
    head = replace(
        unsigned(x_extra="  spaced\t"),
        target_uri=URI + "?a=1&b",
    )
    names = ["x-extra", *reversed(LINES), "@scheme", "@path", "@query", "@request-target"]
    fields = {**head.fields, **sign(head, BODY, KEY, KEYID, created=NOW, expires=NOW + 1, components=names)}

    assert check(replace(head, fields=fields)).covered == tuple(names)


def test_a_uri_without_path_or_query_has_their_canonical_forms() -> None:
    """RFC 9421: an empty path is a slash, an absent query a question mark."""
    head = replace(unsigned(), target_uri="https://push.example.com")
    lines = {**LINES, "@target-uri": head.target_uri, "@path": "/", "@query": "?", "@request-target": "/"}
    request = raw(
        " ".join(f'"{name}"' for name in lines), USUAL, [f'"{n}": {v}' for n, v in lines.items()], head
    )

    assert check(request)


def test_an_authority_is_compared_without_case_and_its_own_port() -> None:
    """HTTPS has port 443, HTTP port 80; any other port stays."""
    for given_as in ("PUSH.example.com", "push.example.com:443"):
        assert check(replace(signed(), authority=given_as))
    plain = signed(
        replace(unsigned(), target_uri="http://push.example.com/", authority="push.example.com:80")
    )
    assert check(replace(plain, authority="push.example.com"))

    assert why(replace(signed(), authority="push.example.com:8443")) == Why.SIGNATURE


def test_any_label_and_any_order_of_parameters_will_do() -> None:
    """Labels may hold letters of either case; unknown parameters are signed and otherwise ignored."""
    for label in ("sig1", "Sig-2.b_C", "x" * 64):
        assert check(raw(NAMES, USUAL, BASE, label=label))
    others = ';nonce="a\\"b";tag="x";n=1.5;t=tok/x:y;b=:AA==:;yes=?1;flag'
    parameters = f';alg="ed25519";keyid="{KEYID}"{others};expires={NOW + 60};created={NOW}'

    assert check(raw(NAMES, parameters, BASE)).expires == NOW + 60


@pytest.mark.clause("R106")
@pytest.mark.parametrize("name", sorted(LINES))
def test_nothing_covered_can_change_after_signing(name: str) -> None:
    """Replacing any covered value is a failure of verification, not of coverage."""
    request = signed()
    match name:
        case "@method":
            changed = replace(request, method="PUT")
        case "@target-uri":
            changed = replace(request, target_uri=URI + "?x")
        case "@authority":
            changed = replace(request, authority="evil.example.com")
        case "content-digest":
            changed = with_fields(request, content_digest=content_digest(b"{}"))
        case "source-service-id":
            changed = with_fields(request, source_service_id="ak:did_core:web:evil.example")
        case _:
            changed = with_fields(request, **{name: request.fields[name] + "x"})
    body = b"{}" if name == "content-digest" else BODY
    expected = Why.SOURCE if name == "source-service-id" else Why.SIGNATURE

    refused = refusal(changed, body)
    assert (refused.fault, refused.why) == (Fault.INVALID, expected)


@pytest.mark.parametrize("name", sorted(LINES))
def test_everything_required_must_be_covered(name: str) -> None:
    """A component that is there but not signed is a failure of coverage, and the log says which."""
    rest = {other: value for other, value in LINES.items() if other != name}
    request = raw(" ".join(f'"{n}"' for n in rest), USUAL, [f'"{n}": {v}' for n, v in rest.items()])

    refused = refusal(request)
    assert (refused.fault, refused.why, refused.component) == (Fault.INVALID, Why.NOT_COVERED, name)
    assert str(refused) == f"http_signature_invalid: not_covered ({name})"


@pytest.mark.parametrize("name", ["source-trust-domain", "destination-trust-domain"])
def test_conditional_fields_must_be_covered_when_they_are_there(name: str) -> None:
    """Our signer covers them by itself; adding one afterwards is noticed."""
    domain = "ak:trust_domain:a.example"

    assert name in check(signed(unsigned(**{name: domain}))).covered
    assert why(with_fields(signed(), **{name: domain})) == Why.NOT_COVERED


def test_a_request_without_a_signature_is_told_to_sign() -> None:
    """Either header alone is no signature."""
    for missing in ("signature", "signature_input"):
        refused = refusal(with_fields(signed(), **{missing: None}))
        assert (refused.fault, refused.why) == (Fault.REQUIRED, Why.NO_SIGNATURE)

    assert refusal(unsigned(), None).fault == Fault.REQUIRED


@pytest.mark.parametrize(
    ("digest", "expected"),
    [
        (None, Why.DIGEST_ABSENT),
        (content_digest(b"other"), Why.DIGEST_MISMATCH),
        (content_digest(BODY).replace("sha-256", "sha256"), Why.DIGEST_MALFORMED),
        (content_digest(BODY) + ", sha-512=:AAAA:", Why.DIGEST_MALFORMED),
        (content_digest(BODY) + ";p=1", Why.DIGEST_MALFORMED),
    ],
)
def test_the_digest_is_recomputed_before_the_signature_is_trusted(digest: str | None, expected: Why) -> None:
    """Even where the signature over the header would be right."""
    lines = {**LINES, "content-digest": digest or ""}
    request = with_fields(raw(NAMES, USUAL, [f'"{n}": {v}' for n, v in lines.items()]), content_digest=digest)

    refused = refusal(request)
    assert (refused.fault, refused.why) == (Fault.INVALID, expected)


def test_the_published_window_boundaries_hold() -> None:
    """Every row of the freshness table and of the one that it replaced."""
    published = next(
        case
        for case in shared_json(FIXTURES + "auth-session-proof-fixture.extract.json")["cases"]
        if case["name"] == "http_signature_freshness_window_boundaries"
    )
    rows = [{"now": published["now"], **row} for row in published["boundaries"]]
    for row in rows + published["removed_tightening_boundaries"]:
        window = f';created={row["created"]};expires={row["expires"]};keyid="{KEYID}";alg="ed25519"'
        request = raw(NAMES, window, BASE)
        if row["expected"] == "accepted":
            assert check(request, now=row["now"]).created == row["created"], row["name"]
        else:
            assert refusal(request, now=row["now"]).fault == Fault.WINDOW, row["name"]

    assert published["error_code"] == Fault.WINDOW


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (f";expires={NOW + 60}", Why.WINDOW_MALFORMED),
        (f";created={NOW}", Why.WINDOW_MALFORMED),
        (f';created="{NOW}";expires={NOW + 60}', Why.WINDOW_MALFORMED),
        (f";created={NOW}.0;expires={NOW + 60}", Why.WINDOW_MALFORMED),
        (f";created;expires={NOW + 60}", Why.WINDOW_MALFORMED),
        (f";created=-5;expires={NOW + 60}", Why.LIFETIME),
        (f";created={NOW};expires={NOW + 301}", Why.LIFETIME),
        (f";created={NOW};expires={NOW}", Why.LIFETIME),
        (f";created={NOW - 31};expires={NOW + 60}", Why.CREATED_SKEW),
        (f";created={NOW + 31};expires={NOW + 60}", Why.CREATED_SKEW),
        (f";created={NOW - 20};expires={NOW}", Why.EXPIRED),
    ],
)
def test_a_window_that_is_missing_malformed_or_past_has_its_own_code(window: str, expected: Why) -> None:
    """Told before the signature is looked at."""
    request = raw(NAMES, f'{window};keyid="{KEYID}";alg="ed25519"', ["wrong base"])

    refused = refusal(request)
    assert (refused.fault, refused.why) == (Fault.WINDOW, expected)


def test_time_is_compared_in_whole_seconds() -> None:
    """As created and expires are counted: half a second more changes neither bound."""
    request = signed(created=NOW - 30, expires=NOW + 1)

    assert verify(request, BODY, known, NOW * 1000 + 999)
    with pytest.raises(SignatureRefused):
        verify(request, BODY, known, NOW * 1000 + 1000)


def test_a_replay_cache_outlives_every_acceptable_signature() -> None:
    """300 seconds of life and 30 of skew."""
    assert ACCEPTANCE_WINDOW_MS == 330_000


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (f';created={NOW};expires={NOW + 60};keyid="{KEYID}"', Why.ALGORITHM),
        (f';created={NOW};expires={NOW + 60};keyid="{KEYID}";alg="rsa-v1_5-sha256"', Why.ALGORITHM),
        (f';created={NOW};expires={NOW + 60};keyid="{KEYID}";alg="Ed25519"', Why.ALGORITHM),
        (f';created={NOW};expires={NOW + 60};keyid="{KEYID}";alg=ed25519', Why.ALGORITHM),
        (f';created={NOW};expires={NOW + 60};alg="ed25519"', Why.KEYID),
        (f';created={NOW};expires={NOW + 60};keyid="";alg="ed25519"', Why.KEYID),
        (f';created={NOW};expires={NOW + 60};keyid="key-1";alg="ed25519"', Why.KEYID),
        (f';created={NOW};expires={NOW + 60};keyid="did:plc:abc#k";alg="ed25519"', Why.KEYID),
        (f';created={NOW};expires={NOW + 60};keyid="did:web:a\\"b#k";alg="ed25519"', Why.KEYID),
        (f';created={NOW};expires={NOW + 60};keyid={NOW};alg="ed25519"', Why.KEYID),
        (f';created={NOW};expires={NOW + 60};keyid="did:web:evil.example#push";alg="ed25519"', Why.SOURCE),
        (f';created={NOW};expires={NOW + 60};keyid="{KEYID}2";alg="ed25519"', Why.UNKNOWN_KEY),
        (f';created={NOW};created={NOW};expires={NOW + 60};keyid="{KEYID}";alg="ed25519"', Why.NAMED_TWICE),
        (";a" * 17 + USUAL, Why.UNPARSABLE),
        ("".join(f";a{n}" for n in range(17)) + USUAL, Why.UNPARSABLE),
        (USUAL + ";", Why.UNPARSABLE),
        (USUAL + ";A=1", Why.UNPARSABLE),
        ("; created=1" + USUAL, Why.UNPARSABLE),
        (USUAL + ' , sig2=("@method")', Why.MORE_THAN_ONE),
        (USUAL + ";é", Why.UNPARSABLE),
        (";created=1234567890123456" + USUAL, Why.UNPARSABLE),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters: str, expected: Why) -> None:
    """Algorithm, key id, repeats, spelling, and a second signature."""
    refused = refusal(raw(NAMES, parameters, BASE))

    assert (refused.fault, refused.why) == (Fault.INVALID, expected)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (NAMES + ' "@method"', Why.NAMED_TWICE),
        (NAMES.replace(" ", "  ", 1), Why.UNPARSABLE),
        (" " + NAMES, Why.UNPARSABLE),
        (NAMES + ' "date";sf', Why.UNPARSABLE),
        (NAMES + ' "Date"', Why.UNPARSABLE),
        (NAMES + " date", Why.UNPARSABLE),
        (NAMES + "".join(f' "x-{n}"' for n in range(30)), Why.UNPARSABLE),
        (NAMES + ' "x' + "y" * 4096 + '"', Why.UNPARSABLE),
        ("", Why.NOT_COVERED),
        (NAMES + ' "x-missing"', Why.COMPONENT_ABSENT),
        (NAMES + ' "@status"', Why.COMPONENT_UNKNOWN),
        (NAMES + ' "@query-param"', Why.COMPONENT_UNKNOWN),
    ],
)
def test_component_lists_that_do_not_fit_are_refused(names: str, expected: Why) -> None:
    """Repeats, spacing, component parameters, length, and components that a request does not have."""
    refused = refusal(raw(names, USUAL, BASE))

    assert (refused.fault, refused.why) == (Fault.INVALID, expected)


@pytest.mark.parametrize(
    "field_text",
    [
        "",
        "sig1",
        "sig1=",
        "=()",
        "sig1=(",
        'sig1("@method")',
        "s g=()" + USUAL,
        "x" * 65 + "=()" + USUAL,
        "é=()" + USUAL,
        "sig1=()x",
    ],
)
def test_a_signature_input_that_is_none_is_refused(field_text: str) -> None:
    """No label, no list, no end."""
    assert why(with_fields(signed(), signature_input=field_text)) == Why.UNPARSABLE


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("sig2=:{}:", Why.LABELS_DIFFER),
        ("sig1=:{}:, sig1=:{}:", Why.MORE_THAN_ONE),
        ("sig1=:{}:;p", Why.UNPARSABLE),
        ("sig1={}", Why.UNPARSABLE),
        ("", Why.UNPARSABLE),
        ("sig1=:AAAA:", Why.UNPARSABLE),
        ("sig1=:" + "A" * 86 + ":", Why.UNPARSABLE),
        ("sig1=:" + "A" * 85 + "B==:", Why.UNPARSABLE),
        ("sig1=:" + "-" * 85 + "A==:", Why.UNPARSABLE),
        ("sig1=:" + "A" * 86 + "==:", Why.SIGNATURE),
    ],
)
def test_a_signature_is_64_octets_under_the_same_label(form: str, expected: Why) -> None:
    """Standard base64 with padding, in its canonical spelling, and nothing beside it."""
    text = signed().fields["signature"].removeprefix("sig1=:").removesuffix(":")

    assert why(with_fields(signed(), signature=form.format(text, text))) == expected


def test_surrounding_space_is_not_part_of_a_field() -> None:
    """HTTP trims field values; so do we, in case a server did not."""
    request = signed()
    padded = {name: f" {value}\t " for name, value in request.fields.items()}

    assert check(replace(request, fields=padded)).destination_id == GATEWAY


@pytest.mark.parametrize("value", ["a\nb", "a\r", "é", "\u2028"])
def test_a_value_cannot_pose_as_a_line_of_its_own(value: str) -> None:
    """Line feeds, carriage returns and non-ASCII text have no place in what is signed."""
    request = with_fields(signed(), idempotency_key=value)

    assert why(request) == Why.COMPONENT_VALUE


def test_a_uri_that_cannot_be_taken_apart_is_refused() -> None:
    """An open bracket in the host, under a signature that covers the path."""
    head = replace(unsigned(), target_uri="https://[push/")
    lines = {**LINES, "@target-uri": head.target_uri, "@path": "/"}
    request = raw(
        " ".join(f'"{name}"' for name in lines), USUAL, [f'"{n}": {v}' for n, v in lines.items()], head
    )

    assert why(request) == Why.COMPONENT_VALUE


def test_an_unknown_source_looks_like_a_bad_signature() -> None:
    """The same fault, so that nobody can ask who is onboarded; our log knows better."""
    request = signed()
    with pytest.raises(SignatureRefused) as unknown:
        verify(request, BODY, lambda source, keyid: None, NOW * 1000)
    forged = refusal(with_fields(request, signature="sig1=:" + "A" * 86 + "==:"))

    assert unknown.value.fault == forged.fault == Fault.INVALID
    assert (unknown.value.why, forged.why) == (Why.UNKNOWN_KEY, Why.SIGNATURE)


def test_the_destination_is_told_and_not_judged() -> None:
    """Another gateway's request verifies; whose it is, is for the caller to compare."""
    request = signed(unsigned(destination_service_id="ak:did_core:web:other.example"))

    assert check(request).destination_id == "ak:did_core:web:other.example"


def test_a_policy_may_ask_for_more_but_never_for_less() -> None:
    """The two service ids are always covered."""
    more = Policy(SERVICE_TO_SERVICE.always | {"x-extra"}, SERVICE_TO_SERVICE.when_present)
    with pytest.raises(SignatureRefused) as caught:
        check(signed(), policy=more)
    assert caught.value.component == "x-extra"

    unconditional = Policy(SERVICE_TO_SERVICE.always, frozenset())
    rest = {name: value for name, value in LINES.items() if name != "content-digest"}
    request = raw(" ".join(f'"{n}"' for n in rest), USUAL, [f'"{n}": {v}' for n, v in rest.items()])
    with pytest.raises(SignatureRefused) as caught:
        check(request, policy=unconditional)
    assert caught.value.component == "content-digest"

    with pytest.raises(ValueError, match="who speaks to whom"):
        Policy(frozenset({"@method"}), frozenset())


@pytest.mark.parametrize(
    ("change", "expires", "components"),
    [
        ({}, NOW, None),
        ({}, NOW + 301, None),
        ({"arkret_operation": None}, NOW + 60, None),
        ({"source_service_id": None}, NOW + 60, None),
        ({"idempotency_key": "a\nb"}, NOW + 60, None),
        ({}, NOW + 60, ["@method"]),
        ({}, NOW + 60, ["@method", "@method"]),
        ({}, NOW + 60, ["UPPER"]),
    ],
)
def test_our_signer_refuses_what_no_verifier_would_take(
    change: dict[str, str | None], expires: int, components: list[str] | None
) -> None:
    """A plain error: the mistake is ours."""
    with pytest.raises(ValueError, match="sign"):
        sign(
            with_fields(unsigned(), **change),
            BODY,
            KEY,
            KEYID,
            created=NOW,
            expires=expires,
            components=components,
        )


field_texts = st.text(alphabet='sig1=()";:,.@ -?methodcreated=0123\\keyid\té', max_size=80)


@given(field_texts, field_texts)
def test_no_fields_make_verification_fail_otherwise(signature_input: str, signature: str) -> None:
    """Whatever stands in the two fields is refused with a reason."""
    head = unsigned(signature_input=signature_input, signature=signature)

    assert why(head, None) in Why


@given(st.integers(0, len(f"sig1=({NAMES}){USUAL}") - 1), st.characters(max_codepoint=0x7F))
def test_one_changed_character_of_the_input_is_noticed(at: int, mark: str) -> None:
    """Every character of the field is either parsed or signed; the label belongs to both fields."""
    text = f"sig1=({NAMES}){USUAL}"
    changed = text[:at] + mark + text[at + 1 :]
    request = with_fields(raw(NAMES, USUAL, BASE), signature_input=changed)

    if changed == text:
        assert check(request)
    else:
        assert why(request) in Why


@given(
    st.text(max_size=30), st.text(max_size=30), st.dictionaries(st.text(max_size=10), st.text(max_size=20))
)
def test_no_head_makes_verification_fail_otherwise(method: str, uri: str, fields: dict[str, str]) -> None:
    """Strange methods, URIs and fields are refused too."""
    head = RequestHead(method, uri, uri, {**signed().fields, **fields})

    with pytest.raises(SignatureRefused):
        check(head)


@dataclass
class Message:
    """What the other implementation signs."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)


class Keys(HTTPSignatureKeyResolver):
    def resolve_private_key(self, key_id: str) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        assert key_id == KEYID
        return Ed25519PublicKey.from_public_bytes(KEY.verify_key.octets)


def test_we_verify_what_another_implementation_signed() -> None:
    """The http-message-signatures package writes its parameters in another order."""
    head = unsigned()
    message = Message("POST", URI, dict(head.fields))
    HTTPMessageSigner(signature_algorithm=algorithms.ED25519, key_resolver=Keys()).sign(
        message,
        key_id=KEYID,
        created=dt.datetime.fromtimestamp(NOW, dt.UTC),
        expires=dt.datetime.fromtimestamp(NOW + 200, dt.UTC),
        label="other",
        covered_component_ids=list(LINES),
        body=BODY,
    )
    fields = {name.lower(): value for name, value in message.headers.items()}

    verified = check(replace(head, fields=fields))
    assert (verified.expires, verified.covered) == (NOW + 200, tuple(LINES))


def test_another_implementation_verifies_what_we_signed() -> None:
    """With every component that we know, at the present time, which that package insists on."""
    now = int(dt.datetime.now(dt.UTC).timestamp())
    head = replace(unsigned(), target_uri=URI + "?a=1")
    names = [*LINES, "@scheme", "@path", "@query", "@request-target"]
    added = sign(head, BODY, KEY, KEYID, created=now, expires=now + 100, components=names)
    message = Message("POST", head.target_uri, {**head.fields, **added})

    results = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Keys()).verify(message)
    assert [result.label for result in results] == ["sig1"]


def test_remembered_lists_are_bounded() -> None:
    """Strangers cannot make a cache grow."""
    assert signature_fields.parse_covered.cache_info().maxsize == signature_fields.COVERED_LISTS_MAX
