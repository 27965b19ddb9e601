"""The document of the Gateway shows whole bodies, and each is one."""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from heliograph.arkret.gateway import examples
from heliograph.arkret.reading import read_handoff, read_notify
from heliograph.arkret.schema import NotifyOutcome, conserved
from heliograph.signing.ed25519 import SigningKey
from heliograph.signing.receipt import verify_receipt
from heliograph.wire import canonical
from heliograph.wire.ids import VerificationMethod
from tests.generated import openapi_page

DOCUMENT: dict[str, Any] = json.loads(openapi_page())
OPERATIONS = {row["operationId"]: row for path in DOCUMENT["paths"].values() for row in path.values()}


def media(row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every JSON body of an operation: what it takes and all that it answers."""
    bodies = {"request": row.get("requestBody", {}), **row["responses"]}
    for name, body in bodies.items():
        for kind, shown in body.get("content", {}).items():
            if kind.endswith("json"):
                yield name, shown


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_every_body_of_an_operation_is_shown_and_its_examples_are_valid(operation: str) -> None:
    """Requests, successes and each refusal by its code."""
    for name, shown in media(OPERATIONS[operation]):
        validator = Draft202012Validator({**shown["schema"], "components": DOCUMENT["components"]})
        faults = {
            example: [error.message for error in validator.iter_errors(value["value"])]
            for example, value in shown["examples"].items()
        }

        assert faults, name
        assert [fault for faults_of_one in faults.values() for fault in faults_of_one] == []


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_every_code_of_an_operation_is_shown_where_it_is_listed(operation: str) -> None:
    """So that a client's author can list what to handle from the document alone."""
    for status, response in OPERATIONS[operation]["responses"].items():
        listed = re.findall(r"`(\w+)`", response["description"])
        shown = response.get("content", {}).get("application/problem+json", {}).get("examples", {})

        assert sorted(listed) == sorted(shown)
        assert {example["value"]["status"] for example in shown.values()} <= {int(status)}


def test_every_pattern_is_one_of_ecma_262() -> None:
    """No anchor, group or flag of Python's own, nowhere in the document."""
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', openapi_page())
    spelled = [json.loads(pattern) for pattern in patterns]

    assert len(spelled) > 20
    assert [one for one in spelled if re.search(r"\\[AZz]|\(\?[^:=!<]|\(\?<[^=!]|[*+?}]\+", one)] == []
    assert [one for one in spelled if not (one[0] == "^" and one[-1] == "$")] == []


@pytest.mark.parametrize("example", examples.HANDOFFS, ids=lambda example: example.name)
def test_a_handoff_that_is_shown_can_be_sent(example: Any) -> None:
    """As canonical JSON, like every signed body."""
    octets = canonical.encode(example.body)

    assert canonical.digest_of_octets(octets) == read_handoff(octets).digest


@pytest.mark.parametrize("example", examples.NOTIFIES, ids=lambda example: example.name)
def test_a_notify_that_is_shown_can_be_sent(example: Any) -> None:
    """As above."""
    octets = canonical.encode(example.body)

    assert canonical.digest_of_octets(octets) == read_notify(octets).digest


def test_the_receipt_that_is_shown_holds() -> None:
    """It proves the first handoff under a key that signs nothing else."""
    key = SigningKey(b"heliograph documentation receipt").verify_key

    proved = verify_receipt(
        dict(examples.RECEIPT),
        examples.INSTALL,
        examples.STATION,
        examples.GATEWAY,
        verification_method=VerificationMethod(examples.RECEIPT_METHOD),
        key=key,
    )

    assert proved.registration_id == examples.INSTALL["registration_id"]


def test_the_outcomes_that_are_shown_answer_the_notify_that_is_shown() -> None:
    """Each device once."""
    request = read_notify(canonical.encode(examples.NOTIFIES[0].body)).value
    answer = msgspec.convert(examples.OUTCOMES[0].body, NotifyOutcome)

    assert conserved(request, answer)
