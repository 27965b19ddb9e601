"""What the Gateway keeps and decides on. Values only."""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from heliograph.wire.instant import Instant


class InstallationState(StrEnum):
    """Whether an installation may be named as current; revoked is for ever (R125)."""

    ACTIVE = "active"
    REVOKED = "revoked"


class RouteEnd(StrEnum):
    """Why an installation that is still current no longer has a route."""

    PROVIDER = "provider"
    """The provider said that the address is dead."""
    EXPIRED = "expired"
    """Its own ``expires_at`` has passed."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What is stored for one (tenant, registration id); the sealed route stays in the store.

    Attributes:
        tenant: The authenticated source Station (R115).
        registration_id: The Station's id for it, unique within the tenant.
        push_target_id: The pseudonym it answers to.
        device_id: The device it belongs to.
        state: Whether it is current or a tombstone.
        request_digest: Of the body that made it what it is.
        receipt: The bytes that were answered, to be answered again (R123).
        successor_id: The registration that replaced it, or None.
        route_end: Why the route is gone though the installation is current, or None.
        app: The configured application it delivers through; None once the route is gone.
        visible_opt_in: The device's recorded consent to visible notifications.
        expires_at: When it stops being usable, or None.
    """

    tenant: str
    registration_id: str
    push_target_id: str
    device_id: str
    state: InstallationState
    request_digest: str
    receipt: bytes
    successor_id: str | None = None
    route_end: RouteEnd | None = None
    app: str | None = None
    visible_opt_in: bool = False
    expires_at: Instant | None = None


class Standing(msgspec.Struct, frozen=True):
    """What a notify asks of the current installation at an address.

    Attributes:
        registration_id: Its id.
        route_end: Why its route is gone, or None.
        app: The configured application it delivers through; None once the route is gone.
        visible_opt_in: The device's recorded consent to visible notifications.
        expires_at: When it stops being usable, or None.
    """

    registration_id: str
    route_end: RouteEnd | None = None
    app: str | None = None
    visible_opt_in: bool = False
    expires_at: Instant | None = None

    def live(self, now: Instant) -> bool:
        """Tell whether a notify may use it: with a route and not expired (R097)."""
        return self.route_end is None and not self.expired(now)

    def expired(self, now: Instant) -> bool:
        """Tell whether its own expiry has passed and its route has yet to be erased for it."""
        return self.route_end is None and self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True)
class Replayed:
    """The same body again: the stored receipt is the answer (R123)."""

    receipt: bytes


@dataclass(frozen=True, slots=True)
class Conflict:
    """The key, the address or the predecessor stands for something else; nothing changes (R124, R129)."""

    why: str


@dataclass(frozen=True, slots=True)
class Install:
    """Write a new current installation, tombstoning the named predecessor in the same transaction."""

    predecessor_id: str | None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Write the terminal state; known tells whether a row exists already."""

    known: bool


HandoffDecision = Replayed | Conflict | Install | Tombstone


@dataclass(frozen=True, slots=True)
class AppCount:
    """What depends on one application: live registrations, and deliveries that are not over."""

    app_id: str
    registrations: int
    waiting: int
