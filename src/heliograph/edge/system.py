"""What differs between the systems that share one edge: a path prefix, error words and their spelling."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from heliograph.edge.operation import Operation
from heliograph.edge.problem import Code, ProblemStyle, Refused, problem_body
from heliograph.edge.request import Reply

Speller: TypeAlias = Callable[[Refused, str], Reply]
"""Turns a refusal and the request id into the answer of a system."""


@dataclass(frozen=True, slots=True)
class EdgeCodes:
    """A system's words for what the edge itself refuses.

    Attributes:
        head_too_large: A header value, all headers, or path and query are over their limit.
        unknown_endpoint: No operation has this path.
        wrong_method: The path exists with other methods, which ``Allow`` lists.
        selector_required: The operation selector is missing; None for a system without one.
        selector_unsupported: It is repeated, unknown, or names another operation; as above.
        content_encoding: The content is encoded.
        body_too_large: The body is over the operation's limit.
        overloaded: Too many requests are being worked on.
        internal: We met a bug.
    """

    head_too_large: Code
    unknown_endpoint: Code
    wrong_method: Code
    content_encoding: Code
    body_too_large: Code
    overloaded: Code
    internal: Code
    selector_required: Code | None = None
    selector_unsupported: Code | None = None


@dataclass(frozen=True, slots=True)
class System:
    """One of the systems behind the edge.

    Attributes:
        name: For telemetry and documentation.
        prefix: Every path below it is this system's, known or not, for example ``/_arkret/``. Empty for a
            system that owns only the exact paths of its operations.
        operations: Its endpoints.
        codes: Its words for what the edge refuses.
        spell: How it spells a refusal.
        request_id_prefix: Stands before the UUID of a request id, for example ``ak:request:``.
        selector_header: The header that names the operation, in lower case, or None.
        problem_media: The media type of its error bodies, for the documentation.
        selector_octets: The selector header as the wire has it, empty when there is none.
    """

    name: str
    prefix: str
    operations: tuple[Operation, ...]
    codes: EdgeCodes
    spell: Speller
    request_id_prefix: str = "req:"
    selector_header: str | None = None
    problem_media: str = ProblemStyle.RFC9457.value
    selector_octets: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "selector_octets", (self.selector_header or "").encode())


def rfc9457(type_prefix: str) -> Speller:
    """Return a speller of RFC 9457 problem documents.

    Args:
        type_prefix: What stands before the code in ``type``.
    """

    def spell(refused: Refused, request_id: str) -> Reply:
        return Reply(
            refused.code.status,
            problem_body(refused, type_prefix, request_id),
            refused.headers,
            ProblemStyle.RFC9457.value,
        )

    return spell
