"""What happened is told once, to the log and the metrics; what was not declared is not told at all."""

import io
import json
import threading
from enum import StrEnum
from typing import Any

import pytest

from heliograph.ambient.catalogue import Counter, Histogram, metrics_page
from heliograph.ambient.telemetry import (
    SERIES_MAX,
    TEXT_CHARACTERS_MAX,
    Event,
    Gauge,
    Level,
    LogFormat,
    Telemetry,
    locations,
    watch,
)
from heliograph.wire.secret import Secret
from tests.secrets import planted


class Outcome(StrEnum):
    ACCEPTED = "accepted"


class Told:
    """A telemetry and what it wrote."""

    def __init__(
        self, level: Level = Level.DEBUG, *, strict: bool = True, form: LogFormat = LogFormat.JSON
    ) -> None:
        self.stream = io.StringIO()
        self.telemetry = Telemetry(level, form, self.stream, strict=strict)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


def test_an_event_is_logged_and_counted_in_one_call() -> None:
    """One line with the fields, one step of the metric."""
    told = Told()

    told.telemetry.event(Event.DEVICES_ANSWERED, outcome=Outcome.ACCEPTED, reason="none", count=3)

    line = told.lines()[0]
    at = line.pop("at")
    assert len(at) == len("2026-01-31T08:00:00.000Z")
    assert line == {
        "level": "debug",
        "event": "devices_answered",
        "outcome": "accepted",
        "reason": "none",
        "count": 3,
    }
    assert told.telemetry.value("heliograph_notify_devices_total", outcome="accepted", reason="none") == 3


def test_an_event_below_the_level_is_counted_and_not_logged() -> None:
    """Metrics are whole whatever the log shows."""
    told = Told(Level.INFO)

    for _ in range(2):
        told.telemetry.event(Event.REQUEST_ANSWERED, operation="x", status=200, seconds=0.002)

    assert told.lines() == []
    assert told.telemetry.value("heliograph_requests_total", operation="x", status="200") == 2


def test_a_histogram_counts_each_observation_in_its_bucket() -> None:
    """An observation at an edge belongs below it; one above the last edge still counts."""
    told = Told(Level.ERROR)

    for seconds in (0.001, 0.002, 30.0, 31.0):
        told.telemetry.event(Event.REQUEST_ANSWERED, operation="x", status=200, seconds=seconds)

    def bucket(edge: str) -> float:
        return told.telemetry.value("heliograph_request_seconds_bucket", operation="x", le=edge)

    assert (bucket("0.001"), bucket("0.0025"), bucket("30.0"), bucket("+Inf")) == (1, 2, 3, 4)
    assert told.telemetry.value("heliograph_request_seconds_count", operation="x") == 4
    assert told.telemetry.value("heliograph_request_seconds_sum", operation="x") == pytest.approx(61.003)


def test_the_metrics_page_is_prometheus_text() -> None:
    """With the help of each metric, and gauges read at that moment."""
    told = Told()
    depth = [4.0]
    told.telemetry.gauge(Gauge.QUEUE_DEPTH, lambda: depth[0], kind="arkret.deliver", state="waiting")
    told.telemetry.event(Event.CLAIM_FENCED, kind="arkret.deliver")
    depth[0] = 5

    text = told.telemetry.exposition().decode()

    assert 'heliograph_queue_depth{kind="arkret.deliver",state="waiting"} 5.0' in text
    assert 'heliograph_queue_fenced_total{kind="arkret.deliver"} 1.0' in text
    assert "# HELP heliograph_queue_fenced_total Settlements refused because the lease had moved on." in text


def test_a_gauge_that_cannot_be_read_does_not_take_the_page_down() -> None:
    """The other metrics are still needed, most of all then."""
    told = Told()

    def broken() -> float:
        raise LookupError

    told.telemetry.gauge(Gauge.REQUESTS_IN_FLIGHT, broken)
    told.telemetry.event(Event.ITEMS_PRUNED, count=1)

    assert "heliograph_queue_pruned_total 1.0" in told.telemetry.exposition().decode()


def test_a_gauge_is_read_with_the_labels_of_its_row() -> None:
    """A missing or a foreign label is a bug of ours."""
    with pytest.raises(TypeError, match="needs the labels kind"):
        Told().telemetry.gauge(Gauge.QUEUE_LAG_SECONDS, lambda: 0.0, provider="x")


@pytest.mark.parametrize(
    "value",
    [
        Secret(planted("told secret")),
        b"octets",
        None,
        ["a"],
        {"a": 1},
        "x" * (TEXT_CHARACTERS_MAX + 1),
        object(),
    ],
)
def test_a_value_that_is_not_a_word_or_a_number_is_refused(value: Any) -> None:
    """Raised where it can be mended; left out and counted where it must not stop the work."""
    strict, lenient = Told(), Told(strict=False)

    with pytest.raises(TypeError, match="signature_refused cannot tell why"):
        strict.telemetry.event(Event.SIGNATURE_REFUSED, why=value)
    lenient.telemetry.event(Event.SIGNATURE_REFUSED, why=value)

    assert strict.lines() == []
    assert [line["event"] for line in lenient.lines()] == ["field_dropped", "signature_refused"]
    assert "why" not in lenient.lines()[1]
    assert lenient.telemetry.value("heliograph_signature_refusals_total", why="none") == 1
    assert lenient.telemetry.value("heliograph_telemetry_fields_dropped_total", row="signature_refused") == 1


def test_a_field_that_the_row_does_not_declare_is_refused() -> None:
    """Whatever it holds: the row decides what may be told."""
    told = Told()

    with pytest.raises(TypeError, match="cannot tell push_key"):
        told.telemetry.event(Event.SIGNATURE_REFUSED, why="expired", push_key="x")


def test_an_exception_is_told_by_its_type_only() -> None:
    """Its message may quote what it met."""
    told = Told()

    told.telemetry.event(Event.REQUEST_FAILED, operation="x", exception=ValueError(planted("in a message")))

    assert told.lines()[0]["exception"] == "ValueError"


def test_a_traceback_is_told_as_places_without_values() -> None:
    """Enough to find the line, nothing of what stood in it."""

    def inner(secret: str) -> None:
        raise LookupError(secret)

    with pytest.raises(LookupError) as caught:
        inner(planted("in a frame"))
    where = locations(caught.value)

    assert ":inner:" in where
    assert "planted" not in where


def test_a_long_traceback_is_cut_to_its_innermost_places() -> None:
    """A recursion must not make a line too long to tell."""

    def sink(depth: int) -> None:
        if depth == 0:
            raise LookupError
        sink(depth - 1)

    with pytest.raises(LookupError) as caught:
        sink(50)
    where = locations(caught.value)

    assert len(where) <= TEXT_CHARACTERS_MAX
    assert ":sink:" in where


def test_a_metric_with_too_many_series_folds_the_new_ones() -> None:
    """A label that a stranger can vary must not fill the memory; it is told that the row is wrong."""
    told = Told(Level.ERROR)

    for number in range(SERIES_MAX + 5):
        told.telemetry.event(Event.SIGNATURE_REFUSED, why=f"why-{number}")
    told.telemetry.event(Event.SIGNATURE_REFUSED, why="why-0")

    value = told.telemetry.value
    assert value("heliograph_signature_refusals_total", why="why-0") == 2
    assert value("heliograph_signature_refusals_total", why="other") == 5
    assert value("heliograph_telemetry_series_folded_total", metric="signature_refusals") == 5


def test_counts_from_many_threads_are_all_there() -> None:
    """The database's threads tell of commits while the loop tells of requests."""
    told = Told(Level.ERROR)

    def tell() -> None:
        for _ in range(2_000):
            told.telemetry.event(Event.COMMITTED, database="sqlite", count=1, seconds=0.001)

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert told.telemetry.value("heliograph_commits_total", database="sqlite") == 8_000


def test_a_person_can_read_the_log_too() -> None:
    """The console form is for a terminal."""
    told = Told(form=LogFormat.CONSOLE)

    told.telemetry.event(Event.SERVER_STARTED, host="127.0.0.1", port=8080)

    assert "server_started" in told.stream.getvalue()
    assert "port=8080" in told.stream.getvalue()


def test_whoever_watches_sees_every_text_that_leaves() -> None:
    """Lines, events below the level, and the metrics page."""
    seen: list[str] = []
    stop = watch(seen.append)
    told = Told(Level.INFO)

    told.telemetry.event(Event.SIGNATURE_REFUSED, why="expired")
    told.telemetry.event(Event.CLAIM_FENCED, kind="logged")
    told.telemetry.event(Event.ITEMS_PRUNED, count=77)
    told.telemetry.exposition()
    stop()
    told.telemetry.event(Event.ITEMS_PRUNED, count=78)

    assert ["expired" in seen[0], "logged" in seen[1], "77" in seen[2]] == [True] * 3
    assert len(seen) == 4


def test_the_catalogue_agrees_with_itself() -> None:
    """Labels and amounts are fields of the row; a shared metric is the same wherever it stands."""
    metrics: dict[str, Counter | Histogram] = {}
    for event in Event:
        for move in event.moves:
            needed = {*move.labels, *([move.amount] if move.amount else [])}

            assert needed <= event.fields, event
            assert not event.fields & {"at", "level", "event"}
            assert metrics.setdefault(move.name, move) == move
    assert all(f"`{event.value}`" in metrics_page() for event in Event)
