"""One event judged for one person, with the reasons."""

from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.pushrules import engine
from heliograph.pushrules.engine import Decision
from heliograph.pushrules.matrix.event import Event
from heliograph.pushrules.matrix.rule import Rule
from heliograph.pushrules.matrix.subject import RoomFacts, Subject, involvement


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody for whom an event is judged.

    Attributes:
        user_id: Who it is.
        display_name: Their name in the room as the member event has it, whatever its type; None without one.
    """

    user_id: str
    display_name: object = None


def evaluate(rules: Sequence[Rule], event: Event, room: RoomFacts, person: Person) -> Decision[Rule]:
    """Find the rule that decides whether one person is notified of an event.

    Args:
        rules: The person's rules in the order in which they are asked, as ``merged`` gives them.
        event: What happened.
        room: Where.
        person: For whom.

    Returns:
        The first rule that holds, and why those before it do not. Without a rule, and with one whose actions
        do not notify, the person is not notified. Nobody is ever notified of what they sent themselves; then
        no rule is asked.
    """
    if event.sender == person.user_id:
        return Decision(None, ())
    return engine.evaluate(
        rules, Subject(event, room, involvement(event, person.user_id, person.display_name))
    )
