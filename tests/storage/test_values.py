"""Only what both databases keep alike is let through."""

from enum import StrEnum
from typing import Any

import pytest

from heliograph.storage.database import UnstorableValue
from heliograph.storage.values import storable


class Word(StrEnum):
    """A closed word."""

    GOOD = "good"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a",
        "ä\U0001f4a1",
        Word.GOOD,
        0,
        2**63 - 1,
        -(2**63),
        True,
        None,
        b"octets \x00",
        0.0,
        float("inf"),
    ],
)
def test_what_both_keep_goes_through(value: Any) -> None:
    """Untouched."""
    assert storable({"v": value}) == {"v": value}


def test_no_parameters_are_an_empty_set_of_them() -> None:
    """Drivers take percent signs differently without one."""
    assert storable(None) == {}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a\x00b", "secret holds U+0000"),
        ("ä\x00b", "secret holds U+0000"),
        ("\ud800", "secret holds half of a surrogate pair"),
        (2**63, "secret does not fit into 64 bits"),
        (-(2**63) - 1, "secret does not fit into 64 bits"),
        (float("nan"), "secret is not a number"),
    ],
)
def test_what_one_of_them_would_change_or_refuse_is_refused(value: Any, why: str) -> None:
    """By name; the value is not in the text."""
    with pytest.raises(UnstorableValue) as refusal:
        storable({"other": 1, "secret": value})

    assert str(refusal.value) == why
