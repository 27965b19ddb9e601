"""One call that both logs and counts.

``Telemetry.event`` tells what happened: it moves the metrics that the event's row names and, when the
level asks for it, writes one line. It refuses every field that the row does not declare and every value
that is not a number, a truth value, a closed word, a short text or an exception (told by its type only),
so that a secret cannot leave by being passed along.
"""

import operator
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable
from enum import StrEnum
from itertools import accumulate
from threading import Lock
from typing import Any, Final, TextIO, TypeAlias, final

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from heliograph.ambient.catalogue import Counter, Event, Gauge, Histogram, Label, Level
from heliograph.ambient.clock import Clock, SystemClock
from heliograph.wire.instant import format_instant

__all__ = ["Event", "Field", "Gauge", "Level", "LogFormat", "Telemetry", "locations", "watch", "watched"]

Field: TypeAlias = int | float | bool | str | BaseException

TEXT_CHARACTERS_MAX: Final = 160
"""A longer text is not a word that we chose; it is probably somebody's content."""

SERIES_MAX: Final = 500
"""Series of one metric. Label values are closed words, so more of them means that a row is wrong."""

FRAMES_MAX: Final = 6
"""Innermost frames told of a bug: enough to find it, short enough for one line."""

EXPOSITION_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_FIT: Final[set[type]] = {int, float, bool}
"""Types whose every value may be told: numbers, truth values and, as they are met, closed words."""

_FOLDED: Final = "telemetry_series_folded"
_OTHER: Final = "other"
_ABSENT: Final = "none"

_watchers: list[Callable[[str], None]] = []


class LogFormat(StrEnum):
    """How a line of the log is spelled."""

    JSON = "json"
    CONSOLE = "console"


def watch(watcher: Callable[[str], None]) -> Callable[[], None]:
    """Show somebody every text that leaves through a log, a metric or an error body.

    This is how the test suite proves that no secret leaves; it costs nothing while nobody watches.

    Args:
        watcher: Called with each text, from any thread; must not raise.

    Returns:
        A function that stops it.
    """
    _watchers.append(watcher)
    return lambda: _watchers.remove(watcher)


def watched(text: str) -> None:
    """Show a text that is about to leave to those who watch."""
    for watcher in _watchers:
        watcher(text)


def locations(error: BaseException) -> str:
    """Say where an exception was raised, without a value from any frame.

    Args:
        error: The exception.

    Returns:
        The innermost frames as ``module:function:line``, outermost first; never the message.
    """
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        module = trace.tb_frame.f_globals.get("__name__", "?")
        frames.append(f"{str(module).removeprefix('heliograph.')}:{code.co_name}:{trace.tb_lineno}")
        trace = trace.tb_next
    text = " > ".join(frames[-FRAMES_MAX:])
    return text if len(text) <= TEXT_CHARACTERS_MAX else "…" + text[1 - TEXT_CHARACTERS_MAX :]


@final
class _Series:
    """The series of one metric, each found by the values of its labels.

    A cell is a list of numbers: for a counter its one value, for a histogram the count of each bucket
    and of what lies above the last, then the sum.
    """

    __slots__ = ("amount", "cells", "edges", "folded", "found", "labels", "move", "values_of")

    def __init__(self, move: Counter | Histogram) -> None:
        self.move = move
        self.labels = tuple(str(label) for label in move.labels)
        self.amount = move.amount
        self.edges = move.buckets if isinstance(move, Histogram) else None
        self.values_of: Callable[[dict[str, Field]], object] = (
            operator.itemgetter(*self.labels) if self.labels else _no_labels
        )
        self.cells: dict[tuple[str, ...], list[float]] = {}
        self.found: dict[object, list[float]] = {}
        self.folded = False

    def cell(self, fields: dict[str, Field]) -> list[float]:
        """Find the cell for these fields, or make it; beyond the limit all new ones are one."""
        words = tuple(_word(fields.get(label, _ABSENT)) for label in self.labels)
        self.folded = words not in self.cells and len(self.cells) >= SERIES_MAX
        if self.folded:
            words = (_OTHER,) * len(words)
        cell = self.cells.setdefault(words, [0.0] * (1 if self.edges is None else len(self.edges) + 2))
        if not self.folded and fields.keys() >= set(self.labels):
            self.found[self.values_of(fields)] = cell
        return cell

    def collected(self) -> Metric:
        """Return the metric as the Prometheus client knows it."""
        name = f"heliograph_{self.move.name}"
        if self.edges is None:
            counter = CounterMetricFamily(name, self.move.help, labels=self.labels)
            for values, cell in list(self.cells.items()):
                counter.add_metric(values, cell[0])
            return counter
        histogram = HistogramMetricFamily(name, self.move.help, labels=self.labels)
        for values, cell in list(self.cells.items()):
            edges = [*(str(edge) for edge in self.edges), "+Inf"]
            buckets = list(zip(edges, accumulate(cell[:-1]), strict=True))
            histogram.add_metric(values, buckets, cell[-1])
        return histogram


def _no_labels(_fields: dict[str, Field]) -> object:
    """The one series of a metric without labels."""
    return ()


def _word(value: object) -> str:
    """Spell a label's value."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@final
class _Collected(Collector):
    """Reads every metric when somebody asks for the page."""

    def __init__(self) -> None:
        self.series: dict[str, _Series] = {}
        self.readers: dict[Gauge, dict[tuple[str, ...], Callable[[], float]]] = {}

    def collect(self) -> Iterable[Metric]:
        """Yield each metric as it is now; a gauge whose reader fails is left out."""
        for series in self.series.values():
            yield series.collected()
        for gauge, readers in self.readers.items():
            family = GaugeMetricFamily(f"heliograph_{gauge.value}", gauge.help, labels=list(gauge.labels))
            for values, read in list(readers.items()):
                try:
                    family.add_metric(list(values), read())
                except Exception:  # noqa: BLE001, S112 - a broken reader must not take the page down
                    continue
            yield family


@final
class Telemetry:
    """Tells what happened, in the log and in the metrics.

    Args:
        level: The lowest level that is written to the log.
        form: How a line is spelled.
        stream: Where lines go; standard error unless given.
        clock: Dates the lines.
        strict: Raise ``TypeError`` at a field that the row forbids. Production leaves the field out,
            counts that it did, and goes on.
    """

    def __init__(
        self,
        level: Level = Level.INFO,
        form: LogFormat = LogFormat.JSON,
        stream: TextIO | None = None,
        clock: Clock | None = None,
        *,
        strict: bool = True,
    ) -> None:
        self._level = level
        self._clock = clock or SystemClock()
        self._strict = strict
        self._write = structlog.WriteLogger(stream or sys.stderr).msg
        self._render: Any = (
            structlog.processors.JSONRenderer(ensure_ascii=False)
            if form is LogFormat.JSON
            else structlog.dev.ConsoleRenderer(colors=False)
        )
        self._lock = Lock()
        self._collected = _Collected()
        self._registry = CollectorRegistry()
        self._registry.register(self._collected)
        self._plans: dict[Event, tuple[frozenset[str], tuple[_Series, ...], bool]] = {}
        made = self._collected.series
        for event in Event:
            series = tuple(made.setdefault(move.name, _Series(move)) for move in event.moves)
            self._plans[event] = (event.fields, series, event.level >= level)

    def event(self, event: Event, /, **fields: Field) -> None:
        """Tell that something happened. May be called from any thread.

        Args:
            event: The catalogue's row.
            fields: What the row allows; exceptions are told by their type only.

        Raises:
            TypeError: When strict, a field or the kind of its value is not allowed.
        """
        allowed, moved, logged = self._plans[event]
        plain = allowed.issuperset(fields)
        for value in fields.values():
            if type(value) not in _FIT and (type(value) is not str or len(value) > TEXT_CHARACTERS_MAX):
                plain = False
        if not plain:
            fields = self._allowed(event, fields)
        with self._lock:
            for series in moved:
                try:
                    cell = series.found[series.values_of(fields)]
                except KeyError:
                    cell = self._made(series, fields)
                amount: Any = 1 if series.amount is None else fields.get(series.amount, 0)
                if series.edges is None:
                    cell[0] += amount
                else:
                    cell[bisect_left(series.edges, amount)] += 1
                    cell[-1] += amount
        if logged:
            self._log(event, fields)
        elif _watchers:
            watched(f"{event.value} {fields!r}")

    def _made(self, series: _Series, fields: dict[str, Field]) -> list[float]:
        """Return the cell for fields that are new, or spelled in a new way; holds the lock."""
        cell = series.cell(fields)
        if series.folded:
            self._collected.series[_FOLDED].cell({Label.METRIC: series.move.name})[0] += 1
        return cell

    def _allowed(self, event: Event, fields: dict[str, Field]) -> dict[str, Field]:
        """Keep what the row allows; raise or count the rest."""
        kept: dict[str, Field] = {}
        for name, value in fields.items():
            told = _told(value)
            if name in event.fields and told is not None:
                kept[name] = told
            elif self._strict:
                raise TypeError(f"{event.value} cannot tell {name} as {type(value).__name__}")
            else:
                self.event(Event.FIELD_DROPPED, row=event.value)
        return kept

    def _log(self, event: Event, fields: dict[str, Field]) -> None:
        line = {
            "at": format_instant(self._clock.now()),
            "level": event.level.name.lower(),
            "event": event.value,
        }
        text = self._render(None, line["level"], {**line, **fields})
        if _watchers:
            watched(text)
        self._write(text)

    def gauge(self, gauge: Gauge, read: Callable[[], float], /, **labels: str) -> None:
        """Say how a gauge is read.

        Args:
            gauge: The catalogue's row.
            read: Called when somebody asks for the metrics, in the event loop: cheap, no I/O.
            labels: The value of each label that the row names.

        Raises:
            TypeError: The labels are not those of the row.
        """
        if labels.keys() != {str(label) for label in gauge.labels}:
            raise TypeError(f"{gauge.value} needs the labels {', '.join(gauge.labels) or 'none'}")
        values = tuple(_word(labels[label]) for label in gauge.labels)
        self._collected.readers.setdefault(gauge, {})[values] = read

    def exposition(self) -> bytes:
        """Return every metric in the Prometheus text format, ``EXPOSITION_TYPE``."""
        text = generate_latest(self._registry)
        if _watchers:
            watched(text.decode())
        return text

    def value(self, metric: str, /, **labels: str) -> float:
        """Return the value of one sample; 0 when nothing moved it.

        Args:
            metric: The full name, for example ``heliograph_requests_total``.
            labels: The value of each of its labels.
        """
        return self._registry.get_sample_value(metric, labels) or 0.0


def _told(value: Field) -> Field | None:
    """Return the value as it may be told, or None when it may not."""
    if isinstance(value, StrEnum):
        _FIT.add(type(value))
        return value
    if isinstance(value, BaseException):
        return type(value).__name__
    if type(value) in _FIT or (type(value) is str and len(value) <= TEXT_CHARACTERS_MAX):
        return value
    return None
