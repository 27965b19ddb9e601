"""Which values both databases keep alike. What only one of them takes is refused before either sees it."""

from typing import Final

from heliograph.storage.database import Params, UnstorableValue

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1

_NONE: Final[Params] = {}


def storable(params: Params | None) -> Params:
    """Return the parameters of a statement, none for None.

    SQLite would keep U+0000 and make NULL of a NaN, PostgreSQL refuses the one and keeps the other.

    Raises:
        UnstorableValue: Not both databases can keep one; the text names it and does not hold it.
    """
    if params is None:
        return _NONE
    for name, value in params.items():
        if isinstance(value, str):
            if "\0" in value:
                raise UnstorableValue(f"{name} holds U+0000")
            if not value.isascii():
                _encodable(name, value)
        elif isinstance(value, int):
            if not INTEGER_MIN <= value <= INTEGER_MAX:
                raise UnstorableValue(f"{name} does not fit into 64 bits")
        elif isinstance(value, float) and value != value:  # noqa: PLR0124 - the test for NaN without an import
            raise UnstorableValue(f"{name} is not a number")
    return params


def _encodable(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UnstorableValue(f"{name} holds half of a surrogate pair") from None
