"""The stub, which is also the example of an adapter."""

import json
from dataclasses import replace

import pytest
from tests import deliveries
from tests.deliveries import COLLAPSE_KEY, DELIVERY_ID, FULLEST, drive, moment
from tests.providers.cases import answer_rows, payload_rows

from heliograph.delivery.exchange import Answer, Lost
from heliograph.delivery.model import Outcome, Verdict, Wakeup
from heliograph.providers.stub.exchange import StubProvider
from heliograph.providers.stub.settings import StubSettings
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

STUB = StubProvider(StubSettings(url="http://127.0.0.1:9/wakeups"))


@pytest.mark.parametrize(("heard", "verdict"), answer_rows("stub").values(), ids=answer_rows("stub"))
def test_every_row_of_the_verdict_table(heard: list[Answer | Lost], verdict: Verdict) -> None:
    """Between them the rows reach all ten outcomes."""
    assert drive(STUB.exchange(deliveries.delivery(), moment()), heard)[1] == verdict


def test_the_rows_reach_every_outcome() -> None:
    """So that everything behind the adapter can be rehearsed with the stub alone."""
    assert {verdict.outcome for _, verdict in answer_rows("stub").values()} == set(Outcome)


@pytest.mark.clause("R011", "R117", "R253", "R254", "R278", "R279", "R280")
@pytest.mark.parametrize(("content", "payload"), payload_rows("stub").values(), ids=payload_rows("stub"))
def test_the_receiver_gets_the_allow_listed_members_and_no_other(
    content: Wakeup, payload: dict[str, object]
) -> None:
    """The golden payloads; the push key is not among them."""
    ask = next(STUB.exchange(deliveries.delivery("the push key", content=content), moment()))

    assert json.loads(ask.body) == payload
    assert b"the push key" not in ask.body
    assert ask.headers == {
        "content-type": "application/json",
        "stub-delivery-id": DELIVERY_ID,
        "stub-route": "FPl99Ux_3d7EcigbiUcpcA",
        "stub-collapse-key": COLLAPSE_KEY,
    }


def test_without_a_collapse_key_there_is_no_header_for_it() -> None:
    """Absent, not empty."""
    ask = next(STUB.exchange(deliveries.delivery(collapse_key=None), moment()))

    assert "stub-collapse-key" not in ask.headers


def test_without_a_receiver_everything_is_accepted_at_once() -> None:
    """No ask is made."""
    exchange = StubProvider(StubSettings()).exchange(deliveries.delivery(), moment())

    assert drive(exchange, []) == ([], Verdict(Outcome.ACCEPTED, "stub_accepted_without_a_receiver"))


def test_a_push_key_is_any_text_within_the_schemas_limit() -> None:
    """1 to 4,096 code points."""
    STUB.check_push_key(Secret("\U0001f600" * 4_096))
    STUB.check_push_key(Secret("x"))
    for wrong in ("", "x" * 4_097):
        with pytest.raises(Malformed, match="push_key"):
            STUB.check_push_key(Secret(wrong))


def test_content_beyond_the_budget_is_refused_unsent() -> None:
    """It can go to nobody."""
    content = replace(FULLEST, push_hint_l10n_key="k" * 600)

    assert STUB.fits(FULLEST)
    assert not STUB.fits(content)
    assert drive(STUB.exchange(deliveries.delivery(content=content), moment()), [])[1] == Verdict(
        Outcome.PAYLOAD_BAD, "stub_payload_too_large"
    )


@pytest.mark.parametrize(
    "url",
    [
        "",
        "wakeups",
        "ftp://127.0.0.1/",
        "http:///x",
        "http://u:p@127.0.0.1/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\n",
        "http://b\u00fccher.example.org/",
        "http://127.0.0.1/" + "x" * 2_048,
    ],
)
def test_settings_that_could_never_deliver_are_refused(url: str) -> None:
    """When they are read, not at the first push."""
    with pytest.raises(Malformed) as caught:
        StubProvider(StubSettings(url=url))

    assert caught.value.field == "url"
