"""Generated pages say what the code says."""

import json

import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from tests.generated import DOCS, PAGES


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_generated_page_is_fresh(page: str) -> None:
    """Whoever changes a table renews its page with ``make docs``."""
    written = (DOCS / page).read_text(encoding="utf-8")

    assert PAGES[page]() == written


def test_the_openapi_document_is_one() -> None:
    """By the published schema of OpenAPI 3.1."""
    document = json.loads(PAGES["openapi.json"]())

    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []
