"""The edge refuses in a fixed order, at exact limits, before anything is done."""

import asyncio

import msgspec
import pytest

from heliograph.ambient.telemetry import Telemetry
from heliograph.edge.problem import Refused
from heliograph.edge.request import Reply, Request
from tests.edge.house import (
    LIMIT,
    LIMITED,
    NAME,
    PATH,
    TAKEN,
    Seen,
    asked,
    echoing,
    edge,
    post,
    refusing,
    system,
    wired,
)
from tests.secrets import planted

pytestmark = pytest.mark.anyio

LONG = "x" * 8_193
ENCODED = "content-encoding: gzip"


async def unauthorized(_request: Request) -> object:
    """Refuse from the head, as a missing signature is."""
    raise Refused(TAKEN, "nobody")


def head(method: str = "POST", path: str = PATH, *lines: str) -> bytes:
    """Spell a head as it is given."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: test.example", *lines]).encode() + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("octets", "status", "code"),
    [
        # Each request breaks the rule it is answered for and every later one too.
        (head("PUT", "/_test/absent", f"x: {LONG}", ENCODED, "content-length: 9999"), 413, "too_large"),
        (head("PUT", "/_test/absent", ENCODED, "content-length: 9999"), 404, "unrecognized_endpoint"),
        (head("PUT", PATH, ENCODED, "content-length: 9999"), 405, "method_not_allowed"),
        (head("POST", PATH, ENCODED, "content-length: 9999"), 400, "operation_selector_required"),
        (
            head("POST", PATH, "arkret-operation: ak.other.v1", ENCODED, "content-length: 9999"),
            422,
            "unsupported_operation_version",
        ),
        (
            head("POST", PATH, f"arkret-operation: {NAME}", ENCODED, "content-length: 9999"),
            409,
            "duplicate_conflict",
        ),
    ],
)
async def test_the_first_broken_rule_answers(octets: bytes, status: int, code: str) -> None:
    """Size of the head, path, method, selector, authentication from the head."""
    seen = Seen([])

    answer = await asked(edge(system(echoing(seen), unauthorized)), octets)

    assert (answer.status, answer.code()) == (status, code)
    assert seen.requests == []


@pytest.mark.parametrize(
    ("octets", "status", "code"),
    [
        (
            head("POST", PATH, f"arkret-operation: {NAME}", ENCODED, "content-length: 9999"),
            415,
            "unsupported_content_encoding",
        ),
        (
            head("POST", PATH, f"arkret-operation: {NAME}", "content-length: 1001"),
            413,
            "payload_too_large",
        ),
        (
            head("POST", PATH, f"arkret-operation: {NAME}", "content-length: 1000"),
            503,
            "temporarily_unavailable",
        ),
    ],
)
async def test_content_is_refused_before_room_is_asked_for(octets: bytes, status: int, code: str) -> None:
    """Encoding, declared length, then room; none of them waits for the body."""
    answer = await asked(edge(system(echoing(Seen([]))), in_flight_max=0), octets)

    assert (answer.status, answer.code()) == (status, code)


@pytest.mark.parametrize("value", ["identity", "", "gzip", "br, gzip"])
async def test_any_content_encoding_is_refused(value: str) -> None:
    """Even one that means nothing: what is signed is what is sent."""
    answer = await asked(edge(system(echoing(Seen([])))), post(b"{}", f"content-encoding: {value}"))

    assert answer.status == 415


async def test_a_refused_request_is_authorized_only_once_its_selector_is_right() -> None:
    """The hook sees the head and no body, and what it returns reaches the handler."""
    heads: list[Request] = []
    seen = Seen([])

    async def authorize(request: Request) -> object:
        heads.append(request)
        return "station.example"

    answer = await asked(edge(system(echoing(seen), authorize)), post(b"{}", "source-service-id: a"))

    assert answer.status == 200
    assert (heads[0].body, heads[0].one("source-service-id"), heads[0].authority) == (b"", "a", None)
    assert (seen.requests[0].body, seen.requests[0].authority) == (b"{}", "station.example")
    assert heads[0].request_id == seen.requests[0].request_id


async def test_a_duplicated_selector_is_refused_even_when_both_are_right() -> None:
    """The selector appears exactly once."""
    answer = await asked(edge(system(echoing(Seen([])))), post(b"{}", f"arkret-operation: {NAME}"))

    assert (answer.status, answer.code()) == (422, "unsupported_operation_version")


@pytest.mark.parametrize("selector", ["", "ak.test.read.thing.v1", NAME.upper(), NAME + " x", NAME + ",x"])
async def test_a_selector_that_names_another_operation_is_refused(selector: str) -> None:
    """A registered one, too, when this path is not its own; letters are compared as they are."""
    answer = await asked(edge(system(echoing(Seen([])))), post(b"{}", selector=selector))

    assert (answer.status, answer.code()) == (422, "unsupported_operation_version")


@pytest.mark.parametrize(
    ("lines", "status", "echoed"),
    [
        ((), 200, []),
        (("arkret-operation: ak.test.read.thing.v1",), 200, ["ak.test.read.thing.v1"]),
        ((f"arkret-operation: {NAME}",), 422, []),
    ],
)
async def test_where_the_selector_is_optional_a_wrong_one_is_still_refused(
    lines: tuple[str, ...], status: int, echoed: list[str]
) -> None:
    """A caller that sends none is served; success repeats one that was sent."""
    answer = await asked(edge(system(echoing(Seen([])))), head("GET", "/_test/thing?a=1", *lines))

    assert answer.status == status
    assert answer.all("arkret-operation") == echoed


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 413)])
async def test_a_header_value_may_hold_8_kib(over: int, status: int) -> None:
    """8,192 octets pass and one more does not."""
    answer = await asked(edge(system(echoing(Seen([])))), post(b"{}", f"x: {'v' * (8_192 + over)}"))

    assert answer.status == status


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 413)])
async def test_all_headers_may_hold_32_kib(over: int, status: int) -> None:
    """Names and values together."""
    plain = "hosttest.examplecontent-length2arkret-operation" + NAME
    filler = 32_768 - len(plain) - 5 * len("x0") + over
    lines = [f"x{index}: {'v' * 8_000}" for index in range(4)]
    lines.append(f"x4: {'v' * (filler - 4 * 8_000)}")

    answer = await asked(edge(system(echoing(Seen([])))), post(b"{}", *lines))

    assert answer.status == status


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 413)])
async def test_path_and_query_may_hold_8_kib(over: int, status: int) -> None:
    """With the question mark between them."""
    query = "q" * (8_192 - len("/_test/thing?") + over)

    answer = await asked(edge(system(echoing(Seen([])))), head("GET", f"/_test/thing?{query}"))

    assert answer.status == status


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (300_000, 413)])
async def test_a_body_may_hold_its_operations_limit(size: int, status: int, *, chunked: bool) -> None:
    """Declared or streamed, the count is the same."""
    seen = Seen([])
    body = b"x" * size
    octets = post(body)
    if chunked:
        head_of = octets.replace(f"content-length: {size}".encode(), b"transfer-encoding: chunked")
        octets = head_of.removesuffix(body) + b"%x\r\n%b\r\n0\r\n\r\n" % (size, body)

    answer = await asked(edge(system(echoing(seen))), octets)

    assert answer.status == status
    assert [len(request.body) for request in seen.requests] == ([size] if status == 200 else [])


async def test_an_operation_without_a_body_refuses_one() -> None:
    """Rather than ignore what might have meant something."""
    answer = await asked(
        edge(system(echoing(Seen([])))), head("GET", "/_test/thing", "content-length: 1") + b"x"
    )

    assert (answer.status, answer.code()) == (413, "payload_too_large")


async def test_a_wrong_method_is_told_the_right_ones() -> None:
    """405 with Allow; OPTIONS answers the same list."""
    app = edge(system(echoing(Seen([]))))

    wrong = await asked(app, head("DELETE", "/_test/thing"))
    options = await asked(app, head("OPTIONS", "/_test/thing"))

    assert (wrong.status, wrong.all("allow")) == (405, ["GET, HEAD, OPTIONS"])
    assert (options.status, options.all("allow"), options.body) == (204, ["GET, HEAD, OPTIONS"], b"")


async def test_head_is_get_without_the_body() -> None:
    """The length is that of the body which is not sent, and the connection goes on."""
    async with wired(edge(system(echoing(Seen([]))))) as opened:
        wire = await opened()
        await wire.send(head("HEAD", "/_test/thing?a"))
        first = await wire.answer(bodiless=True)
        await wire.send(head("GET", "/_test/thing?a"))
        second = await wire.answer()

    assert first.status == second.status == 200
    assert first.all("content-length") == second.all("content-length") == [str(len(second.body))]


@pytest.mark.parametrize(
    "path", ["/_test/edge/things%3Aecho", "/_test/edge/things:echo/", "/_test//edge/things:echo", "/_test"]
)
async def test_a_path_is_matched_octet_for_octet(path: str) -> None:
    """What is signed is the path as sent; another spelling is another path."""
    answer = await asked(edge(system(echoing(Seen([])))), post(path=path))

    assert (answer.status, answer.code()) == (404, "unrecognized_endpoint")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/_test/rooms/a/things/b", {"room": "a", "thing": "b"}),
        ("/_test/rooms/%21r%3Ax/things/a%2Fb", {"room": "!r:x", "thing": "a/b"}),
        ("/_test/rooms/%C3%BC/things/+", {"room": "ü", "thing": "+"}),
        ("/_test/rooms//things/b", None),
        ("/_test/rooms/%ff/things/b", None),
        ("/_test/rooms/a/other/b", None),
        ("/_test/rooms/a/things/b/c", None),
    ],
)
async def test_a_path_parameter_is_one_segment(path: str, found: dict[str, str] | None) -> None:
    """Split first and decoded after, so that an encoded slash stays inside."""
    answer = await asked(edge(system(echoing(Seen([])))), head("GET", path))

    assert answer.status == (200 if found else 404)
    if found:
        assert msgspec.json.decode(answer.body) == {"query": "", **found}


async def test_a_full_house_says_when_to_come_back() -> None:
    """The next one waits for nothing; when the first is done there is room again."""
    release, entered = asyncio.Event(), asyncio.Event()

    async def slow(_request: Request) -> Reply:
        entered.set()
        await release.wait()
        return Reply(204)

    async with wired(edge(system(slow), in_flight_max=1)) as opened:
        first, second = await opened(), await opened()
        await first.send(post())
        await entered.wait()
        await second.send(post())
        refused = await second.answer()
        release.set()
        served = await first.answer()
        await second.send(post())
        after = await second.answer()

    assert (refused.status, refused.code(), refused.all("retry-after")) == (
        503,
        "temporarily_unavailable",
        ["1"],
    )
    assert (served.status, after.status) == (204, 204)


@pytest.mark.parametrize(
    ("refused", "retry_after"),
    [
        (Refused(LIMITED), ["1"]),
        (Refused(LIMITED, retry_after_ms=1), ["1"]),
        (Refused(LIMITED, retry_after_ms=2_001), ["3"]),
        (Refused(TAKEN), []),
    ],
)
async def test_advice_to_come_back_is_never_too_early(refused: Refused, retry_after: list[str]) -> None:
    """The header counts seconds, so milliseconds are rounded up."""
    answer = await asked(edge(system(refusing(refused))), post())

    assert answer.status == refused.code.status
    assert answer.all("retry-after") == retry_after
    assert answer.all("content-type") == ["application/problem+json"]
    assert answer.all("cache-control") == ["no-store"]
    assert answer.all("arkret-operation") == []


async def test_an_error_body_repeats_nothing_of_the_request() -> None:
    """Whatever the caller put into path, query, header or body."""
    marker = planted("in a request")
    app = edge(system(refusing(Refused(TAKEN, "taken", field="device"))))
    requests = (
        post(f'{{"push_key":"{marker}"}}'.encode(), f"authorization: Bearer {marker}"),
        post(marker.encode() * 100),
        post(selector=marker),
        head("GET", f"/_test/{marker}?{marker}"),
        head("DELETE", "/_test/thing", f"x: {marker}" * 400),
    )

    for octets in requests:
        answer = await asked(app, octets)

        assert answer.status >= 400
        assert marker not in repr(answer)


async def test_every_answer_and_refusal_is_counted() -> None:
    """By operation, status and code; an unknown path is no series of its own."""
    telemetry = Telemetry()
    app = edge(system(refusing(Refused(TAKEN))), telemetry=telemetry)

    for octets in (post(), head("GET", "/_test/whatever"), head("GET", "/_test/thing")):
        await asked(app, octets)

    value = telemetry.value
    assert value("heliograph_requests_total", operation=NAME, status="409") == 1
    assert value("heliograph_requests_total", operation="none", status="404") == 1
    assert value("heliograph_requests_total", operation="ak.test.read.thing.v1", status="200") == 1
    assert value("heliograph_request_refusals_total", operation=NAME, code="duplicate_conflict") == 1
    assert value("heliograph_requests_in_flight") == 0
