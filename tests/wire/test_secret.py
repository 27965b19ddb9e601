"""A secret says nothing of itself."""

import copy
import pickle

import msgspec
import pytest

from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

WORD = "correct horse"


@pytest.mark.clause("R118")
def test_a_secret_prints_as_nothing_in_every_way() -> None:
    """Formatting, repr and an exception that carries it."""
    secret = Secret(WORD)

    for shown in (
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r:>20}",
        f"{secret:>20}",
        str(ValueError(secret)),
        repr([secret]),
    ):
        assert WORD not in shown
        assert "‹secret›" in shown


def test_a_secret_reveals_itself_only_on_demand() -> None:
    """The text comes back where it is asked for."""
    assert Secret(WORD).reveal() == WORD


def test_secrets_compare_by_their_text() -> None:
    """With another secret only; a bare text is never equal."""
    assert Secret(WORD) == Secret("correct horse")
    assert Secret(WORD) != Secret("battery staple")
    assert Secret("\ud800") != Secret("\ud801")
    assert Secret(WORD) != WORD


def test_a_secret_is_no_key_and_no_cargo() -> None:
    """It cannot be hashed, pickled, copied or encoded."""
    secret = Secret(WORD)

    with pytest.raises(TypeError):
        hash(secret)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(secret)
    with pytest.raises(TypeError, match="pickled"):
        copy.copy(secret)
    with pytest.raises(TypeError):
        msgspec.json.encode(secret)
    with pytest.raises(AttributeError):
        secret.other = 1  # type: ignore[attr-defined]


def test_a_refusal_names_the_field_and_the_rule() -> None:
    """The whole has no field name."""
    refused = Malformed("devices[1].device_id", "must be a device id")

    assert str(refused) == "devices[1].device_id: must be a device id"
    assert str(Malformed("", "is not JSON")) == "is not JSON"
