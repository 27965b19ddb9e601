"""The watch for leaking secrets finds what it is meant to find."""

import base64
import logging
import os

import pytest

from heliograph.ambient.telemetry import watched
from tests import secrets


@pytest.fixture
def leaks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list of its own, so that what is leaked on purpose does not fail the session."""
    found: list[str] = []
    monkeypatch.setattr(secrets, "_leaks", found)
    return found


def test_a_planted_secret_is_found_in_every_usual_spelling(leaks: list[str]) -> None:
    """As it is, in hexadecimal, in both base64 alphabets and at any alignment."""
    marker = secrets.planted("on purpose").encode()
    octets = secrets.planted_octets("octets on purpose")

    for leaked in (marker, octets):
        for text in (
            leaked.hex(),
            leaked.hex().upper(),
            base64.b64encode(leaked).decode(),
            base64.urlsafe_b64encode(leaked).decode().rstrip("="),
            base64.urlsafe_b64encode(b"{" + leaked + b"}").decode(),
            base64.b64encode(b"ab" + leaked + b"cd").decode(),
        ):
            leaks.clear()
            secrets.inspect(f"a line with {text} in it")

            assert leaks, text


def test_a_library_that_logs_a_secret_is_found(leaks: list[str]) -> None:
    """Its message and its traceback are searched."""
    marker = secrets.planted("logged on purpose")
    try:
        os.environ[marker]
    except KeyError:
        logging.getLogger("somebody.elses").exception("something happened")

    assert len(leaks) == 1


def test_an_error_body_with_a_secret_is_found(leaks: list[str]) -> None:
    """The edge shows every error body to whoever watches."""
    watched('{"detail": "' + secrets.planted("in a body") + '"}')

    assert leaks == ["in a body left during " + leaks[0].rpartition("during ")[2]]
