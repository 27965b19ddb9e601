"""An app that imports the client gets no server with it."""

import subprocess
import sys
from pathlib import Path

import pytest

import heliograph.arkret.client

MODULES = sorted(
    f"heliograph.arkret.client.{path.stem}"
    for path in Path(heliograph.arkret.client.__file__).parent.glob("*.py")
    if path.stem != "__init__"
)

ALONE = """
import importlib, sys

REFUSED = {
    "uvicorn", "starlette", "uvloop", "httptools", "anyio", "pyreqwest", "h2", "psycopg", "sqlite3", "nats",
    "structlog", "prometheus_client", "cyclopts", "asyncio", "socket", "ssl", "selectors", "logging",
    "heliograph.edge", "heliograph.storage", "heliograph.queue", "heliograph.ledger", "heliograph.doorbell",
    "heliograph.providers", "heliograph.app", "heliograph.cli", "heliograph.lab", "heliograph.arkret.gateway",
}

class Gate:
    def find_spec(self, name, path=None, target=None):
        if name in REFUSED:
            raise ImportError(f"the client asked for {name}")
        return None

for name in REFUSED:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Gate())
for name in sys.argv[1:]:
    importlib.import_module(name)
from heliograph.ambient.tzdb import open_tzdb
open_tzdb().clock("Asia/Shanghai")
print("alone")
"""


@pytest.mark.parametrize("asked", [MODULES, *([module] for module in MODULES)], ids=["all", *MODULES])
def test_the_client_is_imported_without_anything_of_the_server(asked: list[str]) -> None:
    """Each module by itself and all of them, with everything of the server refused."""
    run = subprocess.run(
        [sys.executable, "-c", ALONE, *asked], capture_output=True, text=True, timeout=50, check=False
    )

    assert (run.stdout, run.stderr) == ("alone\n", "")
