"""What the plain ASGI callable costs beside a bare one and beside a Starlette route, on the same server.

Run as ``python -m bench.edge``: under 20 seconds. Each contestant serves the same small JSON POST in a
process of its own; the load comes from another. The figure is the server's CPU time per request.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import Route

from heliograph.ambient.clock import SystemClock
from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Telemetry
from heliograph.edge.asgi import App, Edge
from heliograph.edge.health import CODES
from heliograph.edge.operation import Operation
from heliograph.edge.problem import Code
from heliograph.edge.request import Reply, Request
from heliograph.edge.server import Listen, run, serving
from heliograph.edge.system import EdgeCodes, System, rfc9457

PATH = "/_bench/edge/notify"
NAME = "bench.notify.v1"
BODY = b'{"push_target_id":"ak:push_target:7Hk0","devices":["a","b"],"kind":"message"}'
HEADERS = (
    b"host: bench.example\r\ncontent-type: application/json\r\narkret-operation: bench.notify.v1\r\n"
    b"idempotency-key: notify-0001\r\nsource-service-id: ak:did_core:web:station.example\r\n"
    b"destination-service-id: ak:did_core:web:push.example.com\r\nuser-agent: bench\r\n"
)
CONNECTIONS = 16


class Answer(msgspec.Struct):
    """The reply."""

    devices: list[str]


class Ask(msgspec.Struct):
    """The request."""

    push_target_id: str
    devices: list[str]
    kind: str


DECODE = msgspec.json.Decoder(Ask).decode


def answer(body: bytes) -> bytes:
    return msgspec.json.encode(Answer(DECODE(body).devices))


async def bare(_scope: Any, receive: Any, send: Any) -> None:
    message = await receive()
    body = answer(message["body"])
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def edge() -> App:
    async def handle(request: Request) -> Reply:
        return Reply(200, answer(request.body))

    row = Operation(
        operation_id=NAME, method="POST", path=PATH, summary="", handle=handle, body_limit_octets=65536
    )
    codes = EdgeCodes(
        **{name: getattr(CODES, name) for name in CODES.__slots__ if not name.startswith("selector")},
        selector_required=Code("operation_selector_required", 400, ""),
        selector_unsupported=Code("unsupported_operation_version", 422, ""),
    )
    system = System("bench", "/_bench/", (row,), codes, rfc9457("x:"), selector_header="arkret-operation")
    return Edge((system,), Telemetry(), SystemClock(), SystemEntropy())


def starlette() -> App:
    async def endpoint(request: StarletteRequest) -> Response:
        return Response(answer(await request.body()), media_type="application/json")

    return Starlette(routes=[Route(PATH, endpoint, methods=["POST"])])


CONTESTANTS: dict[str, Callable[[], App]] = {"bare": lambda: bare, "edge": edge, "starlette": starlette}


def serve(name: str, pipe: Pipe) -> None:
    async def main() -> None:
        async with serving(CONTESTANTS[name](), Listen(), Telemetry()) as port:
            pipe.send(port)
            loop = asyncio.get_running_loop()
            while (await loop.run_in_executor(None, pipe.recv)) == "cpu":
                usage = resource.getrusage(resource.RUSAGE_SELF)
                pipe.send(usage.ru_utime + usage.ru_stime)

    run(main())


async def load(port: int, count: int) -> None:
    head = b"POST %s HTTP/1.1\r\n%scontent-length: %d\r\n\r\n" % (PATH.encode(), HEADERS, len(BODY))

    async def client(times: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(times):
            writer.write(head + BODY)
            answered = await reader.readuntil(b"\r\n\r\n")
            assert answered.startswith(b"HTTP/1.1 200"), answered
            length = int(answered.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
        writer.close()

    await asyncio.gather(*(client(count // CONNECTIONS) for _ in range(CONNECTIONS)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for name in CONTESTANTS:
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(name, theirs), daemon=True)
        process.start()
        pipes[name] = (ours, ours.recv(), process)
        run(load(pipes[name][1], 1600))
    micros: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    rates: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(options.rounds):
        for name, (pipe, port, _process) in pipes.items():
            pipe.send("cpu")
            before, began = pipe.recv(), time.perf_counter()
            run(load(port, options.requests))
            elapsed = time.perf_counter() - began
            pipe.send("cpu")
            micros[name].append((pipe.recv() - before) / options.requests * 1e6)
            rates[name].append(options.requests / elapsed)
    for pipe, _port, process in pipes.values():
        pipe.send("stop")
        process.join(5)
    result = {
        name: {
            "server_cpu_us": round(statistics.median(micros[name]), 1),
            "requests_per_s": round(statistics.median(rates[name])),
        }
        for name in CONTESTANTS
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
