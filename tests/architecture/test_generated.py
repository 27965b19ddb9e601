"""Generated pages say what the code says."""

import pytest
from tests.generated import DOCS, PAGES


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_generated_page_is_fresh(page: str) -> None:
    """Whoever changes a table renews its page with ``make docs``."""
    written = (DOCS / page).read_text(encoding="utf-8")

    assert PAGES[page]() == written
