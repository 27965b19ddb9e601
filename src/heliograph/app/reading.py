"""Reads settings: one TOML file, then the environment over it, into typed sections.

The sections are msgspec Structs owned by the packages that they configure. This module knows how to find,
check and describe their fields, and nothing of what they mean.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from heliograph.app.describing import PREFIX, Named, nested_in, parts_of, shown, tables_of
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

S = TypeVar("S", bound=msgspec.Struct)

FILE_OCTETS_MAX: Final = 1024 * 1024
"""A settings file larger than this is something else."""

_ENTRY_PARTS: Final = 2
"""A variable that ends at the name of a section says nothing of it."""

SECRET_OCTETS_MAX: Final = 64 * 1024
"""A secret larger than this is something else."""

_REFERENCE: Final = "must be a reference to a secret: file:/path or env:NAME, never the secret itself"
_AT: Final = re.compile(r" - at `\$\.?(?:\.\.\.)?([^`]*)`\Z")


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
        for path, value in leaves(self.settings, ""):
            yield path, shown(value), self._source(path)

    def _source(self, path: str) -> str:
        """Return where a value came from: set itself, as part of a whole, or in some of its members."""
        told = (
            source
            for at, source in self.sources.items()
            if at == path or at.startswith(f"{path}.") or path.startswith(f"{at}.")
        )
        return next(told, "default")


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
    # The member that tells forms apart comes first: the others are read by the type that it gives them.
    first = tuple(f"__{table.member.upper()}" for table in tables_of(root).values() if table.member)
    for variable in sorted(environ, key=lambda variable: (not variable.endswith(first), variable)):
        if variable.startswith(PREFIX):
            parts = variable.removeprefix(PREFIX).lower().split("__")
            _override(root, document, parts, environ[variable], variable)
            sources[".".join(parts)] = variable
    tables = tables_of(root)
    rest = {name: value for name, value in document.items() if name not in tables}
    settings = _converted(root, rest, environ)
    for name, table in tables.items():
        settings = msgspec.structs.replace(settings, **{name: _table(name, table, document, environ)})
    return Loaded(settings, sources)


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


def _check_names(section: type[msgspec.Struct], document: Mapping[str, Any], path: str) -> None:
    """Refuse names that no field has, with the nearest that one has."""
    fields = {field.name: field for field in msgspec.structs.fields(section)}
    for name, value in document.items():
        if name not in fields:
            raise _unknown(path, name, fields)
        nested = nested_in(fields[name].type)
        at = f"{path}.{name}" if path else name
        if nested is not None and isinstance(value, dict):
            _check_names(nested, value, at)
        elif nested is not None:
            raise Malformed(at, "is a section, not a value")


def _unknown(path: str, name: str, known: Mapping[str, object]) -> Malformed:
    """Return the refusal of an unknown name."""
    at = f"{path}.{name}" if path else name
    return Malformed(at if at.isprintable() else path, "is not a setting" + nearest(name, known))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a refusal of an unknown name: the nearest known one, or all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if not near and not known:
        return "; there is none"
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


def _override(
    root: type[msgspec.Struct], document: dict[str, Any], parts: list[str], text: str, source: str
) -> None:
    """Put one value from outside the file into its place."""
    section, place = root, document
    table = tables_of(root).get(parts[0])
    if table is not None and len(parts) > 1:
        section, place = _entry(table, document, parts, source)
        parts = parts[2:]
    for depth, part in enumerate(parts):
        fields = {field.name: field for field in msgspec.structs.fields(section)}
        if part not in fields:
            raise Malformed(source, _unknown(".".join(parts[:depth]), part, fields).problem)
        nested = nested_in(fields[part].type)
        last = depth == len(parts) - 1
        if last and nested is not None:
            raise Malformed(source, "names a section, not a setting")
        if last:
            place[part] = _value(fields[part].type, text, source)
        elif nested is None:
            raise Malformed(source, f"goes below {part}, which is not a section")
        else:
            section, place = nested, place.setdefault(part, {})


def _entry(
    table: Named, document: dict[str, Any], parts: list[str], source: str
) -> tuple[type[msgspec.Struct], dict[str, Any]]:
    """Return the form of the named section that a variable speaks of, and its members so far."""
    if not table.variables:
        raise Malformed(source, f"cannot be told by a variable; set {parts[0]} as a whole, or in the file")
    if len(parts) == _ENTRY_PARTS:
        raise Malformed(source, "names a section, not a setting")
    entry = document.setdefault(parts[0], {}).setdefault(parts[1], {})
    if parts[2:] == [table.member]:
        # Its own value decides, which is about to be put there and judged with the rest.
        return msgspec.defstruct("Entry", [(table.member, str)]), entry
    try:
        return table.form_of(parts[1], entry, document), entry
    except Malformed as malformed:
        raise Malformed(source, malformed.problem) from None


def _table(
    path: str, table: Named, document: Mapping[str, Any], environ: Mapping[str, str]
) -> dict[str, msgspec.Struct]:
    """Turn a table of named sections into typed ones, each by its own form."""
    entries = document.get(path, {})
    if not isinstance(entries, dict):
        raise Malformed(path, "is a section, not a value")
    sections: dict[str, msgspec.Struct] = {}
    for name, entry in entries.items():
        at = f"{path}.{name}" if name.isprintable() else path
        if not isinstance(entry, dict):
            raise Malformed(at, "is a section, not a value")
        try:
            form = table.form_of(name, entry, document)
            _check_names(form, entry, "")
            sections[name] = _converted(form, entry, environ)
        except Malformed as malformed:
            raise Malformed(f"{at}.{malformed.field}".removesuffix("."), malformed.problem) from None
    return sections


def _value(kind: Any, text: str, source: str) -> Any:
    """Read a value from text: as it is where a text is wanted, as TOML elsewhere."""
    wanted = tuple(parts_of(kind))
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
        kind = nested_in(found[part]) or found[part]
    closed = next((each for each in parts_of(kind) if issubclass(each, Enum)), None)
    return "its words" if closed is None else ", ".join(str(word.value) for word in closed)


def _paths(document: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the path of every value of a document."""
    for name, value in document.items():
        at = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            yield from _paths(value, at)
        else:
            yield at


def leaves(section: msgspec.Struct, path: str) -> Iterator[tuple[str, object]]:
    """Yield the path and value of every setting."""
    for field in msgspec.structs.fields(type(section)):
        value = getattr(section, field.name)
        at = f"{path}.{field.name}" if path else field.name
        if isinstance(value, msgspec.Struct):
            yield from leaves(value, at)
        elif isinstance(value, dict) and any(isinstance(each, msgspec.Struct) for each in value.values()):
            for name, each in value.items():
                yield from leaves(each, f"{at}.{name}")
        else:
            yield at, value
