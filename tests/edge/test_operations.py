"""A request reaches its handler whole, or is refused in a fixed order of checks."""

import msgspec
import pytest

from heliograph.edge.request import Reply
from tests.edge.house import NAME, Seen, asked, echoing, edge, post, system

pytestmark = pytest.mark.anyio


async def test_a_good_request_reaches_its_handler_whole() -> None:
    """The handler gets the exact octets and the head; success repeats the selector."""
    seen = Seen([])

    answer = await asked(edge(system(echoing(seen))), post(b'{"name":"x"}', "x-two: a", "X-Two:  b "))

    assert answer.status == 200
    assert answer.body == b'{"name":"x"}'
    assert answer.all("arkret-operation") == [NAME]
    assert seen.requests[0].all("x-two") == ("a", "b")
    assert seen.requests[0].joined("x-two") == "a, b"
    assert seen.requests[0].request_id.startswith("ak:request:")


async def test_an_empty_success_has_no_content() -> None:
    """204 carries neither type nor length."""

    async def handle(_request: object) -> Reply:
        return Reply(204)

    answer = await asked(edge(system(handle)), post())

    assert answer.status == 204
    assert answer.all("content-length") == answer.all("content-type") == []


async def test_a_bug_tells_the_caller_nothing_but_the_request_id() -> None:
    """The body has no detail, and its instance is what the log calls the request."""

    async def handle(_request: object) -> Reply:
        raise LookupError("the inside of the house")

    answer = await asked(edge(system(handle)), post())

    assert answer.status == 500
    problem = msgspec.json.decode(answer.body)
    assert set(problem) == {"type", "title", "status", "instance"}
    assert problem["instance"].startswith("ak:request:")
