"""Who may notify a whole room: power levels as rooms of all ages spell them."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

LEVEL_MAX_CHARACTERS: Final = 64
"""Longest text that is read as a level. The largest level has 16 digits; longer texts are hostile."""

_NEEDED: Final = 50
_VERSION_MAX_DIGITS: Final = 3
_FIRST_STRICT_VERSION: Final = 10
_FIRST_VERSION_OF_CREATORS: Final = 12


@dataclass(frozen=True, slots=True)
class PowerLevels:
    """The power levels of a room before the event.

    Attributes:
        content: The content of the ``m.room.power_levels`` event; None when the room has none.
        room_version: For example ``"10"``. Up to version 9 a level may be a text that spells an integer. From
            version 12 on creators stand above every level.
        creators: The sender of ``m.room.create`` and, from version 12 on, the additional creators.
    """

    content: Mapping[str, object] | None = None
    room_version: str = "10"
    creators: Collection[str] = ()

    def may_notify(self, sender: str | None, key: str) -> bool:
        """Tell whether a sender may set off the notification named by a key, such as ``room``.

        A level that the room does not set, or sets to something that is no level, is 50 for the notification
        and 0 for the sender. In a room without power levels its creator has 100.
        """
        if sender in self.creators and self._version() >= _FIRST_VERSION_OF_CREATORS:
            return True
        if self.content is None:
            return sender in self.creators
        needed = self._level(self.content.get("notifications"), key)
        held = self._level(self.content.get("users"), sender)
        if held is None:
            held = self._level(self.content, "users_default")
        return (0 if held is None else held) >= (_NEEDED if needed is None else needed)

    def _version(self) -> int:
        """The number of the room version. Levels are read strictly in one that is no plain number."""
        text = self.room_version
        plain = text.isascii() and text.isdecimal() and len(text) <= _VERSION_MAX_DIGITS
        return int(text) if plain else _FIRST_STRICT_VERSION

    def _level(self, levels: object, name: str | None) -> int | None:
        value = levels.get(name) if isinstance(levels, Mapping) else None
        if isinstance(value, bool):
            return None
        if isinstance(value, int):
            return value
        if self._version() >= _FIRST_STRICT_VERSION:
            return None
        if isinstance(value, float):
            return int(value) if math.isfinite(value) else None
        return _spelled_level(value) if isinstance(value, str) else None


def _spelled_level(text: str) -> int | None:
    """Read a level from a text: white space around it, one sign, ASCII digits."""
    if len(text) > LEVEL_MAX_CHARACTERS:
        return None
    bare = text.strip()
    digits = bare[1:] if bare[:1] in {"+", "-"} else bare
    return int(bare) if digits.isascii() and digits.isdecimal() else None
