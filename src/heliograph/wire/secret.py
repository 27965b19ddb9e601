"""A value that must never be printed."""

import hmac
from typing import Annotated, Final, TypeAlias, final

from msgspec import Meta

SecretReference: TypeAlias = Annotated[str, Meta(pattern=r"\A(?:file|env|key):.")]
"""A setting that names where a secret lies, ``file:/path`` or ``env:NAME``; a secret itself is refused."""

_SHOWN: Final = "‹secret›"


@final
class Secret:
    """A secret text: prints as ``‹secret›``, compares in constant time, cannot be pickled or hashed.

    Wrap a secret at the edge where it enters and call ``reveal`` only where it must be spent.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself. Every call site is a place where a secret can escape."""
        return self._text

    def __repr__(self) -> str:
        return _SHOWN

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return _SHOWN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        # A lone surrogate can be held too; comparing it must not be what tells it apart.
        return hmac.compare_digest(
            self._text.encode("utf-8", "surrogatepass"), other._text.encode("utf-8", "surrogatepass")
        )

    __hash__ = None  # type: ignore[assignment]  # a hash would be a lookup key for the secret

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be pickled")
