"""One event as the rules see it: values at dotted keys, the body, who is mentioned."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from heliograph.pushrules.glob import fold
from heliograph.pushrules.matrix.dialect import USUAL, Dialect

Path: TypeAlias = tuple[str, ...]
"""Property names from the outermost object inwards; never empty."""

Scalar: TypeAlias = str | int | bool | None
"""What a property can be compared with."""

TypedScalar: TypeAlias = tuple[type, Scalar]
"""A scalar beside its type, for Python takes 1 and True for equal."""

INTEGER_MAX: Final = 2**53 - 1
"""The largest integer of canonical JSON, in either direction."""

BODY: Final[Path] = ("content", "body")
SENDER: Final[Path] = ("sender",)

DECORATIONS: Final = frozenset({"age", "invite_room_state", "prev_content", "replaces_state", "user_id"})
"""What homeservers add beside an event's own properties when they hand it to a client or a bridge.

Rules look at the event itself, so a rule keyed on one of these finds nothing, whoever handed the event over.
"""


class _Absent:
    """Marks a key that leads nowhere, which is not the same as null."""


ABSENT: Final = _Absent()


def read_path(key: str) -> Path:
    r"""Cut a dotted key into property names.

    ``\.`` is a dot inside a name and ``\\`` a backslash. Any other backslash stands for itself.
    """
    names: list[str] = []
    name: list[str] = []
    escaped = False
    for character in key:
        if escaped:
            name.append(character if character in ".\\" else "\\" + character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ".":
            names.append("".join(name))
            name.clear()
        else:
            name.append(character)
    if escaped:
        name.append("\\")
    names.append("".join(name))
    return tuple(names)


def typed(value: object) -> TypedScalar | None:
    """Put a scalar beside its type.

    Returns:
        None for whatever cannot be compared: lists, objects, fractions, integers beyond canonical JSON.
    """
    if isinstance(value, str):
        return str, value
    if value is None or isinstance(value, bool):
        return type(value), value
    if isinstance(value, int) and -INTEGER_MAX <= value <= INTEGER_MAX:
        return int, value
    return None


class Event:
    """One event, read lazily: what no rule asks for costs nothing, what many ask for is worked out once.

    Lists may be lists or tuples, objects may be any mapping. Wrong types are no error; they match nothing.

    Attributes:
        sender: Who sent it; None when that is not a text.
        dialect: The reading by which it is judged.
    """

    __slots__ = ("_document", "_folded", "_items", "_words", "dialect", "sender")

    def __init__(self, document: Mapping[str, Any], dialect: Dialect = USUAL) -> None:
        """Wrap an event.

        Args:
            document: The event as JSON. It must not change while it is judged.
            dialect: The reading by which it is judged.
        """
        self._document = document
        self.dialect = dialect
        sender = self.value(SENDER)
        self.sender: str | None = sender if isinstance(sender, str) else None
        self._folded: dict[Path, str | None] = {}
        self._items: dict[Path, frozenset[TypedScalar]] = {}
        self._words: frozenset[str] | None = None

    def value(self, path: Path) -> object:
        """Return what stands at a path, or ``ABSENT``."""
        if path[0] in DECORATIONS:
            return ABSENT
        here: object = self._document
        for name in path:
            if not isinstance(here, Mapping):
                return ABSENT
            here = here.get(name, ABSENT)
        return here

    def folded(self, path: Path) -> str | None:
        """Return the text at a path, folded; None when there is no text."""
        try:
            return self._folded[path]
        except KeyError:
            value = self.value(path)
            text = self._folded[path] = fold(value) if isinstance(value, str) else None
            return text

    def items(self, path: Path) -> frozenset[TypedScalar]:
        """Return the scalars in the list at a path; none when there is no list."""
        try:
            return self._items[path]
        except KeyError:
            value = self.value(path)
            found = (typed(item) for item in value) if isinstance(value, list | tuple) else ()
            items = self._items[path] = frozenset(item for item in found if item is not None)
            return items

    @property
    def body(self) -> str | None:
        """The folded ``content.body``; None when it is not a text."""
        return self.folded(BODY)

    @property
    def words(self) -> frozenset[str]:
        """The words of the folded body, in the dialect's alphabet."""
        if self._words is None:
            self._words = frozenset(self.dialect.words.words(self.body or ""))
        return self._words

    @property
    def mentioned(self) -> frozenset[TypedScalar]:
        """Whom ``m.mentions`` names."""
        return self.items(("content", "m.mentions", "user_ids"))

    @property
    def has_mentions(self) -> bool:
        """Whether the event says outright whom it mentions; a senseless ``m.mentions`` says so too."""
        return self.value(("content", "m.mentions")) is not ABSENT

    @property
    def state_key(self) -> str | None:
        """The state key; None when it is not a text."""
        value = self.value(("state_key",))
        return value if isinstance(value, str) else None
