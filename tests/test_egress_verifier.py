"""The verifier itself: it finds what must not leave, so its silence means something."""

from base64 import b64encode, urlsafe_b64encode
from dataclasses import replace

import pytest

from heliograph.lab.receiver import Captured, Heard
from tests.egress_verifier import problems

CLEAN = Captured(
    "stub",
    Heard("POST", "/wakeups", {"host": "x", "stub-delivery-id": "d"}, b'{"push_target_id":"t"}', 1),
    b'{"push_target_id":"t"}',
)
OTHER_CLAIM = urlsafe_b64encode(b'{"jti":"1"}').decode()


def heard(**change: object) -> Captured:
    return replace(CLEAN, heard=replace(CLEAN.heard, **change))  # type: ignore[arg-type] # names fields of Heard


def test_a_clean_request_has_no_problem() -> None:
    """The ordinary case is silent."""
    assert problems(CLEAN, set()) == []


@pytest.mark.parametrize(
    ("captured", "problem"),
    [
        (heard(headers={"x-realm": "1"}), "header x-realm"),
        (heard(target="/wakeups?d=1"), "an unexpected path"),
        (replace(CLEAN, plaintext=b'{"push_target_id":"t","event_id":"e"}'), "member event_id"),
        (replace(CLEAN, plaintext=b'{"counts":{"total":7}}'), "member counts.total"),
        (replace(CLEAN, plaintext=b"[]"), "a payload that is no object"),
        (heard(body=b"ak:realm:x"), "the form ak:realm"),
        (heard(body=b64encode(b"secret-plant-0123456789")), "a planted identifier"),
        (heard(headers={"host": "secret-plant-0123456789"}), "a planted identifier"),
        (replace(CLEAN, provider="webpush", plaintext=None), "a body that its browser cannot read"),
        (
            replace(
                CLEAN,
                provider="webpush",
                heard=replace(
                    CLEAN.heard,
                    headers={"authorization": f"vapid t=e.{OTHER_CLAIM}.s"},
                ),
            ),
            "claim jti",
        ),
    ],
)
def test_each_kind_of_leak_is_found(captured: Captured, problem: str) -> None:
    """In a header, a path, a member, a claim, in plain or in base64."""
    assert problem in problems(captured, {"secret-plant-0123456789"})
