"""An Event as rules see it: what is known, what is not, and who the receiver is.

Everything here may come from strangers. A value of the wrong type counts as absent; nothing raises.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from heliograph.pushrules.arkret.members import Bucket
from heliograph.pushrules.arkret.track import NO_TRACK
from heliograph.pushrules.arkret.watch import WatchLevel
from heliograph.pushrules.engine import Truth
from heliograph.pushrules.glob import fold

PATH_STEPS_MAX: Final = 16
"""How deep a rule may look into a payload; a payload itself has at most 64 levels."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account: a principal on a Station. Both components together are the identity."""

    principal_id: str
    station_id: str

    def members(self) -> dict[str, Any]:
        """Spell it as an ActorId."""
        account = {"principal_id": self.principal_id, "station_id": self.station_id}
        return {"kind": "account", "account_id": account}


@dataclass(frozen=True, slots=True)
class Service:
    """A service that acts as itself."""

    service_id: str

    def members(self) -> dict[str, Any]:
        """Spell it as an ActorId."""
        return {"kind": "service", "service_id": self.service_id}


Actor: TypeAlias = Account | Service


def actor_of(value: object) -> Actor | None:
    """Read an ActorId; None when it is none."""
    if not isinstance(value, Mapping):
        return None
    account, service = value.get("account_id"), value.get("service_id")
    if value.get("kind") == "service" and isinstance(service, str) and len(value) == 2:  # noqa: PLR2004 - closed
        return Service(service)
    if value.get("kind") == "account" and isinstance(account, Mapping) and len(value) == len(account) == 2:  # noqa: PLR2004 - closed
        principal, station = account.get("principal_id"), account.get("station_id")
        if isinstance(principal, str) and isinstance(station, str):
            return Account(principal, station)
    return None


@dataclass(frozen=True, slots=True)
class Event:
    """One Event, verified, and decrypted where that was possible.

    Attributes:
        kind: For example ``ak.message.create``.
        realm_id: Where it happened.
        strand_id: In which Strand, from the payload or the verified state; None outside Strands.
        sender: Who sent it.
        payload: The decrypted payload.
        readable: Whether the payload was in the clear or has been decrypted. What an unreadable one says is
            not known, which is not the same as not said.
        body: The text of a message; None when it has none.
        notification_type: The receiver's projection of it, if there is one.
        priority: Its priority, if it has one.
    """

    kind: str | None = None
    realm_id: str | None = None
    strand_id: str | None = None
    sender: Actor | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    readable: bool = True
    body: str | None = None
    notification_type: str | None = None
    priority: str | None = None


def read_event(document: object, *, readable: bool = True, strand_id: str | None = None) -> Event:
    """Take an Event's envelope apart. Nothing that is JSON is refused.

    Args:
        document: The envelope with its decrypted payload.
        readable: Whether the payload is what the sender wrote, not its ciphertext.
        strand_id: The Strand by the verified state, where the payload does not name it.
    """
    envelope = document if isinstance(document, Mapping) else {}
    payload = envelope.get("payload")
    payload = payload if isinstance(payload, Mapping) else {}
    return Event(
        kind=_text(envelope.get("kind")),
        realm_id=_text(envelope.get("realm_id")),
        strand_id=_text(payload.get("strand_id")) or strand_id,
        sender=actor_of(envelope.get("actor_id")),
        payload=payload,
        readable=readable,
        body=_text(payload.get("body")),
        notification_type=_text(envelope.get("notification_type")),
        priority=_text(envelope.get("priority")),
    )


@dataclass(frozen=True, slots=True)
class Facts:
    """What this receiver knows of an Event from reading it may do anyway (R154).

    Nothing is fetched to fill this in. What the Realm does not disclose stays indeterminate.

    Attributes:
        mentions_actor: Whether it mentions the receiver.
        direct_message: Whether the Realm is a verified conversation of two.
        members: How many members the Realm has: a number, a bucket, or None when it does not say.
        tracks: The derived tracks; None when the Strand's state is not here.
        watch: The receiver's effective level on the Strand; None where no Strand is concerned.
        assigned_to_actor: It concerns something assigned to the receiver.
        reply_to_self: It answers a Message of the receiver.
        participating_thread_update: It is a new reply where the receiver took part.
    """

    mentions_actor: Truth = Truth.INDETERMINATE
    direct_message: Truth = Truth.INDETERMINATE
    members: int | Bucket | None = None
    tracks: frozenset[str] | None = NO_TRACK
    watch: WatchLevel | None = None
    assigned_to_actor: bool = False
    reply_to_self: bool = False
    participating_thread_update: bool = False


_UNREAD: Final[tuple[str, ...]] = ()


class Subject:
    """An Event and its facts, with what conditions ask for worked out once.

    Attributes:
        event: The Event.
        facts: What the receiver knows of it.
    """

    __slots__ = ("_folded", "_texts", "event", "facts")

    def __init__(self, event: Event, facts: Facts) -> None:
        self.event = event
        self.facts = facts
        self._folded: str | None = None
        self._texts: dict[str, tuple[str, ...] | None] = {}

    def folded_body(self) -> str:
        """Return the body without regard to case; empty when there is none."""
        folded = self._folded
        if folded is None:
            folded = self._folded = fold(self.event.body or "")
        return folded

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return the texts that a field holds: none, one, or several; None when it cannot be read yet."""
        try:
            return self._texts[name]
        except KeyError:
            found = self._texts[name] = self._read(name)
            return found

    def _read(self, name: str) -> tuple[str, ...] | None:
        event = self.event
        match name:
            case "kind" | "type" | "event_kind":
                value = event.kind
            case "realm_id":
                value = event.realm_id
            case "strand_id":
                value = event.strand_id
            case "sender":
                return _names(event.sender)
            case "notification_type":
                value = event.notification_type
            case "priority":
                value = event.priority
            case "watch_state":
                value = (self.facts.watch or WatchLevel.MENTIONS_ONLY).value
            case "track_name":
                return None if self.facts.tracks is None else tuple(sorted(self.facts.tracks))
            case _:
                return self._read_payload(name)
        return (value,) if value is not None else _UNREAD

    def _read_payload(self, name: str) -> tuple[str, ...] | None:
        if not self.event.readable:
            return None
        value: object = self.event.payload
        for step in name.removeprefix("payload.").split(".", PATH_STEPS_MAX):
            value = value.get(step) if isinstance(value, Mapping) else None
        return (value,) if isinstance(value, str) else _UNREAD


def _names(sender: Actor | None) -> tuple[str, ...]:
    if isinstance(sender, Account):
        return (sender.principal_id,)
    return (sender.service_id,) if isinstance(sender, Service) else _UNREAD


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
