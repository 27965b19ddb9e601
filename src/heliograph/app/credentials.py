"""The ``[providers]`` and ``[apps]`` tables: credentials that the operator names, and who uses which.

A credential is one section ``[providers.NAME]``; ``adapter`` says which adapter it belongs to and may be left
out where the name itself is an adapter's. An application names the credential it is reached through, and may
set a few of the adapter's own settings for itself alone.
"""

import re
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from heliograph.app.describing import Named
from heliograph.app.reading import nearest
from heliograph.delivery.model import ProviderName
from heliograph.providers import ADAPTERS
from heliograph.wire.malformed import Malformed

NAME_CHARACTERS_MAX: Final = 64
"""A credential's name stands in metrics, in logs and in variables."""

_NAME: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*", re.ASCII)
"""No two underscores in a row: those part the path in a variable."""

_Fields: TypeAlias = list[tuple[str, Any, Any]]


class AppSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One application, or all whose ids a glob matches: ``[apps."com.example.app"]``."""

    provider: Annotated[
        str, Meta(description="The section of providers that its devices are reached through.")
    ]

    def own(self) -> dict[str, object]:
        """Return what it sets for itself of its adapter's settings."""
        values = {field.name: getattr(self, field.name) for field in msgspec.structs.fields(type(self))}
        return {name: value for name, value in values.items() if name != "provider" and value is not UNSET}


def adapter_of(section: msgspec.Struct) -> ProviderName:
    """Return the adapter that a section of providers belongs to."""
    name: ProviderName = getattr(section, _ADAPTER)
    return name


def members_of(section: msgspec.Struct) -> dict[str, object]:
    """Return the members of a section of providers as its adapter knows them."""
    members: dict[str, object] = msgspec.to_builtins(section)
    del members[_ADAPTER]
    return members


def page_head(path: str) -> list[str]:
    """Return the heading of a named section on the page of settings, or nothing for another section."""
    table, _, name = path.partition(".")
    if table == "providers" and name in ADAPTERS:
        return [
            f"## Providers: {name}",
            "",
            f'`[providers.{name}]`, or `[providers.NAME]` with `adapter = "{name}"` for as many credentials',
            "as there are: then `NAME` stands for the second word of each setting.",
            "",
        ]
    if table == "apps":
        lines = [
            "## Applications",
            "",
            '`[apps."ID"]`, where `ID` is an application id, or a glob with `*` for any run of characters',
            "and `?` for one. An exact id goes before globs, and of globs the one with the most characters",
            "that are no wildcards; two with equally many that could match one id are refused.",
            "",
        ]
        for adapter, row in ADAPTERS.items():
            if row.per_app:
                own = ", ".join(f"`{field}`" for field in row.per_app)
                lines += [
                    f"An application on `{adapter}` may set for itself, as its provider does: {own}.",
                    "",
                ]
        return lines
    return []


def _chosen(name: str, entry: Mapping[str, Any]) -> ProviderName:
    """Return the adapter that an unread section of providers names.

    Raises:
        Malformed: The section's name is none, or it names no adapter.
    """
    if len(name) > NAME_CHARACTERS_MAX or _NAME.fullmatch(name) is None:
        raise Malformed(
            "",
            f"must be named in at most {NAME_CHARACTERS_MAX} lower-case letters and digits, "
            "parted by single hyphens or underscores",
        )
    chosen = entry.get(_ADAPTER, name)
    if not isinstance(chosen, str):
        raise Malformed(_ADAPTER, "must be a text")
    if chosen in ADAPTERS:
        return chosen
    if _ADAPTER in entry:
        raise Malformed(_ADAPTER, "is no adapter" + nearest(chosen, ADAPTERS))
    raise Malformed(_ADAPTER, f"must be set, for {name} is no adapter" + nearest(name, ADAPTERS))


def _provider_form(name: str, entry: Mapping[str, Any], document: Mapping[str, Any]) -> type[msgspec.Struct]:
    del document
    return _PROVIDER_FORMS[_chosen(name, entry)]


def _app_form(name: str, entry: Mapping[str, Any], document: Mapping[str, Any]) -> type[msgspec.Struct]:
    del name
    provider, sections = entry.get("provider"), document.get("providers", {})
    if not isinstance(provider, str) or not isinstance(sections, dict):
        return AppSettings
    if not isinstance(sections.get(provider), dict):
        raise Malformed("provider", "names a provider that has no section" + nearest(provider, sections))
    return _APP_FORMS[_chosen(provider, sections[provider])]


def _extended(base: type[msgspec.Struct], name: str, fields: _Fields) -> type[msgspec.Struct]:
    return msgspec.defstruct(
        name, fields, bases=(base,), frozen=True, kw_only=True, forbid_unknown_fields=True
    )


def _own_fields(adapter: ProviderName) -> _Fields:
    """Return the fields that an application may set for itself: as the adapter has them, and optional."""
    hints = get_type_hints(ADAPTERS[adapter].settings, include_extras=True)
    return [(field, _optional(hints[field]), UNSET) for field in ADAPTERS[adapter].per_app]


def _optional(kind: Any) -> UnionType:
    optional: UnionType = kind | UnsetType
    return optional


_ADAPTER: Final = "adapter"
_ADAPTER_TYPE: Final = Annotated[
    str, Meta(description="The adapter. May be left out where the section bears the adapter's name.")
]

_PROVIDER_FORMS: Final = {
    name: _extended(row.settings, f"{name.title()}Section", [(_ADAPTER, _ADAPTER_TYPE, name)])
    for name, row in ADAPTERS.items()
}
"""Made from the table of adapters, so that a new adapter is its folder and its row and nothing here."""

_APP_FORMS: Final = {
    name: _extended(AppSettings, f"{name.title()}App", _own_fields(name)) for name in ADAPTERS
}

PROVIDER_TABLE: Final = Named(_provider_form, _PROVIDER_FORMS, member=_ADAPTER)
APP_TABLE: Final = Named(_app_form, {"ID": AppSettings}, member="provider", variables=False)
