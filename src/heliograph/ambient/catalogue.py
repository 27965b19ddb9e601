"""Every event that we tell of, and every metric that it moves: the only list of either.

A row says what happened in the past tense. It names the fields that may be told, so that nothing else
can be; a field holds a number, a truth value, a closed word, a short text that we wrote ourselves, or the
type of an exception. Labels come from a closed set, and their values are closed words or names that the
operator chose: an id, an address or anything else a stranger can vary must never become one.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Final, Self

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Histogram edges for waits: from one commit to the longest provider deadline."""

SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
"""Histogram edges for how many shared one batch."""


class Level(IntEnum):
    """How urgent an event is to a person who reads the log."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


class Label(StrEnum):
    """The closed set of label names."""

    CODE = "code"
    CREDENTIAL = "credential"
    DATABASE = "database"
    KIND = "kind"
    MEMBER = "member"
    METRIC = "metric"
    OPERATION = "operation"
    OUTCOME = "outcome"
    PROVIDER = "provider"
    REASON = "reason"
    ROW = "row"
    STATE = "state"
    STATUS = "status"
    WHY = "why"


@dataclass(frozen=True, slots=True)
class Counter:
    """A metric that only grows.

    Attributes:
        name: Without the ``heliograph_`` before it and the ``_total`` after it.
        help: What is counted.
        labels: Which fields tell the series apart.
        amount: The field that says by how much it grows, or None for one.
    """

    name: str
    help: str
    labels: tuple[Label, ...] = ()
    amount: str | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """A metric that keeps a distribution.

    Attributes:
        name: Without the ``heliograph_`` before it; ends in its unit.
        help: What is observed.
        amount: The field that is observed.
        buckets: The upper edges, ascending.
        labels: Which fields tell the series apart.
    """

    name: str
    help: str
    amount: str
    buckets: tuple[float, ...]
    labels: tuple[Label, ...] = ()


class Event(Enum):
    """What can happen. The value is the name in the log."""

    level: Level
    says: str
    fields: frozenset[str]
    moves: tuple[Counter | Histogram, ...]

    def __new__(cls, name: str, level: Level, says: str, fields: str, *moves: Counter | Histogram) -> Self:
        """Take the row apart.

        Args:
            name: The word in the log.
            level: How urgent it is.
            says: What happened, for the generated page.
            fields: The names of the fields that may be told, apart by spaces.
            moves: The metrics it moves.
        """
        row = object.__new__(cls)
        row._value_ = name
        row.level = level
        row.says = says
        row.fields = frozenset(fields.split())
        row.moves = moves
        return row

    # A row is looked up on every request; identity is the fastest hash and rows are singletons.
    __hash__ = object.__hash__

    # ── edge ─────────────────────────────────────────────────────────────────────────────────────
    REQUEST_ANSWERED = (
        "request_answered",
        Level.DEBUG,
        "A request to an operation was answered, whatever the answer.",
        "operation status seconds request_id",
        Counter("requests", "Requests answered.", (Label.OPERATION, Label.STATUS)),
        Histogram(
            "request_seconds", "From the whole head to the answer.", "seconds", SECONDS, (Label.OPERATION,)
        ),
    )
    REQUEST_REFUSED = (
        "request_refused",
        Level.DEBUG,
        "A request was refused with a stable code; nothing changed.",
        "operation code status request_id",
        Counter("request_refusals", "Requests refused, by stable code.", (Label.OPERATION, Label.CODE)),
    )
    REQUEST_FAILED = (
        "request_failed",
        Level.ERROR,
        "A bug: a handler ended in an exception that nobody foresaw. The caller got only the request id.",
        "operation exception where request_id",
        Counter("request_failures", "Requests that met a bug.", (Label.OPERATION,)),
    )
    REQUEST_ABANDONED = (
        "request_abandoned",
        Level.DEBUG,
        "The caller went away, or took too long, before its body was whole; nothing was done.",
        "operation why request_id",
        Counter(
            "requests_abandoned", "Requests whose body never became whole.", (Label.OPERATION, Label.WHY)
        ),
    )
    CONNECTION_REFUSED = (
        "connection_refused",
        Level.DEBUG,
        "A connection was closed because what it sent could not become a request.",
        "why",
        Counter("connections_refused", "Connections closed before there was a request.", (Label.WHY,)),
    )
    SERVER_STARTED = ("server_started", Level.INFO, "The HTTP server listens.", "host port")
    SERVER_STOPPED = ("server_stopped", Level.INFO, "The HTTP server has answered what it had begun.", "port")
    SERVER_NOTED = (
        "server_noted",
        Level.WARNING,
        "The HTTP library remarked on something; the text is its fixed template without values.",
        "note exception",
        Counter("server_notes", "Remarks of the HTTP library."),
    )
    PROBE_FAILED = (
        "probe_failed",
        Level.WARNING,
        "Something that readiness depends on did not answer in time.",
        "kind exception",
        Counter("probe_failures", "Readiness probes that failed.", (Label.KIND,)),
    )

    # ── gateway ──────────────────────────────────────────────────────────────────────────────────
    HANDOFF_ANSWERED = (
        "handoff_answered",
        Level.DEBUG,
        "A registration handoff was applied, replayed or found in conflict.",
        "outcome request_id",
        Counter("handoffs", "Registration handoffs, by how they ended.", (Label.OUTCOME,)),
    )
    DEVICES_ANSWERED = (
        "devices_answered",
        Level.DEBUG,
        "Devices of one notify got the same outcome.",
        "outcome reason count request_id",
        Counter(
            "notify_devices",
            "Devices of notifies, by outcome.",
            (Label.OUTCOME, Label.REASON),
            amount="count",
        ),
    )
    SIGNATURE_REFUSED = (
        "signature_refused",
        Level.INFO,
        "A request's signature did not prove its source.",
        "why operation request_id",
        Counter("signature_refusals", "Signatures refused, by what was wrong.", (Label.WHY,)),
    )
    COUNTS_DROPPED = (
        "counts_dropped",
        Level.DEBUG,
        "A count was off its grid; the member was dropped and the wakeup went on.",
        "member request_id",
        Counter("dropped_counts", "Count members dropped for being off their grid.", (Label.MEMBER,)),
    )
    RATE_LIMITED = (
        "rate_limited",
        Level.DEBUG,
        "A token bucket was empty.",
        "kind request_id",
        Counter("rate_limited", "Requests or devices that met an empty bucket.", (Label.KIND,)),
    )

    # ── delivery ─────────────────────────────────────────────────────────────────────────────────
    DELIVERY_ENDED = (
        "delivery_ended",
        Level.DEBUG,
        "One attempt to deliver ended in a verdict.",
        "provider outcome reason attempt seconds",
        Counter("deliveries", "Delivery attempts, by verdict.", (Label.PROVIDER, Label.OUTCOME)),
        Histogram("delivery_seconds", "One whole attempt.", "seconds", SECONDS, (Label.PROVIDER,)),
    )
    PROVIDER_ANSWERED = (
        "provider_answered",
        Level.DEBUG,
        "A provider answered one HTTP request, or was lost.",
        "provider status seconds",
        Counter("provider_answers", "Answers of providers, by status.", (Label.PROVIDER, Label.STATUS)),
        Histogram(
            "provider_seconds", "One HTTP request to a provider.", "seconds", SECONDS, (Label.PROVIDER,)
        ),
    )
    BREAKER_CHANGED = (
        "breaker_changed",
        Level.WARNING,
        "The breaker of a provider opened, let one request try, or closed.",
        "provider state",
        Counter("breaker_changes", "Changes of breakers, by new state.", (Label.PROVIDER, Label.STATE)),
    )
    CREDENTIAL_RESTS = (
        "credential_rests",
        Level.WARNING,
        "A provider refused or throttled a credential, or one service did; nothing that needs it goes out.",
        "credential reason step pause_ms",
        Counter("credential_rests", "Pauses of credentials, by why.", (Label.CREDENTIAL, Label.REASON)),
    )
    CREDENTIAL_WORKS = (
        "credential_works",
        Level.INFO,
        "A delivery tried a credential that had rested, and it works again.",
        "credential",
    )
    MASS_TOKEN_DEATH = (
        "mass_token_death",
        Level.ERROR,
        "A provider called too many routes dead at once; none is ended for it until an operator thaws it.",
        "credential sends bad",
        Counter("mass_token_deaths", "Freezes of credentials.", (Label.CREDENTIAL,)),
    )
    EGRESS_REFUSED = (
        "egress_refused",
        Level.INFO,
        "The egress guard would not dial an address.",
        "provider why",
        Counter("egress_refusals", "Addresses that the egress guard refused.", (Label.WHY,)),
    )

    # ── settings ─────────────────────────────────────────────────────────────────────────────────
    SETTINGS_RELOADED = (
        "settings_reloaded",
        Level.INFO,
        "The settings were read again; the credentials and applications that they name are in force.",
        "cause outcome count",
        Counter("settings_reloads", "Settings read again while running, by outcome.", (Label.OUTCOME,)),
    )
    SETTINGS_REFUSED = (
        "settings_refused",
        Level.ERROR,
        "The settings were read again and could not work; nothing changed.",
        "cause outcome note",
        Counter("settings_reloads", "Settings read again while running, by outcome.", (Label.OUTCOME,)),
    )
    SETTING_WAITS = (
        "setting_waits",
        Level.WARNING,
        "A setting that was changed takes effect at the next start only.",
        "setting",
    )

    # ── queue ────────────────────────────────────────────────────────────────────────────────────
    ITEMS_ENQUEUED = (
        "items_enqueued",
        Level.DEBUG,
        "Work items became durable.",
        "kind count",
        Counter("queue_enqueued", "Work items enqueued.", (Label.KIND,), amount="count"),
    )
    ITEMS_FOLDED = (
        "items_folded",
        Level.DEBUG,
        "New work joined an equal item that was still waiting.",
        "kind count",
        Counter("queue_folded", "Work items that joined a waiting one.", (Label.KIND,), amount="count"),
    )
    ITEMS_CLAIMED = (
        "items_claimed",
        Level.DEBUG,
        "A worker leased a batch.",
        "kind count",
        Counter("queue_claimed", "Work items claimed.", (Label.KIND,), amount="count"),
    )
    ITEM_SETTLED = (
        "item_settled",
        Level.DEBUG,
        "A claim was settled.",
        "kind state reason attempt",
        Counter("queue_settled", "Claims settled, by the state they led to.", (Label.KIND, Label.STATE)),
    )
    ITEM_RETRIED = (
        "item_retried",
        Level.DEBUG,
        "A work item will be tried again later.",
        "kind reason attempt after_ms",
        Counter("queue_retries", "Work items put off, by why.", (Label.KIND, Label.REASON)),
    )
    ITEM_DIED = (
        "item_died",
        Level.WARNING,
        "A work item ended without being delivered and will not be tried again.",
        "kind reason attempt",
        Counter("queue_dead", "Work items given up.", (Label.KIND, Label.REASON)),
    )
    CLAIM_FENCED = (
        "claim_fenced",
        Level.INFO,
        "A worker came back after its lease had passed to another; its result was not written.",
        "kind",
        Counter("queue_fenced", "Settlements refused because the lease had moved on.", (Label.KIND,)),
    )
    LEASES_EXPIRED = (
        "leases_expired",
        Level.WARNING,
        "Workers vanished or took too long; their items wait again.",
        "kind count",
        Counter("queue_leases_expired", "Leases that ran out.", (Label.KIND,), amount="count"),
    )
    ITEMS_PRUNED = (
        "items_pruned",
        Level.DEBUG,
        "Ended work items past their retention were removed.",
        "count",
        Counter("queue_pruned", "Ended work items removed.", amount="count"),
    )
    HANDLER_FAILED = (
        "handler_failed",
        Level.ERROR,
        "A bug: a work handler ended in an exception that nobody foresaw. The item waits again.",
        "kind exception where",
        Counter("handler_failures", "Work handlers that met a bug.", (Label.KIND,)),
    )
    RUNNER_STARTED = ("runner_started", Level.INFO, "A worker began to take work.", "concurrency")
    RUNNER_STOPPED = ("runner_stopped", Level.INFO, "A worker settled what it held and stopped.", "")

    # ── storage ──────────────────────────────────────────────────────────────────────────────────
    COMMITTED = (
        "committed",
        Level.DEBUG,
        "Transactions that waited at the same moment shared one commit.",
        "database count seconds",
        Counter("commits", "Commits.", (Label.DATABASE,)),
        Histogram(
            "commit_batch_size", "Transactions that shared a commit.", "count", SIZES, (Label.DATABASE,)
        ),
        Histogram(
            "commit_seconds",
            "From handing a batch over to its commit.",
            "seconds",
            SECONDS,
            (Label.DATABASE,),
        ),
    )
    TRANSACTION_RETRIED = (
        "transaction_retried",
        Level.DEBUG,
        "Two transactions collided and one was run again from its start.",
        "database reason attempt",
        Counter("transaction_retries", "Transactions run again.", (Label.DATABASE, Label.REASON)),
    )
    DATABASE_UNAVAILABLE = (
        "database_unavailable",
        Level.WARNING,
        "The database could not take work.",
        "database why exception",
        Counter("database_unavailable", "Calls that the database could not take.", (Label.DATABASE,)),
    )
    DATABASE_MIGRATED = (
        "database_migrated",
        Level.INFO,
        "A migration was applied.",
        "database version seconds",
    )

    # ── the process ──────────────────────────────────────────────────────────────────────────────
    KEY_CREATED = ("key_created", Level.INFO, "A key was missing and was made.", "key version")
    SETTINGS_READ = ("settings_read", Level.INFO, "The settings were read.", "overrides")
    FIELD_DROPPED = (
        "field_dropped",
        Level.ERROR,
        "A bug: an event told something that its row does not allow; it was left out.",
        "row",
        Counter("telemetry_fields_dropped", "Fields left out because their row forbids them.", (Label.ROW,)),
    )
    SERIES_FOLDED = (
        "series_folded",
        Level.ERROR,
        "A bug: a metric has more series than its limit; a new one was told as `other`.",
        "metric",
        Counter("telemetry_series_folded", "Moves of series beyond the limit.", (Label.METRIC,)),
    )


class Gauge(Enum):
    """What can be read at any moment. The value is the name without the ``heliograph_`` before it."""

    help: str
    labels: tuple[Label, ...]

    def __new__(cls, name: str, help_text: str, *labels: Label) -> Self:
        """Take the row apart."""
        row = object.__new__(cls)
        row._value_ = name
        row.help = help_text
        row.labels = labels
        return row

    __hash__ = object.__hash__

    REQUESTS_IN_FLIGHT = ("requests_in_flight", "Requests being worked on now.")
    QUEUE_DEPTH = ("queue_depth", "Work items by kind and state.", Label.KIND, Label.STATE)
    QUEUE_LAG_SECONDS = ("queue_lag_seconds", "How long the oldest due work item has waited.", Label.KIND)
    BREAKER_OPEN = ("breaker_open", "Hosts of a provider that nothing is sent to now.", Label.PROVIDER)
    CREDENTIALS_RESTING = (
        "credentials_resting",
        "Credentials, or services of one, that nothing goes out with until a single delivery has tried.",
    )
    CREDENTIALS_FROZEN = (
        "credentials_frozen",
        "Credentials whose word on dead routes is not acted upon.",
    )
    COMMIT_WAITING = ("commit_waiting", "Transactions that wait for the next commit.", Label.DATABASE)
    INSTALLATIONS = ("installations", "Installations known, by state.", Label.STATE)


def metrics_page() -> str:
    """Write the page of all metrics and events, in Markdown."""
    lines = [
        "# Metrics and events",
        "",
        "Generated from `heliograph.ambient.catalogue` by `make docs`; do not edit.",
        "",
        "`/metrics` answers in the Prometheus text format. Every name begins with `heliograph_`. The log has",
        "one line for each event at or above the level that `log.level` sets; metrics move at every level.",
        "",
        "## Metrics",
        "",
        "| metric | kind | labels | what it tells | moved by |",
        "|---|---|---|---|---|",
    ]
    found: dict[str, tuple[Counter | Histogram, list[str]]] = {}
    for event in Event:
        for move in event.moves:
            found.setdefault(move.name, (move, []))[1].append(f"`{event.value}`")
    rows = []
    for name, (move, by) in found.items():
        kind, suffix = ("counter", "_total") if isinstance(move, Counter) else ("histogram", "")
        labels = ", ".join(move.labels) or "–"
        rows.append(f"| `heliograph_{name}{suffix}` | {kind} | {labels} | {move.help} | {', '.join(by)} |")
    for gauge in Gauge:
        labels = ", ".join(gauge.labels) or "–"
        rows.append(f"| `heliograph_{gauge.value}` | gauge | {labels} | {gauge.help} | read when asked |")
    lines += sorted(rows)
    lines += ["", "## Events", "", "| event | level | fields | what happened |", "|---|---|---|---|"]
    told = {event: ", ".join(sorted(event.fields)) or "–" for event in Event}
    lines += sorted(
        f"| `{event.value}` | {event.level.name.lower()} | {told[event]} | {event.says} |" for event in Event
    )
    return "\n".join(lines) + "\n"
