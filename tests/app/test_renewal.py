"""A gate that a bad key closed opens when the key is another one."""

import pytest

from heliograph.app.renewal import reopen
from heliograph.doorbell.local import LocalDoorbell
from heliograph.queue.gate import store
from heliograph.queue.gate.decide import Closing
from heliograph.storage.database import Database

pytestmark = pytest.mark.anyio

CLOSING = Closing("key_refused", first_ms=1_000, longest_ms=60_000)


async def test_every_gate_of_a_renewed_credential_opens_and_no_other(database: Database) -> None:
    """That of the credential and those of its parts; and a worker is rung for."""
    for name in ("web", "web#one", "webb", "ios"):
        await database.transact(store.shut, name, CLOSING, "item", 1_000)
    doorbell = LocalDoorbell()

    await reopen(frozenset({"web"}), database, doorbell, ["kind"])

    assert {gate.name for gate in await database.read(store.gates)} == {"webb", "ios"}
    assert await doorbell.wait(["kind"], 0)
