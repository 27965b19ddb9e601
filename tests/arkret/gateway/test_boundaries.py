"""What a Gateway never becomes: a place that links Realms, a second way in, a channel back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heliograph.app.settings import load
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.http import gateway_system
from heliograph.arkret.gateway.service.deliver import WakeupSource
from heliograph.arkret.gateway.service.routes import open_route
from heliograph.arkret.gateway.service.takeover import KIND
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.queue import store as queue
from heliograph.queue.machine import Delivered
from heliograph.signing.seal import SealBroken, TenantKeys
from heliograph.storage.database import Database
from heliograph.wire.ids import DidCoreId
from heliograph.wire.malformed import Malformed
from tests.arkret import make
from tests.arkret.gateway.house import OTHER_KEY, Answer, house
from tests.arkret.gateway.test_deliver import works
from tests.arkret.gateway.test_notify import outcomes, statuses
from tests.contents import contents, counts, holds
from tests.egress_verifier import plant
from tests.secrets import planted, planted_octets

pytestmark = pytest.mark.anyio

REALM = plant("ak:realm:" + "Rw3" * 14 + "RA")
ROUTE_TOKEN = plant("realm-route-token-0123456789")


@pytest.mark.clause("R028")
async def test_nothing_that_could_link_realms_is_kept_of_any_notify(database: Database) -> None:
    """Neither a visible body, which goes nowhere, nor a route token, whose work is done, leaves a row."""
    async with house(database) as there:
        await there.apply(make.active_body(visible_notification_opt_in=True))
        visible = make.visible_body(
            realm_id=REALM,
            realm_title="Town hall",
            sender_actor_display_name="Zhou Yu",
            strand_title="Budget",
        )
        blind = make.notify_body(route_tokens={"realm_route_token": ROUTE_TOKEN})

        assert statuses(await there.notify(visible)) == ["rejected/unsupported_profile"]
        assert statuses(await there.notify(blind, key="key-2")) == ["accepted"]

        for word in (
            REALM,
            "Town hall",
            "Zhou Yu",
            "Budget",
            ROUTE_TOKEN,
            visible["notification"]["event_id"],
        ):
            assert await holds(database, word) == []
            assert word.encode() not in there.telemetry.exposition()


@pytest.mark.clause("R029")
@pytest.mark.parametrize(
    "change",
    [
        {"push_hint": "Zhou Yu wrote to you"},
        {"push_hint": "message"},
        {"push_hint": "reaction"},
        {"push_hint": {"wakeup_kind": "message"}},
        {"push_hint": "l10n_key", "push_hint_l10n_key": "Zhou Yu wrote"},
        {"push_hint": "l10n_key"},
        {"push_hint_l10n_key": "new.message"},
        {"wakeup_kind": "new_message"},
        {"wakeup_kind": "incoming_call"},
        {"counts": {"badge": 17}},
        {"counts": {"unread_total": 17}},
        {"sender": "did:web:someone.example"},
        {"latitude": "52.5"},
    ],
)
async def test_what_breaks_the_rule_of_hints_is_refused_by_name(
    database: Database, change: dict[str, Any]
) -> None:
    """Free text, a kind in place of a hint, a count, a sender: each is refused and kept nowhere."""
    async with house(database) as there:
        await there.apply(make.active_body())
        before = await contents(database)

        answer = await there.notify(make.notify_body(**change))

        assert (answer.status, answer.code) == (422, "schema_violation")
        assert await contents(database) == before


@pytest.mark.clause("R271")
async def test_a_header_that_names_an_account_binds_nothing(database: Database) -> None:
    """Whom a notify wakes comes from the verified registration alone."""
    account = json.dumps({"principal_id": "ak:did_core:web:alice.example", "station_id": make.STATION})
    headers = {"account_id": account, "recipient_account_id": account, "x_arkret_account_id": account}
    async with house(database) as there:
        await there.apply(make.active_body())
        pen, now = there.pen(), there.clock.now()

        named = await there.send(pen.notify(make.notify_body(make.OTHER_DEVICE), "a", now, 61), **headers)
        plain = await there.send(pen.notify(make.notify_body(make.OTHER_DEVICE), "b", now, 62))
        woken = await there.send(pen.notify(make.notify_body(), "c", now, 63), **headers)

        assert named.body == plain.body
        assert statuses(named) == ["rejected/push_token_unknown"]
        assert statuses(woken) == ["accepted"]
        assert await holds(database, "alice.example") == []


@pytest.mark.clause("R095", "R103")
async def test_a_signed_handoff_is_the_only_way_to_register(database: Database) -> None:
    """No user's grant opens anything, no notify brings a token along, and there is no third endpoint."""
    grant = planted("session-grant")
    async with house(database) as there:
        before = await counts(database)
        signed = there.pen().handoff(make.active_body(), there.clock.now())
        unsigned = dict.fromkeys(("signature", "signature_input"))

        by_grant = await there.send(signed, authorization=f"DPoP {grant}", **unsigned)
        body = make.notify_body()
        body["notification"]["devices"][0]["push_key"] = planted("backfilled-push-key")
        backfill = await there.notify(body)
        inferred = await there.notify(make.notify_body(account_id=make.STATION), key="key-2")

        assert (by_grant.status, by_grant.code) == (401, "http_signature_required")
        assert (backfill.status, backfill.code) == (422, "schema_violation")
        assert (inferred.status, inferred.code) == (422, "schema_violation")
        assert await counts(database) == before
        assert sorted(row.path for row in gateway_system(there.gateway).operations) == [
            "/_arkret/describe",
            "/_arkret/edge/push/notify",
            "/_arkret/edge/push/registrations:apply",
        ]


@pytest.mark.clause("R103")
async def test_a_users_grant_beside_a_signature_is_neither_read_nor_kept(database: Database) -> None:
    """The Station answers for its request; what else it sent is not this Gateway's to know."""
    grant = planted("forwarded-grant")
    async with house(database) as there:
        signed = there.pen().handoff(make.active_body(), there.clock.now())

        answer = await there.send(signed, authorization=f"DPoP {grant}")

        assert answer.status == 200
        assert grant.encode() not in answer.body
        assert await holds(database, grant) == []


@pytest.mark.clause("R120")
async def test_one_token_from_two_stations_is_two_routes_that_nothing_here_connects(
    database: Database,
) -> None:
    """Sealed under keys of their own; each Station wakes and ends its own."""
    async with house(database) as there:
        other = there.pen(make.OTHER_STATION, OTHER_KEY)
        shared = planted("one-token-twice")
        await there.apply(make.active_body(push_key=shared))
        await there.apply(make.active_body(push_key=shared), other)
        sealed = await database.read(store.stale_routes, 2, None, 10)

        await there.apply(make.revoked_body())
        ended = await there.notify(make.notify_body())
        alive = await there.notify(make.notify_body(), pen=other)

        assert len({route.route for route in sealed}) == 2
        assert {route.tenant for route in sealed} == {make.STATION, make.OTHER_STATION}
        assert await holds(database, shared) == []
        assert (statuses(ended), statuses(alive)) == (["rejected/push_token_unknown"], ["accepted"])


@pytest.mark.clause("R140")
async def test_an_attempt_that_began_before_its_route_was_revoked_may_end(database: Database) -> None:
    """It was taken over with the route in hand; nothing begins afterwards."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        await at.there.notify(make.notify_body())
        claims = await database.claim(queue.claim, (KIND,), 1, at.there.clock.now(), 60_000)
        (begun,) = await database.read(at.handler.load, claims)
        revoked = await at.there.apply(make.revoked_body())

        signal = await at.handler.perform(claims[0], begun)
        (later,) = await database.read(at.handler.load, claims)

        assert revoked.status == 200
        assert isinstance(signal, Delivered)
        assert len(at.receiver.wakeups) == 1
        assert WakeupSource(KIND, at.there.keys).open(later) is None


@pytest.mark.clause("R235")
@pytest.mark.parametrize(
    ("grid", "kept", "dropped"),
    [
        (("1-3", "4+"), "1-3", "2-5"),
        (("1", "2", "3-4", "5-9", "10+"), "3-4", "21+"),
    ],
)
async def test_a_declared_grid_takes_the_place_of_the_default_one(
    database: Database, grid: tuple[str, ...], kept: str, dropped: str
) -> None:
    """Coarser or finer: its own buckets pass, those of the default grid are off it."""
    async with house(database, settings=GatewaySettings(bucket_grid=grid)) as there:
        await there.apply(make.active_body())
        await there.notify(make.notify_body(counts={"badge": kept}))
        await there.notify(make.notify_body(counts={"badge": dropped}, wakeup_kind="mention"), key="key-2")

        waiting = str((await contents(database))["arkret_deliveries"])
        assert f'"badge":"{kept}"' in waiting
        assert f'"badge":"{dropped}"' not in waiting


@pytest.mark.clause("R246")
@pytest.mark.parametrize("band", ["0", "-1", "2"])
def test_no_band_can_be_declared_to_a_gateway(tmp_path: Path, band: str) -> None:
    """It forwards buckets and makes none: the smoothing is the Station's, and a band here would be a lie."""
    file = tmp_path / "heliograph.toml"
    file.write_text(f"[gateway]\nhysteresis_band = {band}\n", encoding="utf-8")

    with pytest.raises(Malformed, match=r"gateway\.hysteresis_band"):
        load(file, {})


@pytest.mark.clause("R349", "R351", "R352")
async def test_what_became_of_a_wakeup_is_never_in_an_answer(database: Database) -> None:
    """Neither later under the same key nor in a member of its own: acceptance is all that is said."""
    async with works(database) as at:
        await at.there.apply(make.active_body())
        first = await at.there.notify(make.notify_body())
        await at.runner.turn()

        again = await at.there.notify(make.notify_body())

        assert len(at.receiver.wakeups) == 1
        assert again.body == first.body
        assert outcomes(again) == [{"device_id": make.DEVICE, "gateway_status": "accepted"}]
        assert members(first) == {"push_target_id", "outcomes", "device_id", "gateway_status"}


def members(answer: Answer) -> set[str]:
    """Return the names of every member of a notify answer."""
    return {*answer.json, *(name for outcome in outcomes(answer) for name in outcome)}


@pytest.mark.clause("R355", "R356")
async def test_each_gateway_has_a_registration_of_its_own(database: Database) -> None:
    """A request to one is nothing to another, no key of one opens a route of the other, and each can end."""
    async with house(database) as there:
        elsewhere = replace(there.pen(), gateway_id=DidCoreId("ak:did_core:web:second.example"))
        before = await counts(database)
        astray = await there.apply(make.active_body(), elsewhere)
        assert (astray.status, astray.code) == (403, "capability_denied")
        assert await counts(database) == before

        await there.apply(make.active_body())
        (route,) = await database.read(store.stale_routes, 2, None, 10)
        with pytest.raises(SealBroken):
            open_route(
                TenantKeys({1: planted_octets("second-master")}, 1),
                make.STATION,
                make.REGISTRATION,
                route.route,
            )
        ended = await there.apply(make.revoked_body())

        assert ended.json["receipt"]["state"] == "revoked"
        assert await database.read(store.stale_routes, 2, None, 10) == []
