"""Refusals and the RFC 9457 bodies that carry them."""

from dataclasses import dataclass
from enum import Enum

import msgspec


@dataclass(frozen=True, slots=True)
class Code:
    """One stable error code of a system's table.

    Attributes:
        code: The stable word clients branch on.
        status: The HTTP status that carries it.
        title: One short sentence, the same for every occurrence.
        retry: Whether the same request may succeed later without a change.
        advice: What the caller should do, for the errors page.
        clause: Where the code comes from, for the errors page.
    """

    code: str
    status: int
    title: str
    retry: bool = False
    advice: str = ""
    clause: str = ""


class Refused(Exception):  # noqa: N818 - the request was refused; nothing is wrong with us
    """A request was refused and changed nothing.

    Each system subclasses it. The detail is for people and repeats no value from the request.

    Attributes:
        code: The row of the system's table.
        detail: What was wrong, in words that are safe to send.
        field: The path of the member that was wrong, or None.
        retry_after_ms: When the same request may be tried again, or None.
        reason_code: A registered finer reason, or None.
        headers: Extra response headers, for example ``allow``.
    """

    def __init__(
        self,
        code: Code,
        detail: str = "",
        *,
        field: str | None = None,
        retry_after_ms: int | None = None,
        reason_code: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.code = code
        self.detail = detail
        self.field = field
        self.retry_after_ms = retry_after_ms
        self.reason_code = reason_code
        self.headers = headers
        super().__init__(code.code)


class ProblemStyle(Enum):
    """How a system spells its error bodies."""

    RFC9457 = "application/problem+json"


def problem_body(refused: Refused, type_prefix: str, instance: str) -> bytes:
    """Spell a refusal as an RFC 9457 problem document.

    Args:
        refused: What was refused.
        type_prefix: The system's registered prefix for ``type``.
        instance: The typed request id, which is also in our logs.

    Returns:
        The JSON body; absent members are left out.
    """
    body: dict[str, str | int] = {
        "type": type_prefix + refused.code.code,
        "title": refused.code.title,
        "status": refused.code.status,
        "instance": instance,
    }
    detail = f"{refused.field}: {refused.detail}" if refused.field else refused.detail
    if detail:
        body["detail"] = detail
    if refused.reason_code is not None:
        body["reason_code"] = refused.reason_code
    if refused.retry_after_ms is not None:
        body["retry_after_ms"] = refused.retry_after_ms
    return msgspec.json.encode(body)
