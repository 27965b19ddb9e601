"""Generated pages say what the code says."""

import json

import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from tests.generated import DOCS, PAGES

from heliograph.arkret.errors import CODES
from heliograph.arkret.gateway.pages import REASONS
from heliograph.arkret.schema import RejectReason


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_generated_page_is_fresh(page: str) -> None:
    """Whoever changes a table renews its page with ``make docs``."""
    written = (DOCS / page).read_text(encoding="utf-8")

    assert PAGES[page]() == written


def test_the_openapi_document_is_one() -> None:
    """By the published schema of OpenAPI 3.1."""
    document = json.loads(PAGES["openapi.json"]())

    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []


def test_every_reason_of_a_device_is_explained() -> None:
    """A closed set, so its page is closed too."""
    assert set(REASONS) == set(RejectReason)


def test_every_code_says_what_to_do_and_where_it_comes_from() -> None:
    """A row without advice would send people to the source."""
    assert [code.code for code in CODES if not (code.advice and code.clause)] == []
