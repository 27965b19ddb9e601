"""A device registers with each of its accounts' Stations, and with each as if there were no other."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from heliograph.arkret.client.registration import (
    RENEW_BEFORE_MS,
    Platform,
    Registered,
    Registration,
    RouteBook,
    check_route,
    must_register,
    read_registered,
)
from heliograph.pushrules.arkret.event import Account
from heliograph.pushrules.document import DocumentRefused
from heliograph.wire.ids import DeviceId, PushTargetId, RegistrationId
from heliograph.wire.secret import Secret
from tests.arkret.make import DEVICE, OTHER_TARGET, REGISTRATION, SUCCESSOR, TARGET
from tests.pushrules.arkret.make import ALICE
from tests.shared import shared_json

HERE = Account(ALICE.principal_id, "ak:did_core:web:station.example")
THERE = Account(ALICE.principal_id, "ak:did_core:web:other.example")
KNOWN = Registered(PushTargetId(TARGET), RegistrationId(REGISTRATION), 1_790_000_000_000)


def registration(**changes: Any) -> Registration:
    made: dict[str, Any] = {
        "device_id": DeviceId(DEVICE),
        "push_gateway_url": "https://push.example.com/_arkret/edge/push/notify",
        "push_key": Secret("fcm:token"),
        "platform": Platform.ANDROID,
        "app_id": "com.example.app",
        "display_name": "Alice's Pixel 9",
    }
    return Registration(**(made | changes))


@pytest.mark.clause("R047", "R048", "R049", "R054")
def test_a_registration_says_what_the_station_needs_and_not_whose_it_is() -> None:
    """The session tells the account; the body repeats neither account nor principal nor recipient."""
    assert registration().body() == {
        "device_id": DEVICE,
        "push_gateway_url": "https://push.example.com/_arkret/edge/push/notify",
        "push_key": "fcm:token",
        "platform": "android",
        "app_id": "com.example.app",
        "display_name": "Alice's Pixel 9",
        "visible_notification_opt_in": False,
    }
    assert "display_name" not in registration(display_name=None).body()


@pytest.mark.clause("R047", "R077")
def test_the_bodies_have_the_published_shape() -> None:
    """By the schema that was rebuilt from the text."""
    schema = shared_json("spec/arkret/fixtures/push-operations.schema.RECONSTRUCTED.json")
    for name, body in (
        ("push_register_device_request_body", registration().body()),
        ("push_unregister_device_request_body", registration().ending()),
        ("push_unregister_device_request_body", registration().ending(only_this_key=True)),
    ):
        validator = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})

        assert list(validator.iter_errors(body)) == []


@pytest.mark.clause("R077", "R078")
def test_a_registration_is_ended_by_the_very_same_device_id() -> None:
    """Narrowed to one push key and app where others are to stay."""
    made = registration()

    assert made.ending() == {"device_id": made.body()["device_id"]}
    assert made.ending(only_this_key=True) == {
        "device_id": DEVICE,
        "push_key": "fcm:token",
        "app_id": "com.example.app",
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"device_id": DeviceId("ak:device:x")}, "device_id"),
        ({"push_gateway_url": "http://push.example.com/"}, "push_gateway_url"),
        ({"push_gateway_url": "https://"}, "push_gateway_url"),
        ({"push_gateway_url": "https://a@push.example.com/"}, "push_gateway_url"),
        ({"push_key": Secret("")}, "push_key"),
        ({"app_id": "ak:app"}, "app_id"),
        ({"app_id": ""}, "app_id"),
        ({"display_name": " "}, "display_name"),
    ],
)
def test_what_a_station_would_refuse_is_refused_here(changes: dict[str, Any], field: str) -> None:
    """By name, and without the push key."""
    with pytest.raises(DocumentRefused) as refused:
        registration(**changes)

    assert refused.value.field == field
    assert refused.value.clause in {"R047", "R048", "R049"}


def test_a_registration_does_not_show_its_push_key() -> None:
    """Whoever logs it logs no secret."""
    assert "fcm:token" not in repr(registration())


@pytest.mark.clause("R018")
@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ({"push_target_id": TARGET[:-1] + "9", "registration_id": REGISTRATION}, "push_target_id"),
        (
            {"push_target_id": "ak:pseudonym:push:" + "A" * 22, "registration_id": REGISTRATION},
            "push_target_id",
        ),
        ({"push_target_id": TARGET, "registration_id": "ak:x"}, "registration_id"),
        ({"push_target_id": TARGET}, "registration_id"),
        ({"push_target_id": TARGET, "registration_id": REGISTRATION, "expires_at": "soon"}, "expires_at"),
        ({"push_target_id": TARGET, "registration_id": REGISTRATION, "push_key": "x"}, "push_key"),
        ([], ""),
    ],
)
def test_an_answer_that_is_none_registers_nothing(answer: object, field: str) -> None:
    """A pseudonym has to spell exactly 32 octets in their one spelling."""
    with pytest.raises(DocumentRefused) as refused:
        read_registered(answer)

    assert refused.value.field == field


@pytest.mark.clause("R062")
def test_the_push_route_names_the_pseudonym_as_it_was_answered() -> None:
    """Neither another one nor one that the device made."""
    answer = {
        "push_target_id": TARGET,
        "registration_id": REGISTRATION,
        "expires_at": "2026-09-21T14:13:20.000Z",
    }
    known = read_registered(answer)
    check_route({"push_target_id": TARGET, "push_route": "main"}, known)
    with pytest.raises(DocumentRefused) as refused:
        check_route({"push_target_id": OTHER_TARGET}, known)

    assert known == KNOWN
    assert (refused.value.clause, refused.value.field) == ("R062", "push_target_id")


@pytest.mark.clause("R002", "R046", "R073")
@pytest.mark.parametrize(
    ("known", "early", "expected"),
    [
        (None, 0, True),
        (KNOWN, RENEW_BEFORE_MS + 1, False),
        (KNOWN, RENEW_BEFORE_MS, True),
        (KNOWN, -1, True),
        (Registered(PushTargetId(TARGET), RegistrationId(REGISTRATION)), 0, False),
    ],
)
def test_a_device_that_is_online_registers_and_renews_in_time(
    known: Registered | None, early: int, expected: bool
) -> None:
    """Before it may go offline, and a day before its registration ends."""
    assert must_register(known, 1_790_000_000_000 - early) is expected


@pytest.mark.clause("R052")
def test_two_stations_of_one_principal_know_nothing_of_one_another() -> None:
    """Each has a pseudonym and a registration of its own, and the same ones cannot serve both."""
    other = Registered(PushTargetId(OTHER_TARGET), RegistrationId(SUCCESSOR))
    book = RouteBook().remember(HERE, KNOWN).remember(THERE, other)

    assert (book.account_of(TARGET), book.account_of(OTHER_TARGET)) == (HERE, THERE)
    assert book.account_of("ak:pseudonym:push:nobody") is None
    assert book.forget(HERE).account_of(TARGET) is None
    assert book.remember(HERE, KNOWN) == book
    for clash in (
        Registered(PushTargetId(TARGET), RegistrationId(SUCCESSOR)),
        Registered(PushTargetId(OTHER_TARGET), RegistrationId(REGISTRATION)),
    ):
        with pytest.raises(DocumentRefused, match="two accounts"):
            RouteBook().remember(HERE, KNOWN).remember(THERE, clash)
