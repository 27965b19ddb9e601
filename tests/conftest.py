"""What every test shares: no skip where skipping is forbidden, asyncio, and a watch for leaking secrets."""

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests import egress_verifier
from tests.databases import (
    database,
    migrated_postgres_url,
    postgres,
    postgres_url,
    shared_postgres,
)
from tests.secrets import watching

__all__ = ["database", "migrated_postgres_url", "postgres", "postgres_url", "shared_postgres"]

NO_SKIPS = os.environ.get("HELIOGRAPH_NO_SKIPS") == "1"


# No deadlines: how long an example takes says something of the machine, not of the code. Where every run
# must tell the same (and a failure must be one that anybody can repeat) the examples are fixed.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if NO_SKIPS else "here")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where the environment must be complete."""
    report = yield
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be skipped: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def nothing_leaves_that_must_not() -> Generator[None]:
    """Hold every request that a provider server heard against the allow-list, once the suite is done."""
    yield

    assert egress_verifier.verdict() == set()


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop we run on."""
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def no_secret_leaves() -> Generator[None, None, None]:
    """Search every log line, metric and error body of the suite for planted secrets."""
    with watching() as leaks:
        yield

    assert leaks == []
