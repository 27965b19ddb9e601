"""How connections to a PostgreSQL server are opened, and how often that is tried while it is away."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import Final, TypeAlias, final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from heliograph.storage.database import DatabaseUnavailable, Row

Connection: TypeAlias = psycopg.Connection[Row]

CONNECT_S: Final = 5
"""How long a connection may take to open."""

STATEMENT_MS: Final = 60_000
"""How long a statement may run, and a transaction lie idle, before the server cuts it off."""

SILENCE_S: Final = 10
"""How long a server may leave what we sent unconfirmed before its machine counts as gone."""

PAUSE_S_FIRST: Final = 0.05
PAUSE_S_MAX: Final = 1.0
"""After a failure nobody tries to connect for a while, doubled from the first to the longest: calls fail at
once meanwhile, instead of each waiting for the same silence."""

PREPARE_AFTER: Final = 2
"""Runs of a statement after which the server keeps it prepared."""

VERSION_MIN: Final = 130_000
"""PostgreSQL 13: the oldest that was kept up when this was written."""

_OPTIONS: Final = (
    f"-c statement_timeout={STATEMENT_MS} -c idle_in_transaction_session_timeout={STATEMENT_MS}"
    " -c synchronous_commit=on -c TimeZone=UTC"
)


@final
class PostgresLink:
    """Opens connections. Used by several threads at once.

    Args:
        url: A libpq URL or parameter string; it may hold a password and is never shown. What it sets is kept.
        clock: Counts seconds.

    Raises:
        DatabaseUnavailable: It is not one.
    """

    def __init__(self, url: str, clock: Callable[[], float] = monotonic) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error:
            raise DatabaseUnavailable("the URL of the database is not one that PostgreSQL knows") from None
        wanted: dict[str, str | int | None] = {
            "connect_timeout": CONNECT_S,
            "application_name": "heliograph",
            "keepalives_idle": SILENCE_S // 2,
            "keepalives_interval": 1,
            "keepalives_count": SILENCE_S // 2,
            "tcp_user_timeout": SILENCE_S * 1000,
        }
        # The server takes the last of two settings, so those of the URL come behind ours.
        given["options"] = f"{_OPTIONS} {given.get('options') or ''}".strip()
        self._conninfo = make_conninfo("", **(wanted | given))
        self._clock = clock
        self._lock = threading.Lock()
        self._pause_s = 0.0
        self._not_before = 0.0

    def connect(self) -> Connection:
        """Open a connection.

        Raises:
            DatabaseUnavailable: The server cannot be reached, could not a moment ago, or is not one for us.
        """
        if self._clock() < self._not_before:
            raise DatabaseUnavailable("the server could not be reached a moment ago")
        try:
            connection: Connection = psycopg.connect(
                self._conninfo, autocommit=True, prepare_threshold=PREPARE_AFTER
            )
        except psycopg.Error as error:
            self._hold_off()
            raise DatabaseUnavailable(type(error).__name__) from None
        version = connection.info.server_version
        encoding = connection.info.parameter_status("server_encoding")
        if version < VERSION_MIN or encoding != "UTF8":
            connection.close()
            raise DatabaseUnavailable(
                f"PostgreSQL {version // 10_000} with encoding {encoding} is not one for us: "
                f"at least {VERSION_MIN // 10_000} with UTF8"
            )
        with self._lock:
            self._pause_s = 0.0
        return connection

    def _hold_off(self) -> None:
        with self._lock:
            if self._clock() >= self._not_before:  # of several that failed at once, only the first counts
                self._pause_s = min(max(2 * self._pause_s, PAUSE_S_FIRST), PAUSE_S_MAX)
                self._not_before = self._clock() + self._pause_s
