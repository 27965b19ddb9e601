"""The pages that are generated from tables in the code, and how to renew them.

Run as ``python -m tests.generated`` (or ``make docs``) to write them; a test fails when one is stale.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final, cast

import msgspec

from heliograph.ambient.catalogue import metrics_page
from heliograph.ambient.telemetry import Telemetry
from heliograph.app.settings import settings_page
from heliograph.arkret.gateway.http import gateway_system
from heliograph.arkret.gateway.pages import errors_page
from heliograph.arkret.gateway.service.gateway import Gateway
from heliograph.edge.health import CODES, health_system
from heliograph.edge.openapi import document
from heliograph.edge.request import Reply, Request
from heliograph.queue.diagram import states_page

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"


async def _unserved(request: Request) -> Reply:
    """Stand in for a handler: a description calls none."""
    raise NotImplementedError(request)


def openapi_document() -> dict[str, Any]:
    """Describe every operation of every system."""
    rows = SimpleNamespace(
        describe=_unserved,
        handoffs=SimpleNamespace(apply=_unserved),
        notifies=SimpleNamespace(notify=_unserved),
    )
    systems = (gateway_system(cast("Gateway", rows)), health_system(Telemetry(), ()))
    return document(systems, "Heliograph", version("heliograph"), "Self-hosted push notifications.")


def openapi_page() -> str:
    """Write the OpenAPI document of every system."""
    whole = openapi_document()
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"


def all_errors() -> str:
    """Write the page of every stable code."""
    codes = (getattr(CODES, place.name) for place in fields(CODES))
    return errors_page(code for code in codes if code is not None)


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "errors.md": all_errors,
        "metrics.md": metrics_page,
        "openapi.json": openapi_page,
        "queue-states.md": states_page,
        "settings.md": settings_page,
    }
)
"""Each page's path below ``docs`` and what writes it."""


def main() -> None:
    """Write every page."""
    for name, write in PAGES.items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write(), encoding="utf-8")
        print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
