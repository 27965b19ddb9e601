"""Every setting of a process, and how to read them.

Settings come from one TOML file, then the command line, then the environment: the setting ``server.port``
is the variable ``HELIOGRAPH__SERVER__PORT``. Every setting has a default, so that a first start needs
none. Secrets are never settings: a setting refers to one as ``file:/path`` or ``env:NAME``.

Each package owns the section that configures it; this module puts them together.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from heliograph.ambient.telemetry import LogFormat
from heliograph.app import reading
from heliograph.app.credentials import APP_TABLE, PROVIDER_TABLE, AppSettings, page_head
from heliograph.app.describing import describe
from heliograph.app.reading import Loaded
from heliograph.arkret.gateway.decide import grid_fault
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.delivery.applications import AppTable
from heliograph.delivery.settings import DeliverySettings
from heliograph.delivery.settings import check_settings as check_delivery
from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

FILE_VARIABLE: Final = "HELIOGRAPH_CONFIG"
"""Names the settings file when the command line does not."""


class LogLevel(StrEnum):
    """The least urgent event that is written to the log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[server]`` section: where requests come in."""

    host: Annotated[str, Meta(description="Address to listen on. Put a proxy with TLS in front.")] = (
        "127.0.0.1"
    )
    port: Annotated[
        int, Meta(ge=0, le=65_535, description="Port to listen on; 0 lets the system choose.")
    ] = 8080
    socket: Annotated[
        Path | None,
        Meta(description="Unix socket to listen on instead of host and port; our group may connect."),
    ] = None
    backlog: Annotated[
        int, Meta(ge=1, le=65_535, description="Connections the system holds until they are accepted.")
    ] = 2_048
    connections_max: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Open connections; one more is answered 503.")
    ] = 4_096
    in_flight_max: Annotated[
        int, Meta(ge=1, le=100_000, description="Requests worked on at once; one more is answered 503.")
    ] = 512
    keep_alive_s: Annotated[
        int,
        Meta(ge=1, le=3_600, description="Seconds an idle connection is kept; more than the proxy's own."),
    ] = 75
    receive_s_max: Annotated[
        int, Meta(ge=1, le=600, description="Seconds a request may take to arrive whole.")
    ] = 20
    stop_s_max: Annotated[
        int, Meta(ge=1, le=600, description="Seconds requests in progress may take to end when stopping.")
    ] = 20
    metrics: Annotated[
        bool, Meta(description="Whether /metrics is served; keep it from strangers at the proxy.")
    ] = True


class DatabaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[database]`` section: where the truth is kept."""

    url: Annotated[
        str,
        Meta(
            description="sqlite:///relative or sqlite:////absolute path, or postgresql://user@host/name "
            "without a password. Empty: heliograph.sqlite3 in data_dir."
        ),
    ] = ""
    password: Annotated[
        Secret | None, Meta(description="Reference to the password of the PostgreSQL user.")
    ] = None
    connections: Annotated[
        int, Meta(ge=1, le=1_000, description="Connections to PostgreSQL held by one process.")
    ] = 4


class LogSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[log]`` section: what is told on standard error."""

    level: Annotated[LogLevel, Meta(description="The least urgent event that is written.")] = LogLevel.INFO
    format: Annotated[
        LogFormat, Meta(description="One JSON object in each line, or text for a person at a terminal.")
    ] = LogFormat.JSON


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[worker]`` section: how work is taken and retried."""

    concurrency: Annotated[
        int, Meta(ge=1, le=10_000, description="Deliveries in progress at once in one process.")
    ] = 256
    batch: Annotated[
        int, Meta(ge=1, le=1_000, description="Items claimed or settled in one transaction at most.")
    ] = 256
    lease_ms: Annotated[
        int, Meta(ge=1_000, le=3_600_000, description="How long claimed work is ours, in milliseconds.")
    ] = 60_000
    poll_ms: Annotated[
        int, Meta(ge=10, le=3_600_000, description="How long to wait for a ring before looking anyway.")
    ] = 1_000
    grace_ms: Annotated[
        int, Meta(ge=0, le=3_600_000, description="How long work in progress may take when stopping.")
    ] = 10_000
    keep_ms: Annotated[int, Meta(ge=0, le=31_622_400_000, description="How long ended work is kept.")] = (
        3_600_000
    )
    keep_dead_ms: Annotated[
        int, Meta(ge=0, le=31_622_400_000, description="How long work that was given up is kept.")
    ] = 2_592_000_000


class EgressSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[egress]`` section: which endpoints that users supply may be called."""

    extra_ports: Annotated[tuple[int, ...], Meta(description="Ports that may be called besides 443.")] = ()
    ip_literals: Annotated[
        bool, Meta(description="Whether an endpoint may name an address instead of a host.")
    ] = False
    allow_loopback: Annotated[
        bool, Meta(description="Whether this machine's own addresses may be called; for trying things out.")
    ] = False
    exceptions: Annotated[
        tuple[str, ...],
        Meta(description="Exact host:port pairs that may lie in a private network and on any port."),
    ] = ()
    ca_file: Annotated[
        Path | None,
        Meta(description="PEM file of authorities to trust besides the usual ones, as in labs."),
    ] = None


class ReloadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[reload]`` section: how a running process learns of new credentials and applications."""

    watch_s: Annotated[
        int,
        Meta(
            ge=0,
            le=3_600,
            description="Seconds between looks at the settings file and the files of its secrets; a change "
            "that has rested for one look is read. 0: only on SIGHUP and heliograph reload.",
        ),
    ] = 5


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every section."""

    data_dir: Annotated[
        Path, Meta(description="Directory for what must outlive the process: the database and the keys.")
    ] = Path("heliograph-data")
    keys_dir: Annotated[
        Path | None,
        Meta(description="Directory of the keys, readable by nobody else. Unset: keys in data_dir."),
    ] = None
    server: ServerSettings = ServerSettings()
    database: DatabaseSettings = DatabaseSettings()
    log: LogSettings = LogSettings()
    worker: WorkerSettings = WorkerSettings()
    egress: EgressSettings = EgressSettings()
    delivery: DeliverySettings = DeliverySettings()
    gateway: GatewaySettings = GatewaySettings()
    reload: ReloadSettings = ReloadSettings()
    providers: Annotated[dict[str, msgspec.Struct], PROVIDER_TABLE] = {}
    apps: Annotated[dict[str, AppSettings], APP_TABLE] = {}

    def database_url(self) -> str:
        """Return where the database is, with the embedded default worked out."""
        return self.database.url or f"sqlite:///{self.data_dir / 'heliograph.sqlite3'}"

    def keys_directory(self) -> Path:
        """Return where the keys are."""
        return self.keys_dir or self.data_dir / "keys"


def load(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    command_line: Mapping[str, str] | None = None,
) -> Loaded[Settings]:
    """Read the settings of this process.

    Args:
        file: The TOML file; without one, the file that ``HELIOGRAPH_CONFIG`` names, or none.
        environ: The environment; the process's own unless given.
        command_line: Values by path that were given on the command line.

    Returns:
        The settings and where each came from.

    Raises:
        Malformed: Something is not a setting, or not of its type; the error names it and repeats no value.
    """
    variables = os.environ if environ is None else environ
    loaded = reading.load(Settings, config_file(file, variables), variables, command_line)
    _check(loaded.settings)
    return loaded


def config_file(file: Path | None, environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the settings file: the one given, or the one that ``HELIOGRAPH_CONFIG`` names, or none."""
    named = (os.environ if environ is None else environ).get(FILE_VARIABLE)
    return Path(named) if file is None and named else file


def secret_of(reference: str, field: str = "", environ: Mapping[str, str] | None = None) -> Secret:
    """Look up the secret that a setting refers to.

    Args:
        reference: ``file:/path`` or ``env:NAME``.
        field: Where it stood, for the error.
        environ: The environment; the process's own unless given.

    Raises:
        Malformed: It is not a reference, or names nothing that can be read.
    """
    return reading.secret_of(reference, field, os.environ if environ is None else environ)


def settings_page() -> str:
    """Write the page of all settings, in Markdown."""
    lines = [
        "# Settings",
        "",
        "Generated from `heliograph.app.settings` by `make docs`; do not edit.",
        "",
        "Settings are read from one TOML file, named by `--config` or `HELIOGRAPH_CONFIG`; then from the",
        "command line; then from the environment, where `HELIOGRAPH__SERVER__PORT=9000` sets `server.port`.",
        "Texts and paths in the environment are taken as they are, everything else is spelled as in TOML",
        '(`true`, `5`, `["a", "b"]`). A name that is no setting is refused. A secret is never a setting: a',
        "setting refers to it as `file:/path` or `env:NAME`.",
        "",
    ]
    section = None
    for setting in describe(Settings):
        head = setting.path.rpartition(".")[0]
        if head != section:
            section = head
            lines += page_head(head) or [f"## {f'[{head}]' if head else 'At the top'}", ""]
        default = "required" if setting.required else f"default `{setting.default}`"
        lines += [f"- **`{setting.path}`** ({setting.kind}; {default}): {setting.says}"]
        lines += [f"  `{setting.variable}`"] * bool(setting.variable) + [""]
    return "\n".join(lines).rstrip() + "\n"


def _check(settings: Settings) -> None:
    """Refuse what the types alone cannot."""
    url = settings.database_url()
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in {"sqlite", "postgresql"} or not rest:
        raise Malformed("database.url", "must begin with sqlite:/// or postgresql://")
    if scheme == "sqlite" and (not rest.startswith("/") or rest == "/"):
        raise Malformed("database.url", "must name a file after sqlite:///")
    user = rest.partition("/")[0].rpartition("@")[0]
    apps = AppTable(settings.apps)
    if settings.gateway.default_app and apps.find(settings.gateway.default_app) is None:
        raise Malformed("gateway.default_app", "names no application of the apps section")
    if (fault := grid_fault(settings.gateway.bucket_grid)) is not None:
        raise Malformed("gateway.bucket_grid", fault)
    try:
        check_delivery(settings.delivery)
    except Malformed as malformed:
        raise Malformed(f"delivery.{malformed.field}", malformed.problem) from None
    if scheme == "postgresql" and (":" in user or "password=" in rest):
        raise Malformed("database.url", "must not hold the password; refer to it in database.password")
