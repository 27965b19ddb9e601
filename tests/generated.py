"""The pages that are generated from tables in the code, and how to renew them.

Run as ``python -m tests.generated`` (or ``make docs``) to write them; a test fails when one is stale.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from heliograph.ambient.catalogue import metrics_page
from heliograph.app.settings import settings_page

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"

PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {"metrics.md": metrics_page, "settings.md": settings_page}
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
