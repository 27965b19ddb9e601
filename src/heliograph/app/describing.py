"""Describes settings: what can be set, in which form, and how a value is spelled.

Most sections have one form. The sections of one table may have several, told apart by one of their members
as providers are by their adapter; such a field of a Struct is marked with ``Named``.
"""

import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec

from heliograph.wire.secret import Secret

PREFIX: Final = "HELIOGRAPH__"
"""Stands before every variable that overrides a setting; a double underscore parts the path."""

FormOf: TypeAlias = Callable[[str, Mapping[str, Any], Mapping[str, Any]], type[msgspec.Struct]]
"""Finds the form of one named section from its name, its own members and the whole document. Raises
``Malformed``, with the path below the section, when there is none."""


@dataclass(frozen=True, slots=True)
class Named:
    """Marks a table of sections that the operator names: ``Annotated[dict[str, …], Named(…)]``.

    Attributes:
        form_of: Finds the form of one of them.
        forms: Every form, by a name that stands for such a section on the page of settings.
        member: The member that tells forms apart; read from the environment before the others.
        variables: Whether names may stand in a variable of the environment; ids with dots may not.
    """

    form_of: FormOf
    forms: Mapping[str, type[msgspec.Struct]]
    member: str = ""
    variables: bool = True


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that can be made.

    Attributes:
        path: For example ``server.port``.
        variable: The name in the environment, or empty when it cannot be set there.
        says: What it means, with its unit.
        kind: Its type in words.
        default: Its default as TOML would have it, or empty when it has none.
        required: Whether its section cannot do without it.
    """

    path: str
    variable: str
    says: str
    kind: str
    default: str
    required: bool


def describe(root: type[msgspec.Struct], path: str = "") -> Iterator[Setting]:
    """Yield every setting that can be made, in the order of the sections.

    Args:
        root: The Struct of all sections.
        path: Of the root itself, for recursion.

    Raises:
        TypeError: A field says nothing of itself.
    """
    told = _docstring_fields(root)
    hints = get_type_hints(root, include_extras=True)
    for field in msgspec.structs.fields(root):
        at = f"{path}.{field.name}" if path else field.name
        nested, table = nested_in(field.type), named_in(hints[field.name])
        if table is not None:
            for name, form in table.forms.items():
                for setting in describe(form, f"{at}.{name}"):
                    yield setting if table.variables else replace(setting, variable="")
            continue
        if nested is not None:
            yield from describe(nested, at)
            continue
        says = _meta_description(hints[field.name]) or told.get(field.name, "")
        if not says:
            raise TypeError(f"the setting {at} says nothing of itself")
        default = _default(field)
        yield Setting(
            at,
            PREFIX + at.upper().replace(".", "__"),
            says,
            _kind(hints[field.name]),
            "" if default is msgspec.NODEFAULT else shown(default),
            field.required,
        )


def shown(value: object) -> str:
    """Spell a value as TOML would, secrets as ``‹secret›``."""
    if value is None or value is msgspec.UNSET:
        return "unset"
    if isinstance(value, Secret):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{shown(str(name))} = {shown(each)}" for name, each in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(shown(each) for each in value) + "]"
    return str(value) if isinstance(value, int | float) else msgspec.json.encode(str(value)).decode()


def parts_of(kind: Any) -> Iterator[type]:
    """Yield the plain types that an annotation is made of: without its notes, unions taken apart."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from parts_of(get_args(kind)[0])
    elif origin in {Union, types.UnionType}:
        for each in get_args(kind):
            yield from parts_of(each)
    elif isinstance(origin or kind, type):
        yield origin or kind


def nested_in(kind: Any) -> type[msgspec.Struct] | None:
    """Return the Struct that a type holds, or None."""
    return next((each for each in parts_of(kind) if issubclass(each, msgspec.Struct)), None)


def named_in(hint: Any) -> Named | None:
    """Return the mark of a table of named sections, or None."""
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note for note in notes if isinstance(note, Named)), None)


def tables_of(section: type[msgspec.Struct]) -> dict[str, Named]:
    """Return the tables of named sections that a section holds, by field."""
    found = ((name, named_in(hint)) for name, hint in get_type_hints(section, include_extras=True).items())
    return {name: table for name, table in found if table is not None}


def _default(field: msgspec.structs.FieldInfo) -> object:
    """Return a field's default, or ``NODEFAULT``."""
    if field.default is not msgspec.NODEFAULT:
        return field.default
    factory: Callable[[], object] | Any = field.default_factory
    return msgspec.NODEFAULT if factory is msgspec.NODEFAULT else factory()


def _meta_description(hint: Any) -> str:
    """Return the description in a type's annotation."""
    if get_origin(hint) is not Annotated:
        return ""
    metas = [meta for meta in get_args(hint)[1:] if isinstance(meta, msgspec.Meta)]
    return next((meta.description for meta in metas if meta.description), "")


def _docstring_fields(section: type) -> dict[str, str]:
    """Return what the ``Attributes:`` of a docstring say of each, those of the types it extends included."""
    told: dict[str, str] = {}
    for each in reversed(section.__mro__):
        told.update(_documented(each.__doc__ or ""))
    return told


def _documented(docstring: str) -> dict[str, str]:
    """Return what the ``Attributes:`` of one docstring say."""
    _, _, text = docstring.partition("Attributes:\n")
    told: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        started = re.fullmatch(r"\s{4,8}(\w+): (.*)", line)
        if started is not None and len(line) - len(line.lstrip()) <= 8:  # noqa: PLR2004 - the convention's indent
            name = started[1]
            told[name] = started[2].strip()
        elif name and line.strip():
            told[name] += " " + line.strip()
    return told


def _kind(hint: Any) -> str:
    """Say a type in words, with its bounds."""
    bounds = ""
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        meta = next((each for each in rest if isinstance(each, msgspec.Meta)), msgspec.Meta())
        marks = ((meta.ge, "≥"), (meta.gt, ">"), (meta.le, "≤"), (meta.lt, "<"))
        bounds = "".join(f", {sign} {bound:,}" for bound, sign in marks if bound is not None)
    if get_origin(hint) in {Union, types.UnionType}:
        kinds = [each for each in get_args(hint) if each is not type(None)]
        return " or ".join(_kind(each) for each in kinds) + bounds + ", optional"
    if get_origin(hint) in {tuple, list}:
        return f"list of {_kind(get_args(hint)[0])}{bounds}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(f"`{word.value}`" for word in hint) + bounds
    if get_origin(hint) is dict:
        return f"table of {_kind(get_args(hint)[1])}{bounds}"
    words = {int: "integer", float: "number", bool: "true or false", str: "text", Path: "path"}
    return ("reference to a secret" if hint is Secret else words.get(hint, str(hint))) + bounds
