"""A person's preferences as one device holds them: rules, quiet hours and blocklist, each the last valid one.

Damage has three answers, one for each kind of harm. Where a valid value is known, it goes on. Where quiet
hours were never valid, there are none: a broken value must not silence a person for ever. Where rules or
entries were never valid as a whole, each that is spelled rightly counts: a broken neighbour must not undo a
mute.
"""

from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from heliograph.arkret.client.blocklist import Blocklist, read_blocklist, salvage_blocklist
from heliograph.arkret.client.kept import Kept, Key
from heliograph.pushrules.arkret.members import DEFAULT_GRID, Grid
from heliograph.pushrules.arkret.ruleset import Ruleset, read_ruleset, salvage
from heliograph.pushrules.dnd.schedule import Dnd, read_dnd
from heliograph.pushrules.document import DocumentRefused


@dataclass(frozen=True, slots=True)
class Preferences:
    """What a device goes by. A value; every change gives a new one.

    Attributes:
        rules: From ``ak.push_rules``.
        dnd: From ``ak.dnd_schedule``.
        blocklist: From ``ak.account.blocklist``.
    """

    rules: Kept[Ruleset] = field(default_factory=Kept)
    dnd: Kept[Dnd] = field(default_factory=Kept)
    blocklist: Kept[Blocklist] = field(default_factory=Kept)

    def with_rules(self, revision: int, value: object, grid: Grid = DEFAULT_GRID) -> "Preferences":
        """Take a newer rule set, or keep the present one and say why.

        Args:
            revision: The server's revision of it.
            value: The decrypted document, or the refusal that opening it ended in.
            grid: The buckets that member counts must be able to answer from.
        """
        return replace(
            self,
            rules=self.rules.take(
                revision,
                lambda: read_ruleset(_opened(value), grid),
                None if isinstance(value, DocumentRefused) else lambda: salvage(value, grid).ruleset,
            ),
        )

    def with_dnd(self, revision: int, value: object) -> "Preferences":
        """Take newer quiet hours, or keep the present ones and say why (R342, R343, R344).

        Args:
            revision: The server's revision of them.
            value: The decrypted document, or the refusal that opening it ended in.
        """
        return replace(self, dnd=self.dnd.take(revision, lambda: read_dnd(_opened(value))))

    def with_blocklist(self, revision: int, value: object) -> "Preferences":
        """Take a newer blocklist, or keep the present one and say why.

        Args:
            revision: The server's revision of it.
            value: The decrypted document, or the refusal that opening it ended in.
        """
        return replace(
            self,
            blocklist=self.blocklist.take(
                revision,
                lambda: read_blocklist(_opened(value)),
                None if isinstance(value, DocumentRefused) else lambda: salvage_blocklist(value).blocklist,
            ),
        )

    def without(self, key: Key, revision: int) -> "Preferences":
        """Take the deletion of a value: from then on it is not configured.

        Args:
            key: Which one.
            revision: The server's revision of the deletion.
        """
        match key:
            case Key.PUSH_RULES:
                return replace(self, rules=self.rules.forget(revision))
            case Key.DND_SCHEDULE:
                return replace(self, dnd=self.dnd.forget(revision))
            case Key.BLOCKLIST:
                return replace(self, blocklist=self.blocklist.forget(revision))
            case _:
                assert_never(key)

    def troubles(self) -> tuple[tuple[Key, DocumentRefused], ...]:
        """List what the person should repair: the key of each damaged value, and what is wrong with it."""
        kept: tuple[tuple[Key, DocumentRefused | None], ...] = (
            (Key.PUSH_RULES, self.rules.trouble),
            (Key.DND_SCHEDULE, self.dnd.trouble),
            (Key.BLOCKLIST, self.blocklist.trouble),
        )
        return tuple((key, trouble) for key, trouble in kept if trouble is not None)


NOTHING_CONFIGURED: Final = Preferences()


def _opened(value: object) -> object:
    if isinstance(value, DocumentRefused):
        raise value
    return value
