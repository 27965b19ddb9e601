"""Where the published reference data lies, when it lies beside the checkout."""

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


def shared_json(relative: str) -> Any:
    """Read one published JSON file, or skip the test that wants it.

    Args:
        relative: The path below the shared folder, for example ``spec/arkret/fixtures/x.json``.
    """
    path = SHARED / relative
    if not path.is_file():
        pytest.skip(f"the published reference data is not here: {relative}")
    return json.loads(path.read_text(encoding="utf-8"))
