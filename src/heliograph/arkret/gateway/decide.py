"""The Gateway's decisions, as functions of values.

Nothing here reads a clock, a database or a key: a transaction loads, these decide, the transaction writes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from heliograph.arkret.gateway.model import (
    Conflict,
    HandoffDecision,
    Install,
    Installation,
    InstallationState,
    Replayed,
    RouteEnd,
    Standing,
    Tombstone,
)
from heliograph.arkret.schema import (
    CountsBody,
    DeviceOutcome,
    GatewayStatus,
    HandoffActive,
    HandoffBody,
    HandoffRevoked,
    NotifyBody,
    NotifyOutcome,
    RejectReason,
    VisibleNotify,
)
from heliograph.delivery.model import Counts, Wakeup
from heliograph.wire.instant import Instant

DEFAULT_GRID: Final = ("1", "2-5", "6-20", "21+")
"""The closed bucket grid where no policy declares another (R234)."""

NO_FANOUT_EVENT_KINDS: Final = frozenset(
    {
        "ak.self.agent.pause",
        "ak.self.agent.resume",
        "ak.self.agent.deactivate",
        "ak.agent.draft.propose",
        "ak.agent.action_request",
        "ak.agent.action_approve",
        "ak.agent.action_reject",
    }
)
"""Registered lifecycle and actor-private kinds that are acknowledged and never pushed (R260)."""

HISTORICAL_ONLY: Final = "historical_only"
"""The only defined ``reason_code`` of a notify: a diagnostic replay (R262, R265)."""

HARDENED_BUCKET_MS: Final = 300_000
"""Provider-bound pushes of a hardened source leave at multiples of five minutes (R358)."""

_RANGE: Final = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)", re.ASCII)


def apply_handoff(
    request: HandoffBody,
    digest: str,
    current: Installation | None,
    predecessor: Installation | None,
    at_address: Sequence[str],
) -> HandoffDecision:
    """Decide what a handoff does.

    Args:
        request: The desired state.
        digest: Of the complete canonical body.
        current: What is stored under (tenant, registration id), or None.
        predecessor: What is stored under the id that the request supersedes, in the same tenant, or None.
        at_address: Ids of all current installations for (tenant, push target, device).

    Returns:
        What to write or answer. A conflict writes nothing.
    """
    # The state must match too: the body that once installed a since superseded registration is a late
    # message now, not a replay, and its old receipt must not pass for current.
    if current is not None and (current.request_digest, current.state.value) == (digest, request.state):
        return Replayed(current.receipt)
    if isinstance(request, HandoffRevoked):
        return _revoke(request, current)
    return _install(request, current, predecessor, at_address)


def _revoke(request: HandoffRevoked, current: Installation | None) -> HandoffDecision:
    if current is None:
        # Remembered all the same: an active that was delayed on the way must not install later (R127).
        return Tombstone(known=False)
    if (current.push_target_id, current.device_id) != (request.push_target_id, request.device_id):
        return Conflict("the registration belongs to another target or device")
    # A current installation ends here. One that a successor already ended is confirmed as ended, so that
    # a Station which lost track of its chain can always come to rest.
    return Tombstone(known=True)


def _install(
    request: HandoffActive,
    current: Installation | None,
    predecessor: Installation | None,
    at_address: Sequence[str],
) -> HandoffDecision:
    if current is not None:
        return Conflict("the registration id already stands for another body")
    if request.supersedes_registration_id is UNSET:
        if at_address:
            return Conflict("the device has a current installation that must be named as superseded")
        return Install(predecessor_id=None)
    if (
        predecessor is None
        or predecessor.state is not InstallationState.ACTIVE
        or predecessor.device_id != request.device_id
        or predecessor.push_target_id != request.push_target_id
        or list(at_address) != [predecessor.registration_id]
    ):
        return Conflict("the superseded registration is not the current one for this target and device")
    return Install(predecessor_id=predecessor.registration_id)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Members of the counts that were not compliant and went nowhere (R237)."""

    members: tuple[str, ...]


def wakeup_of(body: NotifyBody, grid: Sequence[str] = DEFAULT_GRID) -> tuple[Wakeup, Dropped]:
    """Reduce a request to what a provider may learn (R278, R279).

    Everything else of the body — route tokens, reasons, the event kind, the evaluation marker, every
    visible member — has no field to go to. A bucket that is off the grid is dropped and the wakeup goes
    on without it (R237).

    Args:
        body: A legal request.
        grid: The closed set of bucket strings.

    Returns:
        The wakeup, and which members of its counts were dropped.
    """
    note = body.notification
    dropped: list[str] = []
    counts = None
    if note.counts is not UNSET:
        counts = _counts(note.counts, grid, dropped)
    hint = None if note.push_hint is UNSET else note.push_hint.value
    key = None if note.push_hint_l10n_key is UNSET else note.push_hint_l10n_key
    wakeup = Wakeup(
        push_target_id=note.push_target_id,
        kind=note.wakeup_kind,
        push_hint=hint,
        push_hint_l10n_key=key,
        counts=counts,
    )
    return wakeup, Dropped(tuple(dropped))


def _counts(body: CountsBody, grid: Sequence[str], dropped: list[str]) -> Counts | None:
    kept: dict[str, bool | str] = {}
    for name, value in (("badge", body.badge), ("missed_call", body.missed_call)):
        if value is UNSET:
            continue
        if isinstance(value, str) and value not in grid:
            dropped.append(name)
            continue
        kept[name] = value
    increment = None if body.unread_increment is UNSET else body.unread_increment
    if not kept and increment is None:
        return None
    return Counts(badge=kept.get("badge"), unread_increment=increment, missed_call=kept.get("missed_call"))


def grid_fault(grid: Sequence[str]) -> str | None:
    """Tell what is wrong with a declared bucket grid, or None (R236).

    A grid is a closed list of single numbers and inclusive ranges that follow one another without gap or
    overlap from 1 up, and ends in one open bucket.
    """
    expected = 1
    for position, bucket in enumerate(grid):
        last = position == len(grid) - 1
        if bucket.endswith("+"):
            if not last or bucket != f"{expected}+":
                return f"{bucket} must be the last bucket and begin at {expected}"
            return None
        match = _RANGE.fullmatch(bucket)
        low, high = (int(match[1]), int(match[2])) if match else (expected, expected)
        if (match is None and bucket != str(expected)) or low != expected or high < low:
            return f"{bucket} must begin at {expected}"
        expected = high + 1
    return "the grid must end in an open bucket such as 21+"


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Answer ``duplicate`` for every device and push nothing (R260–R264, R266)."""

    audit: bool


def without_fanout(
    body: NotifyBody, no_fanout_kinds: frozenset[str] = NO_FANOUT_EVENT_KINDS
) -> Acknowledge | None:
    """Tell whether a request is to be acknowledged only.

    Such a request is decided before any registration is looked up, so that it says nothing about them.

    Args:
        body: A legal request whose ``reason_code``, if any, is a defined one.
        no_fanout_kinds: Event kinds that are never pushed.
    """
    if body.audit_envelope is not UNSET:
        return Acknowledge(audit=True)
    if body.reason_code is not UNSET or (body.event_kind is not UNSET and body.event_kind in no_fanout_kinds):
        return Acknowledge(audit=False)
    return None


def acknowledged(body: NotifyBody) -> NotifyOutcome:
    """Answer ``duplicate`` once for every device."""
    return NotifyOutcome(
        push_target_id=body.notification.push_target_id,
        outcomes=tuple(
            DeviceOutcome(device_id=device.device_id, gateway_status=GatewayStatus.DUPLICATE)
            for device in body.notification.devices
        ),
    )


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a device is not taken over, and when the caller may try again."""

    reason: RejectReason
    retry_after_ms: int | None = None


def judge_device(
    standing: Standing | None,
    body: NotifyBody,
    now: Instant,
    *,
    app_exists: Callable[[str], bool],
    visible_allowed: bool,
    app_retry_after_ms: int,
) -> Rejection | None:
    """Decide whether one device of a known target can be taken over (R092, A14).

    Args:
        standing: How the current installation at this exact address in this tenant stands, or None.
        body: A legal request.
        now: The time of the decision.
        app_exists: Whether the application the installation names is still configured.
        visible_allowed: Whether this Gateway and the source both have the visible profile.
        app_retry_after_ms: The backoff to advise while an application is missing: our fault, not the token's.

    Returns:
        None to take it over, or why not.
    """
    if standing is None:
        return Rejection(RejectReason.PUSH_TOKEN_UNKNOWN)
    if standing.route_end is RouteEnd.PROVIDER:
        return Rejection(RejectReason.PUSH_TOKEN_INVALID)
    if not standing.live(now):
        return Rejection(RejectReason.PUSH_TOKEN_UNKNOWN)
    if isinstance(body, VisibleNotify) and not (visible_allowed and standing.visible_opt_in):
        return Rejection(RejectReason.UNSUPPORTED_PROFILE)
    if standing.app is None or not app_exists(standing.app):
        return Rejection(RejectReason.PUSH_GATEWAY_UNREACHABLE, app_retry_after_ms)
    return None


def outcome_of(device_id: str, rejection: Rejection | None, *, joined: bool) -> DeviceOutcome:
    """Spell one device's outcome.

    Args:
        device_id: The device, as it was asked for.
        rejection: Why it is not taken over, or None.
        joined: It was taken over by joining an equal wakeup that waits already.
    """
    if rejection is None:
        status = GatewayStatus.DUPLICATE if joined else GatewayStatus.ACCEPTED
        return DeviceOutcome(device_id=device_id, gateway_status=status)
    return DeviceOutcome(
        device_id=device_id,
        gateway_status=GatewayStatus.REJECTED,
        reason_code=rejection.reason,
        retry_after_ms=UNSET if rejection.retry_after_ms is None else rejection.retry_after_ms,
    )


def all_rejected(body: NotifyBody, rejection: Rejection) -> NotifyOutcome:
    """Expand a failure of the whole target to one equal rejection for each device (R303)."""
    return NotifyOutcome(
        push_target_id=body.notification.push_target_id,
        outcomes=tuple(
            outcome_of(device.device_id, rejection, joined=False) for device in body.notification.devices
        ),
    )


def answer(body: NotifyBody, outcomes: Mapping[str, DeviceOutcome]) -> NotifyOutcome:
    """Put the outcomes in the order in which the devices were asked for."""
    return NotifyOutcome(
        push_target_id=body.notification.push_target_id,
        outcomes=tuple(outcomes[device.device_id] for device in body.notification.devices),
    )


def departs_at(now: Instant, *, hardened: bool) -> Instant:
    """Return when a wakeup may leave for its provider (R357–R359).

    A hardened source's wakeups leave together at the next five-minute mark, so that the time of leaving
    tells a provider nothing about the time of the event. Nothing in a request can change that.
    """
    if not hardened:
        return now
    return -(-now // HARDENED_BUCKET_MS) * HARDENED_BUCKET_MS
