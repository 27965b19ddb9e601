"""Handoffs through the edge, on both databases: durable, signed, tenant by tenant, terminal."""

import pytest

from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.model import Installation, InstallationState
from heliograph.arkret.gateway.service.routes import open_route
from heliograph.signing.receipt import verify_receipt
from heliograph.signing.seal import SealBroken
from heliograph.storage.database import Database
from heliograph.wire import canonical
from heliograph.wire.ids import DidCoreId
from tests.arkret import make
from tests.arkret.gateway.house import GATEWAY_ID, NOW, OTHER_KEY, RECEIPT_KEY, RECEIPT_METHOD, House, house
from tests.secrets import planted

pytestmark = pytest.mark.anyio

PUSH_KEY = planted("push-key")


async def rows(there: House, *registrations: str, tenant: str = make.STATION) -> list[object]:
    """Return what is stored, for comparing before and after."""
    return [await there.database.read(store.installation, tenant, each) for each in registrations]


async def sealed(there: House, registration_id: str, tenant: str = make.STATION) -> bytes | None:
    """Return the sealed route as the table holds it."""
    found = await there.database.read(store.stale_routes, 1_000, None, 100)
    routes = {(route.tenant, route.registration_id): route.route for route in found}
    return routes.get((tenant, registration_id))


@pytest.mark.clause("R105", "R122", "R132", "R133", "R134")
async def test_an_active_handoff_is_stored_and_answered_with_a_signed_receipt(database: Database) -> None:
    """The receipt proves every echoed member and says nothing of the route."""
    async with house(database) as there:
        body = make.active_body(push_key=PUSH_KEY)

        answer = await there.apply(body)

        assert answer.status == 200
        proved = verify_receipt(
            answer.json["receipt"],
            body,
            DidCoreId(make.STATION),
            GATEWAY_ID,
            verification_method=RECEIPT_METHOD,
            key=RECEIPT_KEY.verify_key,
        )
        assert (proved.registration_id, proved.stored_at) == (make.REGISTRATION, NOW)
        assert b"planted" not in answer.body
        (row,) = await rows(there, make.REGISTRATION)
        assert row == Installation(
            tenant=make.STATION,
            registration_id=make.REGISTRATION,
            push_target_id=make.TARGET,
            device_id=make.DEVICE,
            state=InstallationState.ACTIVE,
            request_digest=canonical.digest(body),
            receipt=answer.body,
            app="com.example.app",
        )


@pytest.mark.clause("R116", "R117", "R118")
async def test_a_route_lies_sealed_under_its_tenants_key_and_bound_to_its_registration(
    database: Database,
) -> None:
    """Neither another tenant nor another registration opens it, and it is not readable as it lies."""
    async with house(database) as there:
        await there.apply(make.active_body(push_key=PUSH_KEY))

        octets = await sealed(there, make.REGISTRATION)

        assert octets is not None
        assert PUSH_KEY.encode() not in octets
        assert open_route(there.keys, make.STATION, make.REGISTRATION, octets).push_key.reveal() == PUSH_KEY
        for tenant, registration in (
            (make.OTHER_STATION, make.REGISTRATION),
            (make.STATION, make.SUCCESSOR),
        ):
            with pytest.raises(SealBroken):
                open_route(there.keys, tenant, registration, octets)


@pytest.mark.clause("R123", "R145")
async def test_a_lost_answer_is_given_again_octet_for_octet(database: Database) -> None:
    """Later, signed anew: the first receipt with the first time in it, and one installation."""
    async with house(database) as there:
        first = await there.apply(make.active_body())
        there.clock.at += 86_400_000

        again = await there.apply(make.active_body())

        assert (again.status, again.body) == (200, first.body)


@pytest.mark.clause("R121", "R124")
async def test_another_body_under_the_same_id_conflicts_and_changes_nothing(database: Database) -> None:
    """Not even its push key."""
    async with house(database) as there:
        await there.apply(make.active_body(push_key=PUSH_KEY))
        before = (await rows(there, make.REGISTRATION), await sealed(there, make.REGISTRATION))

        answer = await there.apply(make.active_body(push_key="another"))

        assert (answer.status, answer.code) == (409, "duplicate_conflict")
        assert (await rows(there, make.REGISTRATION), await sealed(there, make.REGISTRATION)) == before


@pytest.mark.clause("R128", "R126")
async def test_a_successor_ends_its_predecessor_in_the_same_step(database: Database) -> None:
    """The predecessor's route is erased; its late handoff cannot bring it back."""
    async with house(database) as there:
        await there.apply(make.active_body())
        successor = make.active_body(
            registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION, push_key="new"
        )

        answer = await there.apply(successor)
        late = await there.apply(make.active_body())

        assert (answer.status, late.code) == (200, "duplicate_conflict")
        old, new = await rows(there, make.REGISTRATION, make.SUCCESSOR)
        assert isinstance(old, Installation)
        assert isinstance(new, Installation)
        assert (old.state, old.successor_id, old.app) == (InstallationState.REVOKED, make.SUCCESSOR, None)
        assert new.state is InstallationState.ACTIVE
        assert await sealed(there, make.REGISTRATION) is None


@pytest.mark.clause("R125", "R126", "R127")
async def test_a_revoked_registration_keeps_its_proof_and_loses_its_route(database: Database) -> None:
    """The tombstone answers its own replay and refuses what would revive it."""
    async with house(database) as there:
        await there.apply(make.active_body())

        revoked = await there.apply(make.revoked_body())
        late = await there.apply(make.active_body())
        again = await there.apply(make.revoked_body())

        assert (revoked.status, revoked.json["receipt"]["state"]) == (200, "revoked")
        assert (late.status, late.code) == (409, "duplicate_conflict")
        assert again.body == revoked.body
        assert await sealed(there, make.REGISTRATION) is None


@pytest.mark.clause("R127")
async def test_a_revoke_that_overtook_its_active_wins(database: Database) -> None:
    """The active arrives later and installs nothing."""
    async with house(database) as there:
        revoked = await there.apply(make.revoked_body())

        late = await there.apply(make.active_body())

        assert (revoked.status, late.code) == (200, "duplicate_conflict")
        assert await sealed(there, make.REGISTRATION) is None


@pytest.mark.clause("R115", "R119")
async def test_equal_ids_and_tokens_of_two_stations_are_two_objects(database: Database) -> None:
    """Nothing is shared, compared or merged; ending one leaves the other."""
    async with house(database) as there:
        other = there.pen(make.OTHER_STATION, OTHER_KEY)
        mine = await there.apply(make.active_body(push_key=PUSH_KEY))
        theirs = await there.apply(make.active_body(push_key=PUSH_KEY), other)
        await there.apply(make.revoked_body(), other)

        assert mine.json["receipt"]["source_station_id"] != theirs.json["receipt"]["source_station_id"]
        assert await sealed(there, make.REGISTRATION) != await sealed(
            there, make.REGISTRATION, make.OTHER_STATION
        )
        (row,) = await rows(there, make.REGISTRATION)
        assert isinstance(row, Installation)
        assert row.state is InstallationState.ACTIVE


@pytest.mark.clause("R129")
async def test_a_station_cannot_supersede_another_stations_registration(database: Database) -> None:
    """In its own tenant there is no such predecessor."""
    async with house(database) as there:
        await there.apply(make.active_body(), there.pen(make.OTHER_STATION, OTHER_KEY))
        body = make.active_body(registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION)

        answer = await there.apply(body)

        assert answer.code == "duplicate_conflict"
        (theirs,) = await rows(there, make.REGISTRATION, tenant=make.OTHER_STATION)
        assert isinstance(theirs, Installation)
        assert theirs.state is InstallationState.ACTIVE


async def test_an_application_that_is_not_configured_is_refused_at_the_door(database: Database) -> None:
    """Not at the first notify, when nobody is looking."""
    async with house(database) as there:
        answers = [
            await there.apply(make.active_body(app_id="com.example.unknown")),
            await there.apply(make.active_body(app_id=None)),
        ]

        assert [(answer.status, answer.code) for answer in answers] == [(400, "param_invalid")] * 2
        assert "app_id" in answers[0].json["detail"]
        assert await rows(there, make.REGISTRATION) == [None]


async def test_a_registration_without_app_id_goes_to_the_default_application(database: Database) -> None:
    """Where an operator named one."""
    async with house(database, default_app="com.example.app") as there:
        assert (await there.apply(make.active_body(app_id=None))).status == 200


@pytest.mark.clause("R107", "R093")
async def test_a_request_addressed_to_another_gateway_is_refused(database: Database) -> None:
    """Its signature holds; it is not for us."""
    async with house(database) as there:
        pen = there.pen()
        astray = type(pen)(
            pen.service_id, pen.keyid, pen.key, "ak:did_core:web:elsewhere.example", pen.gateway_url
        )

        answer = await there.apply(make.active_body(), astray)

        assert (answer.status, answer.code) == (403, "capability_denied")
        assert await rows(there, make.REGISTRATION) == [None]


@pytest.mark.clause("R107", "R086", "R113")
async def test_nobody_learns_who_is_trusted_from_how_he_is_refused(database: Database) -> None:
    """An unknown Station and a known one with a wrong key get one and the same answer."""
    async with house(database) as there:
        stranger = await there.apply(make.active_body(), there.pen("ak:did_core:web:stranger.example"))
        impostor = await there.apply(make.active_body(), there.pen(make.STATION, OTHER_KEY))

        assert (stranger.status, stranger.code) == (401, "http_signature_invalid")
        assert (impostor.status, impostor.code) == (401, "http_signature_invalid")
        told = [{k: v for k, v in answer.json.items() if k != "instance"} for answer in (stranger, impostor)]
        assert told[0] == told[1]
        assert await rows(there, make.REGISTRATION) == [None]


async def test_a_signed_request_that_is_sent_twice_is_a_replay(database: Database) -> None:
    """Octet for octet: not a retry, which is signed anew."""
    async with house(database) as there:
        request = there.pen().handoff(make.active_body(), NOW)

        assert (await there.send(request)).status == 200
        again = await there.send(request)

        assert (again.status, again.code) == (401, "http_signature_invalid")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"signature": None}, 401, "http_signature_required"),
        ({"signature_input": None}, 401, "http_signature_required"),
        ({"signature": "sig1=:AAAA:"}, 401, "http_signature_invalid"),
        ({"content_digest": None}, 401, "http_signature_invalid"),
        ({"content_digest": "sha-256=:AAAA:"}, 401, "http_signature_invalid"),
        ({"destination_service_id": make.OTHER_STATION}, 401, "http_signature_invalid"),
        ({"source_service_id": make.OTHER_STATION}, 401, "http_signature_invalid"),
        ({"arkret_operation": None}, 400, "operation_selector_required"),
        ({"arkret_operation": "ak.edge.push.command.notify.v1"}, 422, "unsupported_operation_version"),
        (
            {"arkret_operation": "ak.edge.push.command.apply_registration.v2"},
            422,
            "unsupported_operation_version",
        ),
        ({"content_encoding": "gzip"}, 415, "unsupported_content_encoding"),
    ],
)
async def test_a_request_that_was_touched_after_signing_is_refused_for_what_it_is(
    database: Database, changes: dict[str, str | None], status: int, code: str
) -> None:
    """And nothing is stored."""
    async with house(database) as there:
        answer = await there.send(there.pen().handoff(make.active_body(), NOW), **changes)

        assert (answer.status, answer.code) == (status, code)
        assert await rows(there, make.REGISTRATION) == [None]


@pytest.mark.parametrize(
    ("skew_ms", "status"), [(-31_000, 401), (-30_000, 200), (30_000, 200), (31_000, 401)]
)
async def test_a_signature_holds_for_thirty_seconds_of_skew(
    database: Database, skew_ms: int, status: int
) -> None:
    """Both ends included."""
    async with house(database) as there:
        answer = await there.send(there.pen().handoff(make.active_body(), NOW + skew_ms, 300))

        assert answer.status == status
        assert answer.code in {"", "signature_window_invalid"}


async def test_a_body_that_is_not_canonical_is_refused_though_its_signature_holds(database: Database) -> None:
    """Unless the trust entry of its Station relaxes it."""
    async with house(database) as there:
        pen = there.pen()
        loose = canonical.encode(make.active_body()).replace(b'":', b'": ')
        signed = pen.sign_octets("/_arkret/edge/push/registrations:apply", loose, NOW)

        answer = await there.send(signed)

        assert (answer.status, answer.code) == (400, "invalid_canonical_json")
        assert await rows(there, make.REGISTRATION) == [None]
