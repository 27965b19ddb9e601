"""From a method and a path to an operation. Pure; exact paths cost one dictionary look-up."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from heliograph.edge.operation import Operation
from heliograph.edge.system import System


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An operation, with what the hot path needs made ready.

    Attributes:
        operation: The row.
        system: Whose it is.
        selector: The selector's expected octets; empty when the system has no selector.
        echo: The header that repeats the selector in a successful answer.
    """

    operation: Operation
    system: System
    selector: bytes
    echo: tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A path that exists.

    Attributes:
        system: Whose it is.
        methods: The endpoint for each method; ``HEAD`` goes where ``GET`` goes.
        allow: The value of ``Allow``.
    """

    system: System
    methods: Mapping[str, Endpoint]
    allow: str


class Routes:
    """Every path of every system.

    Args:
        systems: Each with its operations.

    Raises:
        ValueError: Two operations share a method and a path or a name, a path lies outside its system's
            prefix, or a selector is demanded where the system has no header or no words for it.
    """

    def __init__(self, systems: Iterable[System]) -> None:
        rows: dict[str, dict[str, Endpoint]] = {}
        self.systems: Final = tuple(systems)
        names: set[str] = set()
        for system in self.systems:
            for operation in system.operations:
                _checked(operation, system)
                methods = rows.setdefault(operation.path, {})
                if operation.method in methods or operation.operation_id in names:
                    raise ValueError(f"two operations are {operation.method} {operation.path}")
                names.add(operation.operation_id)
                methods[operation.method] = _endpoint(operation, system)
        self.exact: Final[dict[bytes, Place]] = {}
        self._templates: Final[dict[int, list[tuple[tuple[str, ...], Place]]]] = {}
        for path, methods in rows.items():
            if "GET" in methods:
                methods.setdefault("HEAD", methods["GET"])
            allow = ", ".join(sorted({*methods, "OPTIONS"}))
            place = Place(next(iter(methods.values())).system, methods, allow)
            if "{" in path:
                segments = tuple(path.split("/"))
                self._templates.setdefault(len(segments), []).append((segments, place))
            else:
                self.exact[path.encode()] = place
        self._prefixes: Final = tuple(
            sorted(
                ((system.prefix.encode(), system) for system in self.systems if system.prefix),
                key=lambda entry: -len(entry[0]),
            )
        )

    def template(self, path: bytes) -> tuple[Place, dict[str, str]] | None:
        """Find a path that has parameters.

        Args:
            path: As sent.

        Returns:
            The place and its decoded parameters, or None. A segment is split off before it is decoded, so
            an encoded slash stays inside it; one that is empty or not UTF-8 matches nothing.
        """
        segments = path.decode("latin-1").split("/")
        for pattern, place in self._templates.get(len(segments), ()):
            found: dict[str, str] = {}
            for wanted, segment in zip(pattern, segments, strict=True):
                if wanted[:1] != "{":
                    if wanted != segment:
                        break
                    continue
                try:
                    value = unquote(segment, errors="strict")
                except UnicodeDecodeError:
                    break
                if not value:
                    break
                found[wanted[1:-1]] = value
            else:
                return place, found
        return None

    def owner(self, path: bytes) -> System | None:
        """Return the system whose prefix a path has, or None."""
        for prefix, system in self._prefixes:
            if path.startswith(prefix) or path == prefix[:-1]:
                return system
        return None


def _checked(operation: Operation, system: System) -> None:
    """Refuse a row that could not work."""
    if not operation.path.startswith(system.prefix or "/"):
        raise ValueError(f"{operation.path} lies outside {system.prefix}")
    codes = system.codes
    complete = codes.selector_required is not None and codes.selector_unsupported is not None
    if system.selector_header is not None and not complete:
        raise ValueError(f"{system.name} has a selector header and no words to refuse with")
    if operation.selector and system.selector_header is None:
        raise ValueError(f"{operation.operation_id} demands a selector that {system.name} does not have")


def _endpoint(operation: Operation, system: System) -> Endpoint:
    if system.selector_header is None:
        return Endpoint(operation, system, b"", ())
    selector = operation.operation_id.encode()
    return Endpoint(operation, system, selector, ((system.selector_header.encode(), selector),))
