"""The generated document is OpenAPI 3.1, and the edge keeps what it promises."""

from dataclasses import replace
from typing import Annotated, Any

import msgspec
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from heliograph.ambient.telemetry import Telemetry
from heliograph.edge.health import health_system
from heliograph.edge.openapi import document
from heliograph.edge.problem import Refused
from heliograph.edge.request import Reply, Request
from heliograph.edge.system import System
from tests.edge import house
from tests.edge.house import NAME, PATH, Thing, edge, system


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """Another body."""

    id: Annotated[str, msgspec.Meta(pattern=r"\A[a-z]+\Z")]


async def typed_echo(request: Request) -> Reply:
    """Read the body as its type, as a slice does."""
    try:
        thing = msgspec.json.decode(request.body, type=Thing)
    except msgspec.DecodeError:
        raise Refused(house.TAKEN, "not a thing") from None
    return Reply(200, msgspec.json.encode(thing))


def systems() -> tuple[System, ...]:
    return (system(typed_echo), health_system(Telemetry(), ()))


def test_the_document_is_openapi() -> None:
    """By the published schema of OpenAPI 3.1."""
    errors = [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(document(systems(), "Test", "1"))]

    assert errors == []


def test_the_same_rows_give_the_same_document() -> None:
    """So that a stale copy can be told from a fresh one."""
    first, second = (msgspec.json.encode(document(systems(), "Test", "1")) for _ in range(2))

    assert first == second


def test_an_operation_is_described_with_all_that_it_can_answer() -> None:
    """Selector, limit, body, success, its own refusals and those of the edge, with their headers."""
    described = document(systems(), "Test", "1")["paths"][PATH]["post"]

    assert described["operationId"] == NAME
    assert described["parameters"] == [
        {
            "name": "Arkret-Operation",
            "in": "header",
            "required": True,
            "description": "Names the operation; success repeats it.",
            "schema": {"const": NAME},
        }
    ]
    assert described["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Thing"
    }
    assert "1000 octets" in described["requestBody"]["description"]
    assert set(described["responses"]) == {
        "200",
        "400",
        "405",
        "409",
        "413",
        "415",
        "422",
        "429",
        "500",
        "503",
    }
    assert described["responses"]["429"]["headers"]["Retry-After"]["required"] is True
    assert described["responses"]["503"]["headers"]["Retry-After"]["required"] is True
    assert "Allow" in described["responses"]["405"]["headers"]
    assert "`duplicate_conflict`" in described["responses"]["409"]["description"]


def test_a_body_that_may_be_one_of_several_is_described_as_that() -> None:
    """With patterns that other readers of JSON Schema understand."""
    row = replace(system(typed_echo).operations[0], request_type=(Thing, Named))

    described = document([replace(system(typed_echo), operations=(row,))], "Test", "1")

    assert described["paths"][PATH]["post"]["requestBody"]["content"]["application/json"]["schema"] == {
        "oneOf": [{"$ref": "#/components/schemas/Thing"}, {"$ref": "#/components/schemas/Named"}]
    }
    assert described["components"]["schemas"]["Named"]["properties"]["id"]["pattern"] == "^[a-z]+$"


def test_a_path_parameter_is_described() -> None:
    """Each part of the path that takes a value."""
    described = document(systems(), "Test", "1")["paths"]["/_test/rooms/{room}/things/{thing}"]["get"]

    assert [(row["name"], row["in"]) for row in described["parameters"]] == [
        ("room", "path"),
        ("thing", "path"),
        ("Arkret-Operation", "header"),
    ]


def test_what_is_generated_from_the_document_is_answered_as_it_promises() -> None:
    """Valid and invalid requests alike: a described status, type and body, and never a fault of ours."""
    app = edge(*systems())
    schema = schemathesis.openapi.from_dict(document(systems(), "Test", "1"))
    schema.app = app
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]

    for operation in operations:

        @settings(max_examples=20, suppress_health_check=list(HealthCheck), database=None)
        @given(operation.as_strategy())
        def promised(case: Case[Any]) -> None:
            case.validate_response(case.call(base_url="http://127.0.0.1", app=app))

        promised()

    assert len(operations) == 6
