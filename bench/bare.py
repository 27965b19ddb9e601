"""The peer of a notify: as little as a careful prototype needs to verify, commit and answer.

Starlette, PyNaCl over a signature base put together from the headers, one decoded body, one row in SQLite
with ``synchronous = FULL``, and one commit for all that wait. No replay check, no registration, no tenant, no
limit, no queue: what a Gateway costs above this is what a Gateway does.
"""

import asyncio
import hashlib
import sqlite3
import sys
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor

import msgspec
import uvicorn
import uvloop
from nacl.signing import VerifyKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bench.population import KEY
from heliograph.lab.station import NOTIFY_PATH
from heliograph.wire import base64url

COVERED = (
    "content-digest",
    "source-service-id",
    "destination-service-id",
    "arkret-operation",
    "idempotency-key",
)


class Rows:
    """One row for each request; those that wait at the same moment share a commit."""

    def __init__(self, file: str) -> None:
        self._waiting: list[tuple[str, bytes, asyncio.Future[None]]] = []
        self._thread = ThreadPoolExecutor(1)
        self._busy = False
        self._link = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._link.execute("PRAGMA journal_mode = WAL")
        self._link.execute("PRAGMA synchronous = FULL")
        self._link.execute("CREATE TABLE rows (key TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID")

    async def write(self, key: str, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._waiting.append((key, body, written))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._flush, loop)
        await written

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting, []
        if not batch:
            self._busy = False
            return
        done = loop.run_in_executor(self._thread, self._commit, batch)
        done.add_done_callback(lambda _: self._told(batch, loop))

    def _commit(self, batch: list[tuple[str, bytes, "asyncio.Future[None]"]]) -> None:
        self._link.execute("BEGIN IMMEDIATE")
        self._link.executemany("INSERT INTO rows VALUES (?, ?)", [(key, body) for key, body, _ in batch])
        self._link.execute("COMMIT")

    def _told(
        self, batch: list[tuple[str, bytes, "asyncio.Future[None]"]], loop: asyncio.AbstractEventLoop
    ) -> None:
        for _, _, written in batch:
            written.set_result(None)
        self._flush(loop)


def application(file: str) -> Starlette:
    """Return the prototype, with its rows in a file."""
    rows = Rows(file)
    key = VerifyKey(base64url.decode(KEY.verify_key.base64url(), "key"))

    async def notify(request: Request) -> Response:
        body, headers = await request.body(), request.headers
        digest = b64decode(headers["content-digest"][9:-1])
        if hashlib.sha256(body).digest() != digest:
            return Response(status_code=401)
        said = headers["signature-input"].partition("=")[2]
        lines = ['"@method": POST', f'"@target-uri": https://{headers["host"]}{request.url.path}']
        lines += [f'"@authority": {headers["host"]}', *(f'"{name}": {headers[name]}' for name in COVERED)]
        base = "\n".join([*lines, f'"@signature-params": {said}']).encode()
        signature = b64decode(headers["signature"].partition("=:")[2][:-1])
        key.verify(base, signature)
        asked = msgspec.json.decode(body)["notification"]
        await rows.write(headers["idempotency-key"], body)
        outcomes = [{"device_id": one["device_id"], "gateway_status": "accepted"} for one in asked["devices"]]
        return JSONResponse({"push_target_id": asked["push_target_id"], "outcomes": outcomes})

    return Starlette(routes=[Route(NOTIFY_PATH, notify, methods=["POST"])])


async def serve(port: int, file: str) -> None:
    """Serve until interrupted; print a line once that may be asked."""
    config = uvicorn.Config(application(file), port=port, loop="none", log_level="error", access_log=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - the server has no event for it
        await asyncio.sleep(0.01)
    print("serving", flush=True)
    await serving


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), sys.argv[2]))
