"""What is in force in a process, told without a secret, and what a change of it would affect. Pure.

A process keeps this in its notice, so that a change can be shown before it is made: against what really runs,
and not against a file that somebody may have edited since.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from heliograph.app.opening import Credential
from heliograph.app.settings import Settings
from heliograph.delivery.applications import AppTable


@dataclass(frozen=True, slots=True)
class CredentialInForce:
    """A credential as it may be told: its adapter, and a mark that changes with its settings and secrets."""

    adapter: str
    mark: str


@dataclass(frozen=True, slots=True)
class AppInForce:
    """An application as it may be told: its credential, and a mark of what it sets for itself."""

    provider: str
    mark: str


@dataclass(frozen=True, slots=True)
class InForce:
    """Credentials and applications, by name and by id or glob."""

    credentials: Mapping[str, CredentialInForce] = field(default_factory=dict)
    apps: Mapping[str, AppInForce] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Depends:
    """What depends on one application id now: live registrations, and deliveries that are not over."""

    app_id: str
    registrations: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Affected:
    """What a change means for one application id that devices are registered for.

    Attributes:
        app_id: The id.
        registrations: How many devices are registered for it.
        waiting: How many deliveries are on their way to them.
        before: The credential that delivers now, or None.
        after: The credential that would, or None.
        effect: What that means, in words.
    """

    app_id: str
    registrations: int
    waiting: int
    before: str | None
    after: str | None
    effect: str


def in_force(settings: Settings, credentials: Mapping[str, Credential]) -> InForce:
    """Summarise settings and what was built from them."""
    return InForce(
        {name: CredentialInForce(each.adapter, each.mark.hex()) for name, each in credentials.items()},
        {
            app_id: AppInForce(app.provider, _mark(app.own()) if app.own() else "")
            for app_id, app in settings.apps.items()
        },
    )


def changes(before: InForce, after: InForce) -> list[str]:
    """Tell what is different, one line each."""
    old, new = before.credentials, after.credentials
    lines = [f"credential {name} added" for name in new if name not in old]
    lines += [f"credential {name} removed" for name in old if name not in new]
    lines += [f"credential {name} replaced" for name in new if name in old and old[name] != new[name]]
    lines += [f"application {app} added" for app in after.apps if app not in before.apps]
    lines += [f"application {app} removed" for app in before.apps if app not in after.apps]
    for app_id, app in after.apps.items():
        was = before.apps.get(app_id, app)
        if was.provider != app.provider:
            lines.append(f"application {app_id} moved from {was.provider} to {app.provider}")
        elif was != app:
            lines.append(f"application {app_id} changed")
    return sorted(lines)


def renewed(before: InForce, after: InForce) -> frozenset[str]:
    """Return the credentials whose past says nothing about the present any more.

    They were replaced or removed, or an application has moved away from them: what rests because a provider
    refused them need not rest longer.
    """
    replaced = (name for name, old in before.credentials.items() if after.credentials.get(name) != old)
    left = (
        was.provider
        for app_id, was in before.apps.items()
        if app_id not in after.apps or after.apps[app_id].provider != was.provider
    )
    return frozenset([*replaced, *left])


def affected(before: InForce, after: InForce, depends: Iterable[Depends]) -> list[Affected]:
    """Tell which application ids that devices are registered for a change would touch.

    Args:
        before: What is in force.
        after: What would be.
        depends: What is registered and on its way, by application id.

    Raises:
        Malformed: Two globs could both claim an id.
    """
    old, new = AppTable(before.apps), AppTable(after.apps)
    found = []
    for each in depends:
        was, will = old.find(each.app_id), new.find(each.app_id)
        effect = _effect(was, will, before, after)
        if effect is not None:
            found.append(
                Affected(
                    app_id=each.app_id,
                    registrations=each.registrations,
                    waiting=each.waiting,
                    before=None if was is None else was.provider,
                    after=None if will is None else will.provider,
                    effect=effect,
                )
            )
    return found


def _effect(was: AppInForce | None, will: AppInForce | None, before: InForce, after: InForce) -> str | None:
    if was is None and will is None:
        return None
    if will is None:
        return "held: no provider"
    if was is None:
        return "no longer held"
    old, new = before.credentials[was.provider], after.credentials[will.provider]
    if old.adapter != new.adapter:
        return f"held: registered with {old.adapter}, must register again"
    if was.provider != will.provider:
        return "another credential"
    if old != new:
        return "credential replaced"
    return None if was == will else "own settings changed"


def _mark(own: Mapping[str, object]) -> str:
    return hashlib.sha256(msgspec.json.encode(own, order="deterministic")).hexdigest()
