"""What a rule does when it matches: notify or not, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from heliograph.pushrules.matrix.refusal import Fault, RuleRefused
from heliograph.pushrules.matrix.spelling import spell, unspell

ACTIONS_MAX: Final = 64
"""Actions in one rule at most; a rule has three."""

_NOTIFY: Final = frozenset({"notify", "coalesce"})
_NOTHING: Final = frozenset({"dont_notify"})
_WITHOUT_VALUE: Final[Mapping[str, object]] = {"sound": "default"}


@dataclass(frozen=True, slots=True)
class Actions:
    """A rule's actions as they were given, and what they come to.

    Attributes:
        spelled: The list as it was given; it alone counts when actions are compared.
        notify: Whether the user is notified. ``coalesce`` is an older word for it, ``dont_notify`` an older
            word for nothing; so the latter takes nothing back.
        tweaks: What to do about it, such as ``sound`` and ``highlight``. The last of a name wins. A tweak
            given without a value is true, but a sound given so is the default sound.
    """

    spelled: str
    notify: bool = field(compare=False)
    tweaks: Mapping[str, object] = field(compare=False)

    @property
    def highlight(self) -> bool:
        """Whether this notification stands out."""
        return self.notify and bool(self.tweaks.get("highlight"))


def read_actions(document: object, field: str = "actions") -> Actions:
    """Read a list of actions.

    Args:
        document: The JSON value.
        field: Where it stood, for the error.

    Raises:
        RuleRefused: It is not a list of known actions.
    """
    if not isinstance(document, list | tuple):
        raise RuleRefused(Fault.INVALID, field, "must be a list")
    if len(document) > ACTIONS_MAX:
        raise RuleRefused(Fault.TOO_LARGE, field, f"must hold {ACTIONS_MAX} actions at most")
    notify = False
    tweaks: dict[str, object] = {}
    spelled = spell(document, field)
    for place, action in enumerate(unspell(spelled)):
        here = f"{field}[{place}]"
        if isinstance(action, str):
            if action not in _NOTIFY | _NOTHING:
                raise RuleRefused(Fault.INVALID, here, "is no known action")
            notify = notify or action in _NOTIFY
        elif isinstance(action, dict):
            name = action.get("set_tweak")
            if not isinstance(name, str):
                raise RuleRefused(Fault.INVALID, here, "must name the tweak that it sets")
            tweaks[name] = action["value"] if "value" in action else _WITHOUT_VALUE.get(name, True)
        else:
            raise RuleRefused(Fault.INVALID, here, "must be a word or a tweak")
    return Actions(spelled, notify, MappingProxyType(tweaks))
