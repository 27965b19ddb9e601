"""A device's wish to be woken: the bodies that a Station is sent, and what it answers.

A registration belongs to one account, and an account is a principal on a Station. Whoever uses two Stations
has two registrations that share nothing but the device, so that nobody can tell that they are one person's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from heliograph.pushrules import document
from heliograph.pushrules.arkret.event import Account
from heliograph.pushrules.document import DocumentRefused, Fault
from heliograph.wire import ids
from heliograph.wire.ids import DeviceId, PushTargetId, RegistrationId
from heliograph.wire.instant import Instant, parse_instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret
from heliograph.wire.strict_json import JsonValue
from heliograph.wire.text import DISPLAY_TEXT_256_CHARACTERS_MAX, parse_display_text_256

PUSH_KEY_MAX_CHARACTERS: Final = 4_096
URL_MAX_CHARACTERS: Final = 2_048
APP_ID_MAX_CHARACTERS: Final = 256
ID_MAX_CHARACTERS: Final = 128
"""Longest of the ids and instants here; a registration id is."""

_URL: Final = re.compile(r"https://[^\s/?#@]+(?:[/?][^\s#]*)?", re.ASCII)

RENEW_BEFORE_MS: Final = 24 * 60 * 60 * 1000
"""How long before its end a registration is renewed: a device is online at least once on most days."""


class Platform(StrEnum):
    """Where an app runs; a closed set."""

    ANDROID = "android"
    IOS = "ios"
    WEB = "web"
    DESKTOP = "desktop"


@dataclass(frozen=True, slots=True)
class Registration:
    """What a device asks of a Station (R047, R048, R049). The session says for which account; this does not.

    Attributes:
        device_id: The device; ending the registration needs the very same text.
        push_gateway_url: Where the Station has to send wakeups; https.
        push_key: What the provider calls the device.
        platform: Where the app runs.
        app_id: The package name or bundle id.
        display_name: What the person calls the device.
        visible_notification_opt_in: Whether the person allows visible notifications on this device.
    """

    device_id: DeviceId
    push_gateway_url: str
    push_key: Secret
    platform: Platform
    app_id: str
    display_name: str | None = None
    visible_notification_opt_in: bool = False

    def __post_init__(self) -> None:
        """Check the members, so that a Station refuses none of them.

        Raises:
            DocumentRefused: One has not the form that the operation asks for.
        """
        document.spelled(self.device_id, "device_id", ids.parse_device_id, ID_MAX_CHARACTERS, clause="R047")
        document.spelled(
            self.push_gateway_url, "push_gateway_url", _parse_url, URL_MAX_CHARACTERS, clause="R047"
        )
        document.text(self.push_key.reveal(), "push_key", PUSH_KEY_MAX_CHARACTERS, clause="R047")
        document.spelled(self.app_id, "app_id", _parse_app_id, APP_ID_MAX_CHARACTERS, clause="R048")
        if self.display_name is not None:
            document.spelled(
                self.display_name,
                "display_name",
                parse_display_text_256,
                DISPLAY_TEXT_256_CHARACTERS_MAX,
                clause="R049",
            )

    def body(self) -> dict[str, JsonValue]:
        """Spell the request. It holds the push key; it is for the Station alone and for no log."""
        spelled: dict[str, JsonValue] = {
            "device_id": self.device_id,
            "push_gateway_url": self.push_gateway_url,
            "push_key": self.push_key.reveal(),
            "platform": self.platform.value,
            "app_id": self.app_id,
            "visible_notification_opt_in": self.visible_notification_opt_in,
        }
        if self.display_name is not None:
            spelled["display_name"] = self.display_name
        return spelled

    def ending(self, *, only_this_key: bool = False) -> dict[str, JsonValue]:
        """Spell the request that ends the registration (R077, R078).

        Args:
            only_this_key: Whether other push keys and apps of the device stay registered.
        """
        spelled: dict[str, JsonValue] = {"device_id": self.device_id}
        if only_this_key:
            spelled |= {"push_key": self.push_key.reveal(), "app_id": self.app_id}
        return spelled


@dataclass(frozen=True, slots=True)
class Registered:
    """What a Station answered.

    Attributes:
        push_target_id: The pseudonym that wakeups carry; written to the device's push route as it is.
        registration_id: The registration's own name.
        expires_at: When the Station stops using it, in milliseconds; None when it does not say. It is not
            when the provider's token ends.
    """

    push_target_id: PushTargetId
    registration_id: RegistrationId
    expires_at: Instant | None = None


def read_registered(value: object) -> Registered:
    """Read a Station's answer.

    Raises:
        DocumentRefused: It is no such answer; then nothing is registered.
    """
    clause = "R062"
    given = document.members(value, "", ("push_target_id", "registration_id"), ("expires_at",), clause=clause)
    expires_at = given.get("expires_at")
    return Registered(
        document.spelled(
            given["push_target_id"],
            "push_target_id",
            ids.parse_push_target_id,
            ID_MAX_CHARACTERS,
            clause="R018",
        ),
        document.spelled(
            given["registration_id"],
            "registration_id",
            ids.parse_registration_id,
            ID_MAX_CHARACTERS,
            clause=clause,
        ),
        None
        if expires_at is None
        else document.spelled(expires_at, "expires_at", parse_instant, ID_MAX_CHARACTERS, clause="R073"),
    )


def must_register(
    registered: Registered | None, now: Instant, renew_before_ms: int = RENEW_BEFORE_MS
) -> bool:
    """Tell whether a device that is online has to register (R002, R046, R073).

    Args:
        registered: What the Station answered last; None when it never did or the registration was ended.
        now: Milliseconds since the epoch.
        renew_before_ms: How long before its end a registration is renewed.
    """
    if registered is None:
        return True
    return registered.expires_at is not None and now >= registered.expires_at - renew_before_ms


def check_route(push_route: Mapping[str, object], registered: Registered) -> None:
    """Check that the device's push route names the pseudonym of its registration, octet for octet (R062).

    Args:
        push_route: The payload of ``ak.device.push_route``.
        registered: What the Station answered.

    Raises:
        DocumentRefused: It names another one; the route is to be written anew.
    """
    if push_route.get("push_target_id") != registered.push_target_id:
        raise DocumentRefused(
            Fault.PARAM_INVALID, "R062", "push_target_id", "must be what the Station answered"
        )


@dataclass(frozen=True, slots=True)
class RouteBook:
    """The registrations of one device, by account (R052). A value; every change gives a new one.

    Attributes:
        routes: What each account's Station answered.
    """

    routes: Mapping[Account, Registered] = field(default_factory=lambda: MappingProxyType({}))

    def remember(self, account: Account, registered: Registered) -> "RouteBook":
        """Take an answer for an account, in place of an earlier one.

        Raises:
            DocumentRefused: Another account has the same pseudonym or registration. Two accounts must not be
                linkable, so neither may be used for both.
        """
        for other, known in self.routes.items():
            if other != account and (
                known.push_target_id == registered.push_target_id
                or known.registration_id == registered.registration_id
            ):
                raise DocumentRefused(
                    Fault.PARAM_INVALID, "R052", "push_target_id", "must not serve two accounts"
                )
        return RouteBook(MappingProxyType({**self.routes, account: registered}))

    def forget(self, account: Account) -> "RouteBook":
        """End the registration of an account."""
        kept = {other: known for other, known in self.routes.items() if other != account}
        return RouteBook(MappingProxyType(kept))

    def account_of(self, push_target_id: str) -> Account | None:
        """Tell whose a wakeup is; None for one that is nobody's here."""
        return next(
            (account for account, known in self.routes.items() if known.push_target_id == push_target_id),
            None,
        )


def _parse_url(text: str, field: str) -> str:
    if not _URL.fullmatch(text):
        raise Malformed(field, "must be an https URL without user, fragment and white space")
    return text


def _parse_app_id(text: str, field: str) -> str:
    if text.startswith("ak:"):
        raise Malformed(field, "must be a package name or bundle id")
    return text
