"""The whole Gateway over loopback, driven by requests that its own document generates.

A hook signs what was generated with the key of a trusted Station, so that requests get past the door and
into the depths. Where a value is legal, some that the Gateway knows are put in its place: random names
would never meet a registration. What is illegal stays as it was generated.
"""

import copy
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import requests
import schemathesis
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from requests.auth import AuthBase
from schemathesis.config import SchemathesisConfig

from heliograph.arkret.gateway.http import APPLY, NOTIFY
from heliograph.edge.server import Listen, serving
from heliograph.signing.http_signature import RequestHead, sign
from heliograph.storage.migrations.runner import migrate
from heliograph.storage.sqlite import SqliteDatabase
from heliograph.wire import canonical
from tests.arkret import make
from tests.arkret.gateway.house import BASE_URL, GATEWAY_ID, STATION_KEY, House, house
from tests.contents import counts
from tests.generated import openapi_document

CASES_MAX = 12
"""Of each operation and kind of generation: the whole file stays below twenty seconds."""

DOCUMENT = openapi_document()
CONFIG = SchemathesisConfig.from_dict(
    {
        "generation": {
            "mode": "all",
            "max-examples": CASES_MAX,
            "deterministic": True,
            "database": "none",
        },
        "checks": {
            # What a schema cannot say (calendar, coupled members, known applications) is refused with these.
            "positive_data_acceptance": {
                "expected-statuses": ["2xx", 400, 401, 403, 409, 413, 422],
            },
        },
    }
)


def driven() -> dict[str, Any]:
    """Return the Gateway's operations without the fields that the hook writes.

    Other tests are about the signature; here nearly every request would break it and end at the door.
    """
    whole = copy.deepcopy(DOCUMENT)
    whole["paths"] = {path: rows for path, rows in whole["paths"].items() if path.startswith("/_arkret/")}
    for rows in whole["paths"].values():
        for row in rows.values():
            row["parameters"] = [place for place in row["parameters"] if place["name"] not in SIGNED]
    return whole


SIGNED = {"Source-Service-ID", "Destination-Service-ID", "Content-Digest", "Signature-Input", "Signature"}
SCHEMA = schemathesis.openapi.from_dict(driven(), config=CONFIG)
TARGETS = re.compile(r"ak:pseudonym:push:[A-Za-z0-9_-]{42}[048AEIMQUYcgkosw]")
KEYS = re.compile(r"[A-Za-z0-9._~-]{1,128}")
DEVICES = re.compile(r"ak:device:[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

DEPTHS: dict[str, set[tuple[int, str]]] = {
    APPLY: {(200, ""), (400, "param_invalid"), (409, "duplicate_conflict"), (422, "schema_violation")},
    NOTIFY: {
        (200, "accepted"),
        (400, "invalid_canonical_json"),
        (409, "duplicate_conflict"),
        (422, "schema_violation"),
    },
}
"""Answers that must be among those of an operation, or the generated requests ended at the door."""


@dataclass
class Running:
    """A Gateway that listens, and the pen of its hook."""

    there: House
    portal: BlockingPortal
    url: str
    session: requests.Session
    signed: int = 0
    held: dict[str, int] = field(default_factory=dict)
    answers: defaultdict[str, set[tuple[int, str]]] = field(default_factory=lambda: defaultdict(set))

    def rows(self) -> dict[str, int]:
        """Count what the database holds."""
        return self.portal.call(counts, self.there.database)


class Hook(AuthBase):
    """Signs a generated request as it is."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        there = self._running.there
        self._running.signed += 1
        there.clock.at += 1_000  # signing is deterministic: no two in one second may be equal
        body = self._body(request)
        if self._running.signed % 4 and KEYS.fullmatch(text(request.headers.get("Idempotency-Key", ""))):
            # The simplest key is generated most of all; under it alone, everything would be a conflict.
            request.headers["Idempotency-Key"] = f"generated-{self._running.signed}"
        request.headers["Source-Service-ID"] = make.STATION
        request.headers["Destination-Service-ID"] = GATEWAY_ID
        head = RequestHead(
            method=cast("str", request.method),
            target_uri=BASE_URL + request.path_url,
            authority=BASE_URL.partition("://")[2],
            fields={name.lower(): text(value) for name, value in request.headers.items()},
        )
        created = there.clock.now() // 1000
        with suppress(ValueError):  # a field that no signature can cover leaves the request unsigned
            request.headers.update(sign(head, body, STATION_KEY, there.pen().keyid, created, created + 120))
        return request

    def _body(self, request: requests.PreparedRequest) -> bytes:
        """Spell a body canonically if it has such a form, with names that are known."""
        octets = request.body.encode() if isinstance(request.body, str) else request.body or b""
        assert isinstance(octets, bytes)
        with suppress(ValueError, TypeError, RecursionError):
            octets = canonical.encode(known(json.loads(octets), self._running.signed))
        request.body = octets
        request.headers["Content-Length"] = str(len(octets))
        return octets


def text(value: str | bytes) -> str:
    """Return a field's value as the other side will read it."""
    return value.decode("latin-1") if isinstance(value, bytes) else value


def known(body: Any, turn: int) -> Any:
    """Put a registered target and devices into three of four bodies, where such a name stands."""
    if turn % 4 == 0:
        return body
    if isinstance(body, dict) and isinstance(body.get("app_id"), str):
        body["app_id"] = "com.example.app"
    devices = iter((make.DEVICE, make.OTHER_DEVICE))
    spelled = TARGETS.sub(make.TARGET, json.dumps(body))
    return json.loads(DEVICES.sub(lambda found: next(devices, found[0]), spelled))


@asynccontextmanager
async def listening(file: Path) -> AsyncIterator[tuple[House, int]]:
    """Open a database, a Gateway with one registered device, and a port."""
    database = await SqliteDatabase.open(file)
    try:
        await migrate(database, now=0)
        async with house(database) as there:
            await there.apply(make.active_body())
            async with serving(there.edge, Listen(), there.telemetry) as port:
                yield there, port
    finally:
        await database.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A Gateway for all requests to one operation."""
    with (
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(listening(tmp_path / "heliograph.sqlite3")) as (there, port),
        requests.Session() as session,
    ):
        made = Running(there, portal, f"http://127.0.0.1:{port}", session)
        yield made
    for operation_id, answers in made.answers.items():
        assert DEPTHS.get(operation_id, set()) <= answers


@SCHEMA.parametrize()
@settings(suppress_health_check=list(HealthCheck), deadline=None)  # one Gateway for all requests is meant
def test_generated_requests_are_answered_as_the_document_says(
    case: schemathesis.Case[Any], running: Running
) -> None:
    """Never a fault of ours; what is refused leaves no row; what is illegal is refused."""
    operation_id = case.operation.definition.raw["operationId"]
    before = running.held or running.rows()

    response = case.call(base_url=running.url, session=running.session, auth=Hook(running), timeout=10)

    case.validate_response(response)
    running.held = running.rows()
    if response.status_code >= 400:
        assert running.held == before
    running.answers[operation_id].add((response.status_code, words(response.content)))


def words(body: bytes) -> str:
    """Return what an answer says: the code of a refusal, or how the devices fared."""
    said = json.loads(body or b"{}")
    outcomes = {outcome.get("reason_code", outcome["gateway_status"]) for outcome in said.get("outcomes", ())}
    return str(said.get("type", "")).rpartition("/")[2] or " ".join(sorted(outcomes))
