"""What every test shares: no skipped test where skipping is forbidden, and async tests on asyncio."""

import os
from collections.abc import Generator

import pytest

NO_SKIPS = os.environ.get("HELIOGRAPH_NO_SKIPS") == "1"


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


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop we run on."""
    return "asyncio"
