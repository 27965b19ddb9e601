# ruff: noqa: A005 - imported as tests.secrets only, never as a top-level module
"""Proof that no secret leaves: markers that tests use for secrets, and a watch on everything that leaves.

Use ``planted("push-key")`` wherever a test needs a secret text, or ``planted_octets("seed")`` for key
material. Every log line, metric and error body of the whole suite is searched for every marker, as it is
and in the forms it could be copied in, as soon as it leaves; the session fails if one is found. Text that
leaves another way (a subprocess's output, a page) is searched by calling ``inspect`` with it.
"""

import base64
import hashlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from heliograph.ambient.telemetry import watch

_forms: dict[str, str] = {}
_leaks: list[str] = []


def planted(name: str) -> str:
    """Return a text that must never leave: the same one for the same name, different for each name.

    Args:
        name: What it stands for.
    """
    marker = f"planted.{name}.{hashlib.sha256(name.encode()).hexdigest()[:24]}"
    _search_for(name, marker.encode())
    _forms[quote(marker, safe="")] = name
    _forms[json.dumps(marker)[1:-1]] = name
    return marker


def planted_octets(name: str, count: int = 32) -> bytes:
    """Return octets that must never leave in any usual spelling.

    Args:
        name: What they stand for.
        count: How many.
    """
    octets = hashlib.shake_256(b"planted octets " + name.encode()).digest(count)
    _search_for(name, octets)
    return octets


def _search_for(name: str, octets: bytes) -> None:
    """Search for octets as text, in hexadecimal and in base64 at each of its three alignments."""
    if octets.isascii():
        _forms[octets.decode()] = name
    _forms[octets.hex()] = name
    _forms[octets.hex().upper()] = name
    for lead in range(3):
        # The characters that only these octets decide: neighbours share the first and the last.
        text = base64.b64encode(bytes(lead) + octets)[(0, 2, 3)[lead] : -4].decode()
        _forms[text] = name
        _forms[text.replace("+", "-").replace("/", "_")] = name


def inspect(text: str) -> None:
    """Search a text that left us."""
    for form, name in list(_forms.items()):
        if form in text:
            test = os.environ.get("PYTEST_CURRENT_TEST", "outside a test")
            _leaks.append(f"{name} left during {test}")


class _Logged(logging.Handler):
    """Searches what any library logs, tracebacks included."""

    def emit(self, record: logging.LogRecord) -> None:
        inspect(self.format(record))


@contextmanager
def watching() -> Iterator[list[str]]:
    """Search everything that leaves while the context lasts, and give the leaks found so far."""
    handler = _Logged()
    logging.getLogger().addHandler(handler)
    unwatch = watch(inspect)
    try:
        yield _leaks
    finally:
        unwatch()
        logging.getLogger().removeHandler(handler)
