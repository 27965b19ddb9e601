"""The command line: one program, one word for each thing an operator does."""

import sys
from collections.abc import Sequence

from cyclopts import App

from heliograph.ambient.keyring import KeyUnusableError
from heliograph.cli import (
    database,
    deliveries,
    demo,
    doctor,
    hygiene,
    keys,
    lab,
    providers,
    registrations,
    reload,
    serve,
    station,
    stations,
)
from heliograph.storage.database import DatabaseUnavailable
from heliograph.storage.migrations.runner import MigrationRefused
from heliograph.storage.sqlite import AlreadyOpen
from heliograph.wire.malformed import Malformed

app = App(
    name="heliograph",
    help="Push notifications that say “wake up” and nothing more.",
    version_flags=["--version"],
)
for part in (
    serve,
    reload,
    database,
    keys,
    stations,
    registrations,
    deliveries,
    providers,
    hygiene,
    doctor,
    station,
    lab,
    demo,
):
    part.register(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    What an operator can mend is told in one line, without a traceback, and ends with status 2.
    """
    try:
        status = app(arguments, result_action="return_value")
    except (Malformed, KeyUnusableError, MigrationRefused, AlreadyOpen) as refused:
        sys.exit(f"heliograph: {refused}")
    except DatabaseUnavailable as gone:
        sys.exit(f"heliograph: the database cannot be used: {gone}")
    except OSError as error:
        sys.exit(f"heliograph: {error.strerror or 'the system refused'}: {error.filename or ''}".rstrip(": "))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)
