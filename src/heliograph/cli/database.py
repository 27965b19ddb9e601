"""``heliograph migrate``: brings the database up to date, or says what that would do."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from heliograph.ambient.clock import SystemClock
from heliograph.app.opening import open_database
from heliograph.app.settings import load
from heliograph.cli.options import Config
from heliograph.cli.printing import show
from heliograph.edge.server import run
from heliograph.storage.migrations import runner


def register(app: App) -> None:
    """Add the command."""
    app.command(migrate)


def migrate(
    *,
    config: Config = None,
    plan: Annotated[bool, Parameter(negative="", help="Only say what would be applied.")] = False,
) -> None:
    """Apply every schema step that the database has not seen. Steps only add; there is no way back down."""
    run(_migrate(config, plan_only=plan))


async def _migrate(config: Path | None, *, plan_only: bool) -> None:
    database = await open_database(load(config).settings)
    try:
        plan = await runner.plan(database)
        show(f"the schema is at step {plan.current}; {len(plan.pending)} to apply")
        for step in plan.pending:
            show(f"  {step.version:04d}  {step.name}")
        if plan_only or not plan.pending:
            return
        await runner.migrate(
            database,
            SystemClock().now(),
            progress=lambda step: show(f"applied {step.version:04d}  {step.name}"),
        )
    finally:
        await database.close()
