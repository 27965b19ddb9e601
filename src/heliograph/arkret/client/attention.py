"""After the wake: whether a person is disturbed by an Event, how, and why or why not.

An Event passes four stages, and each may end its way: the blocklist, the rules, the quiet hours, the surface.
Before the rules are asked two things are looked at that no rule can overrule: a Strand that the person muted
stays silent, and an Event that is not decrypted yet waits. A wakeup alone shows nothing, and what the Station
let through counts for nothing here: every Event is judged from the top (R203, R204, R212, R213).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from heliograph.ambient.tzdb import Tzdb
from heliograph.arkret.client.blocklist import NOWHERE, Entry, Origin, Surface
from heliograph.arkret.client.preferences import Preferences
from heliograph.pushrules.arkret.actions import PLAIN, SILENT, Effect, Sound
from heliograph.pushrules.arkret.chain import Chain
from heliograph.pushrules.arkret.event import Event, Facts, Subject
from heliograph.pushrules.arkret.ruleset import NO_RULES, Rule
from heliograph.pushrules.arkret.watch import WatchFacts, WatchLevel, verdict
from heliograph.pushrules.dnd.quiet import QuietHours
from heliograph.pushrules.engine import Truth
from heliograph.wire.instant import Instant


class Stage(StrEnum):
    """Where an Event stands on its way; a closed set, in order."""

    BLOCKLIST = "blocklist"
    WATCH = "watch"
    RULES = "rules"
    QUIET_HOURS = "quiet_hours"
    SURFACE = "surface"


class Why(StrEnum):
    """What was found at a stage; a closed set."""

    BLOCKED = "blocked"
    """An entry of the blocklist covers the Event."""

    MUTED = "muted"
    """The person muted the Strand."""

    NOT_DECRYPTED = "not_decrypted"
    """The Event cannot be judged yet; it is to be judged again once it is decrypted."""

    SKIPPED_DISABLED = "skipped_disabled"
    SKIPPED_DOES_NOT_HOLD = "skipped_does_not_hold"
    SKIPPED_INDETERMINATE = "skipped_indeterminate"
    """A rule before the match was passed over; these three only where an explanation is asked for."""

    RULE_NOTIFIES = "rule_notifies"
    RULE_SILENCES = "rule_silences"
    """A rule matched. One without actions silences."""

    NO_RULE_MATCHES = "no_rule_matches"
    """There are rules, and none matches: nobody is disturbed."""

    NO_RULES = "no_rules"
    """There are no rules at all: the watch level decides, and without one the person is told."""

    RULES_DAMAGED = "rules_damaged"
    """There was never a valid rule set and no readable rule matches: decided as if there were no rules."""

    WATCH_LEVEL_SILENCES = "watch_level_silences"
    """Without a rule to decide it, the person's watch level asks for less than this Event."""

    QUIET = "quiet"
    """It is a quiet hour, and the rule that matched is no exception."""

    EXCEPTION = "exception"
    """It is a quiet hour, and the rule that matched is an exception."""

    SHOWN = "shown"


class Display(StrEnum):
    """What the person sees; a closed set."""

    NOTHING = "nothing"
    BANNER = "banner"
    HIGHLIGHTED_BANNER = "highlighted_banner"


@dataclass(frozen=True, slots=True)
class Step:
    """One finding on the way.

    Attributes:
        stage: Where.
        why: What was found.
        name: The rule or the entry that it is about; None where it is about neither.
        condition: Which condition of the rule settled it, from zero; only where a rule was passed over.
    """

    stage: Stage
    why: Why
    name: str | None = None
    condition: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of an Event.

    Attributes:
        display: What the person sees.
        sound: What they hear.
        rule_id: The rule that matched; None when none did or none was asked.
        again: Whether the Event has to be judged again, once it is decrypted.
        trace: How it came to this, first to last; the last step is the reason.
    """

    display: Display
    sound: Sound
    rule_id: str | None
    again: bool
    trace: tuple[Step, ...]

    @property
    def disturbs(self) -> bool:
        """Tell whether anything is to be seen or heard."""
        return self.display is not Display.NOTHING


_CALLS: Final = "ak.call."
_MESSAGES: Final = ("ak.message.", "ak.reaction.", "ak.strand.")


def surfaces(event: Event, facts: Facts) -> frozenset[Surface]:
    """Name the surfaces that a notification of this Event would appear on, for the blocklist."""
    found = {Surface.NOTIFICATIONS}
    kind = event.kind or ""
    if kind.startswith(_MESSAGES):
        found.add(Surface.MESSAGES)
    if kind.startswith(_CALLS):
        found.add(Surface.CALLS)
    if facts.mentions_actor is Truth.YES:
        found.add(Surface.MENTIONS)
    if facts.direct_message is Truth.YES:
        found.add(Surface.DM)
    return frozenset(found)


class Attention:
    """One person's preferences, ready to judge Events by. Make a new one when the preferences change.

    Attributes:
        preferences: What it was made of.
    """

    __slots__ = ("_blocklist", "_chain", "_damaged", "_quiet", "preferences")

    def __init__(self, preferences: Preferences, tzdb: Tzdb) -> None:
        """Compile the preferences.

        Args:
            preferences: The last valid ones.
            tzdb: The pinned time zone data.
        """
        self.preferences: Final = preferences
        rules = preferences.rules.in_force or NO_RULES
        self._chain: Final = Chain(rules)
        self._damaged: Final = preferences.rules.value is None and preferences.rules.trouble is not None
        dnd = preferences.dnd.in_force
        self._quiet: Final = None if dnd is None else QuietHours(dnd, tzdb.clock(dnd.timezone))
        self._blocklist: Final = preferences.blocklist.in_force

    def wake(self, pending: Iterable[tuple[Event, Facts, Origin]], now: Instant) -> tuple[Outcome, ...]:
        """Judge everything that waits, after one wakeup (R219).

        Args:
            pending: Every Event that was fetched and not judged yet; as many as the caller fetched at once.
            now: Milliseconds since the epoch.
        """
        return tuple(self.judge(event, facts, origin, now=now) for event, facts, origin in pending)

    def judge(
        self, event: Event, facts: Facts, origin: Origin = NOWHERE, *, now: Instant, explain: bool = False
    ) -> Outcome:
        """Judge one Event (R006, R177, R205).

        Args:
            event: The Event; any values whatever.
            facts: What this device knows of it.
            origin: Where it comes from, as far as that is verified.
            now: Milliseconds since the epoch.
            explain: Whether the trace should hold every rule that was passed over; that takes longer.
        """
        subject = Subject(event, facts)
        entry = self._covering(subject, origin, now)
        if entry is not None:
            return _nothing(Step(Stage.BLOCKLIST, Why.BLOCKED, entry.entry_id))
        if facts.watch is WatchLevel.MUTED:
            return _nothing(Step(Stage.WATCH, Why.MUTED))
        if not event.readable:
            return _nothing(Step(Stage.RULES, Why.NOT_DECRYPTED), again=True)
        return self._judge_readable(subject, now, explain=explain)

    def _covering(self, subject: Subject, origin: Origin, now: Instant) -> Entry | None:
        if self._blocklist is None:
            return None
        event = subject.event
        if origin.actor is None and event.sender is not None:
            origin = Origin(
                event.sender,
                origin.device_id,
                origin.verification_method,
                origin.handle,
                origin.domains,
                origin.applet,
            )
        body = subject.folded_body() if event.readable else ""
        return self._blocklist.find(origin, body, surfaces(event, subject.facts), now)

    def _judge_readable(self, subject: Subject, now: Instant, *, explain: bool) -> Outcome:
        trace = self._passed_over(subject) if explain else []
        rule = self._chain.decide(subject)
        effect = self._effect(rule, subject.facts, trace)
        rule_id = None if rule is None else rule.rule_id
        if not effect.notify:
            return _nothing(*trace, rule_id=rule_id)
        if self._quiet is not None and self._quiet.cover(now):
            if self._quiet.suppress(now, rule_id):
                return _nothing(*trace, Step(Stage.QUIET_HOURS, Why.QUIET, rule_id), rule_id=rule_id)
            trace.append(Step(Stage.QUIET_HOURS, Why.EXCEPTION, rule_id))
        trace.append(Step(Stage.SURFACE, Why.SHOWN))
        display = Display.HIGHLIGHTED_BANNER if effect.highlight else Display.BANNER
        return Outcome(display, effect.sound, rule_id, again=False, trace=tuple(trace))

    def _passed_over(self, subject: Subject) -> list[Step]:
        return [
            Step(
                Stage.RULES,
                Why(f"skipped_{skipped.because.value}"),
                skipped.rule.rule_id,
                skipped.condition,
            )
            for skipped in self._chain.explain(subject).skipped
        ]

    def _effect(self, rule: Rule | None, facts: Facts, trace: list[Step]) -> Effect:
        """Say what the rules come to, and write it into the trace."""
        if rule is not None:
            why = Why.RULE_NOTIFIES if rule.effect.notify else Why.RULE_SILENCES
            trace.append(Step(Stage.RULES, why, rule.rule_id))
            return rule.effect
        if self._chain.rules and not self._damaged:
            trace.append(Step(Stage.RULES, Why.NO_RULE_MATCHES))
            return SILENT
        trace.append(Step(Stage.RULES, Why.RULES_DAMAGED if self._damaged else Why.NO_RULES))
        if facts.watch is None or verdict(facts.watch, _watch_facts(facts)).deliver:
            return PLAIN
        trace.append(Step(Stage.WATCH, Why.WATCH_LEVEL_SILENCES))
        return SILENT


def _watch_facts(facts: Facts) -> WatchFacts:
    return WatchFacts(
        mentions_actor=facts.mentions_actor is Truth.YES,
        assigned_to_actor=facts.assigned_to_actor,
        reply_to_self=facts.reply_to_self,
        participating_thread_update=facts.participating_thread_update,
    )


def _nothing(*steps: Step, rule_id: str | None = None, again: bool = False) -> Outcome:
    return Outcome(Display.NOTHING, Sound.NONE, rule_id, again, steps)
