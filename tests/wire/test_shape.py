"""What is wrong with a shape is named by its place and its kind, and never quoted."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest
from tests.secrets import planted

from heliograph.wire.shape import shape_refusal


class Inner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    word: Annotated[str, msgspec.Meta(pattern=r"\A[a-z]+\Z", max_length=8)]


class Outer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    inners: tuple[Inner, ...] = ()
    count: Annotated[int, msgspec.Meta(ge=1)] = 1

    def __post_init__(self) -> None:
        if self.count == 13:
            raise ValueError("count must not be unlucky")


def refuse(value: Any, hook: Callable[[type, Any], Any] | None = None) -> tuple[str, str]:
    """Return the field and the problem of a value that is no ``Outer``."""
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, Outer, dec_hook=hook)
    malformed = shape_refusal(caught.value)
    return malformed.field, malformed.problem


@pytest.mark.parametrize(
    ("value", "field", "problem"),
    [
        ({"inners": [{"word": "a"}, {"word": "A"}]}, "inners[1].word", "is not spelled as it must be"),
        ({"inners": [{"word": "a" * 9}]}, "inners[0].word", "has the wrong length"),
        ({"inners": [{}]}, "inners[0].word", "is missing"),
        ({"inners": [{"word": "a", "more": 1}]}, "inners[0].more", "is not a member of this object"),
        ({"more": 1}, "more", "is not a member of this object"),
        ({"count": 0}, "count", "is outside its range or no integer"),
        ({"count": "1"}, "count", "is outside its range or no integer"),
        ({"inners": 1}, "inners", "has the wrong type"),
        ({"count": 13}, "", "count must not be unlucky"),
    ],
)
def test_the_place_and_the_kind_are_named(value: Any, field: str, problem: str) -> None:
    """As a caller can act upon them; what our own types say is passed on."""
    assert refuse(value) == (field, problem)


def test_what_nobody_foresaw_is_still_no_quotation() -> None:
    """A complaint of another kind may hold the value, so none of its words are used."""
    secret = planted("quoted-value")

    malformed = shape_refusal(msgspec.ValidationError(f"Something about {secret} - at `$.push_key`"))

    assert (malformed.field, malformed.problem) == ("push_key", "is not acceptable")
