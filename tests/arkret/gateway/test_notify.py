"""Notifies through the edge, on both databases: taken over on disk, answered device by device, frozen."""

import asyncio
import json
from typing import Any

import pytest

from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.model import RouteEnd
from heliograph.arkret.gateway.service.takeover import KIND, KIND_HARDENED, collapse_key, lane_of
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.delivery.model import Wakeup, WakeupKind
from heliograph.queue.store import claim
from heliograph.signing.seal import TenantKeys
from heliograph.storage.database import Database
from heliograph.wire import canonical
from tests.arkret import make
from tests.arkret.gateway.house import MASTER, NOW, OTHER_KEY, Answer, House, house
from tests.secrets import planted, planted_octets

pytestmark = pytest.mark.anyio

TOKEN = "rrrrrrrrrrrrrrrrrrrrrr"


def outcomes(answer: Answer) -> list[dict[str, Any]]:
    """Return the outcomes of a 200."""
    assert answer.status == 200, answer.json
    found: list[dict[str, Any]] = answer.json["outcomes"]
    return found


def statuses(answer: Answer) -> list[str]:
    """Return each device's status, with the reason behind it."""
    return [
        "/".join((o["gateway_status"], *([o["reason_code"]] if "reason_code" in o else [])))
        for o in outcomes(answer)
    ]


async def waiting(there: House, at: int = NOW) -> list[dict[str, Any]]:
    """Claim everything that is due and return what each item would tell a provider."""
    claims = await there.database.claim(claim, (KIND, KIND_HARDENED), 100, at, 60_000)
    found = []
    for each in claims:
        stored = await there.database.read(store.delivery_load, each.item_id)
        assert stored is not None
        found.append(
            {
                "kind": each.kind,
                "lane": each.lane,
                "gate": each.gate,
                "expires_at": each.expires_at,
                "stored": stored,
            }
        )
    return found


@pytest.mark.clause("R089", "R092", "R297", "R299")
async def test_a_registered_device_is_taken_over_and_its_wakeup_waits_on_disk(database: Database) -> None:
    """The item refers; the content is the blind wakeup; the route stays sealed where it was."""
    async with house(database) as there:
        await there.apply(make.active_body(push_key=planted("notify-push-key")))

        answer = await there.notify(make.notify_body(counts={"badge": "2-5"}))

        assert answer.json == {
            "push_target_id": make.TARGET,
            "outcomes": [{"device_id": make.DEVICE, "gateway_status": "accepted"}],
        }
        (item,) = await waiting(there)
        assert (item["kind"], item["lane"]) == (KIND, lane_of(make.STATION))
        assert item["gate"] == "stub"
        assert item["expires_at"] == NOW + 86_400_000
        assert json.loads(item["stored"].wakeup) == {
            "push_target_id": make.TARGET,
            "kind": "message",
            "push_hint": None,
            "push_hint_l10n_key": None,
            "counts": {"badge": "2-5", "unread_increment": None, "missed_call": None},
        }


@pytest.mark.clause("R299")
async def test_an_accepted_wakeup_rings_for_a_worker(database: Database) -> None:
    """After the commit: whoever waits finds it."""
    async with house(database) as there:
        await there.apply(make.active_body())
        await there.notify(make.notify_body())

        assert await there.doorbell.wait([KIND], 0)


@pytest.mark.clause("R296", "R303")
async def test_a_target_that_was_never_installed_is_unknown_for_every_device(database: Database) -> None:
    """One equal rejection each, without a backoff."""
    async with house(database) as there:
        answer = await there.notify(make.notify_body(make.DEVICE, make.OTHER_DEVICE))

        assert outcomes(answer) == [
            {"device_id": device, "gateway_status": "rejected", "reason_code": "push_target_unknown"}
            for device in (make.DEVICE, make.OTHER_DEVICE)
        ]


@pytest.mark.clause("R093", "R296")
async def test_each_device_gets_its_own_outcome(database: Database) -> None:
    """A live one is taken over, one that was never registered is unknown."""
    async with house(database) as there:
        await there.apply(make.active_body())

        answer = await there.notify(make.notify_body(make.OTHER_DEVICE, make.DEVICE))

        assert statuses(answer) == ["rejected/push_token_unknown", "accepted"]


@pytest.mark.clause("R097", "R098", "R139")
async def test_a_revoked_device_is_unknown_and_what_waited_for_it_has_no_route(database: Database) -> None:
    """The target stays known: it once was installed."""
    async with house(database) as there:
        await there.apply(make.active_body())
        await there.notify(make.notify_body())
        await there.apply(make.revoked_body())

        answer = await there.notify(make.notify_body(), key="key-2")

        assert statuses(answer) == ["rejected/push_token_unknown"]
        (item,) = await waiting(there)
        assert item["stored"].route is None


@pytest.mark.clause("R065", "R097")
async def test_after_a_replacement_the_same_address_wakes_the_new_route(database: Database) -> None:
    """The registration id never enters a notify; the address finds the current installation."""
    async with house(database) as there:
        await there.apply(make.active_body())
        await there.apply(
            make.active_body(
                registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION, push_key="new"
            )
        )

        await there.notify(make.notify_body())

        (item,) = await waiting(there)
        assert item["stored"].registration_id == make.SUCCESSOR


@pytest.mark.clause("R097")
async def test_an_expired_registration_is_unknown_and_its_route_erased(database: Database) -> None:
    """At the instant itself, for ever; the Station may still replace it."""
    async with house(database) as there:
        await there.apply(make.active_body(expires_at="2026-09-21T14:13:21.000Z"))
        there.clock.at = 1_790_000_001_000

        answer = await there.notify(make.notify_body())
        row = await there.database.read(store.installation, make.STATION, make.REGISTRATION)
        successor = make.active_body(
            registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION
        )

        assert statuses(answer) == ["rejected/push_token_unknown"]
        assert row is not None
        assert row.route_end is RouteEnd.EXPIRED
        assert (await there.apply(successor)).status == 200


async def test_a_route_that_its_provider_killed_is_invalid_and_can_be_replaced(database: Database) -> None:
    """The secret is erased; the registration stays the current one for the handoff."""
    async with house(database) as there:
        await there.apply(make.active_body())
        await there.database.transact(store.route_end, make.STATION, make.REGISTRATION, RouteEnd.PROVIDER)

        answer = await there.notify(make.notify_body())
        successor = make.active_body(
            registration_id=make.SUCCESSOR, supersedes_registration_id=make.REGISTRATION
        )

        assert statuses(answer) == ["rejected/push_token_invalid"]
        assert (await there.apply(successor)).status == 200
        assert statuses(await there.notify(make.notify_body(), key="key-2")) == ["accepted"]


@pytest.mark.clause("R112", "R113", "R272", "R324", "R325")
async def test_another_station_cannot_wake_a_device_it_did_not_register(database: Database) -> None:
    """The same target and device are nothing in its tenant, and it cannot tell that they exist."""
    async with house(database) as there:
        await there.apply(make.active_body())
        other = there.pen(make.OTHER_STATION, OTHER_KEY)

        real = await there.notify(make.notify_body(), pen=other)
        invented = await there.notify(make.notify_body(push_target_id=make.OTHER_TARGET), key="k2", pen=other)

        assert statuses(real) == statuses(invented) == ["rejected/push_target_unknown"]
        assert await waiting(there) == []


@pytest.mark.clause("R316", "R318", "R309")
async def test_a_retry_under_its_key_gets_the_first_answer_whatever_happened_since(
    database: Database,
) -> None:
    """Accepted stays accepted though the device is gone, and nothing is sent twice."""
    async with house(database) as there:
        await there.apply(make.active_body())
        first = await there.notify(make.notify_body())
        await there.apply(make.revoked_body())
        there.clock.at += 3_600_000

        again = await there.notify(make.notify_body())

        assert (again.status, again.body) == (200, first.body)
        assert len(await waiting(there, there.clock.at)) == 1


@pytest.mark.clause("R317")
async def test_a_key_that_stands_for_another_body_conflicts(database: Database) -> None:
    """And changes nothing."""
    async with house(database) as there:
        await there.apply(make.active_body())
        await there.notify(make.notify_body())

        answer = await there.notify(make.notify_body(wakeup_kind="mention"))

        assert (answer.status, answer.code) == (409, "duplicate_conflict")
        assert len(await waiting(there)) == 1


async def test_the_same_key_of_another_station_is_another_key(database: Database) -> None:
    """Keys are the caller's own."""
    async with house(database) as there:
        other = there.pen(make.OTHER_STATION, OTHER_KEY)
        await there.apply(make.active_body())
        await there.apply(make.active_body(), other)

        answers = [await there.notify(make.notify_body()), await there.notify(make.notify_body(), pen=other)]

        assert [statuses(answer) for answer in answers] == [["accepted"], ["accepted"]]


@pytest.mark.parametrize("key", [None, "", "a" * 129, "white space", "semi;colon"])
async def test_a_notify_without_a_well_formed_key_is_refused(database: Database, key: str | None) -> None:
    """After its signature was found good, and before its body is looked at."""
    async with house(database) as there:
        pen = there.pen()
        if key is None:
            request = pen.sign_octets("/_arkret/edge/push/notify", canonical.encode(make.notify_body()), NOW)
        else:
            request = pen.notify(make.notify_body(), key, NOW)

        answer = await there.send(request)

        assert (answer.status, answer.code) == (400, "param_invalid")


@pytest.mark.clause("R260", "R261")
async def test_a_private_kind_is_acknowledged_whether_or_not_anything_is_registered(
    database: Database,
) -> None:
    """So the answer tells nothing of registrations, and no provider is asked."""
    async with house(database) as there:
        body = make.notify_body(make.DEVICE, make.OTHER_DEVICE, top={"event_kind": "ak.self.agent.pause"})

        answer = await there.notify(body)

        assert statuses(answer) == ["duplicate", "duplicate"]
        assert await waiting(there) == []


@pytest.mark.clause("R262", "R263", "R264")
async def test_a_historical_replay_wakes_nobody(database: Database) -> None:
    """Every device is acknowledged once, and its key stands for it from then on."""
    async with house(database) as there:
        await there.apply(make.active_body())
        body = make.notify_body(top={"reason_code": "historical_only"})

        answer = await there.notify(body)

        assert statuses(answer) == ["duplicate"]
        assert await waiting(there) == []
        assert (await there.notify(body)).body == answer.body


@pytest.mark.clause("R265")
async def test_another_reason_code_is_no_defined_one(database: Database) -> None:
    """Never a silent push."""
    async with house(database) as there:
        answer = await there.notify(make.notify_body(top={"reason_code": "just_because"}))

        assert (answer.status, answer.code) == (422, "schema_violation")


@pytest.mark.clause("R266")
async def test_an_audit_envelope_is_written_down_and_pushed_to_nobody(database: Database) -> None:
    """The least that identifies it."""
    async with house(database) as there:
        await there.apply(make.active_body())
        event = "ak:event:" + "E" * 44
        envelope = {"access_kind": "e2ee_late_recovery", "late_recovery_original_event_id": event}

        answer = await there.notify(make.notify_body(top={"audit_envelope": envelope}))

        assert statuses(answer) == ["duplicate"]
        assert await waiting(there) == []
        assert await there.database.read(store.audits, make.STATION, "", 10) == [
            ("e2ee_late_recovery", event, NOW)
        ]


async def test_a_late_recovery_names_its_event(database: Database) -> None:
    """The schema lets it be left out; the operation does not."""
    async with house(database) as there:
        body = make.notify_body(top={"audit_envelope": {"access_kind": "e2ee_late_recovery"}})

        answer = await there.notify(body)

        assert (answer.status, answer.code) == (400, "param_invalid")


@pytest.mark.clause("R009", "R285", "R287", "R292", "R360", "R289")
async def test_a_visible_body_goes_nowhere_even_with_the_devices_consent(database: Database) -> None:
    """This Gateway does not claim the profile; the Station falls back to the blind form."""
    async with house(database) as there:
        await there.apply(make.active_body(visible_notification_opt_in=True))

        visible = await there.notify(make.visible_body(realm_title="Town hall"))
        blind = await there.notify(make.notify_body(), key="key-2")

        assert statuses(visible) == ["rejected/unsupported_profile"]
        assert statuses(blind) == ["accepted"]
        (item,) = await waiting(there)
        assert "Town hall" not in item["stored"].wakeup


@pytest.mark.clause("R251", "R253", "R280")
async def test_nothing_but_the_allowed_members_is_kept_for_the_provider(database: Database) -> None:
    """Route tokens, the marker and the event kind end at the Gateway."""
    async with house(database) as there:
        await there.apply(make.active_body())
        body = make.notify_body(
            route_tokens={"realm_route_token": TOKEN, "scope_route_token": TOKEN},
            evaluation_locus_unresolved=True,
            top={"event_kind": "ak.message.create"},
        )

        await there.notify(body)

        (item,) = await waiting(there)
        for word in (TOKEN, "ak.message.create", "evaluation", "event_kind", "route"):
            assert word not in item["stored"].wakeup


@pytest.mark.clause("R237")
async def test_an_off_grid_bucket_is_dropped_counted_and_the_device_woken(database: Database) -> None:
    """The metric tells an operator that a Station sends what it must not."""
    async with house(database) as there:
        await there.apply(make.active_body())

        answer = await there.notify(make.notify_body(counts={"badge": "5-2"}))

        assert statuses(answer) == ["accepted"]
        (item,) = await waiting(there)
        assert item["stored"].wakeup.endswith('"counts":null}')
        assert there.telemetry.value("heliograph_dropped_counts_total", member="badge") == 1


async def test_an_equal_wakeup_joins_the_one_that_waits(database: Database) -> None:
    """Until it is claimed; then the next one is a wakeup of its own."""
    async with house(database) as there:
        await there.apply(make.active_body())

        answers = [await there.notify(make.notify_body(), key=f"key-{n}") for n in range(3)]
        other_kind = await there.notify(make.notify_body(wakeup_kind="mention"), key="key-m")
        claimed = await waiting(there)
        after = await there.notify(make.notify_body(), key="key-9")

        assert [statuses(answer) for answer in answers] == [["accepted"], ["duplicate"], ["duplicate"]]
        assert statuses(other_kind) == ["accepted"]
        assert len(claimed) == 2
        assert statuses(after) == ["accepted"]


async def test_increments_add_up_and_never_fold(database: Database) -> None:
    """Two increments of one are two."""
    async with house(database) as there:
        await there.apply(make.active_body())
        body = make.notify_body(counts={"unread_increment": 1})

        answers = [await there.notify(body, key=f"key-{n}") for n in range(2)]

        assert [statuses(answer) for answer in answers] == [["accepted"], ["accepted"]]
        assert len(await waiting(there)) == 2


async def test_rates_count_devices_and_are_part_of_the_frozen_answer(database: Database) -> None:
    """A limited caller retries under a new key when it was told to."""
    settings = GatewaySettings(devices_per_second=256, devices_burst=256)
    async with house(database, settings=settings) as there:
        await there.apply(make.active_body())
        many = make.notify_body(*(f"ak:device:0192f3a1-4c2b-7d5e-9f10-{n:012x}" for n in range(256)))
        await there.notify(many)

        limited = await there.notify(make.notify_body(), key="key-2")
        there.clock.at += 1_000
        frozen = await there.notify(make.notify_body(), key="key-2")
        retried = await there.notify(make.notify_body(), key="key-3")

        (outcome,) = outcomes(limited)
        assert (outcome["reason_code"], outcome["retry_after_ms"]) == ("rate_limited", 4)
        assert frozen.body == limited.body
        assert statuses(retried) == ["accepted"]


async def test_a_station_whose_backlog_is_full_is_put_off(database: Database) -> None:
    """Others are not; the advice has a time in it."""
    async with house(database, settings=GatewaySettings(waiting_max=1)) as there:
        await there.apply(make.active_body())
        await there.notify(make.notify_body())

        full = await there.notify(make.notify_body(wakeup_kind="mention"), key="key-2")

        (outcome,) = outcomes(full)
        assert (outcome["reason_code"], outcome["retry_after_ms"]) == ("push_gateway_unreachable", 60_000)


@pytest.mark.clause("R043", "R357", "R358", "R359")
async def test_a_hardened_sources_wakeup_waits_for_the_five_minute_mark(database: Database) -> None:
    """The answer does not wait; nothing in the request can change it."""
    async with house(database, hardened=True) as there:
        there.clock.at = NOW + 1
        await there.apply(make.active_body())
        answer = await there.notify(make.notify_body())
        mark = -(-there.clock.at // 300_000) * 300_000

        assert statuses(answer) == ["accepted"]
        assert await waiting(there, mark - 1) == []
        (item,) = await waiting(there, mark)
        assert item["kind"] == KIND_HARDENED


async def test_fifty_equal_requests_at_once_are_one(database: Database) -> None:
    """Signed apart, under one key: one takes over, the others hear its answer."""
    async with house(database) as there:
        await there.apply(make.active_body())

        answers = await asyncio.gather(*(there.notify(make.notify_body()) for _ in range(50)))

        assert {answer.body for answer in answers} == {answers[0].body}
        assert statuses(answers[0]) == ["accepted"]
        assert len(await waiting(there)) == 1


async def test_requests_that_share_a_transaction_are_answered_as_if_each_came_alone(
    database: Database,
) -> None:
    """Folded, unknown, acknowledged, conflicting and repeated: each hears what is its own."""
    async with house(database) as there:
        await there.apply(make.active_body())
        nobody = make.notify_body(make.OTHER_DEVICE)
        nowhere = make.notify_body(push_target_id=make.OTHER_TARGET)
        private = make.notify_body(top={"event_kind": "ak.self.agent.pause"})

        first, equal, mention, unknown, lost, told, again, clash = await asyncio.gather(
            there.notify(make.notify_body(), key="a"),
            there.notify(make.notify_body(), key="b"),
            there.notify(make.notify_body(wakeup_kind="mention"), key="c"),
            there.notify(nobody, key="d"),
            there.notify(nowhere, key="e"),
            there.notify(private, key="f"),
            there.notify(make.notify_body(), key="a"),
            there.notify(nobody, key="a"),
        )

        assert [statuses(answer) for answer in (first, equal, mention, unknown, lost, told)] == [
            ["accepted"],
            ["duplicate"],
            ["accepted"],
            ["rejected/push_token_unknown"],
            ["rejected/push_target_unknown"],
            ["duplicate"],
        ]
        assert again.body == first.body
        assert (clash.status, clash.code) == (409, "duplicate_conflict")
        assert len(await waiting(there)) == 2


@pytest.mark.clause("R315", "R350")
async def test_an_answer_says_nothing_of_routes_and_providers(database: Database) -> None:
    """Exactly the four members, whatever the outcome."""
    async with house(database) as there:
        await there.apply(make.active_body(push_key=planted("answer-push-key")))

        answer = await there.notify(make.notify_body(make.DEVICE, make.OTHER_DEVICE))

        assert set(answer.json) == {"push_target_id", "outcomes"}
        assert {member for outcome in outcomes(answer) for member in outcome} <= {
            "device_id",
            "gateway_status",
            "reason_code",
            "retry_after_ms",
        }


@pytest.mark.clause("R037", "R038", "R039")
def test_collapse_keys_cannot_be_linked() -> None:
    """Whatever differs, the keys have nothing in common; equal facts give one key."""
    keys = TenantKeys({1: MASTER}, 1)
    wakeup = Wakeup(make.TARGET, WakeupKind.MESSAGE)
    variants = [
        collapse_key(keys, make.STATION, wakeup, make.DEVICE, 1),
        collapse_key(keys, make.STATION, wakeup, make.DEVICE, 2),
        collapse_key(keys, make.STATION, wakeup, make.OTHER_DEVICE, 1),
        collapse_key(keys, make.STATION, Wakeup(make.OTHER_TARGET, WakeupKind.MESSAGE), make.DEVICE, 1),
        collapse_key(keys, make.STATION, Wakeup(make.TARGET, WakeupKind.CALL_INVITE), make.DEVICE, 1),
        collapse_key(keys, make.OTHER_STATION, wakeup, make.DEVICE, 1),
        collapse_key(TenantKeys({1: planted_octets("m2")}, 1), make.STATION, wakeup, make.DEVICE, 1),
    ]

    assert len(set(variants)) == len(variants)
    assert {len(variant) for variant in variants} == {32}
    assert not any(a[:6] == b[:6] for a in variants for b in variants if a is not b)
    assert collapse_key(keys, make.STATION, wakeup, make.DEVICE, 1) == variants[0]


async def test_a_database_that_is_away_is_told_once_and_with_a_time(database: Database) -> None:
    """One Retry-After and the same advice in the body; nobody is told that anything was accepted."""
    async with house(database) as there:
        await there.apply(make.active_body())
        await database.close()

        answer = await there.notify(make.notify_body())

        assert (answer.status, answer.code) == (503, "temporarily_unavailable")
        assert (answer.headers["retry-after"], answer.json["retry_after_ms"]) == ("1", 1_000)
