"""Is the process alive, can it do its work, what has it counted: three operations of the house itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from heliograph.ambient.telemetry import EXPOSITION_TYPE, Event, Telemetry
from heliograph.edge.operation import Example, Operation
from heliograph.edge.problem import Code
from heliograph.edge.request import Reply, Request
from heliograph.edge.system import EdgeCodes, System, rfc9457

PROBE_SECONDS_MAX: Final = 2.0
"""A probe that takes longer has failed: whoever asks waits a few seconds at most."""

CODES: Final = EdgeCodes(
    head_too_large=Code("head_too_large", 431, "The head of the request is too large."),
    unknown_endpoint=Code("unknown_endpoint", 404, "There is nothing here."),
    wrong_method=Code("method_not_allowed", 405, "This path takes other methods."),
    content_encoding=Code("unsupported_content_encoding", 415, "Content must be sent without an encoding."),
    body_too_large=Code("payload_too_large", 413, "The body is too large."),
    overloaded=Code("temporarily_unavailable", 503, "The service cannot take the request now.", retry=True),
    internal=Code("internal_error", 500, "The service met a fault of its own."),
)


class Health(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the process says of itself; an empty list is left out.

    Attributes:
        status: ``ok``, or ``unavailable`` when a probe failed.
        failed: The names of the probes that failed.
        notices: What an operator should look at though the process does its work.
    """

    status: str
    failed: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """Something that the process needs in order to work.

    Attributes:
        name: A word that is safe to tell a stranger.
        check: Returns when it works and raises when it does not.
    """

    name: str
    check: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that readiness does not depend on and that must not stay unseen.

    Attributes:
        name: A word that is safe to tell a stranger.
        holds: Whether it is so now.
    """

    name: str
    holds: Callable[[], bool]


def health_system(
    telemetry: Telemetry, probes: Sequence[Probe], notices: Sequence[Notice] = (), *, metrics: bool = True
) -> System:
    """Return the house's own operations.

    Args:
        telemetry: Read by ``/metrics``, told of probes that fail.
        probes: Asked together by ``/readyz``.
        notices: Told by ``/readyz`` beside them.
        metrics: Whether ``/metrics`` is served here.

    Returns:
        A system that owns the paths of its operations and no other.
    """

    async def alive(_request: Request) -> Reply:
        return Reply(200, b'{"status":"ok"}')

    async def ready(_request: Request) -> Reply:
        failures = await asyncio.gather(*(_failure(probe, telemetry) for probe in probes))
        failed = tuple(name for name in failures if name is not None)
        told = tuple(notice.name for notice in notices if notice.holds())
        if not failed and not told:
            return Reply(200, b'{"status":"ok"}')
        health = Health(status="unavailable" if failed else "ok", failed=failed, notices=told)
        return Reply(503 if failed else 200, msgspec.json.encode(health))

    async def exposed(_request: Request) -> Reply:
        return Reply(200, telemetry.exposition(), content_type=EXPOSITION_TYPE)

    rows = [
        Operation(
            operation_id="healthz",
            method="GET",
            path="/healthz",
            summary="Say that the process is alive.",
            handle=alive,
            reply_type=Health,
            replies=(Example("alive", "It is.", {"status": "ok"}),),
            selector=False,
            gated=False,
            tag="health",
        ),
        Operation(
            operation_id="readyz",
            method="GET",
            path="/readyz",
            summary="Say whether the process can do its work; 503 names what it waits for.",
            handle=ready,
            reply_type=Health,
            replies=(Example("ready", "It can.", {"status": "ok"}),),
            unready=503,
            selector=False,
            gated=False,
            tag="health",
        ),
        Operation(
            operation_id="metrics",
            method="GET",
            path="/metrics",
            summary="Give every metric in the Prometheus text format.",
            handle=exposed,
            reply_media="text/plain",
            selector=False,
            gated=False,
            tag="health",
        ),
    ]
    operations = tuple(rows if metrics else rows[:2])
    return System("house", "", operations, CODES, rfc9457("about:blank#"))


async def _failure(probe: Probe, telemetry: Telemetry) -> str | None:
    """Return the name of a probe that fails, or None."""
    try:
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            await probe.check()
    except Exception as error:  # noqa: BLE001 - whatever it is, the probe failed
        telemetry.event(Event.PROBE_FAILED, kind=probe.name, exception=error)
        return probe.name
    return None
