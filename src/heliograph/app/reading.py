"""Reads settings: one TOML file, then the environment over it, into typed sections.

The sections are msgspec Structs owned by the packages that they configure. This module knows how to find,
check and describe their fields, and nothing of what they mean.
"""

import difflib
import re
import tomllib
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

S = TypeVar("S", bound=msgspec.Struct)

PREFIX: Final = "HELIOGRAPH__"
"""Stands before every variable that overrides a setting; a double underscore parts the path."""

FILE_OCTETS_MAX: Final = 1024 * 1024
"""A settings file larger than this is something else."""

SECRET_OCTETS_MAX: Final = 64 * 1024
"""A secret larger than this is something else."""

_REFERENCE: Final = "must be a reference to a secret: file:/path or env:NAME, never the secret itself"
_AT: Final = re.compile(r" - at `\$\.?(?:\.\.\.)?([^`]*)`\Z")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that can be made.

    Attributes:
        path: For example ``server.port``.
        variable: The name in the environment.
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


@dataclass(frozen=True, slots=True)
class Loaded(Generic[S]):
    """Settings, and where each came from.

    Attributes:
        settings: The root.
        sources: For each path that was set: the file's name or the variable's.
    """

    settings: S
    sources: Mapping[str, str]

    def effective(self) -> Iterator[tuple[str, str, str]]:
        """Yield the path, value and source of every setting as it is now; secrets as ``‹secret›``."""
        for path, value in _leaves(self.settings, ""):
            yield path, shown(value), self.sources.get(path, "default")


def load(
    root: type[S], file: Path | None, environ: Mapping[str, str], derived: Mapping[str, str] | None = None
) -> Loaded[S]:
    """Read settings.

    Args:
        root: The Struct of all sections.
        file: The TOML file, or None for none.
        environ: The process's environment.
        derived: Further values by path, stronger than the file and weaker than the environment: those of
            the command line.

    Returns:
        The settings with their sources.

    Raises:
        Malformed: The file cannot be read, a name is unknown, or a value is not of its type; the error
            names the path and never the value.
    """
    document = {} if file is None else _parsed(file)
    sources: dict[str, str] = {}
    _check_names(root, document, "")
    if file is not None:
        sources.update((path, file.name) for path in _paths(document, ""))
    for path, text in (derived or {}).items():
        _override(root, document, path.split("."), text, path)
        sources[path] = "command line"
    for variable in sorted(environ):
        if variable.startswith(PREFIX):
            parts = variable.removeprefix(PREFIX).lower().split("__")
            _override(root, document, parts, environ[variable], variable)
            sources[".".join(parts)] = variable
    return Loaded(_converted(root, document, environ), sources)


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
        nested = _nested(field.type)
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


def secret_of(reference: str, field: str, environ: Mapping[str, str]) -> Secret:
    """Look up the secret that a reference names.

    Args:
        reference: ``file:`` with a path, or ``env:`` with the name of a variable.
        field: Where it stood, for the error.
        environ: The process's environment.

    Returns:
        The secret, without a line end after it.

    Raises:
        Malformed: It is not a reference, or names nothing that can be read.
    """
    kind, colon, name = reference.partition(":")
    if not colon or kind not in {"file", "env"} or not name:
        raise Malformed(field, _REFERENCE)
    if kind == "env":
        if not environ.get(name):
            raise Malformed(field, "names a variable that is not set")
        return Secret(environ[name])
    path = Path(name)
    try:
        if path.stat().st_size > SECRET_OCTETS_MAX:
            raise Malformed(field, f"names a file of more than {SECRET_OCTETS_MAX} octets")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, Malformed):
            raise
        raise Malformed(field, f"names a file that cannot be read ({type(error).__name__})") from None
    if not text.strip():
        raise Malformed(field, "names a file that is empty")
    return Secret(text.removesuffix("\n").removesuffix("\r"))


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
    if isinstance(value, tuple | list):
        return "[" + ", ".join(shown(each) for each in value) + "]"
    return str(value) if isinstance(value, int | float) else msgspec.json.encode(str(value)).decode()


def _parsed(file: Path) -> dict[str, Any]:
    """Read the TOML file."""
    try:
        if file.stat().st_size > FILE_OCTETS_MAX:
            raise Malformed(str(file), f"is larger than {FILE_OCTETS_MAX} octets")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        # The library's text may quote a character but never a value.
        raise Malformed(str(file), f"is not TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(str(file), f"cannot be read ({type(error).__name__})") from None


def _parts(kind: Any) -> Iterator[type]:
    """Yield the plain types that an annotation is made of: without its notes, unions taken apart."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _parts(get_args(kind)[0])
    elif origin in {Union, types.UnionType}:
        for each in get_args(kind):
            yield from _parts(each)
    elif isinstance(origin or kind, type):
        yield origin or kind


def _nested(kind: Any) -> type[msgspec.Struct] | None:
    """Return the Struct that a type holds, or None."""
    return next((each for each in _parts(kind) if issubclass(each, msgspec.Struct)), None)


def _check_names(section: type[msgspec.Struct], document: Mapping[str, Any], path: str) -> None:
    """Refuse names that no field has, with the nearest that one has."""
    fields = {field.name: field for field in msgspec.structs.fields(section)}
    for name, value in document.items():
        if name not in fields:
            raise _unknown(path, name, fields)
        nested = _nested(fields[name].type)
        at = f"{path}.{name}" if path else name
        if nested is not None and isinstance(value, dict):
            _check_names(nested, value, at)
        elif nested is not None:
            raise Malformed(at, "is a section, not a value")


def _unknown(path: str, name: str, known: Mapping[str, object]) -> Malformed:
    """Return the refusal of an unknown name."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(sorted(known))}"
    at = f"{path}.{name}" if path else name
    return Malformed(at if at.isprintable() else path, "is not a setting" + hint)


def _override(
    root: type[msgspec.Struct], document: dict[str, Any], parts: list[str], text: str, source: str
) -> None:
    """Put one value from outside the file into its place."""
    section, place = root, document
    for depth, part in enumerate(parts):
        fields = {field.name: field for field in msgspec.structs.fields(section)}
        if part not in fields:
            raise Malformed(source, _unknown(".".join(parts[:depth]), part, fields).problem)
        nested = _nested(fields[part].type)
        last = depth == len(parts) - 1
        if last and nested is not None:
            raise Malformed(source, "names a section, not a setting")
        if last:
            place[part] = _value(fields[part].type, text, source)
        elif nested is None:
            raise Malformed(source, f"goes below {part}, which is not a section")
        else:
            section, place = nested, place.setdefault(part, {})


def _value(kind: Any, text: str, source: str) -> Any:
    """Read a value from text: as it is where a text is wanted, as TOML elsewhere."""
    wanted = tuple(_parts(kind))
    if not {tuple, list} & set(wanted) and any(
        issubclass(each, str | Secret | Path | Enum) for each in wanted
    ):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        raise Malformed(source, 'must be spelled as a TOML value, for example 5, true or ["a"]') from None


def _converted(root: type[S], document: dict[str, Any], environ: Mapping[str, str]) -> S:
    """Turn the document into typed sections."""

    def hook(kind: type, value: Any) -> Any:
        if kind is Secret and isinstance(value, str):
            return secret_of(value, "", environ)
        if kind is Path and isinstance(value, str) and value:
            return Path(value)
        raise Malformed("", "must be a text")

    try:
        return msgspec.convert(document, root, dec_hook=hook)
    except msgspec.ValidationError as error:
        text = str(error)
        at = _AT.search(text)
        path = "" if at is None else at[1]
        problem = text[: at.start()] if at is not None else text
        if isinstance(error.__cause__, Malformed):
            problem = error.__cause__.problem
        if problem.startswith("Invalid enum value"):
            problem = "must be one of " + _words(root, path)
        elif "matching regex '\\\\A(?:file|env|key):" in problem:
            problem = _REFERENCE
        raise Malformed(path, problem) from None


def _words(root: type[msgspec.Struct], path: str) -> str:
    """List the words that the setting at a path takes."""
    kind: Any = root
    for part in path.split("."):
        found = {field.name: field.type for field in msgspec.structs.fields(kind)}
        kind = _nested(found[part]) or found[part]
    closed = next((each for each in _parts(kind) if issubclass(each, Enum)), None)
    return "its words" if closed is None else ", ".join(str(word.value) for word in closed)


def _paths(document: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the path of every value of a document."""
    for name, value in document.items():
        at = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            yield from _paths(value, at)
        else:
            yield at


def _leaves(section: msgspec.Struct, path: str) -> Iterator[tuple[str, object]]:
    """Yield the path and value of every setting."""
    for field in msgspec.structs.fields(type(section)):
        value = getattr(section, field.name)
        at = f"{path}.{field.name}" if path else field.name
        if isinstance(value, msgspec.Struct):
            yield from _leaves(value, at)
        else:
            yield at, value


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
    """Return what the ``Attributes:`` of a docstring say of each."""
    _, _, text = (section.__doc__ or "").partition("Attributes:\n")
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
    words = {int: "integer", float: "number", bool: "true or false", str: "text", Path: "path"}
    return ("reference to a secret" if hint is Secret else words.get(hint, str(hint))) + bounds
