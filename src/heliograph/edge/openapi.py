"""The OpenAPI 3.1 document of the operation rows. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from heliograph.edge.operation import Example, Operation
from heliograph.edge.problem import Code, ProblemStyle, Refused
from heliograph.edge.system import System

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{([^}]*)\}")
_RETRY: Final = frozenset({429, 503})
_INSTANCE: Final = "{}01982e5e-7c00-7000-8000-000000000000"
"""A request id to show."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An RFC 9457 problem document.

    Attributes:
        type: A registered prefix and the stable code; clients branch on it.
        title: One sentence, the same for every occurrence.
        status: The HTTP status again.
        instance: Our id for the request.
        detail: What was wrong, for people.
        reason_code: A registered finer reason.
        retry_after_ms: After how many milliseconds the same request may be sent again.
    """

    type: str
    title: str
    status: int
    instance: str
    detail: str | msgspec.UnsetType = msgspec.UNSET
    reason_code: str | msgspec.UnsetType = msgspec.UNSET
    retry_after_ms: int | msgspec.UnsetType = msgspec.UNSET


def document(systems: Iterable[System], title: str, version: str, summary: str = "") -> dict[str, Any]:
    """Describe every operation of every system.

    Args:
        systems: With their operations.
        title: Of the whole interface.
        version: Of the whole interface.
        summary: What it is, in a few sentences.

    Returns:
        The document, ready to be written as JSON; the same rows always give the same document.
    """
    found = tuple(systems)
    types: list[Any] = [Problem]
    for system in found:
        for operation in system.operations:
            types += _bodies(operation)
            if operation.reply_type is not None:
                types.append(operation.reply_type)
    _, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for system in found:
        for operation in system.operations:
            place = paths.setdefault(operation.path, {})
            place[operation.method.lower()] = _operation(operation, system)
    info = {"title": title, "version": version}
    if summary:
        info["description"] = summary
    return {
        "openapi": "3.1.0",
        "info": info,
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": _portable(dict(sorted(schemas.items())))},
    }


def _operation(operation: Operation, system: System) -> dict[str, Any]:
    """Describe one row."""
    described: dict[str, Any] = {
        "operationId": operation.operation_id,
        "summary": operation.summary,
        "tags": [operation.tag or system.name],
        "description": f"Caller: {operation.caller}.",
        "responses": _responses(operation, system),
    }
    parameters = _parameters(operation, system)
    if parameters:
        described["parameters"] = parameters
    if operation.body_limit_octets:
        bodies = [_schema(kind) for kind in _bodies(operation)]
        schema: dict[str, Any] = {"oneOf": bodies} if len(bodies) > 1 else {}
        if len(bodies) == 1:
            schema = bodies[0]
        described["requestBody"] = {
            "required": True,
            "description": f"At most {operation.body_limit_octets} octets, without a content encoding.",
            "content": {"application/json": {"schema": schema, **_examples(operation.requests)}},
        }
    return described


def _examples(examples: Sequence[Example]) -> dict[str, Any]:
    """Show what a body looks like."""
    shown = {example.name: {"summary": example.says, "value": example.body} for example in examples}
    return {"examples": shown} if shown else {}


def _bodies(operation: Operation) -> tuple[type[msgspec.Struct], ...]:
    """List the types that a row's body may have."""
    kinds = operation.request_type
    if kinds is None:
        return ()
    return kinds if isinstance(kinds, tuple) else (kinds,)


def _portable(schema: Any) -> Any:
    """Spell the anchors of patterns as JSON Schema has them: its ``$`` is the very end, unlike Python's."""
    if isinstance(schema, dict):
        return {
            name: _ecma(part) if name == "pattern" and isinstance(part, str) else _portable(part)
            for name, part in schema.items()
        }
    return [_portable(part) for part in schema] if isinstance(schema, list) else schema


def _ecma(pattern: str) -> str:
    """Spell a pattern of Python's for ECMA-262."""
    return pattern.replace(r"\A", "^").replace(r"\Z", "$")


def _parameters(operation: Operation, system: System) -> list[dict[str, Any]]:
    """List the path, query and header parameters of a row."""
    listed: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(operation.path)
    ]
    listed += [
        {
            "name": query.name,
            "in": "query",
            "required": False,
            "description": query.says,
            "schema": {"enum": list(query.words)} if query.words else {"type": "string"},
        }
        for query in operation.parameters
    ]
    listed += [
        {
            "name": field.name,
            "in": "header",
            "required": True,
            "description": field.says,
            "schema": {"type": "string", "pattern": _ecma(field.pattern)},
        }
        for field in operation.fields
    ]
    if system.selector_header is not None:
        listed.append(
            {
                "name": _header_name(system.selector_header),
                "in": "header",
                "required": operation.selector,
                "description": "Names the operation; success repeats it.",
                "schema": {"const": operation.operation_id},
            }
        )
    return listed


def _responses(operation: Operation, system: System) -> dict[str, Any]:
    """List the answers of a row: success, its own refusals and those of the edge."""
    success: dict[str, Any] = {"description": "Done."}
    if operation.success not in {204, 304}:
        schema: dict[str, Any] = {} if operation.reply_media.endswith("json") else {"type": "string"}
        if operation.reply_type is not None:
            schema = _schema(operation.reply_type)
        success["content"] = {operation.reply_media: {"schema": schema, **_examples(operation.replies)}}
    if operation.selector:
        success["headers"] = {
            _header_name(system.selector_header or ""): {"schema": {"const": operation.operation_id}}
        }
    responses: dict[str, Any] = {str(operation.success): success}
    if operation.unready:
        responses[str(operation.unready)] = {**success, "description": "Not now."}
    by_status: dict[int, list[Code]] = {}
    for code in (*_edge_codes(operation, system), *operation.codes):
        listed = by_status.setdefault(code.status, [])
        if code not in listed:
            listed.append(code)
    for status, codes in sorted(by_status.items()):
        if str(status) not in responses:
            responses[str(status)] = _refusal(status, codes, system)
    return responses


def _edge_codes(operation: Operation, system: System) -> Sequence[Code]:
    """List what the edge itself can refuse a request to this row with."""
    codes = system.codes
    listed = [
        codes.head_too_large,
        codes.wrong_method,
        codes.content_encoding,
        codes.body_too_large,
        codes.internal,
    ]
    if operation.gated:
        listed.append(codes.overloaded)
    if system.selector_header is not None:
        asked = (codes.selector_required if operation.selector else None, codes.selector_unsupported)
        listed += [code for code in asked if code is not None]
    return listed


def _refusal(status: int, codes: Sequence[Code], system: System) -> dict[str, Any]:
    """Describe one status of refusal."""
    words = ", ".join(f"`{code.code}`" for code in codes)
    retry = " May succeed later as it is." if any(code.retry for code in codes) else ""
    described: dict[str, Any] = {"description": f"{words}.{retry}"}
    spelled = {
        code.code: system.spell(Refused(code), _INSTANCE.format(system.request_id_prefix)) for code in codes
    }
    bodies = {word: msgspec.json.decode(reply.body) for word, reply in spelled.items()}
    schema: dict[str, Any] = {"type": "object"}
    if system.problem_media == ProblemStyle.RFC9457.value:
        types = [body["type"] for body in bodies.values()]
        said = {"type": {"enum": types}, "status": {"const": status}}
        schema = {"allOf": [_schema(Problem), {"properties": said}]}
    shown = [Example(word, word.replace("_", " ").capitalize() + ".", body) for word, body in bodies.items()]
    described["content"] = {system.problem_media: {"schema": schema, **_examples(shown)}}
    if status in _RETRY:
        described["headers"] = {
            "Retry-After": {
                "description": "Whole seconds to wait.",
                "required": True,
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    if status == system.codes.wrong_method.status:
        described["headers"] = {"Allow": {"required": True, "schema": {"type": "string"}}}
    return described


def _schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Point at the schema of a type."""
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return dict(schema)


def _header_name(name: str) -> str:
    """Spell a header as people write it."""
    return "-".join(part.capitalize() for part in name.split("-"))
