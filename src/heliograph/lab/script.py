"""What the provider servers of a lab answer on demand: by provider, by token, by time, so many times.

A script is a list of rules. The first that fits a request gives its answer; where none fits the server judges
the request by its own rules, as the real one would.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, Protocol, final

import msgspec
from msgspec import Meta

from heliograph.lab.receiver import Misbehaviour, Reaction, Reply, Spoiled
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed

RULES_MAX: Final = 256
"""Every request is compared with all of them."""

OCTETS_MAX: Final = 256 * 1024
"""Of a script: a rule has a few hundred octets."""

TOKEN_SHOWN_CHARACTERS: Final = 6
"""Enough to tell devices apart in what a lab prints, and of no use to anybody."""


class Observe(Protocol):
    """Is told of every request that a server answered."""

    def __call__(self, token: str, reaction: Reaction, message: object, *, by_script: bool) -> None:
        """Take note.

        Args:
            token: The device's token, or empty where the server is not told.
            reaction: What was answered.
            message: What the device would show, where the server took it; None elsewhere.
            by_script: Whether a rule of the script gave the answer.
        """
        ...


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One rule of a script. Exactly one of ``answer``, ``status`` and ``fault`` says what happens.

    Attributes:
        provider: Only requests to this server; any without it.
        token: Only devices whose token begins with this.
        after_s: From so many seconds after the script began.
        until_s: Until so many seconds after the script began.
        times: So many requests, and then no more.
        answer: An answer of the server's table, by name.
        status: A bare status.
        retry_after_s: With a status: ``Retry-After`` in seconds.
        body: With a status: the body.
        fault: No answer at all, or a broken one: a word of ``Misbehaviour``.
    """

    provider: str | None = None
    token: str = ""
    after_s: Annotated[float, Meta(ge=0)] = 0.0
    until_s: Annotated[float, Meta(ge=0)] | None = None
    times: Annotated[int, Meta(ge=1)] | None = None
    answer: str | None = None
    status: Annotated[int, Meta(ge=200, le=599)] | None = None
    retry_after_s: Annotated[int, Meta(ge=0)] | None = None
    body: str = ""
    fault: Misbehaviour | None = None


class _Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A script as it is written."""

    answers: tuple[Rule, ...] = ()


@final
class Script:
    """The rules in force, and how often each was used.

    Args:
        tables: The answers of each server, by name.
        now: Tells the time.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, Reaction]], now: Callable[[], Instant]) -> None:
        self._tables = tables
        self._now = now
        self._began = now()
        self._used: list[int] = []
        self.rules: tuple[Rule, ...] = ()

    def replace(self, rules: tuple[Rule, ...]) -> None:
        """Put other rules in force; their seconds count from now.

        Raises:
            Malformed: A rule names what is not there, or not exactly one thing to happen.
        """
        if len(rules) > RULES_MAX:
            raise Malformed("answers", f"must have at most {RULES_MAX} rules")
        for number, rule in enumerate(rules):
            self._check(rule, f"answers[{number}]")
        self.rules, self._used, self._began = rules, [0] * len(rules), self._now()

    def reaction(self, provider: str, token: str) -> Reaction | None:
        """Return what a request is answered with, or None where the server judges it itself."""
        seconds = (self._now() - self._began) / 1_000
        for number, rule in enumerate(self.rules):
            if (
                rule.provider in (None, provider)
                and token.startswith(rule.token)
                and rule.after_s <= seconds
                and (rule.until_s is None or seconds < rule.until_s)
                and (rule.times is None or self._used[number] < rule.times)
                and (rule.answer is None or rule.answer in self._tables[provider])
            ):
                self._used[number] += 1
                return self._spelled(rule, provider)
        return None

    def _spelled(self, rule: Rule, provider: str) -> Reaction:
        if rule.answer is not None:
            return self._tables[provider][rule.answer]
        if rule.fault is not None:
            return Spoiled(rule.fault)
        headers = {} if rule.retry_after_s is None else {"retry-after": str(rule.retry_after_s)}
        return Reply(rule.status or 500, headers, rule.body.encode())

    def _check(self, rule: Rule, at: str) -> None:
        if sum(each is not None for each in (rule.answer, rule.status, rule.fault)) != 1:
            raise Malformed(at, "must have exactly one of answer, status and fault")
        if rule.status is None and (rule.retry_after_s is not None or rule.body):
            raise Malformed(at, "has retry_after_s or body without a status")
        if rule.provider is not None and rule.provider not in self._tables:
            raise Malformed(f"{at}.provider", f"must be one of {', '.join(sorted(self._tables))}")
        named = [self._tables[rule.provider]] if rule.provider is not None else list(self._tables.values())
        if rule.answer is not None and not any(rule.answer in table for table in named):
            known = sorted({name for table in named for name in table})
            raise Malformed(f"{at}.answer", f"must be one of {', '.join(known)}")


def read_script(file: Path) -> tuple[Rule, ...]:
    """Read a script from a TOML file with a list of ``[[answers]]``.

    Raises:
        Malformed: It is not one; the error says where.
        OSError: The file cannot be read.
    """
    with file.open("rb") as opened:
        octets = opened.read(OCTETS_MAX + 1)
    if len(octets) > OCTETS_MAX:
        raise Malformed(str(file), f"is larger than {OCTETS_MAX} octets")
    try:
        return rules_of(tomllib.loads(octets.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(str(file), f"is not TOML: {error}") from None


def rules_of(document: object) -> tuple[Rule, ...]:
    """Read the rules of a document: ``{"answers": […]}``.

    Raises:
        Malformed: It is not one; the error says where.
    """
    try:
        return msgspec.convert(document, _Document).answers
    except msgspec.ValidationError as error:
        problem, _, at = str(error).partition(" - at `$")
        raise Malformed(at.strip("`.") or "script", problem) from None


def shortened(token: str) -> str:
    """Return a token as a lab may print it."""
    return token if len(token) <= TOKEN_SHOWN_CHARACTERS else f"{token[:TOKEN_SHOWN_CHARACTERS]}…"
